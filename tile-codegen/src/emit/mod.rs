//! What every target's emitter shares: an infallible builder, leaf ops and mathematical functions.

pub(crate) mod atomic;
mod bits;
mod control;
pub(crate) mod convert;
mod extent;
mod extremum;
pub(crate) mod fences;
mod float8;
pub(crate) mod fmod;
mod fold;
mod fused;
mod group;
pub(crate) mod hint;
mod integer;
pub(crate) mod ir;
mod lanewise;
pub(crate) mod leaf;
mod log;
mod lookup;
pub(crate) mod math;
mod order;
mod philox;
pub(crate) mod place;
pub(crate) mod positions;
pub(crate) mod prefetch;
mod round;
mod tile_order;

pub(crate) use control::LoopRange;
pub(crate) use extremum::NanKey;
pub(crate) use float8::Float8Conversion;
pub(crate) use hint::LoopHint;
pub(crate) use ir::{Approximations, Features, Ir, PairRounding, Value};
pub(crate) use lanewise::vector_type;
pub(crate) use log::Log;
pub(crate) use place::{Names, Place};
pub(crate) use tile_order::Shared;
