//! What every target's emitter shares: an infallible builder, leaf ops and mathematical functions.

pub(crate) mod convert;
pub(crate) mod fmod;
pub(crate) mod hint;
pub(crate) mod ir;
pub(crate) mod leaf;
pub(crate) mod math;
pub(crate) mod place;

pub(crate) use hint::LoopHint;
pub(crate) use ir::{Features, Ir, Value};
pub(crate) use place::{Names, Place};
