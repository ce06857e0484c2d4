//! Everything that this crate refuses, in one type. What a function refuses has a type of its own, which holds the places,
//! names and values that belong to it; each becomes an [`Error`] by `?`.

use crate::abi::BindError;
use crate::dim::DimError;
use crate::ops::TypeError;
use crate::specialize::SpecializeError;
use crate::tensor_map::MapError;
use crate::text::ParseError;
use crate::verify::VerifyError;

/// Why a kernel can't be read, made or launched, with everything that is known of it.
///
/// ```
/// use tile_ir::{Error, Instance};
/// assert!(matches!(Instance::parse("kernel", &[]), Err(Error::Parse(error)) if error.line == 1));
/// let fills = "\
/// kernel @fill<B>(%y: mut tensor<n x f32>) {
///   %vy = partition %y [B] : mut partition<n x f32, [B]>
///   %0 = constant 0.0 : f32
///   %t = splat %0 : tile<B x f32>
///   store_masked %vy, %t
/// }
/// ";
/// let error = Instance::parse(fills, &[]).unwrap_err();
/// assert_eq!(error.to_string(), "kernel `fill`: parameter `B` has no value");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text that isn't IR.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// Operands that don't fit an op.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// Every invariant that a kernel breaks, in order of appearance.
    #[error("{}", first_of(.0))]
    Verify(Vec<VerifyError>),
    /// Parameters that a kernel can't be made with.
    #[error(transparent)]
    Specialize(#[from] SpecializeError),
    /// An extent whose value can't be computed.
    #[error(transparent)]
    Dim(#[from] DimError),
    /// Arguments that don't fit a kernel.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A tensor that a kernel's code can't be told of.
    #[error(transparent)]
    TensorMap(#[from] MapError),
}

impl From<Vec<VerifyError>> for Error {
    fn from(errors: Vec<VerifyError>) -> Error {
        Error::Verify(errors)
    }
}

/// The first violation, and how many more there are.
fn first_of(errors: &[VerifyError]) -> String {
    match errors {
        [] => "the kernel isn't valid".to_owned(),
        [error] => error.to_string(),
        [error, others @ ..] => format!("{error} (and {} more)", others.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VerifiedKernel;

    #[test]
    fn of_several_violations_the_first_is_told_and_all_are_there() {
        let twice = "\
kernel @twice(%x: tensor<n x f32>) {
  %a = constant 1.0 : f32
  %b = constant 1 : i32
  %c = add %a, %b : f32
  %d = mul %a, %b : f32
}
";
        let error = VerifiedKernel::parse(twice).unwrap_err();
        let Error::Verify(errors) = &error else { panic!("{error}") };
        assert!(errors.len() > 1, "{errors:?}");
        assert_eq!(error.to_string(), format!("{} (and {} more)", errors[0], errors.len() - 1));
    }
}
