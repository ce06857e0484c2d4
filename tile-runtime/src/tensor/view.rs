//! Views for reading.

use super::descriptor::Descriptor;
use super::indices::Indices;
use super::memory::Memory;
use crate::device::Device;
use crate::error::Result;
use std::fmt;
use std::marker::PhantomData;
use tile_layout::{Movement, Table, View};

/// A tensor's elements seen under other indices; nothing is copied. Every operation of [`Movement`] makes another view:
/// axes in another order, other shapes, parts, repetitions, margins of a value that isn't in memory.
///
/// ```
/// use tile_layout::Movement;
/// use tile_runtime::{Device, Tensor};
/// let x = Tensor::from_vec(&Device::cpu(), (1..=6).collect(), [2, 3])?;
/// let padded = x.view().pad(&[None, Some((1, 0))])?.flip(&[0])?;
/// assert_eq!(padded.to_host()?.to_string(), "[[0, 4, 5, 6],\n [0, 1, 2, 3]]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TensorView<'a, T> {
    memory: &'a Memory,
    descriptor: Descriptor,
    element: PhantomData<T>,
}

impl<'a, T> TensorView<'a, T> {
    pub(super) fn new(memory: &'a Memory, descriptor: Descriptor) -> TensorView<'a, T> {
        TensorView { memory, descriptor, element: PhantomData }
    }

    pub(super) fn memory(&self) -> &'a Memory {
        self.memory
    }

    pub(super) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// The view after a movement operation.
    pub(super) fn moved(
        &self,
        operation: impl FnOnce(&View) -> tile_layout::Result<View>,
    ) -> Result<TensorView<'a, T>> {
        Ok(TensorView::new(self.memory, self.descriptor.moved(operation)?))
    }

    /// Extents, outermost axis first.
    pub fn shape(&self) -> &[usize] {
        self.descriptor.shape()
    }

    /// The distance of two neighbours along each axis, in elements; `None` where some axis has no single one.
    pub fn strides(&self) -> Option<Vec<i64>> {
        self.descriptor.strides()
    }

    /// The device that holds the elements.
    pub fn device(&self) -> &'a Device {
        self.memory.device()
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

    /// A part: one index, range or [`tile_layout::Index`] per axis, those left out kept whole.
    ///
    /// # Errors
    /// [`crate::Error::Layout`] for an index outside, or more indices than axes.
    pub fn slice(&self, indices: impl Indices) -> Result<TensorView<'a, T>> {
        self.moved(|view| view.index(&indices.list()))
    }
}

impl<T> Clone for TensorView<'_, T> {
    fn clone(&self) -> Self {
        TensorView::new(self.memory, self.descriptor.clone())
    }
}

impl<T> Movement for TensorView<'_, T> {
    fn shape(&self) -> &[i64] {
        self.descriptor.view().shape()
    }

    fn through(&self, map: &View) -> tile_layout::Result<Self> {
        let view = self.descriptor.view().through(map)?;
        Ok(TensorView::new(self.memory, Descriptor::of(view)))
    }

    fn gathered(&self, table: &Table) -> tile_layout::Result<Self> {
        let view = self.descriptor.view().gathered(table)?;
        Ok(TensorView::new(self.memory, Descriptor::of(view)))
    }
}

impl<T> fmt::Debug for TensorView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{}>{:?} on {}", std::any::type_name::<T>(), self.shape(), self.device().name())?;
        if self.is_dense() { Ok(()) } else { write!(f, ", elements at {}", self.descriptor.view()) }
    }
}
