//! Elements in another format, by the rules of kernels.

use super::Tensor;
use super::tensor_ref::TensorRef;
use crate::device::Device;
use crate::element::{Element, array_of, elements_of};
use crate::error::Result;

/// How many elements are converted at a time: they take up to 32 bytes each meanwhile.
const PART: usize = 1 << 14;

impl<T: Element> TensorRef<T> {
    /// The elements in another format, in a tensor of its own on a device. They are converted by the host, as a kernel's
    /// `cast` does it: floats are rounded to the nearest, to even where two are as near; floats become integers by leaving
    /// out what is behind the point, at most the largest, and 0 for NaN; integers wrap.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use half::bf16;
    /// use tile::{Device, Tensor};
    /// let weights = Tensor::from_vec(&Device::cpu(), vec![0.1f32, 1.0, 3.4e38], [3])?;
    /// let narrow = weights.cast::<bf16>(&Device::cpu())?;
    /// assert_eq!(narrow.to_vec()?, [bf16::from_f32(0.1), bf16::ONE, bf16::INFINITY]);
    /// assert_eq!(weights.cast::<u8>(&Device::cpu())?.to_vec()?, [0, 1, 255]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`TensorRef::to_vec`] and [`Tensor::zeros`].
    pub fn cast<U: Element>(&self, device: &Device) -> Result<Tensor<U>> {
        let elements = self.to_vec()?;
        Tensor::from_vec(device, elements.chunks(PART).flat_map(converted).collect(), self.shape())
    }
}

fn converted<T: Element, U: Element>(elements: &[T]) -> Vec<U> {
    elements_of(&array_of(&[elements.len()], elements).cast(U::DTYPE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::bf16;

    #[test]
    fn elements_are_rounded_once() {
        let device = Device::cpu();
        // Halfway between two of bf16's and a little more, which an f32 or an f64 between would lose.
        let tie = (1i64 << 62) + (1 << 54) + 1;
        let x = Tensor::from_vec(&device, vec![tie, tie - 1, -1, i64::MIN], [2, 2]).unwrap();
        let above = bf16::from_bits(bf16::from_f32(2f32.powi(62)).to_bits() + 1);
        let even = bf16::from_f32(2f32.powi(62));
        let least = bf16::from_f32(-(2f32.powi(63)));
        let narrow = x.cast::<bf16>(&device).unwrap();
        assert_eq!(narrow.shape(), [2, 2]);
        assert_eq!(narrow.to_vec().unwrap(), [above, even, -bf16::ONE, least]);
        assert_eq!(x.t().unwrap().cast::<u8>(&device).unwrap().to_vec().unwrap(), [1, 255, 0, 0]);
        assert_eq!(x.cast::<bool>(&device).unwrap().to_vec().unwrap(), [true; 4]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "many numbers, and nothing unsafe")]
    fn parts_follow_each_other() {
        let count = 2 * PART as i32 + 3;
        let x = Tensor::from_iter(&Device::cpu(), 0..count).unwrap();
        let wide = x.cast::<f64>(&Device::cpu()).unwrap().to_vec().unwrap();
        assert!(wide.iter().copied().eq((0..count).map(f64::from)));
    }
}
