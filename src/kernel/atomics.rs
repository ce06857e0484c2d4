//! Atomic operations on the elements of a tensor, which any block may access.
//!
//! The order of an operation and who observes it are types without values, so that a load that releases is no
//! program. Here blocks run one after the other, so every order holds.

mod either;

use super::arena::{self, Handle};
use super::gather::GatherIndices;
use super::repeated::Repeated;
use super::together::{Numbers, at, together};
use super::view_movement::Seen;
use super::views::TensorViewMut;
use super::{Element, Int, Number, Tile};
use std::rc::Rc;
use tile_ir::ops::{AtomicKind, Literal};
use tile_layout::multi_index;
use tile_runtime::reference::WrittenElements;

/// A `&mut Tensor` argument whose elements any block may change, atomically. `counts.atomic_view()` makes one; the
/// tensor then has no other view in the kernel, and such a tensor declares no grid: say `grid = […]`, or have an
/// output with tiles besides.
///
/// Operations take one index per axis, as [`gather`](super::TensorView::gather) does, and values of the tensor's
/// format; tiles, and scalars among them, are broadcast to one shape, that of the result: the elements that were
/// there before. Where all are scalars, the operation is of one element, and its result is a scalar. An index outside
/// the tensor does nothing and reads as 0. The elements of one operation follow each other in row-major order here and
/// on CPUs; on GPUs they have no order.
///
/// Every format has `load` and `store`, which is how a kernel scatters to memory: where indices repeat, one of
/// the values stays. `i32`, `u32`, `i64` and `u64` have all operations, `f32` and `f64` all but `fetch_sub`,
/// `fetch_and`, `fetch_or` and `fetch_xor`, `f16` and `bf16` also `fetch_add`. Others are compile errors; where the
/// format is a parameter, the launch of an instance without the operation is an error.
///
/// Each has a form `…_masked` whose first argument is a tile of `bool`: where it is false, nothing happens and the
/// result is 0.
///
/// A view is a value that is `Copy`; functions of kernels take it, or a reference to it.
///
/// ```
/// use tile::prelude::*;
///
/// /// How many elements of x are 0, 1, ….
/// #[tile_kernel(grid = [n.div_ceil(B)])]
/// fn count<const B: usize>(x: &Tensor<u32, n>, counts: &mut Tensor<i32, k>) {
///     let x = x.partition_view([B]).load_masked_or(u32::MAX, [block_id(0)]);
///     let counts = counts.atomic_view();
///     counts.fetch_add([x], 1, Relaxed, DeviceScope);
/// }
///
/// # fn main() -> tile::Result<()> {
/// let device = Device::reference();
/// let x = Tensor::from_slice(&device, &[2, 0, 2, 1, 2], [5])?;
/// let mut counts = Tensor::zeros(&device, [3])?;
/// count::<4>(&x, &mut counts).launch()?;
/// assert_eq!(counts.to_vec()?, [1, 1, 3]);
/// # Ok(())
/// # }
/// ```
pub struct AtomicView<'a, T, const R: usize> {
    data: WrittenElements<'a, T>,
    kept: Handle<Kept>,
}

/// What a view and its copies have in common.
struct Kept {
    seen: Rc<Seen>,
    repeated: Repeated,
}

impl<T, const R: usize> Clone for AtomicView<'_, T, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const R: usize> Copy for AtomicView<'_, T, R> {}

macro_rules! markers {
    ($($(#[$doc:meta])* $name:ident: $($class:ident)*;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        $(impl $class for $name {})*
    )* };
}

/// The order of an atomic load: [`Relaxed`] or [`Acquire`].
pub trait LoadOrder {}

/// The order of an atomic store: [`Relaxed`] or [`Release`].
pub trait StoreOrder {}

/// The order of an operation that reads and writes: any.
pub trait UpdateOrder {}

/// Between whom an operation is atomic and ordered.
pub trait AtomicScope {}

markers! {
    /// Atomic. Other blocks see it in no order with other accesses; the block's own operations on the tensor come one after the
    /// other.
    Relaxed: LoadOrder StoreOrder UpdateOrder;
    /// What the block does afterwards comes after it.
    Acquire: LoadOrder UpdateOrder;
    /// What the block did before comes before it.
    Release: StoreOrder UpdateOrder;
    /// Both [`Acquire`] and [`Release`].
    AcqRel: UpdateOrder;
    /// The threads of the block.
    BlockScope: AtomicScope;
    /// All blocks of a launch.
    DeviceScope: AtomicScope;
    /// Also the host and other devices.
    SystemScope: AtomicScope;
}

/// A value of an atomic operation: a tile, or a number for every element.
pub trait AtomicValue<T, const S: usize> {
    #[doc(hidden)]
    fn tile(self) -> ([usize; S], Vec<T>);
}

impl<T: Element, const S: usize> AtomicValue<T, S> for Tile<T, S> {
    fn tile(self) -> ([usize; S], Vec<T>) {
        (self.shape(), self.to_vec())
    }
}

impl<T: Element, const S: usize> AtomicValue<T, S> for T {
    fn tile(self) -> ([usize; S], Vec<T>) {
        ([1; S], vec![self])
    }
}

impl<'a, T: Element, const R: usize> TensorViewMut<'a, T, R> {
    /// The tensor as one whose elements any block may change, atomically.
    pub fn atomic_view(&self) -> AtomicView<'a, T, R> {
        let kept = Kept { seen: self.seen(), repeated: Repeated::default() };
        AtomicView { data: self.elements(), kept: arena::keep(kept) }
    }
}

