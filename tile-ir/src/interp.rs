//! The reference evaluator: executes any [`Instance`] on dense arrays, block by block.

use crate::abi::BindError;
use crate::array::Array;
use crate::specialize::Instance;

/// Runs every block of the grid, in order. `arguments` are the kernel's arguments (scalars have rank 0);
/// mutable tensors are updated in place.
///
/// # Errors
/// [`BindError`] where the shapes don't fit the kernel.
pub fn run(instance: &Instance, arguments: &mut [Array]) -> Result<(), BindError> {
    todo!()
}
