//! One value for all elements: on a GPU by the device itself, without as many on the host.

use super::TensorRef;
use super::host_elements::with_room;
use super::rows::rows;
use super::transfer::{bytes, write};
use crate::device::Kind;
use crate::element::Element;
use crate::error::{Error, Result};

impl<T: Element> TensorRef<T> {
    /// Writes one value to every element. On a GPU the device does so, after what uses the elements; this returns before.
    /// Elements of a view of which there are many that aren't in rows go by way of the host.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let mut x = Tensor::zeros(&Device::cpu(), [2, 3])?;
    /// x.slice_mut((.., 1))?.fill(7)?;
    /// assert_eq!(x.to_vec()?, [0, 7, 0, 0, 7, 0]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`TensorRef::to_vec`].
    pub fn fill(&mut self, value: T) -> Result<()> {
        if !matches!(self.device().0, Kind::Gpu(_)) {
            let elements = self.location.host_elements_mut(&self.descriptor)?;
            elements.into_iter().for_each(|mut elements| elements.fill(value));
            return Ok(());
        }
        let by_host = |tensor: &mut TensorRef<T>| {
            let mut values = with_room(tensor.descriptor.len())?;
            values.resize(tensor.descriptor.len(), value);
            write(&mut tensor.location, &tensor.descriptor, &values)
        };
        let sets = rows(self.location.is_shared(), [&self.descriptor], size_of::<T>());
        let Some(sets) = sets else { return by_host(self) };
        let element = bytes(std::slice::from_ref(&value));
        match sets.iter().try_for_each(|rows| self.location.fill(rows, element)) {
            // Rows that a driver refuses aren't written yet; others are, once more.
            Err(Error::Driver { .. }) if !self.is_dense() => by_host(self),
            done => done,
        }
    }
}
