//! What is known of a kernel's numbers.

use crate::analysis::{Divisors, Facts};
use crate::kernel::Kernel;

/// A kernel, what divides its numbers, and what its conditions say of sizes.
pub(super) struct Numbers<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) divisors: Divisors,
    pub(super) facts: Facts,
}

impl<'k> Numbers<'k> {
    pub(super) fn of(kernel: &'k Kernel) -> Self {
        Numbers { kernel, divisors: Divisors::of(kernel), facts: Facts::of(kernel) }
    }
}
