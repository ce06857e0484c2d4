//! Views for writing.
//!
//! Invariants: no element is there twice, so that the order in which elements are written doesn't matter; and none is in two
//! views at once. Others may use what lies between the elements of a view, as the left half of a matrix is used beside the
//! right one. So nothing reads or writes what lies between, and no operation names an element that its view hasn't got.

use super::descriptor::Descriptor;
use super::indices::Indices;
use super::located;
use super::memory::Location;
use super::tensor_ref::{Placed, TensorRef};
use super::view::dense_of;
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use tile_layout::{Movement, View};

/// A tensor's elements seen under other indices, to be written; nothing is copied. An operation takes the view and
/// gives another, so that no element is in two at a time.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::{Device, Tensor};
/// let mut x = Tensor::zeros(&Device::cpu(), [2, 3])?;
/// x.view_mut().t()?.slice(1)?.copy_from_slice(&[7, 8])?;
/// assert_eq!(x.to_vec()?, [0, 7, 0, 0, 8, 0]);
/// # Ok::<(), tile::Error>(())
/// ```
pub struct TensorViewMut<'a, T> {
    placed: Placed<T>,
    elements: PhantomData<&'a mut T>,
}

impl<T> Deref for TensorViewMut<'_, T> {
    type Target = TensorRef<T>;

    fn deref(&self) -> &TensorRef<T> {
        &self.placed
    }
}

impl<T> DerefMut for TensorViewMut<'_, T> {
    fn deref_mut(&mut self) -> &mut TensorRef<T> {
        &mut self.placed
    }
}

impl<'a, T> TensorViewMut<'a, T> {
    /// The elements at the location that the descriptor names aren't used otherwise as long as the view lives.
    pub(super) fn new(location: Location, descriptor: Descriptor) -> TensorViewMut<'a, T> {
        TensorViewMut { placed: Placed::new(location, descriptor), elements: PhantomData }
    }

    /// The view after a movement operation, which is done with a view of the positions of its elements.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::layout::Movement;
    /// use tile::{Device, Tensor};
    /// let mut x = Tensor::zeros(&Device::cpu(), [2, 3])?;
    /// x.view_mut().moved(|positions| positions.diagonal(1, 0, 1))?.copy_from_slice(&[5, 6])?;
    /// assert_eq!(x.to_vec()?, [0, 5, 0, 0, 0, 6]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Layout`] as the operation says; [`Error::SharedElements`] where its result has an element more than once.
    pub fn moved(self, operation: impl FnOnce(&View) -> tile_layout::Result<View>) -> Result<Self> {
        // Whatever view the operation gives, it is one of these elements.
        let map = operation(&View::row_major(self.descriptor.view().shape())?)?;
        self.after(|view| view.through(&map))
    }

    /// The view after an operation that chooses among its elements.
    pub(super) fn after(self, operation: impl FnOnce(&View) -> tile_layout::Result<View>) -> Result<Self> {
        let descriptor = self.descriptor.moved(operation)?;
        check_writable(&descriptor)?;
        Ok(TensorViewMut::new(self.placed.location, descriptor))
    }

    /// The parts before index `at` of an axis and from it on, which have no element in common. An axis below 0 counts from
    /// the end, and either part may be empty.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let mut x = Tensor::zeros(&Device::cpu(), [2, 3])?;
    /// let (mut left, right) = x.view_mut().split_at(1, 1)?;
    /// let (mut middle, mut right) = right.split_at(1, 1)?;
    /// left.fill(1)?;
    /// middle.fill(2)?;
    /// right.fill(3)?;
    /// assert_eq!(x.to_vec()?, [1, 2, 3, 1, 2, 3]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Layout`] where there is no such axis, or `at` lies beyond its extent; [`Error::SharedElements`] for memory
    /// of another library in which elements share theirs.
    pub fn split_at(self, axis: i64, at: usize) -> Result<(Self, Self)> {
        check_writable(&self.descriptor)?;
        let (before, after) = self.descriptor.split_at(axis, at)?;
        let (from, to) = (before.span(), after.span());
        let lie_between_each_other = from.start < to.end && to.start < from.end;
        let location = self.placed.location;
        let location = if lie_between_each_other { location.shared() } else { location };
        Ok((TensorViewMut::new(location.clone(), before), TensorViewMut::new(location, after)))
    }

    /// A part: one index, range or [`tile_layout::Index`] per axis, those left out kept whole.
    ///
    /// # Errors
    /// [`Error::Layout`] for an index outside, or more indices than axes; [`Error::SharedElements`] where a list of
    /// indices names one twice.
    pub fn slice(self, indices: impl Indices) -> Result<Self> {
        self.after(|view| view.index(&indices.list()))
    }
}

/// Whether each element is there once.
fn check_writable(descriptor: &Descriptor) -> Result<()> {
    match descriptor.is_writable() {
        true => Ok(()),
        false => Err(Error::SharedElements { view: descriptor.view().to_string() }),
    }
}

impl<'a, T: Element> TensorViewMut<'a, T> {
    /// The elements of a slice, in row-major order, where they lie: a tensor of the CPU.
    ///
    /// # Errors
    /// [`Error::ElementCount`] if the slice doesn't fill the shape.
    pub fn of_slice(elements: &'a mut [T], shape: impl AsRef<[usize]>) -> Result<TensorViewMut<'a, T>> {
        let (address, descriptor) = (elements.as_mut_ptr() as u64, dense_of(elements, shape.as_ref())?);
        // SAFETY: the slice's elements are there, and nobody else uses them, as long as the view lives.
        let location = unsafe { located::<T>(&Device::cpu(), address, &descriptor) }?;
        Ok(TensorViewMut::new(location, descriptor))
    }
}

impl<T> fmt::Debug for TensorViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
