//! The operations that tensors and views have without an import: one list for the three of them. Each gives a view of the
//! same elements, which lives as long as what it is a view of may be used: a view of a view isn't bound to the view.
//!
//! All operations of [`tile_layout::Movement`] are there for a [`TensorView`], and by [`TensorViewMut::moved`].

use super::tensor_ref::TensorRef;
use super::view::TensorView;
use super::view_mut::TensorViewMut;
use crate::error::Result;
use tile_layout::{Length, Movement};

/// The operations of a type: how each takes it, what each gives, and the method by which a view becomes another.
macro_rules! movements {
    ({$($lifetime:lifetime)?} $owner:ty: [$($borrow:tt)?] $this:ident.$apply:ident => $result:ty) => {
        impl<$($lifetime,)? T> $owner {
            /// Axes 0 and 1 exchanged.
            ///
            /// # Errors
            /// [`crate::Error::Layout`] below rank 2.
            pub fn t($($borrow)? $this) -> Result<$result> {
                $this.$apply(Movement::t)
            }

            /// Two axes exchanged; negative ones count from the end.
            ///
            /// # Errors
            /// [`crate::Error::Layout`] where there is no such axis.
            pub fn transpose($($borrow)? $this, first: i64, second: i64) -> Result<$result> {
                $this.$apply(|view| Movement::transpose(view, first, second))
            }

            /// The axes in another order; negative ones count from the end.
            ///
            /// # Errors
            /// [`crate::Error::Layout`] where `order` isn't a permutation of the axes.
            pub fn permute($($borrow)? $this, order: impl AsRef<[i64]>) -> Result<$result> {
                $this.$apply(|view| Movement::permute(view, order.as_ref()))
            }

            /// Axes backwards; negative ones count from the end.
            ///
            /// # Errors
            /// [`crate::Error::Layout`] where there is no such axis, or one is named twice.
            pub fn flip($($borrow)? $this, axes: impl AsRef<[i64]>) -> Result<$result> {
                $this.$apply(|view| Movement::flip(view, axes.as_ref()))
            }

            /// The same elements in row-major order under another shape; `-1` stands for what is left.
            ///
            /// # Errors
            /// [`crate::Error::Layout`] where the numbers of elements differ.
            pub fn reshape<L: Into<Length>>($($borrow)? $this, lengths: impl IntoIterator<Item = L>) -> Result<$result> {
                $this.$apply(|view| Movement::reshape(view, lengths))
            }

            /// Axes `first` to `last`, both included, as one; negative ones count from the end.
            ///
            /// # Errors
            /// [`crate::Error::Layout`] where there is no such axis.
            pub fn flatten($($borrow)? $this, first: i64, last: i64) -> Result<$result> {
                $this.$apply(|view| Movement::flatten(view, first, last))
            }

            /// A new axis of extent 1 at a place, which may be behind the last axis: there it is called -1, too.
            ///
            /// # Errors
            /// [`crate::Error::Layout`] where there is no such place.
            pub fn unsqueeze($($borrow)? $this, axis: i64) -> Result<$result> {
                $this.$apply(|view| Movement::unsqueeze(view, axis))
            }

            /// Without an axis of extent 1; one of another extent stays.
            ///
            /// # Errors
            /// [`crate::Error::Layout`] where there is no such axis.
            pub fn squeeze($($borrow)? $this, axis: i64) -> Result<$result> {
                $this.$apply(|view| Movement::squeeze(view, Some(axis)))
            }
        }
    };
}

/// What views for writing haven't got: it repeats elements.
macro_rules! repetition {
    ({$($lifetime:lifetime)?} $owner:ty: [$($borrow:tt)?] $this:ident.$apply:ident => $result:ty) => {
        impl<$($lifetime,)? T> $owner {
            /// Axes of extent 1 repeated, and further axes in front; `-1` keeps an extent.
            ///
            /// # Errors
            /// [`crate::Error::Layout`] where an extent is neither equal nor 1.
            pub fn expand<L: Into<Length>>($($borrow)? $this, lengths: impl IntoIterator<Item = L>) -> Result<$result> {
                $this.$apply(|view| Movement::expand(view, lengths))
            }
        }
    };
}

movements!({} TensorRef<T>: [&] self.moved => TensorView<'_, T>);
repetition!({} TensorRef<T>: [&] self.moved => TensorView<'_, T>);
movements!({'a} TensorView<'a, T>: [&] self.moved => TensorView<'a, T>);
repetition!({'a} TensorView<'a, T>: [&] self.moved => TensorView<'a, T>);
movements!({'a} TensorViewMut<'a, T>: [] self.after => TensorViewMut<'a, T>);
