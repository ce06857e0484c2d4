//! Copies of elements: between a tensor and the host, and from one tensor into another.
//!
//! Elements that don't lie one after the other are collected and spread on the host: of a tensor on a GPU, the range of
//! memory that they lie in is copied first.

use super::descriptor::Descriptor;
use super::memory::{self, Location};
use super::{HostTensor, Tensor, TensorRef, bytes_of};
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use tile_layout::Fill;

impl<T: Element> TensorRef<T> {
    /// The elements in row-major order, after every launch that writes them.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        read(&self.location, &self.descriptor)
    }

    /// The elements with their shape, to be printed or indexed.
    ///
    /// # Errors
    /// As [`TensorRef::to_vec`].
    pub fn to_host(&self) -> Result<HostTensor<T>> {
        Ok(HostTensor::new(self.to_vec()?, self.shape()))
    }

    /// A tensor of its own with these elements, one after the other, on a device.
    ///
    /// # Errors
    /// As [`TensorRef::to_vec`] and [`Tensor::zeros`].
    pub fn copy_to(&self, device: &Device) -> Result<Tensor<T>> {
        let mut copy = Tensor::zeros(device, self.shape())?;
        copy.copy_from(self)?;
        Ok(copy)
    }

    /// A tensor of its own with these elements, one after the other, on the same device.
    ///
    /// ```
    /// use tile_runtime::{Device, Tensor};
    /// let x = Tensor::from_vec(&Device::cpu(), (0..6).collect(), [2, 3])?;
    /// let turned = x.t()?.to_dense()?;
    /// assert_eq!((turned.strides(), turned.to_vec()?), (Some(vec![2, 1]), vec![0, 3, 1, 4, 2, 5]));
    /// # Ok::<(), tile_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`TensorRef::copy_to`].
    pub fn to_dense(&self) -> Result<Tensor<T>> {
        self.copy_to(self.device())
    }

    /// Writes all elements, in row-major order.
    ///
    /// # Errors
    /// [`Error::ElementCount`] where the slice doesn't fill the shape; [`Error::Driver`] if the device fails.
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<()> {
        if elements.len() != self.len() {
            let shape = self.shape().to_vec();
            return Err(Error::ElementCount { shape, expected: self.len(), given: elements.len() });
        }
        write(&mut self.location, &self.descriptor, elements)
    }

    /// Writes the elements of a tensor or view of the same shape, from whatever device.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::Driver`] if a device fails.
    pub fn copy_from(&mut self, source: &TensorRef<T>) -> Result<()> {
        if source.shape() != self.shape() {
            let (source, target) = (source.shape().to_vec(), self.shape().to_vec());
            return Err(Error::ShapeMismatch { source_shape: source, target_shape: target });
        }
        if !self.is_dense() || !source.is_dense() {
            return self.copy_from_slice(&source.to_vec()?);
        }
        let [from, to] = [&source.descriptor, &self.descriptor].map(Descriptor::span);
        let bytes = from.start * size_of::<T>()..from.end * size_of::<T>();
        self.location.copy(to.start * size_of::<T>(), &source.location, bytes)
    }

    /// Writes one value to every element.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails.
    pub fn fill(&mut self, value: T) -> Result<()> {
        let elements = vec![value; self.len()];
        self.copy_from_slice(&elements)
    }
}

/// A fill as an element.
fn element<T: Element>(fill: Fill) -> T {
    match fill {
        Fill::Integer(value) => T::from_int(value.into()),
        Fill::Real(value) => T::from_float(value),
    }
}

fn read<T: Element>(location: &Location, descriptor: &Descriptor) -> Result<Vec<T>> {
    if let Some(bytes) = location.host_bytes()? {
        return Ok(collected(elements_of(bytes), 0, descriptor));
    }
    let span = descriptor.span();
    let mut around = vec![T::default(); span.len()];
    location.read(span.start * size_of::<T>()..span.end * size_of::<T>(), bytes_mut(&mut around))?;
    match descriptor.is_dense() {
        true => Ok(around),
        false => Ok(collected(&around, span.start, descriptor)),
    }
}

/// The elements of a descriptor in row-major order, out of those of its memory from `first` on.
fn collected<T: Element>(elements: &[T], first: usize, descriptor: &Descriptor) -> Vec<T> {
    let fill: T = element(descriptor.fill());
    let mut result = Vec::with_capacity(descriptor.len());
    descriptor.for_each_run(|offset, step, count| {
        let Some(offset) = offset else { return result.extend(std::iter::repeat_n(fill, count)) };
        let begin = offset as usize - first;
        match step {
            1 => result.extend_from_slice(&elements[begin..begin + count]),
            _ => result.extend((0..count as i64).map(|i| elements[(begin as i64 + i * step) as usize])),
        }
    });
    result
}

fn write<T: Element>(location: &mut Location, descriptor: &Descriptor, elements: &[T]) -> Result<()> {
    let span = descriptor.span();
    if descriptor.is_dense() {
        return location.write(span.start * size_of::<T>(), bytes(elements));
    }
    if let Some(target) = location.host_bytes_mut()? {
        spread(elements, elements_of_mut(target), 0, descriptor);
        return Ok(());
    }
    let mut around = vec![T::default(); span.len()];
    location.read(span.start * size_of::<T>()..span.end * size_of::<T>(), bytes_mut(&mut around))?;
    spread(elements, &mut around, span.start, descriptor);
    location.write(span.start * size_of::<T>(), bytes(&around))
}

/// Writes elements in row-major order to where a descriptor says, in memory from its element `first` on.
fn spread<T: Element>(mut elements: &[T], target: &mut [T], first: usize, descriptor: &Descriptor) {
    descriptor.for_each_run(|offset, step, count| {
        let (run, rest) = elements.split_at(count);
        elements = rest;
        let begin = offset.map_or(0, |offset| offset as usize - first);
        match step {
            1 => target[begin..begin + count].copy_from_slice(run),
            _ => {
                for (i, &value) in run.iter().enumerate() {
                    target[(begin as i64 + i as i64 * step) as usize] = value;
                }
            }
        }
    });
}

/// The bytes of elements.
pub(crate) fn bytes<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: elements are plain numbers without padding, and any byte may be read.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// The bytes of elements that are about to be filled with valid ones: a device only ever holds such (`bool` is 0 or 1 by
/// the IR's rules), and those of a file are looked at.
pub(crate) fn bytes_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    // SAFETY: the slice has that many initialised bytes, without padding; what is written are valid elements.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), size_of_val(elements)) }
}

fn elements_of<T: Element>(bytes: &[u8]) -> &[T] {
    // SAFETY: memory of tensors begins at a multiple of 16 bytes and holds valid elements.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) }
}

fn elements_of_mut<T: Element>(bytes: &mut [u8]) -> &mut [T] {
    // SAFETY: memory of tensors begins at a multiple of 16 bytes and holds valid elements.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / size_of::<T>()) }
}

/// Memory for so many elements of a shape.
pub(super) fn allocated<T>(device: &Device, shape: &[usize]) -> Result<(Location, Descriptor)> {
    let descriptor = Descriptor::dense(shape)?;
    let bytes = bytes_of::<T>(descriptor.len(), shape)?;
    Ok((memory::zeroed(device, bytes)?, descriptor))
}
