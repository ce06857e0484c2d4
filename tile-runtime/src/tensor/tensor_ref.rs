//! What tensors and views have in common: elements that are there, seen under indices.
//!
//! Invariant: who holds a `&TensorRef` may read the elements, and who holds a `&mut TensorRef` alone uses them. The
//! type has no size, so that nobody can exchange two of them behind such references: each stays with what keeps its
//! elements.

use super::descriptor::{Descriptor, Place};
use super::indices::Indices;
use super::memory::{Allocation, Location};
use super::view::TensorView;
use super::view_mut::TensorViewMut;
use crate::device::Device;
use crate::error::Result;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use tile_layout::{Movement, View};

/// What a [`Tensor`](super::Tensor), a [`TensorView`] and a [`TensorViewMut`] are behind a reference, as `[T]` is what
/// vectors, arrays and parts of them are: kernels take `&TensorRef` and `&mut TensorRef`. `Tail` is what leaves its size
/// open; nobody writes it.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::{Device, Tensor, TensorRef};
/// fn total(x: &TensorRef<i32>) -> tile::Result<i32> {
///     Ok(x.to_vec()?.iter().sum())
/// }
/// let mut x = Tensor::from_vec(&Device::cpu(), (0..6).collect(), [2, 3])?;
/// assert_eq!((total(&x)?, total(&x.slice((1, ..))?)?, total(&x.view_mut())?), (15, 12, 15));
/// # Ok::<(), tile::Error>(())
/// ```
///
/// Two can't be exchanged behind their references, because each belongs to what keeps its elements:
///
/// ```compile_fail,E0277
/// # use tile_runtime as tile;
/// fn exchange(a: &mut tile::TensorRef<f32>, b: &mut tile::TensorRef<f32>) {
///     std::mem::swap(a, b);
/// }
/// ```
pub struct TensorRef<T, Tail: ?Sized = [()]> {
    pub(super) location: Location,
    pub(super) descriptor: Descriptor,
    elements: PhantomData<T>,
    _tail: Tail,
}

/// A [`TensorRef`] where it lies, in a tensor or a view, which gives references of unknown size to it.
pub(super) type Placed<T> = TensorRef<T, [(); 0]>;

impl<T> Placed<T> {
    /// Who owns the result vouches for what references to it allow.
    pub(super) fn new(location: Location, descriptor: Descriptor) -> Placed<T> {
        TensorRef { location, descriptor, elements: PhantomData, _tail: [] }
    }
}

impl<T> TensorRef<T> {
    /// Extents, outermost axis first.
    pub fn shape(&self) -> &[usize] {
        self.descriptor.shape()
    }

    /// The stride of each axis, from an element to the next along it, in elements; `None` where some axis has no single one.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let x = Tensor::<f32>::zeros(&Device::cpu(), [3, 4])?;
    /// assert_eq!((x.strides(), x.t()?.strides()), (Some(vec![4, 1]), Some(vec![1, 4])));
    /// # Ok::<(), tile::Error>(())
    /// ```
    pub fn strides(&self) -> Option<Vec<i64>> {
        self.descriptor.strides()
    }

    /// The device that holds the elements.
    pub fn device(&self) -> &Device {
        self.location.device()
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
    /// # use tile_runtime as tile;
    /// use tile::layout::Movement;
    /// use tile::{Device, Tensor};
    /// let x = Tensor::from_vec(&Device::cpu(), (0..24).collect(), [2, 12])?;
    /// let patches = x.view().rearrange("b (h w) -> (b h) w", &[("h", 3)])?;
    /// assert_eq!((patches.shape(), patches.slice((5, 3))?.to_vec()?), (&[6, 4][..], vec![23]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn view(&self) -> TensorView<'_, T> {
        TensorView::new(self.location.clone(), self.descriptor.clone())
    }

