//! One value for all elements: on a GPU by the device itself, without as many on the host.

use super::TensorRef;
use super::descriptor::Descriptor;
use super::transfer::{bytes, elements_of_mut, write};
use crate::device::Kind;
use crate::element::Element;
use crate::error::Result;

/// A GPU fills elements that don't lie one after the other run by run. A call of the driver takes about as long as copying
/// so many bytes to the host and back, which is the other way.
const BYTES_PER_RUN: usize = 8192;

/// So many runs are filled one by one, however small the range is that they lie in.
const RUNS: usize = 64;

impl<T: Element> TensorRef<T> {
    /// Writes one value to every element. On a GPU the device does so, after what uses the elements; this returns before.
    /// Elements of a view that lie far apart one by one go by way of the host.
    ///
    /// ```
    /// use tile_runtime::{Device, Tensor};
    /// let mut x = Tensor::zeros(&Device::cpu(), [2, 3])?;
    /// x.slice_mut((.., 1))?.fill(7)?;
    /// assert_eq!(x.to_vec()?, [0, 7, 0, 0, 7, 0]);
    /// # Ok::<(), tile_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the device fails.
    pub fn fill(&mut self, value: T) -> Result<()> {
        if !matches!(self.device().0, Kind::Gpu(_)) {
            let target = self.location.host_bytes_mut()?.unwrap_or_default();
            fill_host(elements_of_mut(target), value, &self.descriptor);
            return Ok(());
        }
        let Some(runs) = few_runs(&self.descriptor, size_of::<T>()) else {
            return write(&mut self.location, &self.descriptor, &vec![value; self.descriptor.len()]);
        };
        let element = bytes(std::slice::from_ref(&value));
        let mut runs = runs.into_iter();
        runs.try_for_each(|(first, count)| self.location.fill(first * size_of::<T>(), element, count))
    }
}

fn fill_host<T: Element>(target: &mut [T], value: T, descriptor: &Descriptor) {
    descriptor.for_each_run(|offset, step, count| {
        let begin = offset.unwrap_or(0);
        match step {
            1 => target[begin as usize..begin as usize + count].fill(value),
            _ => (0..count as i64).for_each(|i| target[(begin + i * step) as usize] = value),
        }
    });
}

/// The elements as runs of neighbours, the first of each and how many they are; `None` where these are too many.
fn few_runs(descriptor: &Descriptor, element: usize) -> Option<Vec<(usize, usize)>> {
    let most = RUNS.max(descriptor.span().len() * element / BYTES_PER_RUN);
    let mut runs = Vec::new();
    descriptor.for_each_run(|offset, step, count| {
        let begin = offset.unwrap_or(0);
        let run = |first: i64, count| (first as usize, count);
        // One more than there may be says as much as all.
        let room = (most + 1).saturating_sub(runs.len());
        match step {
            1 => runs.extend(std::iter::once(run(begin, count)).take(room)),
            _ => runs.extend((0..count as i64).map(|i| run(begin + i * step, 1)).take(room)),
        }
    });
    (runs.len() <= most).then_some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_layout::Movement;

    #[test]
    #[cfg_attr(miri, ignore = "many runs, and nothing unsafe")]
    fn runs_are_filled_one_by_one_where_they_are_few() {
        let whole = Descriptor::dense(&[1000, 100]).unwrap();
        assert_eq!(few_runs(&whole, 4), Some(vec![(0, 100_000)]));
        let block = whole.moved(|view| view.shrink(&[Some((1, 3)), Some((10, 20))])).unwrap();
        assert_eq!(few_runs(&block, 4), Some(vec![(110, 10), (210, 10)]));
        // A column of a thousand lies in 400 KB, of a hundred thousand in 40 MB: each is a run for every 400 bytes.
        let column = whole.moved(|view| view.shrink(&[None, Some((3, 4))])).unwrap();
        assert_eq!(few_runs(&column, 4), None);
        let short = whole.moved(|view| view.shrink(&[Some((0, 64)), Some((3, 4))])).unwrap();
        assert_eq!(few_runs(&short, 4).map(|runs| (runs.len(), runs[63])), Some((64, (6303, 1))));
        // The diagonal of a large matrix: a run for every row.
        let square = Descriptor::dense(&[4096, 4096]).unwrap();
        let diagonal = square.moved(|view| Movement::diagonal(view, 0, 0, 1)).unwrap();
        assert_eq!(few_runs(&diagonal, 4).map(|runs| (runs.len(), runs[2])), Some((4096, (2 * 4097, 1))));
        assert_eq!(few_runs(&Descriptor::dense(&[0, 3]).unwrap(), 4), Some(vec![]));
    }
}