fn literal<T: Element>(value: T) -> Literal {
    if T::DTYPE.is_float() { Literal::Float(value.to_float()) } else { Literal::Int(value.to_int()) }
}

fn number<T: Element>(value: Literal) -> T {
    match value {
        Literal::Int(value) => T::from_int(value),
        Literal::Float(value) => T::from_float(value),
    }
}

impl<T, const R: usize> AtomicView<'_, T, R> {
    pub(super) fn seen(&self) -> Rc<Seen> {
        Rc::clone(&arena::read(self.kept).seen)
    }
}

impl<T: Element, const R: usize> AtomicView<'_, T, R> {
    /// The extent of an axis, in elements.
    pub fn extent(&self, axis: usize) -> usize {
        self.seen().extent(axis)
    }

    /// An operation at indices that are one for each axis.
    #[track_caller]
    fn run<const S: usize>(
        &self,
        kind: AtomicKind,
        mask: Option<Tile<bool, S>>,
        indices: &[Numbers<i128, S>],
        values: &[Numbers<T, S>],
    ) -> Tile<T, S> {
        let kept = arena::read(self.kept);
        let placement = kept.seen.placement();
        let mask: Option<Numbers<bool, S>> = mask.map(|mask| (mask.shape(), mask.to_vec()));
        let shapes = indices.iter().map(|(shape, _)| shape).chain(values.iter().map(|(shape, _)| shape));
        let shape = together(shapes.chain(mask.iter().map(|(shape, _)| shape)), kind.rust_name());
        let mut old = Vec::new();
        let (mut first, mut changed) = (None, false);
        for element in 0..shape.iter().product() {
            let place = multi_index(element, &shape);
            let index = indices.iter().map(|index| i64::try_from(at(index, &place)).ok());
            let position = index.collect::<Option<Vec<i64>>>().and_then(|index| placement.position(&index));
            let on = mask.as_ref().is_none_or(|mask| at(mask, &place));
            let Some(position) = position.filter(|_| on) else {
                old.push(T::default());
                continue;
            };
            first.get_or_insert(position);
            let before = self.data.get(position);
            let given: Vec<Literal> = values.iter().map(|value| literal(at(value, &place))).collect();
            let after = kind.update(T::DTYPE, literal(before), &given);
            if after != literal(before) {
                self.data.set(position, number(after));
                changed = true;
            }
            old.push(before);
        }
        kept.repeated.note(first, changed);
        Tile::of_values(shape, &old)
    }

    /// Reads elements.
    ///
    /// # Panics
    /// If the tiles can't be broadcast together; in a kernel that is a compile error. If the block waits for ever: it has found
    /// the element as it was millions of times, and no other block runs meanwhile.
    #[track_caller]
    pub fn load<const S: usize>(
        &self,
        indices: impl GatherIndices<R, S>,
        _: impl LoadOrder,
        _: impl AtomicScope,
    ) -> Tile<T, S> {
        self.run(AtomicKind::Load, None, &indices.axes(), &[])
    }

    /// [`AtomicView::load`] where the mask holds.
    ///
    /// # Panics
    /// As [`AtomicView::load`].
    #[track_caller]
    pub fn load_masked<const S: usize>(
        &self,
        mask: Tile<bool, S>,
        indices: impl GatherIndices<R, S>,
        _: impl LoadOrder,
        _: impl AtomicScope,
    ) -> Tile<T, S> {
        self.run(AtomicKind::Load, Some(mask), &indices.axes(), &[])
    }

    /// Replaces elements.
    ///
    /// # Panics
    /// As [`AtomicView::load`].
    #[track_caller]
    pub fn store<const S: usize>(
        &self,
        indices: impl GatherIndices<R, S>,
        values: impl AtomicValue<T, S>,
        _: impl StoreOrder,
        _: impl AtomicScope,
    ) {
        self.run(AtomicKind::Store, None, &indices.axes(), &[values.tile()]);
    }

    /// [`AtomicView::store`] where the mask holds.
    ///
    /// # Panics
    /// As [`AtomicView::load`].
    #[track_caller]
    pub fn store_masked<const S: usize>(
        &self,
        mask: Tile<bool, S>,
        indices: impl GatherIndices<R, S>,
        values: impl AtomicValue<T, S>,
        _: impl StoreOrder,
        _: impl AtomicScope,
    ) {
        self.run(AtomicKind::Store, Some(mask), &indices.axes(), &[values.tile()]);
    }
}

