//! Tensors: arrays in a device's memory, and views of them that copy nothing.
//!
//! A [`Tensor`] owns its memory; a [`TensorView`] and a [`TensorViewMut`] borrow it. All three are a [`TensorRef`], the
//! descriptor of a memory, behind a reference. What copies elements, between them or to the host, goes through `transfer.rs`,
//! and on streams through `on_stream.rs`; what GPUs do by themselves is in `on_device.rs`.

mod cast;
mod create;
mod descriptor;
mod display;
mod fill;
mod host_elements;
mod host_tensor;
mod indices;
mod memory;
mod movements;
mod on_device;
mod on_stream;
mod rows;
mod tensor_ref;
pub(crate) mod transfer;
mod view;
mod view_mut;

pub use host_tensor::HostTensor;
pub use indices::Indices;
pub use tensor_ref::TensorRef;
pub use view::TensorView;
pub use view_mut::TensorViewMut;

use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use descriptor::Descriptor;
pub(crate) use descriptor::Place;
pub(crate) use memory::{Allocation, Location, scratch};
use std::fmt;
use std::ops::{Deref, DerefMut};
use tensor_ref::Placed;
pub(crate) use tensor_ref::Untyped;
use tile_layout::Length;

/// An array in the memory of a device.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::{Device, Tensor};
/// let device = Device::cpu();
/// let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(x.to_host()?.to_string(), "[[1, 2],\n [3, 4]]");
/// assert_eq!(x.t()?.to_vec()?, [1.0, 3.0, 2.0, 4.0]);
/// assert_eq!(x.slice((1, ..))?.to_vec()?, [3.0, 4.0]);
/// # Ok::<(), tile::Error>(())
/// ```
pub struct Tensor<T> {
    placed: Placed<T>,
}

impl<T> Tensor<T> {
    /// The elements of a descriptor that was made for this memory.
    fn new(location: Location, descriptor: Descriptor) -> Tensor<T> {
        Tensor { placed: Placed::new(location, descriptor) }
    }
}

impl<T> Deref for Tensor<T> {
    type Target = TensorRef<T>;

    fn deref(&self) -> &TensorRef<T> {
        &self.placed
    }
}

impl<T> DerefMut for Tensor<T> {
    fn deref_mut(&mut self) -> &mut TensorRef<T> {
        &mut self.placed
    }
}

/// The number of bytes of so many elements.
fn count_bytes<T>(count: usize, shape: &[usize]) -> Result<usize> {
    let bytes = count.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
    bytes.ok_or_else(|| Error::TooLarge { shape: shape.to_vec() })
}

impl<T: Element> Tensor<T> {
    /// A tensor in memory that another library has allocated on the device, such as that of a PyTorch tensor: dense
    /// and row-major. It is not freed here.
    ///
    /// # Safety
    /// From `address` on there are as many elements as the shape says, each with a valid value, and they stay there as
    /// long as the tensor is used. While a launch uses the tensor, nobody else writes them, nor reads them if the launch
    /// writes them; on a GPU this concerns what other streams do, too. On an AMD GPU they lie in memory of its own that isn't
    /// fine-grained, unlike managed memory and the host's: it may lose additions of floats to other memory.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Address`] if the address isn't one of such elements.
    pub unsafe fn from_raw(device: &Device, address: u64, shape: impl AsRef<[usize]>) -> Result<Tensor<T>> {
        // SAFETY: the caller vouches for what is asked for of a dense tensor.
        unsafe { Tensor::over_foreign(device, address, Descriptor::dense(shape.as_ref())?) }
    }

    /// [`Tensor::from_raw`] with an element every so many along each axis, counted in elements from the first one, at
    /// `address`. A stride of 0 repeats an element.
    ///
    /// # Safety
    /// As [`Tensor::from_raw`], of all elements that the strides reach.
    ///
    /// # Errors
    /// As [`Tensor::from_raw`]; [`Error::Layout`] where extents and strides differ in number.
    pub unsafe fn from_raw_strided(
        device: &Device,
        address: u64,
        shape: impl AsRef<[usize]>,
        strides: impl AsRef<[i64]>,
    ) -> Result<Tensor<T>> {
        let descriptor = Descriptor::strided(shape.as_ref(), strides.as_ref())?;
        // SAFETY: the caller vouches for every element that the strides reach.
        unsafe { Tensor::over_foreign(device, address, descriptor) }
    }

