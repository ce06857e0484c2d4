//! Views for reading.

use super::descriptor::Descriptor;
use super::indices::Indices;
use super::located;
use super::memory::Location;
use super::tensor_ref::{Placed, TensorRef};
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use tile_layout::{Movement, Table, View};

/// A tensor's elements seen under other indices; nothing is copied. Every operation of [`Movement`] makes another view:
/// axes in another order, other shapes, parts, repetitions, margins of a value that isn't in memory. Kernels take views whose
/// elements are in memory and have one distance between neighbours along each axis.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::layout::Movement;
/// use tile::{Device, Tensor};
/// let x = Tensor::from_vec(&Device::cpu(), (1..=6).collect(), [2, 3])?;
/// let padded = x.view().pad(&[None, Some((1, 0))])?.flip(&[0])?;
/// assert_eq!(padded.to_host()?.to_string(), "[[0, 4, 5, 6],\n [0, 1, 2, 3]]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TensorView<'a, T> {
    placed: Placed<T>,
    elements: PhantomData<&'a T>,
}

impl<T> Deref for TensorView<'_, T> {
    type Target = TensorRef<T>;

    fn deref(&self) -> &TensorRef<T> {
        &self.placed
    }
}

impl<'a, T> TensorView<'a, T> {
    /// What is at the location isn't written as long as the view lives.
    pub(super) fn new(location: Location, descriptor: Descriptor) -> TensorView<'a, T> {
        TensorView { placed: Placed::new(location, descriptor), elements: PhantomData }
    }

    /// The view after a movement operation.
    pub(super) fn moved(
        &self,
        operation: impl FnOnce(&View) -> tile_layout::Result<View>,
    ) -> Result<TensorView<'a, T>> {
        Ok(TensorView::new(self.location.clone(), self.descriptor.moved(operation)?))
    }

    /// Extents, outermost axis first.
    pub fn shape(&self) -> &[usize] {
        self.descriptor.shape()
    }

    /// A part: one index, range or [`tile_layout::Index`] per axis, those left out kept whole.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Result, Tensor, TensorView};
    /// /// The view of a part is one of the elements, not of what `x` is in here.
    /// fn column(x: TensorView<'_, i32>, at: usize) -> Result<TensorView<'_, i32>> {
    ///     x.slice((.., at))?.unsqueeze(1)
    /// }
    /// let x = Tensor::from_vec(&Device::cpu(), (0..6).collect(), [2, 3])?;
    /// let second = column(x.view(), 1)?;
    /// assert_eq!((second.shape(), second.to_vec()?), (&[2, 1][..], vec![1, 4]));
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Layout`] for an index outside, or more indices than axes.
    pub fn slice(&self, indices: impl Indices) -> Result<TensorView<'a, T>> {
        self.moved(|view| view.index(&indices.list()))
    }

    /// The parts before index `at` of an axis and from it on.
    ///
    /// # Errors
    /// As [`TensorRef::split_at`].
    pub fn split_at(&self, axis: i64, at: usize) -> Result<(TensorView<'a, T>, TensorView<'a, T>)> {
        let (before, after) = self.descriptor.split_at(axis, at)?;
        let location = || self.location.clone();
        Ok((TensorView::new(location(), before), TensorView::new(location(), after)))
    }
}

impl<'a, T: Element> TensorView<'a, T> {
    /// The elements of a slice, in row-major order, where they lie: a tensor of the CPU.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::TensorView;
    /// let numbers = [1, 2, 3, 4, 5, 6];
    /// assert_eq!(TensorView::of_slice(&numbers, [2, 3])?.slice((.., 2))?.to_vec()?, [3, 6]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::ElementCount`] if the slice doesn't fill the shape.
    pub fn of_slice(elements: &'a [T], shape: impl AsRef<[usize]>) -> Result<TensorView<'a, T>> {
        let (address, descriptor) = (elements.as_ptr() as u64, dense_of(elements, shape.as_ref())?);
        // SAFETY: the slice's elements are there, and nobody writes them, as long as the view lives.
        let location = unsafe { located::<T>(&Device::cpu(), address, &descriptor) }?;
        Ok(TensorView::new(location, descriptor))
    }
}

/// The descriptor of a slice's elements.
pub(super) fn dense_of<T>(elements: &[T], shape: &[usize]) -> Result<Descriptor> {
    let descriptor = Descriptor::dense(shape)?;
    match descriptor.len() == elements.len() {
        true => Ok(descriptor),
        false => {
            let (expected, given) = (descriptor.len(), elements.len());
            Err(Error::ElementCount { shape: shape.to_vec(), expected, given })
        }
    }
}

impl<T> Clone for TensorView<'_, T> {
    fn clone(&self) -> Self {
        TensorView::new(self.location.clone(), self.descriptor.clone())
    }
}

impl<T> Movement for TensorView<'_, T> {
    fn shape(&self) -> &[i64] {
        self.descriptor.view().shape()
    }

    fn through(&self, map: &View) -> tile_layout::Result<Self> {
        let view = self.descriptor.view().through(map)?;
        Ok(TensorView::new(self.location.clone(), Descriptor::of(view)))
    }

    fn gathered(&self, table: &Table) -> tile_layout::Result<Self> {
        let view = self.descriptor.view().gathered(table)?;
        Ok(TensorView::new(self.location.clone(), Descriptor::of(view)))
    }
}

impl<T> fmt::Debug for TensorView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