impl<T: Number, const R: usize> AtomicView<'_, T, R> {
    /// Replaces elements by `desired` where they have the bits of `expected`: a NaN is like itself, −0 not like +0.
    ///
    /// # Panics
    /// As [`AtomicView::load`].
    #[track_caller]
    pub fn compare_exchange<const S: usize>(
        &self,
        indices: impl GatherIndices<R, S>,
        expected: impl AtomicValue<T, S>,
        desired: impl AtomicValue<T, S>,
        _: impl UpdateOrder,
        _: impl AtomicScope,
    ) -> Tile<T, S> {
        self.run(AtomicKind::CompareExchange, None, &indices.axes(), &[expected.tile(), desired.tile()])
    }

    /// [`AtomicView::compare_exchange`] where the mask holds.
    ///
    /// # Panics
    /// As [`AtomicView::load`].
    #[track_caller]
    pub fn compare_exchange_masked<const S: usize>(
        &self,
        mask: Tile<bool, S>,
        indices: impl GatherIndices<R, S>,
        expected: impl AtomicValue<T, S>,
        desired: impl AtomicValue<T, S>,
        _: impl UpdateOrder,
        _: impl AtomicScope,
    ) -> Tile<T, S> {
        self.run(AtomicKind::CompareExchange, Some(mask), &indices.axes(), &[expected.tile(), desired.tile()])
    }
}

macro_rules! updates {
    ($element:ident: $($(#[$doc:meta])* $name:ident $masked:ident $kind:ident;)*) => {
        impl<T: $element, const R: usize> AtomicView<'_, T, R> { $(
            $(#[$doc])*
            ///
            /// # Panics
            /// As [`AtomicView::load`].
            #[track_caller]
            pub fn $name<const S: usize>(
                &self,
                indices: impl GatherIndices<R, S>,
                values: impl AtomicValue<T, S>,
                _: impl UpdateOrder,
                _: impl AtomicScope,
            ) -> Tile<T, S> {
                self.run(AtomicKind::$kind, None, &indices.axes(), &[values.tile()])
            }

            #[doc = concat!("[`AtomicView::", stringify!($name), "`] where the mask holds.")]
            ///
            /// # Panics
            /// As [`AtomicView::load`].
            #[track_caller]
            pub fn $masked<const S: usize>(
                &self,
                mask: Tile<bool, S>,
                indices: impl GatherIndices<R, S>,
                values: impl AtomicValue<T, S>,
                _: impl UpdateOrder,
                _: impl AtomicScope,
            ) -> Tile<T, S> {
                self.run(AtomicKind::$kind, Some(mask), &indices.axes(), &[values.tile()])
            }
        )* }
    };
}

updates! { Number:
    /// Adds values to elements; integers wrap. Gives what was there.
    fetch_add fetch_add_masked Add;
    /// Keeps the smaller of element and value, and ignores NaN. Gives what was there.
    fetch_min fetch_min_masked Min;
    /// Keeps the larger of element and value, and ignores NaN. Gives what was there.
    fetch_max fetch_max_masked Max;
    /// Replaces elements by values. Gives what was there.
    swap swap_masked Swap;
}

updates! { Int:
    /// Subtracts values from elements, and wraps. Gives what was there.
    fetch_sub fetch_sub_masked Sub;
    /// Bitwise and. Gives what was there.
    fetch_and fetch_and_masked And;
    /// Bitwise or. Gives what was there.
    fetch_or fetch_or_masked Or;
    /// Bitwise exclusive or. Gives what was there.
    fetch_xor fetch_xor_masked Xor;
}