    /// [`Tensor::from_raw_strided`] with a value that keeps the memory, and is dropped with the tensor: a file that is
    /// mapped, a vector, another library's handle.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let numbers = vec![1.0f32, 2.0, 3.0, 4.0];
    /// let address = numbers.as_ptr() as u64;
    /// // SAFETY: the vector has the elements, doesn't move them and is used by nobody else.
    /// let turned = unsafe { Tensor::<f32>::from_raw_owned(&Device::cpu(), address, [2, 2], [1, 2], numbers) }?;
    /// assert_eq!(turned.to_vec()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Safety
    /// As [`Tensor::from_raw_strided`], for as long as the owner isn't dropped.
    ///
    /// # Errors
    /// As [`Tensor::from_raw_strided`].
    pub unsafe fn from_raw_owned(
        device: &Device,
        address: u64,
        shape: impl AsRef<[usize]>,
        strides: impl AsRef<[i64]>,
        owner: impl Send + Sync + 'static,
    ) -> Result<Tensor<T>> {
        let descriptor = Descriptor::strided(shape.as_ref(), strides.as_ref())?;
        // SAFETY: the caller vouches for every element that the strides reach, as long as there is the owner.
        let location = unsafe { located::<T>(device, address, &descriptor) }?;
        Ok(Tensor::new(location.kept_by(owner), descriptor))
    }

    /// # Safety
    /// As [`Tensor::from_raw`], of the elements that the descriptor reads.
    unsafe fn over_foreign(device: &Device, address: u64, descriptor: Descriptor) -> Result<Tensor<T>> {
        // SAFETY: the caller vouches for every element that the descriptor reads.
        let location = unsafe { located::<T>(device, address, &descriptor) }?;
        Ok(Tensor::new(location, descriptor))
    }
}

/// Where the elements of a descriptor are whose element 0 is at an address. What lies between them is somebody else's, who may
/// write it meanwhile.
///
/// # Safety
/// The elements are there and valid as long as the location is used.
unsafe fn located<T>(device: &Device, address: u64, descriptor: &Descriptor) -> Result<Location> {
    let bytes = count_bytes::<T>(descriptor.span().end, descriptor.shape())?;
    // Elements lie before the first one where a stride is negative.
    let address = address.wrapping_sub((descriptor.first() * size_of::<T>()) as u64);
    // SAFETY: the caller vouches for every element from the first that is read to the last.
    let location = unsafe { Location::new(device, address, bytes, size_of::<T>()) }?;
    Ok(if descriptor.has_gaps() { location.shared() } else { location })
}

impl<T> Tensor<T> {
    /// This tensor with its elements in row-major order under another shape, without copying.
    ///
    /// # Errors
    /// As [`TensorRef::reshape`].
    pub fn into_shape<L: Into<Length>>(self, lengths: impl IntoIterator<Item = L>) -> Result<Tensor<T>> {
        self.into_moved(|view| tile_layout::Movement::reshape(view, lengths))
    }

    /// This tensor with its axes in the opposite order, without copying: a matrix transposed.
    ///
    /// # Errors
    /// [`Error::Layout`] where the axes can't be reordered.
    pub fn into_reversed_axes(self) -> Result<Tensor<T>> {
        let order: Vec<i64> = (0..self.shape().len() as i64).rev().collect();
        self.into_moved(|view| tile_layout::Movement::permute(view, &order))
    }

    /// This tensor after a movement operation.
    fn into_moved(
        self,
        operation: impl FnOnce(&tile_layout::View) -> tile_layout::Result<tile_layout::View>,
    ) -> Result<Tensor<T>> {
        let Placed { location, descriptor, .. } = self.placed;
        Ok(Tensor::new(location, descriptor.moved(operation)?))
    }
}

impl<T> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests;
