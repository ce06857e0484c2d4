//! Copies of elements: between a tensor and the host, and from one tensor into another.
//!
//! What is read is there when this returns. What a GPU is given to write it has in the order of its own stream, and the host
//! goes on: ordinary memory is copied to pinned memory first (`gpu/transfer.rs`). Elements that don't lie one after the other
//! a GPU collects and spreads itself where they are in rows (`rows.rs`). Others are collected and spread on the host
//! (`host_elements.rs`): of a tensor on a GPU, the range of memory that they lie in is copied first. Where elements of somebody
//! else's lie in that range, runs are written one by one.

use super::descriptor::Descriptor;
use super::host_elements::{HostElements, HostElementsMut, with_room};
use super::memory::Location;
use super::rows::{RowSet, rows};
use super::{HostTensor, Tensor, TensorRef, count_bytes};
use crate::device::{Device, Kind};
use crate::element::Element;
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

impl<T: Element> TensorRef<T> {
    /// The elements in row-major order, after every launch that writes them.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where the host has no room for them, or for the pinned memory that they come through;
    /// [`Error::Stream`] inside of a graph's closure; [`Error::DeviceLost`] and [`Error::Driver`] if the device fails.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        match self.collected_on_device() {
            Some(dense) => read(&dense.location, &dense.descriptor),
            None => read(&self.location, &self.descriptor),
        }
    }

    /// Whether elements that lie apart are in a GPU's memory, in rows that it copies from and to where they lie one after
    /// the other.
    fn is_in_rows(&self) -> bool {
        !self.is_dense()
            && matches!(self.device().0, Kind::Gpu(_))
            && Descriptor::dense(self.shape()).is_ok_and(|dense| self.rows_of(&dense).is_some())
    }

    /// The rows in which elements of the same shape are copied here.
    pub(super) fn rows_of(&self, source: &Descriptor) -> Option<Vec<RowSet<2>>> {
        rows(self.location.is_shared(), [&self.descriptor, source], size_of::<T>())
    }

    /// The elements one after the other, where a GPU has them far apart. What goes wrong with that goes wrong with the way
    /// by the host, too, or doesn't matter.
    fn collected_on_device(&self) -> Option<Tensor<T>> {
        let is_far_apart = self.descriptor.span().len() >= self.len().saturating_mul(2);
        if !is_far_apart || !self.is_in_rows() {
            return None;
        }
        let mut dense = Tensor::zeros(self.device(), self.shape()).ok()?;
        dense.copy_on_device(self)?.ok()?;
        Some(dense)
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
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let x = Tensor::from_vec(&Device::cpu(), (0..6).collect(), [2, 3])?;
    /// let turned = x.t()?.to_dense()?;
    /// assert_eq!((turned.strides(), turned.to_vec()?), (Some(vec![2, 1]), vec![0, 3, 1, 4, 2, 5]));
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`TensorRef::copy_to`].
    pub fn to_dense(&self) -> Result<Tensor<T>> {
        self.copy_to(self.device())
    }

    /// The elements where they lie, of a tensor or view in the host's memory, after everything that writes them.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let mut x = Tensor::<i32>::zeros(&Device::cpu(), [2, 2])?;
    /// x.as_mut_slice()?[3] = 5;
    /// assert_eq!(x.slice(1)?.as_slice()?, [0, 5]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Slice`] on a GPU, and where the elements don't lie one after the other; [`Error::Stream`] inside of a
    /// graph; [`Error::Driver`] if a device fails that copies from or to here.
    pub fn as_slice(&self) -> Result<&[T]> {
        self.check_slice()?;
        let elements = self.location.host_elements(&self.descriptor)?;
        Ok(elements.map_or(&[], |elements| elements.as_slice()))
    }

    /// The elements where they lie, to be written, after everything that uses them.
    ///
    /// # Errors
    /// As [`TensorRef::as_slice`].
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        self.check_slice()?;
        let elements = self.location.host_elements_mut(&self.descriptor)?;
        Ok(elements.map_or(&mut [], HostElementsMut::into_slice))
    }

    fn check_slice(&self) -> Result<()> {
        let problem = match (&self.device().0, self.is_dense()) {
            (Kind::Gpu(_), _) => format!("its elements are in the memory of {}", self.device().name()),
            (_, false) => "its elements don't lie one after the other in row-major order".to_owned(),
            (_, true) => return Ok(()),
        };
        Err(Error::Slice { problem })
    }

    /// Writes all elements, in row-major order. On a GPU this returns before the device has them; the slice isn't needed
    /// any more then. They wait for their turn in pinned buffers, of which four of a size are in flight at most: more than
    /// 16 MiB, or one write more than four that the device hasn't come to, wait until it has come to the first.
    ///
    /// # Errors
    /// [`Error::ElementCount`] where the slice doesn't fill the shape; as [`TensorRef::to_vec`] else.
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<()> {
        if elements.len() != self.len() {
            let shape = self.shape().to_vec();
            return Err(Error::ElementCount { shape, expected: self.len(), given: elements.len() });
        }
        if self.is_in_rows()
            && let Ok(dense) = Tensor::from_slice(self.device(), elements, self.shape())
            && let Some(Ok(())) = self.copy_on_device(&dense)
        {
            return Ok(());
        }
        write(&mut self.location, &self.descriptor, elements)
    }

    /// Writes the elements of a tensor or view of the same shape, from whatever device. To a GPU, and to
    /// [pinned](Tensor::pinned) memory from one, this returns before the copy is done; whoever reads waits for it.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; as [`TensorRef::to_vec`] else.
    pub fn copy_from(&mut self, source: &TensorRef<T>) -> Result<()> {
        self.check_shape_of(source)?;
        if !self.is_dense() || !source.is_dense() {
            return match self.copy_on_device(source) {
                Some(Ok(())) => Ok(()),
                _ => self.copy_from_slice(&source.to_vec()?),
            };
        }
        let (first, bytes) = (bytes_of::<T>(&self.descriptor).start, bytes_of::<T>(&source.descriptor));
        self.location.copy(first, &source.location, bytes)
    }

    /// Copies elements of the same shape, of which some lie apart, by the GPUs that both are on; `None` where they aren't,
    /// or where the way by the host is shorter.
    fn copy_on_device(&mut self, source: &TensorRef<T>) -> Option<Result<()>> {
        let (Kind::Gpu(to), Kind::Gpu(from)) = (&self.device().0, &source.device().0) else { return None };
        if Arc::ptr_eq(to, from) {
            let sets = self.rows_of(&source.descriptor)?;
            return Some(self.location.copy_rows(&source.location, &sets, None));
        }
        // From one GPU to another they go one after the other.
        let dense = if source.is_dense() { None } else { Some(source.collected_on_device()?) };
        let source = dense.as_deref().unwrap_or(source);
        match self.is_dense() {
            true => Some(self.copy_from(source)),
            false if self.is_in_rows() => {
                Some(source.copy_to(self.device()).and_then(|there| self.copy_from(&there)))
            }
            false => None,
        }
    }

    /// Whether the elements of another one fit.
    pub(super) fn check_shape_of(&self, source: &TensorRef<T>) -> Result<()> {
        if source.shape() == self.shape() {
            return Ok(());
        }
        let (source, target) = (source.shape().to_vec(), self.shape().to_vec());
        Err(Error::ShapeMismatch { source_shape: source, target_shape: target })
    }
}

