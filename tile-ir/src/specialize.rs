//! Binds the compile-time parameters of a kernel.

use crate::dtype::DType;
use crate::verify::{VerifiedKernel, VerifyError};

/// The value of one compile-time parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Binding {
    /// For `const BM: usize`.
    Const(usize),
    /// For `T: Float`.
    Elem(DType),
}

/// Parameter name → value, in the order of the kernel's generics.
pub type Bindings = Vec<(String, Binding)>;

/// A verified kernel without compile-time parameters: every tile extent is a number and every element
/// format is known. Only [`specialize`] and the passes make one.
#[derive(Clone, Debug)]
pub struct Instance {
    kernel: VerifiedKernel,
    bindings: Bindings,
}

impl Instance {
    /// What the parameters were bound to.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }
}

impl std::ops::Deref for Instance {
    type Target = VerifiedKernel;
    fn deref(&self) -> &VerifiedKernel {
        &self.kernel
    }
}

/// A kernel that can't be specialised to these bindings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecializeError {
    /// A parameter without a value.
    #[error("kernel `{kernel}`: parameter `{parameter}` has no value")]
    Missing {
        /// The kernel.
        kernel: String,
        /// The parameter.
        parameter: String,
    },
    /// A value for a parameter that doesn't exist, or of the wrong kind.
    #[error("kernel `{kernel}`: `{parameter}` is {problem}")]
    Wrong {
        /// The kernel.
        kernel: String,
        /// The parameter.
        parameter: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The bound kernel breaks an invariant, such as an mma accumulator format that doesn't exist.
    #[error("kernel `{kernel}` can't be made with these parameters: {}", errors.first().map_or("", |e| e.message.as_str()))]
    Invalid {
        /// The kernel.
        kernel: String,
        /// Every violation.
        errors: Vec<VerifyError>,
    },
}

/// Substitutes parameters by values and verifies the result.
///
/// # Errors
/// [`SpecializeError`] where a binding is missing or wrong, or the result isn't valid.
pub fn specialize(
    kernel: &VerifiedKernel,
    bindings: &[(String, Binding)],
) -> Result<Instance, SpecializeError> {
    todo!()
}
