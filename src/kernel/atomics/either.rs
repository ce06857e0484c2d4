//! Atomic operations in functions of kernels. Whether one is of a single element, so that its result is a number, is known
//! there by nothing but the types of indices and values: `#[tile_fn]` puts [`AtomicView::either`] before each.

use super::{AtomicKind, AtomicScope, AtomicView, LoadOrder, Numbers, StoreOrder, UpdateOrder};
use crate::kernel::{Element, Int, Number, Tile};

/// What an operation is of: a single element.
pub struct One;

/// What an operation is of: tiles of so many axes.
pub struct Tiles<const S: usize>;

/// What an operation is of.
pub trait Rank {
    /// What it gives.
    type Found<T: Element>;

    #[doc(hidden)]
    fn run<T: Element, const R: usize>(
        view: &AtomicView<'_, T, R>,
        kind: AtomicKind,
        indices: Vec<Erased<i128>>,
        values: Vec<Erased<T>>,
    ) -> Self::Found<T>;
}

/// What an operation is of, of these and of those.
pub trait Join<Other> {
    /// One element where both are.
    type Output: Rank;
}

impl Join<One> for One {
    type Output = One;
}

impl<const S: usize> Join<Tiles<S>> for One {
    type Output = Tiles<S>;
}

impl<const S: usize> Join<One> for Tiles<S> {
    type Output = Tiles<S>;
}

impl<const S: usize> Join<Tiles<S>> for Tiles<S> {
    type Output = Tiles<S>;
}

/// A tile's extents and elements, or a number without extents.
pub struct Erased<N> {
    shape: Vec<usize>,
    numbers: Vec<N>,
}

impl<N> Erased<N> {
    /// With one extent for each axis.
    fn of_rank<const S: usize>(self) -> Numbers<N, S> {
        // A number is one element along every axis.
        (self.shape.try_into().unwrap_or([1; S]), self.numbers)
    }
}

impl Rank for One {
    type Found<T: Element> = T;

    #[track_caller]
    fn run<T: Element, const R: usize>(
        view: &AtomicView<'_, T, R>,
        kind: AtomicKind,
        indices: Vec<Erased<i128>>,
        values: Vec<Erased<T>>,
    ) -> T {
        Tiles::<0>::run(view, kind, indices, values).item()
    }
}

impl<const S: usize> Rank for Tiles<S> {
    type Found<T: Element> = Tile<T, S>;

    #[track_caller]
    fn run<T: Element, const R: usize>(
        view: &AtomicView<'_, T, R>,
        kind: AtomicKind,
        indices: Vec<Erased<i128>>,
        values: Vec<Erased<T>>,
    ) -> Tile<T, S> {
        let indices: Vec<_> = indices.into_iter().map(Erased::of_rank).collect();
        let values: Vec<_> = values.into_iter().map(Erased::of_rank).collect();
        view.run(kind, None, &indices, &values)
    }
}

/// An index along one axis: a tile of integers, or an integer.
#[diagnostic::on_unimplemented(
    message = "an index of an atomic operation is an integer, or a tile of integers, not `{Self}`",
    label = "convert it with `as`, or `.cast()` if it is a tile"
)]
pub trait Index {
    /// What it makes of an operation.
    type Rank;

    #[doc(hidden)]
    fn erased(self) -> Erased<i128>;
}

impl<I: Int, const S: usize> Index for Tile<I, S> {
    type Rank = Tiles<S>;

    fn erased(self) -> Erased<i128> {
        let numbers = self.to_vec().into_iter().map(I::to_int).collect();
        Erased { shape: self.shape().to_vec(), numbers }
    }
}

macro_rules! scalars {
    ($($ty:ident)*) => { $(
        impl Index for $ty {
            type Rank = One;

            fn erased(self) -> Erased<i128> {
                Erased { shape: Vec::new(), numbers: vec![self as i128] }
            }
        }
    )* };
}

scalars!(i8 i16 i32 i64 u8 u16 u32 u64 usize);

/// One index per axis of a tensor of rank `R`: an array, or a tuple where some are tiles and some are numbers.
pub trait Indices<const R: usize> {
    /// What they make of an operation.
    type Rank;

    #[doc(hidden)]
    fn erased(self) -> Vec<Erased<i128>>;
}

impl<I: Index, const R: usize> Indices<R> for [I; R] {
    type Rank = I::Rank;

    fn erased(self) -> Vec<Erased<i128>> {
        self.into_iter().map(Index::erased).collect()
    }
}

macro_rules! tuples {
    ($($rank:literal: $first:ident $($name:ident)*;)*) => { $(
        impl<$first: Index, $($name: Index),*> Indices<$rank> for ($first, $($name),*)
        where
            $first::Rank: JoinAll<($($name::Rank,)*)>,
        {
            type Rank = <$first::Rank as JoinAll<($($name::Rank,)*)>>::Output;

            #[allow(non_snake_case)]
            fn erased(self) -> Vec<Erased<i128>> {
                let ($first, $($name),*) = self;
                vec![$first.erased(), $($name.erased()),*]
            }
        }
    )* };
}

// As many as a tensor has axes.
tuples! {
    1: A;
    2: A B;
    3: A B C;
    4: A B C D;
    5: A B C D E;
    6: A B C D E F;
}