/// The bytes that a descriptor's elements lie in.
pub(super) fn bytes_of<T>(descriptor: &Descriptor) -> Range<usize> {
    let span = descriptor.span();
    span.start * size_of::<T>()..span.end * size_of::<T>()
}

fn read<T: Element>(location: &Location, descriptor: &Descriptor) -> Result<Vec<T>> {
    if let Some(elements) = location.host_elements(descriptor)? {
        return elements.to_vec();
    }
    let span = descriptor.span();
    let mut around = zeros(span.len())?;
    location.read(bytes_of::<T>(descriptor), bytes_mut(&mut around))?;
    match descriptor.is_dense() {
        true => Ok(around),
        false => HostElements::among(&around, span.start, descriptor).to_vec(),
    }
}

/// So many elements, of which nobody has said what they are.
fn zeros<T: Element>(count: usize) -> Result<Vec<T>> {
    let mut elements = with_room(count)?;
    elements.resize(count, T::default());
    Ok(elements)
}

/// Writes elements in row-major order to where a descriptor says.
pub(super) fn write<T: Element>(
    location: &mut Location,
    descriptor: &Descriptor,
    elements: &[T],
) -> Result<()> {
    let (span, around_bytes) = (descriptor.span(), bytes_of::<T>(descriptor));
    if descriptor.is_dense() {
        return location.write(around_bytes.start, bytes(elements));
    }
    if let Some(mut target) = location.host_elements_mut(descriptor)? {
        target.spread(elements);
        return Ok(());
    }
    if location.is_shared() {
        return write_runs(location, descriptor, elements);
    }
    let mut around = zeros(span.len())?;
    location.read(around_bytes.clone(), bytes_mut(&mut around))?;
    HostElementsMut::among(&mut around, span.start, descriptor).spread(elements);
    location.write(around_bytes.start, bytes(&around))
}

/// Writes elements in row-major order to a GPU's memory, where those of somebody else lie between them: a run after the other,
/// because what is copied around them would write those, too.
fn write_runs<T: Element>(
    location: &mut Location,
    descriptor: &Descriptor,
    mut elements: &[T],
) -> Result<()> {
    let mut result = Ok(());
    descriptor.for_each_run(|offset, step, count| {
        let (run, rest) = elements.split_at(count);
        elements = rest;
        let Some(offset) = offset.filter(|_| result.is_ok()) else { return };
        let mut write =
            |offset: i64, part: &[T]| location.write(offset as usize * size_of::<T>(), bytes(part));
        result = match step {
            1 => write(offset, run),
            _ => run
                .iter()
                .zip(0..)
                .try_for_each(|(value, i)| write(offset + i * step, std::slice::from_ref(value))),
        };
    });
    result
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

/// Zeroed memory for so many elements of a shape.
pub(super) fn allocated<T>(
    device: &Device,
    shape: &[usize],
    zeroed: fn(&Device, usize) -> Result<Location>,
) -> Result<(Location, Descriptor)> {
    let descriptor = Descriptor::dense(shape)?;
    let bytes = count_bytes::<T>(descriptor.len(), shape)?;
    Ok((zeroed(device, bytes)?, descriptor))
}
