//! What the formats of files have in common: tensors of any type, what is known of one that is stored, and how it is read.

use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::tensor::{Tensor, TensorRef, transfer};
use std::io;
use std::ops::Deref;
use std::path::Path;
use tile_ir::DType;

/// A tensor of any element type, as files take them: a [`Tensor`] or [`TensorView`](crate::TensorView).
pub trait Stored {
    /// The format of the elements.
    fn dtype(&self) -> DType;

    /// Extents, outermost axis first.
    fn shape(&self) -> &[usize];

    /// The elements' bytes in row-major order, little-endian.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails.
    fn bytes(&self) -> Result<Vec<u8>>;
}

/// A tensor or a view of one.
impl<T: Element, V: Deref<Target = TensorRef<T>>> Stored for V {
    fn dtype(&self) -> DType {
        T::DTYPE
    }

    fn shape(&self) -> &[usize] {
        (**self).shape()
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        Ok(transfer::bytes(&self.to_vec()?).to_vec())
    }
}

/// What an archive says of one of its tensors, before its elements are read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// The element type to read it with; `None` where no tensor has such elements.
    pub dtype: Option<DType>,
    /// The format of the elements as the file names it: `BF16`, `<f4`.
    pub format: String,
    /// Extents, outermost axis first.
    pub shape: Vec<usize>,
}

/// The tensor whose elements' bytes `read` gives, a part after the other; `refused` makes an error of what is wrong.
pub(super) fn read_tensor<T: Element>(
    device: &Device,
    shape: &[usize],
    mut read: impl FnMut(&mut [u8]) -> io::Result<()>,
    refused: &dyn Fn(Problem) -> Error,
) -> Result<Tensor<T>> {
    Tensor::from_parts(device, shape, |part| {
        read(part).map_err(|error| refused(error.into()))?;
        match part.iter().find(|&&byte| T::DTYPE == DType::Bool && byte > 1) {
            None => Ok(()),
            Some(byte) => {
                Err(refused(format!("it holds the byte {byte}, and of bool only 0 and 1 are").into()))
            }
        }
    })
}

/// Whether each tensor of a file has a name of its own.
///
/// # Errors
/// [`Error::File`].
pub(super) fn check_names(path: &Path, tensors: &[(&str, &dyn Stored)]) -> Result<()> {
    let mut names: Vec<&str> = tensors.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let problem = format!("two tensors are called `{}`; give each a name of its own", pair[0]);
            Err(refused(path, problem))
        }
    }
}

/// What is wrong with a file: a text, or what the system says.
pub(super) struct Problem {
    pub(super) text: String,
    pub(super) kind: Option<io::ErrorKind>,
}

impl From<String> for Problem {
    fn from(text: String) -> Problem {
        Problem { text, kind: None }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem { text: error.to_string(), kind: Some(error.kind()) }
    }
}

/// An error of a file.
pub(super) fn refused(path: &Path, problem: impl Into<Problem>) -> Error {
    let Problem { text, kind } = problem.into();
    Error::File { path: path.display().to_string(), problem: text, kind }
}
