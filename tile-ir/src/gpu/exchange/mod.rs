//! How elements get from the threads that have them to those that want them: what each op exchanges ([`movement`],
//! [`reduction`], [`scan`], [`sorting`], [`ways`]), through which shared memory ([`swizzled`], [`scratch`]), and where threads wait for
//! each other ([`barriers`], [`orders`]).

pub(super) mod barriers;
pub(super) mod movement;
pub(super) mod orders;
pub(super) mod reduction;
pub(super) mod scan;
pub(super) mod scratch;
pub(super) mod sorting;
pub(super) mod swizzled;
pub(super) mod uniform;
pub(super) mod ways;

use super::{Copies, LaidOut, Pipelines};
use crate::kernel::{Kernel, ValueId};
use movement::Moves;
use std::collections::HashSet;

/// What is known of a schedule before it is known what goes through shared memory, and where.
pub(super) struct Exchanges<'s> {
    pub(super) laid_out: &'s LaidOut,
    pub(super) moves: &'s Moves,
    /// Tiles all of whose elements are one value.
    pub(super) uniform: &'s HashSet<ValueId>,
    pub(super) pipelines: &'s Pipelines,
    pub(super) copies: &'s Copies,
}

impl Exchanges<'_> {
    pub(super) fn kernel(&self) -> &Kernel {
        &self.laid_out.instance
    }
}
