//! Tensors: arrays in a device's memory, and views of them that copy nothing.
//!
//! A [`Tensor`] owns its memory; a [`TensorView`] and a [`TensorViewMut`] borrow it. All three are a descriptor
//! of a memory. What copies elements, between them or to the host, goes through `transfer.rs`.

mod create;
mod descriptor;
mod display;
mod host_tensor;
mod indices;
mod memory;
pub(crate) mod transfer;
mod view;
mod view_mut;

pub use host_tensor::HostTensor;
pub use indices::Indices;
pub use view::TensorView;
pub use view_mut::TensorViewMut;

use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use descriptor::Descriptor;
use memory::{Location, Memory};
use std::fmt;
use std::marker::PhantomData;
use tile_layout::Length;

/// An array in the memory of a device.
///
/// ```
/// use tile_runtime::{Device, Tensor};
/// let device = Device::cpu();
/// let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(x.to_host()?.to_string(), "[[1, 2],\n [3, 4]]");
/// assert_eq!(x.t()?.to_vec()?, [1.0, 3.0, 2.0, 4.0]);
/// assert_eq!(x.slice((1, ..))?.to_vec()?, [3.0, 4.0]);
/// # Ok::<(), tile_runtime::Error>(())
/// ```
pub struct Tensor<T> {
    memory: Memory,
    descriptor: Descriptor,
    element: PhantomData<T>,
}

/// The number of bytes of so many elements.
fn bytes_of<T>(count: usize, shape: &[usize]) -> Result<usize> {
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
    /// writes them; on a GPU this concerns what other streams do, too.
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
    /// use tile_runtime::{Device, Tensor};
    /// let numbers = vec![1.0f32, 2.0, 3.0, 4.0];
    /// let address = numbers.as_ptr() as u64;
    /// // SAFETY: the vector has the elements, doesn't move them and is used by nobody else.
    /// let turned = unsafe { Tensor::<f32>::from_raw_owned(&Device::cpu(), address, [2, 2], [1, 2], numbers) }?;
    /// assert_eq!(turned.to_vec()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), tile_runtime::Error>(())
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
        let memory = Memory::foreign(location, Some(Box::new(owner)));
        Ok(Tensor { memory, descriptor, element: PhantomData })
    }

    /// # Safety
    /// As [`Tensor::from_raw`], of the elements that the descriptor reads.
    unsafe fn over_foreign(device: &Device, address: u64, descriptor: Descriptor) -> Result<Tensor<T>> {
        // SAFETY: the caller vouches for every element that the descriptor reads.
        let memory = Memory::foreign(unsafe { located::<T>(device, address, &descriptor) }?, None);
        Ok(Tensor { memory, descriptor, element: PhantomData })
    }
}

/// Where the elements of a descriptor are whose element 0 is at an address.
///
/// # Safety
/// The elements are there and valid as long as the location is used.
unsafe fn located<T>(device: &Device, address: u64, descriptor: &Descriptor) -> Result<Location> {
    let bytes = bytes_of::<T>(descriptor.span().end, descriptor.shape())?;
    // Elements lie before the first one where a stride is negative.
    let address = address.wrapping_sub((descriptor.first() * size_of::<T>()) as u64);
    // SAFETY: the caller vouches for every element from the first that is read to the last.
    unsafe { Location::new(device, address, bytes, size_of::<T>()) }
}

impl<T> Tensor<T> {
    /// Extents, outermost axis first.
    pub fn shape(&self) -> &[usize] {
        self.descriptor.shape()
    }

    /// The distance of two neighbours along each axis, in elements; `None` where some axis has no single one.
    ///
    /// ```
    /// use tile_runtime::{Device, Tensor};
    /// let x = Tensor::<f32>::zeros(&Device::cpu(), [3, 4])?;
    /// assert_eq!((x.strides(), x.t()?.strides()), (Some(vec![4, 1]), Some(vec![1, 4])));
    /// # Ok::<(), tile_runtime::Error>(())
    /// ```
    pub fn strides(&self) -> Option<Vec<i64>> {
        self.descriptor.strides()
    }

