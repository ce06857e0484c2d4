//! Tensors from and to other libraries and their files.
//!
//! | what | feature | module or functions |
//! |---|---|---|
//! | arrays of `ndarray`, which stands here as `ndarray` | `ndarray` | `Tensor::from_ndarray`, `Tensor::to_ndarray` |
//! | DLPack, the exchange between PyTorch, JAX, CuPy and others; the crate `dlpark` stands here | `dlpack` | `dlpack` |
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
mod stored;

#[cfg(any(feature = "npy", feature = "safetensors"))]
pub use stored::{Info, Stored};

/// The version of the crate whose tensors [`dlpack`] takes and gives.
#[cfg(feature = "dlpack")]
pub use ::dlpark;
/// The version of the crate whose arrays [`Tensor::from_ndarray`](crate::Tensor::from_ndarray) takes.
#[cfg(feature = "ndarray")]
pub use ::ndarray;
