//! Tensors from and to arrays of `ndarray`.

use crate::device::Device;
use crate::element::Element;
use crate::error::Result;
use crate::tensor::{Tensor, TensorRef};

impl<T: Element> Tensor<T> {
    /// A tensor with the elements of an `ndarray` array, in row-major order.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn from_ndarray<D: ndarray::Dimension>(
        device: &Device,
        array: &ndarray::ArrayRef<T, D>,
    ) -> Result<Tensor<T>> {
        match array.as_slice() {
            Some(elements) => Tensor::from_slice(device, elements, array.shape()),
            None => Tensor::from_vec(device, array.iter().copied().collect(), array.shape()),
        }
    }
}

impl<T: Element> TensorRef<T> {
    /// The elements as an `ndarray` array.
    ///
    /// # Errors
    /// As [`TensorRef::to_vec`].
    pub fn to_ndarray(&self) -> Result<ndarray::ArrayD<T>> {
        let array = ndarray::ArrayD::from_shape_vec(self.shape(), self.to_vec()?);
        Ok(array.expect("a tensor has as many elements as its shape says"))
    }
}