    /// The device that holds the elements.
    pub fn device(&self) -> &Device {
        self.memory.location().device()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.descriptor.len()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the elements lie one after the other in row-major order.
    pub fn is_dense(&self) -> bool {
        self.descriptor.is_dense()
    }

    /// All of it, for reading. Views have every movement operation of [`tile_layout::Movement`].
    ///
    /// ```
    /// use tile_layout::Movement;
    /// use tile_runtime::{Device, Tensor};
    /// let x = Tensor::from_vec(&Device::cpu(), (0..24).collect(), [2, 12])?;
    /// let patches = x.view().rearrange("b (h w) -> (b h) w", &[("h", 3)])?;
    /// assert_eq!((patches.shape(), patches.slice((5, 3))?.to_vec()?), (&[6, 4][..], vec![23]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn view(&self) -> TensorView<'_, T> {
        TensorView::new(self.memory.location().clone(), self.descriptor.clone())
    }

    /// All of it, for writing.
    pub fn view_mut(&mut self) -> TensorViewMut<'_, T> {
        TensorViewMut::new(self.memory.location().clone(), self.descriptor.clone())
    }

    /// Axes 0 and 1 exchanged, without copying.
    ///
    /// # Errors
    /// [`Error::Layout`] below rank 2.
    pub fn t(&self) -> Result<TensorView<'_, T>> {
        self.view().moved(tile_layout::Movement::t)
    }

    /// The axes in another order, without copying: negative ones count from the end.
    ///
    /// # Errors
    /// [`Error::Layout`] where `order` isn't a permutation of the axes.
    pub fn permute(&self, order: impl AsRef<[i64]>) -> Result<TensorView<'_, T>> {
        self.view().moved(|view| tile_layout::Movement::permute(view, order.as_ref()))
    }

    /// The same elements in row-major order under another shape, without copying; `-1` stands for what is left.
    ///
    /// # Errors
    /// [`Error::Layout`] where the numbers of elements differ.
    pub fn reshape<L: Into<Length>>(
        &self,
        lengths: impl IntoIterator<Item = L>,
    ) -> Result<TensorView<'_, T>> {
        self.view().moved(|view| tile_layout::Movement::reshape(view, lengths))
    }

    /// Axes of extent 1 repeated, and further axes in front, without copying; `-1` keeps an extent.
    ///
    /// # Errors
    /// [`Error::Layout`] where an extent is neither equal nor 1.
    pub fn expand<L: Into<Length>>(&self, lengths: impl IntoIterator<Item = L>) -> Result<TensorView<'_, T>> {
        self.view().moved(|view| tile_layout::Movement::expand(view, lengths))
    }

    /// A part: one index, range or [`tile_layout::Index`] per axis, those left out kept whole.
    ///
    /// ```
    /// use tile_runtime::{Device, Tensor};
    /// let x = Tensor::from_vec(&Device::cpu(), (0..12).collect(), [3, 4])?;
    /// assert_eq!(x.slice((1.., ..2))?.to_vec()?, [4, 5, 8, 9]);
    /// assert_eq!(x.slice((.., -1))?.to_vec()?, [3, 7, 11]);
    /// # Ok::<(), tile_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Layout`] for an index outside, or more indices than axes.
    pub fn slice(&self, indices: impl Indices) -> Result<TensorView<'_, T>> {
        self.view().slice(indices)
    }

    /// A part, for writing.
    ///
    /// # Errors
    /// As [`Tensor::slice`]; [`Error::SharedElements`] where the part has an element more than once.
    pub fn slice_mut(&mut self, indices: impl Indices) -> Result<TensorViewMut<'_, T>> {
        self.view_mut().slice(indices)
    }

    /// This tensor with its elements in row-major order under another shape, without copying.
    ///
    /// # Errors
    /// As [`Tensor::reshape`].
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
        let descriptor = self.descriptor.moved(operation)?;
        Ok(Tensor { memory: self.memory, descriptor, element: PhantomData })
    }

    /// The address of the element with index 0 everywhere.
    pub(crate) fn address(&self) -> u64 {
        self.memory.location().address() + (self.descriptor.first() * size_of::<T>()) as u64
    }
}

impl<T> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

#[cfg(test)]
mod tests;
