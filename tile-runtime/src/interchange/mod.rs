//! Tensors from and to other libraries and their files.
//!
//! | what | feature | module or functions |
//! |---|---|---|
//! | arrays of `ndarray` | `ndarray` | `Tensor::from_ndarray`, `Tensor::to_ndarray` |
//! | DLPack, the exchange between PyTorch, JAX, CuPy and others | `dlpack` | `dlpack` |
//! | NumPy's `.npy` and `.npz` | `npy` | `npy` |
//! | `.safetensors` | `safetensors` | `safetensors` |
//!
//! Files hold elements in row-major order and little-endian, as memory does.

#[cfg(feature = "ndarray")]
mod arrays;
#[cfg(feature = "dlpack")]
pub mod dlpack;
#[cfg(feature = "npy")]
pub mod npy;
#[cfg(feature = "safetensors")]
pub mod safetensors;

#[cfg(any(feature = "npy", feature = "safetensors"))]
pub use stored::Stored;

#[cfg(any(feature = "npy", feature = "safetensors"))]
mod stored {
    use crate::element::Element;
    use crate::error::{Error, Result};
    use crate::tensor::{TensorRef, transfer};
    use std::io;
    use std::ops::Deref;
    use std::path::Path;
    use tile_ir::DType;

    /// A tensor of any element type, as files take them: a [`Tensor`](crate::Tensor) or
    /// [`TensorView`](crate::TensorView).
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

    /// The elements that bytes of a file are; `None` where they aren't: no whole number of them, or no `bool`.
    pub(super) fn elements<T: Element>(bytes: &[u8]) -> Option<Vec<T>> {
        let is_whole = bytes.len().is_multiple_of(size_of::<T>());
        let is_valid = T::DTYPE != DType::Bool || bytes.iter().all(|&byte| byte <= 1);
        (is_whole && is_valid).then(|| {
            let mut elements = vec![T::default(); bytes.len() / size_of::<T>()];
            transfer::bytes_mut(&mut elements).copy_from_slice(bytes);
            elements
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
}
