//! The elements of a tensor or view in the host's memory, to be read or written where they lie.
//!
//! What lies between them may be somebody else's, who writes it meanwhile. So there are references to a tensor's own elements
//! alone, never to the range of memory that they lie in, and nothing else is read or written.

use super::descriptor::Descriptor;
use super::memory::HostMemory;
use crate::element::Element;
use crate::error::{Error, Result};
use std::marker::PhantomData;
use tile_layout::Fill;

/// Elements to be read. Invariant: those that the descriptor names and memory has are valid, and nobody writes them.
pub(super) struct HostElements<'a, T> {
    place: Place<'a, T>,
    borrowed: PhantomData<&'a T>,
}

/// Elements to be written. Invariant: those that the descriptor names and memory has are valid, and nobody else uses them.
pub(super) struct HostElementsMut<'a, T> {
    place: Place<'a, T>,
    borrowed: PhantomData<&'a mut T>,
}

/// Where elements lie.
#[derive(Clone, Copy)]
struct Place<'a, T> {
    descriptor: &'a Descriptor,
    /// The element of the descriptor's memory that this memory begins with.
    first: usize,
    memory: *mut T,
    count: usize,
}

impl<'a, T> Place<'a, T> {
    fn new(memory: HostMemory, descriptor: &'a Descriptor) -> Place<'a, T> {
        let (first, count) = (0, memory.bytes / size_of::<T>());
        Place { descriptor, first, memory: memory.first.cast(), count }
    }

    /// The first of some elements that are `step` apart, all of which are in memory.
    ///
    /// # Panics
    /// If some aren't: the descriptor was made for another memory.
    fn run(&self, offset: i64, step: i64, count: usize) -> *mut T {
        let begin = offset - self.first as i64;
        let end = begin + step * (count as i64 - 1).max(0);
        let (least, most) = (begin.min(end), begin.max(end));
        assert!(least >= 0 && most < self.count as i64, "elements {least} to {most} of {}", self.count);
        // The position was compared with what is there.
        self.memory.wrapping_add(begin as usize)
    }

    /// The first of the elements where they lie one after the other, and how many there are.
    fn dense(&self) -> (*mut T, usize) {
        let span = self.descriptor.span();
        assert!(self.descriptor.is_dense(), "elements that lie apart are no slice");
        if span.is_empty() {
            (self.memory, 0)
        } else {
            (self.run(span.start as i64, 1, span.len()), span.len())
        }
    }
}

impl<'a, T: Element> HostElements<'a, T> {
    /// # Safety
    /// The memory begins where such elements may lie. As long as this is used, those that the descriptor names are there and
    /// valid, and nobody writes them.
    pub(super) unsafe fn new(memory: HostMemory, descriptor: &'a Descriptor) -> HostElements<'a, T> {
        HostElements { place: Place::new(memory, descriptor), borrowed: PhantomData }
    }

    /// Those that a descriptor names among the elements of its memory from `first` on.
    pub(super) fn among(elements: &'a [T], first: usize, descriptor: &'a Descriptor) -> HostElements<'a, T> {
        let (memory, count) = (elements.as_ptr().cast_mut(), elements.len());
        HostElements { place: Place { descriptor, first, memory, count }, borrowed: PhantomData }
    }

    /// Elements that lie one after the other.
    pub(super) fn as_slice(&self) -> &'a [T] {
        let (first, count) = self.place.dense();
        // SAFETY: so many elements are there and valid, and nobody writes them for `'a`.
        unsafe { std::slice::from_raw_parts(first, count) }
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]: a view may have more elements than memory has.
    pub(super) fn to_vec(&self) -> Result<Vec<T>> {
        let Place { descriptor, .. } = self.place;
        let fill: T = element(descriptor.fill());
        let mut result = with_room(descriptor.len())?;
        descriptor.for_each_run(|offset, step, count| {
            let Some(offset) = offset else { return result.extend(std::iter::repeat_n(fill, count)) };
            let first = self.place.run(offset, step, count);
            match step {
                // SAFETY: so many elements from there on are there, valid and named, and nobody writes them.
                1 => result.extend_from_slice(unsafe { std::slice::from_raw_parts(first, count) }),
                // SAFETY: likewise of so many that lie `step` apart.
                _ => result
                    .extend((0..count as i64).map(|i| unsafe { first.offset((i * step) as isize).read() })),
            }
        });
        Ok(result)
    }
}

