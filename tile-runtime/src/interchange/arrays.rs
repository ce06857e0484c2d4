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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interchange::ndarray::{Array2, array};

    #[test]
    fn arrays_are_those_of_the_crate_that_stands_beside() {
        let square: Array2<i32> = array![[1, 2], [3, 4]];
        let x = Tensor::from_ndarray(&Device::cpu(), &square.t()).unwrap();
        assert_eq!(
            (x.to_vec().unwrap(), x.to_ndarray().unwrap()),
            (vec![1, 3, 2, 4], square.t().to_owned().into_dyn())
        );
    }
}