/// [`Join`] with several.
pub trait JoinAll<Others> {
    /// What an operation is of, of all of them.
    type Output: Rank;
}

impl<A: Rank> JoinAll<()> for A {
    type Output = A;
}

macro_rules! joins {
    ($($first:ident $($name:ident)*;)*) => { $(
        impl<X: Join<$first>, $first, $($name),*> JoinAll<($first, $($name,)*)> for X
        where
            X::Output: JoinAll<($($name,)*)>,
        {
            type Output = <X::Output as JoinAll<($($name,)*)>>::Output;
        }
    )* };
}

joins! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
}

/// A value of an operation: a tile, or a number for every element.
#[diagnostic::on_unimplemented(
    message = "a value of this atomic operation is a `{T}`, or a tile of `{T}`, not `{Self}`",
    label = "convert it with `as`, or `.cast()` if it is a tile"
)]
pub trait Value<T> {
    /// What it makes of an operation.
    type Rank;

    #[doc(hidden)]
    fn erased(self) -> Erased<T>;
}

impl<T: Element> Value<T> for T {
    type Rank = One;

    fn erased(self) -> Erased<T> {
        Erased { shape: Vec::new(), numbers: vec![self] }
    }
}

impl<T: Element, const S: usize> Value<T> for Tile<T, S> {
    type Rank = Tiles<S>;

    fn erased(self) -> Erased<T> {
        Erased { shape: self.shape().to_vec(), numbers: self.to_vec() }
    }
}

/// What an operation with these indices and values is of.
type Joined<A, B> = <A as Join<B>>::Output;

/// The same with two values.
type JoinedBoth<A, B, C> = Joined<Joined<A, B>, C>;

/// What an operation gives.
type Found<T, R> = <R as Rank>::Found<T>;

/// An atomic view whose operations give numbers where all that they are given are numbers.
pub struct Either<'v, 'a, T, const R: usize>(pub(super) &'v AtomicView<'a, T, R>);

impl<'a, T, const R: usize> AtomicView<'a, T, R> {
    /// The view, whose operations tell one element from tiles; called by the code that `#[tile_fn]` writes.
    #[doc(hidden)]
    pub fn either(&self) -> Either<'_, 'a, T, R> {
        Either(self)
    }
}

impl<T: Element, const R: usize> Either<'_, '_, T, R> {
    /// As [`AtomicView::load`].
    ///
    /// # Panics
    /// As [`AtomicView::load`].
    #[track_caller]
    pub fn load<I: Indices<R, Rank: Rank>>(
        &self,
        indices: I,
        _: impl LoadOrder,
        _: impl AtomicScope,
    ) -> Found<T, I::Rank> {
        I::Rank::run(self.0, AtomicKind::Load, indices.erased(), Vec::new())
    }

    /// As [`AtomicView::store`].
    ///
    /// # Panics
    /// As [`AtomicView::load`].
    #[track_caller]
    pub fn store<I: Indices<R, Rank: Join<V::Rank>>, V: Value<T>>(
        &self,
        indices: I,
        values: V,
        _: impl StoreOrder,
        _: impl AtomicScope,
    ) {
        Joined::<I::Rank, V::Rank>::run(self.0, AtomicKind::Store, indices.erased(), vec![values.erased()]);
    }
}

impl<T: Number, const R: usize> Either<'_, '_, T, R> {
    /// As [`AtomicView::compare_exchange`].
    ///
    /// # Panics
    /// As [`AtomicView::load`].
    #[expect(clippy::type_complexity, reason = "the result follows from three types")]
    #[track_caller]
    pub fn compare_exchange<I, E, D>(
        &self,
        indices: I,
        expected: E,
        desired: D,
        _: impl UpdateOrder,
        _: impl AtomicScope,
    ) -> Found<T, JoinedBoth<I::Rank, E::Rank, D::Rank>>
    where
        I: Indices<R, Rank: Join<E::Rank, Output: Join<D::Rank>>>,
        E: Value<T>,
        D: Value<T>,
    {
        let values = vec![expected.erased(), desired.erased()];
        JoinedBoth::<I::Rank, E::Rank, D::Rank>::run(
            self.0,
            AtomicKind::CompareExchange,
            indices.erased(),
            values,
        )
    }
}

macro_rules! updates {
    ($element:ident: $($name:ident $kind:ident;)*) => {
        impl<T: $element, const R: usize> Either<'_, '_, T, R> { $(
            #[doc = concat!("As [`AtomicView::", stringify!($name), "`].")]
            ///
            /// # Panics
            /// As [`AtomicView::load`].
            #[track_caller]
            pub fn $name<I: Indices<R, Rank: Join<V::Rank>>, V: Value<T>>(
                &self,
                indices: I,
                values: V,
                _: impl UpdateOrder,
                _: impl AtomicScope,
            ) -> Found<T, Joined<I::Rank, V::Rank>> {
                Joined::<I::Rank, V::Rank>::run(
                    self.0,
                    AtomicKind::$kind,
                    indices.erased(),
                    vec![values.erased()],
                )
            }
        )* }
    };
}

updates! { Number:
    fetch_add Add;
    fetch_min Min;
    fetch_max Max;
    swap Swap;
}

updates! { Int:
    fetch_sub Sub;
    fetch_and And;
    fetch_or Or;
    fetch_xor Xor;
}