impl<'a, T: Element> HostElementsMut<'a, T> {
    /// # Safety
    /// The memory begins where such elements may lie. As long as this is used, those that the descriptor names are there and
    /// valid, and nobody else uses them.
    pub(super) unsafe fn new(memory: HostMemory, descriptor: &'a Descriptor) -> HostElementsMut<'a, T> {
        HostElementsMut { place: Place::new(memory, descriptor), borrowed: PhantomData }
    }

    /// Those that a descriptor names among the elements of its memory from `first` on.
    pub(super) fn among(
        elements: &'a mut [T],
        first: usize,
        descriptor: &'a Descriptor,
    ) -> HostElementsMut<'a, T> {
        let (memory, count) = (elements.as_mut_ptr(), elements.len());
        HostElementsMut { place: Place { descriptor, first, memory, count }, borrowed: PhantomData }
    }

    /// Elements that lie one after the other.
    pub(super) fn into_slice(self) -> &'a mut [T] {
        let (first, count) = self.place.dense();
        // SAFETY: so many elements are there and valid, and nobody else uses them for `'a`.
        unsafe { std::slice::from_raw_parts_mut(first, count) }
    }

    /// Writes all elements, given in row-major order.
    pub(super) fn spread(&mut self, mut elements: &[T]) {
        self.for_each_run(|first, step, count| {
            let (run, rest) = elements.split_at(count);
            elements = rest;
            match step {
                // SAFETY: as `for_each_run` says of so many elements from there on.
                1 => unsafe { std::slice::from_raw_parts_mut(first, count) }.copy_from_slice(run),
                _ => run.iter().zip(0..).for_each(|(&value, i)| {
                    // SAFETY: likewise of so many that lie `step` apart.
                    unsafe { first.offset(i * step).write(value) }
                }),
            }
        });
    }

    /// Writes one value to all elements.
    pub(super) fn fill(&mut self, value: T) {
        self.for_each_run(|first, step, count| match step {
            // SAFETY: as `for_each_run` says of so many elements from there on.
            1 => unsafe { std::slice::from_raw_parts_mut(first, count) }.fill(value),
            // SAFETY: likewise of so many that lie `step` apart.
            _ => (0..count as isize).for_each(|i| unsafe { first.offset(i * step).write(value) }),
        });
    }

    /// Writes the elements of another tensor of the same shape, which has none of these.
    ///
    /// # Errors
    /// As [`HostElements::to_vec`].
    pub(super) fn copy_from(&mut self, source: &HostElements<'_, T>) -> Result<()> {
        match source.place.descriptor.is_dense() {
            true => self.spread(source.as_slice()),
            false => self.spread(&source.to_vec()?),
        }
        Ok(())
    }

    /// Hands out the first of the elements of each run, all of which are there, valid and nobody else's; how far apart they
    /// are, and how many there are. What is written is always in memory.
    fn for_each_run(&mut self, mut run: impl FnMut(*mut T, isize, usize)) {
        self.place.descriptor.for_each_run(|offset, step, count| {
            let offset = offset.expect("a view for writing has no margins");
            run(self.place.run(offset, step, count), step as isize, count);
        });
    }
}

/// A fill as an element.
fn element<T: Element>(fill: Fill) -> T {
    match fill {
        Fill::Integer(value) => T::from_int(value.into()),
        Fill::Real(value) => T::from_float(value),
    }
}

/// An empty vector with room for so many elements.
pub(super) fn with_room<T>(count: usize) -> Result<Vec<T>> {
    let mut elements = Vec::new();
    let out_of_memory = || {
        let bytes = count.saturating_mul(size_of::<T>());
        Error::OutOfMemory { device: "the host".to_owned(), bytes, limit: None }
    };
    elements.try_reserve_exact(count).map_err(|_| out_of_memory())?;
    Ok(elements)
}
