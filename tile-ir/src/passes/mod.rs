//! Target-free rewrites. [`PIPELINE`] is their order; each leaves a verified instance.

use crate::specialize::Instance;

/// A pass: its name for dumps, timing and tests, and what it does.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The name.
    pub name: &'static str,
    /// The rewrite.
    pub run: fn(Instance) -> Instance,
}

/// Every target runs these, in this order.
pub const PIPELINE: &[Pass] = &[];

/// Runs [`PIPELINE`].
pub fn optimize(instance: Instance) -> Instance {
    PIPELINE.iter().fold(instance, |instance, pass| (pass.run)(instance))
}