    /// All of it, for writing.
    pub fn view_mut(&mut self) -> TensorViewMut<'_, T> {
        TensorViewMut::new(self.location.clone(), self.descriptor.clone())
    }

    /// The view after a movement operation.
    pub(super) fn moved(
        &self,
        operation: impl FnOnce(&View) -> tile_layout::Result<View>,
    ) -> Result<TensorView<'_, T>> {
        Ok(TensorView::new(self.location.clone(), self.descriptor.moved(operation)?))
    }

    /// A part: one index, range or [`tile_layout::Index`] per axis, those left out kept whole. Where a table
    /// of indices names one outside, there is a 0, which isn't in memory.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let x = Tensor::from_vec(&Device::cpu(), (0..12).collect(), [3, 4])?;
    /// assert_eq!(x.slice((1.., ..2))?.to_vec()?, [4, 5, 8, 9]);
    /// assert_eq!(x.slice((.., -1))?.to_vec()?, [3, 7, 11]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Layout`] for an index outside, or more indices than axes.
    pub fn slice(&self, indices: impl Indices) -> Result<TensorView<'_, T>> {
        self.moved(|view| view.index(&indices.list()))
    }

    /// A part, for writing.
    ///
    /// # Errors
    /// As [`TensorRef::slice`]; [`crate::Error::SharedElements`] where the part has an element more than once.
    pub fn slice_mut(&mut self, indices: impl Indices) -> Result<TensorViewMut<'_, T>> {
        self.view_mut().slice(indices)
    }

    /// The parts before index `at` of an axis and from it on. An axis below 0 counts from the end, and either part may be
    /// empty.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let x = Tensor::from_vec(&Device::cpu(), (0..6).collect(), [2, 3])?;
    /// let (left, right) = x.split_at(1, 2)?;
    /// assert_eq!((left.to_vec()?, right.to_vec()?), (vec![0, 1, 3, 4], vec![2, 5]));
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Layout`] where there is no such axis, or `at` lies beyond its extent.
    pub fn split_at(&self, axis: i64, at: usize) -> Result<(TensorView<'_, T>, TensorView<'_, T>)> {
        self.view().split_at(axis, at)
    }

    /// [`TensorRef::split_at`] for writing: two parts without a common element, so that both can be used at once. One is
    /// written while the other is read or written, by one launch or two. [`TensorViewMut::split_at`] makes more parts.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let mut parameters = Tensor::from_vec(&Device::cpu(), (0..6).collect(), [6])?;
    /// let (weights, mut biases) = parameters.split_at_mut(0, 4)?;
    /// biases.copy_from(&weights.view().slice(..2)?)?;
    /// let (mut first, second) = weights.reshape([2, 2])?.split_at(0, 1)?;
    /// first.copy_from(&second)?;
    /// assert_eq!(parameters.to_vec()?, [2, 3, 2, 3, 0, 1]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`TensorViewMut::split_at`].
    pub fn split_at_mut(
        &mut self,
        axis: i64,
        at: usize,
    ) -> Result<(TensorViewMut<'_, T>, TensorViewMut<'_, T>)> {
        self.view_mut().split_at(axis, at)
    }

    /// Waits for everything that uses the elements.
    #[cfg(feature = "dlpack")]
    pub(crate) fn finish(&self) -> Result<()> {
        self.location.finish()
    }

    /// This tensor without its element type.
    pub(crate) fn untyped(&self) -> Untyped<'_> {
        Untyped { location: &self.location, descriptor: &self.descriptor }
    }

    /// The address in the device's memory of the element with index 0 everywhere, for reading by other libraries: a
    /// `CUdeviceptr`, a pointer of `hip…`, on the CPU, the reference and simulated devices a pointer of this process. The
    /// element with index `i` lies `i[0] * strides[0] + i[1] * strides[1] + …` elements further, with the distances of
    /// [`TensorRef::strides`], which may be negative; of a part the address is the part's, and begins where that does. `None`
    /// for elements that an address and distances don't tell: [`TensorRef::is_dense`] and `to_dense` help.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let x = Tensor::from_vec(&Device::cpu(), (0..6i32).collect(), [2, 3])?;
    /// let column = x.slice((.., 1))?;
    /// let (first, strides) = (column.device_address().unwrap() as *const i32, column.strides().unwrap());
    /// // SAFETY: the elements are in the host's memory, nothing has still to write them, and `column` borrows them.
    /// assert_eq!(unsafe { [first.read(), first.offset(strides[0] as isize).read()] }, [1, 4]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// Nothing is waited for. What is there is what earlier launches and copies have left once they are done: behind
    /// [`Device::synchronize`], or on a stream of the reader's that has waited
    /// ([`Stream::wait_for`](crate::Stream::wait_for)) for an event of the queue that they were enqueued on, such as
    /// [`Device::stream`]. Until the reader is done, somebody keeps the tensor and nobody writes its elements. Where the
    /// reader is a stream, its end is waited for, or [`Device::stream`] is made to wait for an event of it: what is launched,
    /// copied or freed from then on comes after. The elements aren't written by this address.
    pub fn device_address(&self) -> Option<u64> {
        match self.descriptor.place() {
            Place::Unknown => None,
            Place::Dense | Place::Strided(_) => Some(self.address()),
        }
    }

    /// [`TensorRef::device_address`], for writing too. Until the other library is done, nobody else reads or writes the
    /// elements, as if it had this borrow; what lies between those of a view isn't written.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let mut x = Tensor::<f32>::zeros(&Device::cpu(), [4])?;
    /// let first = x.slice_mut(1..)?.device_address_mut().unwrap() as *mut f32;
    /// // SAFETY: the elements are in the host's memory, nothing else uses them, and `x` isn't touched before the end.
    /// unsafe { first.write(1.5) };
    /// assert_eq!(x.to_vec()?, [0.0, 1.5, 0.0, 0.0]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    pub fn device_address_mut(&mut self) -> Option<u64> {
        self.device_address()
    }

    /// The address of the element with index 0 everywhere, where it is in memory.
    pub(crate) fn address(&self) -> u64 {
        self.location.address() + (self.descriptor.first() * size_of::<T>()) as u64
    }
}

/// A tensor as a launch borrows it, without its element type.
#[derive(Clone, Copy)]
pub(crate) struct Untyped<'a> {
    location: &'a Location,
    descriptor: &'a Descriptor,
}

impl<'a> Untyped<'a> {
    pub(crate) fn shape(&self) -> &'a [usize] {
        self.descriptor.shape()
    }

    pub(crate) fn device(&self) -> &'a Device {
        self.location.device()
    }

    /// What keeps the elements there, and who uses them; `None` where that isn't ours to know.
    pub(crate) fn allocation(&self) -> Option<&'a Arc<Allocation>> {
        self.location.allocation()
    }

    /// How kernels see where the elements lie.
    pub(crate) fn place(&self) -> Place<'a> {
        self.descriptor.place()
    }

    /// Whether no two indices have one element, and each has one.
    pub(crate) fn is_writable(&self) -> bool {
        self.descriptor.is_writable()
    }

    /// The bytes from the element that lies first to the end of that which lies last, where an element has so many.
    pub(crate) fn bytes(&self, element: usize) -> Range<u64> {
        let start = self.start(element);
        let count = match self.place() {
            Place::Dense => self.descriptor.len(),
            _ => self.descriptor.span().len(),
        };
        start..start + (count * element) as u64
    }

    /// The address of the element that lies first.
    pub(crate) fn start(&self, element: usize) -> u64 {
        let first = match self.place() {
            Place::Dense => self.descriptor.first(),
            _ => self.descriptor.span().start,
        };
        self.location.address() + (first * element) as u64
    }
}

impl<T> fmt::Debug for TensorRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{}>{:?} on {}", std::any::type_name::<T>(), self.shape(), self.device().name())?;
        if self.is_dense() { Ok(()) } else { write!(f, ", elements at {}", self.descriptor.view()) }
    }
}
