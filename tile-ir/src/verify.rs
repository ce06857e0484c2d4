//! The verifier, and the type that proves it ran.

use crate::kernel::Kernel;
use crate::loc::Loc;

/// A kernel that keeps every invariant of this module. Only [`verify`] makes one.
#[derive(Clone, Debug)]
pub struct VerifiedKernel(Kernel);

impl VerifiedKernel {
    /// Gives the kernel up for change; it must be verified again.
    pub fn into_inner(self) -> Kernel {
        self.0
    }
}

impl std::ops::Deref for VerifiedKernel {
    type Target = Kernel;
    fn deref(&self) -> &Kernel {
        &self.0
    }
}

/// A broken invariant, at the user's line where the IR knows it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct VerifyError {
    /// What is wrong, with the shapes or formats involved.
    pub message: String,
    /// Where.
    pub loc: Loc,
    /// What to do, where that is known.
    pub help: Option<String>,
}

/// Checks every invariant and collects every violation.
///
/// # Errors
/// All [`VerifyError`]s found, in order of appearance.
pub fn verify(kernel: Kernel) -> Result<VerifiedKernel, Vec<VerifyError>> {
    todo!()
}
