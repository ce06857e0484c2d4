//! Hierarchical integer tuples: the shapes, strides and coordinates of layouts.
//!
//! A tuple is stored flat: its leaves in order, and beside them how they nest. Both parts stay on the stack for
//! up to eight leaves, which is what keeps the algebra free of heap allocation. Nesting is a list of tokens in
//! preorder: a leaf, or a tuple with its number of children; `(4,(2,2))` nests as `tuple 2, leaf, tuple 2, leaf,
//! leaf`. Only this file knows that encoding.

use crate::error::{ErrorKind, LayoutError, Result};
use core::fmt;
use smallvec::{SmallVec, smallvec};

/// Leaves that a layout or a tuple holds without heap allocation.
pub(crate) const INLINE: usize = 8;

/// A short list of integers, on the stack up to [`INLINE`].
pub(crate) type Ints = SmallVec<[i64; INLINE]>;

const LEAF: u32 = u32::MAX;

/// The nesting of one leaf.
pub(crate) const LEAF_TOKENS: &[u32] = &[LEAF];

/// How leaves nest, without their values.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Nesting(SmallVec<[u32; 12]>);

impl Clone for Nesting {
    /// Tokens are copied at once, where the list's own `clone` goes from one to the next.
    fn clone(&self) -> Nesting {
        Nesting(SmallVec::from_slice(&self.0))
    }
}

impl Nesting {
    pub(crate) fn leaf() -> Nesting {
        Nesting(smallvec![LEAF])
    }

    /// A tuple of `count` leaves.
    pub(crate) fn flat(count: usize) -> Nesting {
        let mut nesting = Nesting::empty();
        nesting.open(count);
        nesting.0.extend(core::iter::repeat_n(LEAF, count));
        nesting
    }

    /// Nothing yet: to be filled with [`Nesting::open`], [`Nesting::push_leaf`] and [`Nesting::push`].
    pub(crate) fn empty() -> Nesting {
        Nesting(SmallVec::new())
    }

    /// Begin a tuple; the next `children` subtrees belong to it.
    pub(crate) fn open(&mut self, children: usize) {
        // A tuple of 2^32 - 1 children would need 32 GiB of leaves.
        self.0.push(children as u32);
    }

    pub(crate) fn push_leaf(&mut self) {
        self.0.push(LEAF);
    }

    pub(crate) fn push(&mut self, part: &[u32]) {
        self.0.extend_from_slice(part);
    }

    pub(crate) fn tokens(&self) -> &[u32] {
        &self.0
    }

    pub(crate) fn is_leaf(&self) -> bool {
        is_leaf(&self.0)
    }
}

pub(crate) fn is_leaf(tokens: &[u32]) -> bool {
    tokens.first() == Some(&LEAF)
}

/// Leaves below a subtree.
pub(crate) fn leaf_count(tokens: &[u32]) -> usize {
    tokens.iter().filter(|&&token| token == LEAF).count()
}

/// Number of top-level modes; a leaf counts as one.
pub(crate) fn rank(tokens: &[u32]) -> usize {
    if is_leaf(tokens) { 1 } else { tokens.first().map_or(0, |&count| count as usize) }
}

/// Levels of nesting; 0 for a leaf.
pub(crate) fn depth(tokens: &[u32]) -> usize {
    if is_leaf(tokens) { 0 } else { 1 + children(tokens).map(depth).max().unwrap_or(0) }
}

/// The subtrees of a tuple; a leaf has itself as its only mode.
pub(crate) fn children(tokens: &[u32]) -> impl Iterator<Item = &[u32]> {
    let mut rest = if is_leaf(tokens) { tokens } else { tokens.get(1..).unwrap_or(&[]) };
    core::iter::from_fn(move || {
        let (child, after) = rest.split_at(subtree_length(rest)?);
        rest = after;
        Some(child)
    })
}

fn subtree_length(tokens: &[u32]) -> Option<usize> {
    let mut pending = 1u64;
    for (position, &token) in tokens.iter().enumerate() {
        pending = pending - 1 + if token == LEAF { 0 } else { u64::from(token) };
        if pending == 0 {
            return Some(position + 1);
        }
    }
    None
}

/// An integer, or a tuple of such: a shape, a stride, a coordinate.
///
/// Made from integers, arrays, slices and Rust tuples, or parsed; printed the way CuTe prints it.
///
/// ```
/// use tile_layout::IntTuple;
/// let shape = IntTuple::from((4, (2, 3)));
/// assert_eq!(shape.to_string(), "(4,(2,3))");
/// assert_eq!(shape, "(4,(2,3))".parse()?);
/// assert_eq!((shape.rank(), shape.depth(), shape.leaves()), (2, 2, &[4, 2, 3][..]));
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IntTuple {
    pub(crate) leaves: Ints,
    pub(crate) nesting: Nesting,
}

impl IntTuple {
    /// One integer.
    ///
    /// ```
    /// assert_eq!(tile_layout::IntTuple::leaf(3).to_string(), "3");
    /// ```
    pub fn leaf(value: i64) -> IntTuple {
        IntTuple { leaves: smallvec![value], nesting: Nesting::leaf() }
    }

    /// A tuple of integers, without further nesting.
    ///
    /// ```
    /// assert_eq!(tile_layout::IntTuple::flat(&[3]).to_string(), "(3)");
    /// ```
    pub fn flat(values: &[i64]) -> IntTuple {
        IntTuple { leaves: Ints::from_slice(values), nesting: Nesting::flat(values.len()) }
    }

    /// A tuple of tuples.
    ///
    /// ```
    /// use tile_layout::IntTuple;
    /// let parts = [IntTuple::leaf(4), IntTuple::flat(&[2, 3])];
    /// assert_eq!(IntTuple::tuple(&parts).to_string(), "(4,(2,3))");
    /// ```
    pub fn tuple(parts: &[IntTuple]) -> IntTuple {
        let mut joined = IntTuple { leaves: Ints::new(), nesting: Nesting::empty() };
        joined.nesting.open(parts.len());
        for part in parts {
            joined.leaves.extend_from_slice(&part.leaves);
            joined.nesting.push(part.nesting.tokens());
        }
        joined
    }

    /// The integers in order, whatever their nesting.
    ///
    /// ```
    /// assert_eq!(tile_layout::IntTuple::from((4, (2, 3))).leaves(), [4, 2, 3]);
    /// ```
    pub fn leaves(&self) -> &[i64] {
        &self.leaves
    }

    /// Whether this is one integer and no tuple.
    ///
    /// ```
    /// use tile_layout::IntTuple;
    /// assert!(IntTuple::leaf(4).is_leaf() && !IntTuple::flat(&[4]).is_leaf());
    /// ```
    pub fn is_leaf(&self) -> bool {
        self.nesting.is_leaf()
    }

    /// Number of top-level modes; 1 for an integer.
    ///
    /// ```
    /// assert_eq!(tile_layout::IntTuple::from((4, (2, 3))).rank(), 2);
    /// ```
    pub fn rank(&self) -> usize {
        rank(self.nesting.tokens())
    }

    /// Levels of nesting; 0 for an integer.
    ///
    /// ```
    /// assert_eq!(tile_layout::IntTuple::from((4, (2, 3))).depth(), 2);
    /// ```
    pub fn depth(&self) -> usize {
        depth(self.nesting.tokens())
    }

    /// The top-level modes; an integer is its own only mode.
    ///
    /// ```
    /// let shape = tile_layout::IntTuple::from((4, (2, 3)));
    /// let modes: Vec<String> = shape.modes().map(|mode| mode.to_string()).collect();
    /// assert_eq!(modes, ["4", "(2,3)"]);
    /// ```
    pub fn modes(&self) -> impl Iterator<Item = IntTuple> {
        let mut leaves = &self.leaves[..];
        children(self.nesting.tokens()).map(move |tokens| {
            let (own, rest) = leaves.split_at(leaf_count(tokens));
            leaves = rest;
            IntTuple { leaves: Ints::from_slice(own), nesting: Nesting(SmallVec::from_slice(tokens)) }
        })
    }

    /// The product of the leaves; 1 for an empty tuple.
    ///
    /// # Errors
    /// [`ErrorKind::Overflow`] where it exceeds 2^62, the most elements that anything here may have.
    ///
    /// ```
    /// assert_eq!(tile_layout::IntTuple::from((4, (2, 3))).product()?, 24);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn product(&self) -> Result<i64> {
        product(&self.leaves)
    }

    /// Whether both nest alike, whatever the values.
    ///
    /// ```
    /// use tile_layout::IntTuple;
    /// assert!(IntTuple::from((4, (2, 3))).is_congruent(&IntTuple::from((1, (0, 0)))));
    /// assert!(!IntTuple::from((4, (2, 3))).is_congruent(&IntTuple::from((1, 0))));
    /// ```
    pub fn is_congruent(&self, other: &IntTuple) -> bool {
        self.nesting == other.nesting
    }

    /// Whether every coordinate of this shape is a coordinate of `finer`: each mode here is an integer with
    /// the size of its counterpart, or a tuple of compatible modes (CuTe's `compatible`).
    ///
    /// ```
    /// use tile_layout::IntTuple;
    /// assert!(IntTuple::leaf(24).is_compatible(&IntTuple::from((4, (2, 3)))));
    /// assert!(IntTuple::from((4, 6)).is_compatible(&IntTuple::from((4, (2, 3)))));
    /// assert!(!IntTuple::from((6, 4)).is_compatible(&IntTuple::from((4, (2, 3)))));
    /// ```
    pub fn is_compatible(&self, finer: &IntTuple) -> bool {
        if self.is_leaf() {
            return finer.product().is_ok_and(|size| size == self.leaves[0]);
        }
        !finer.is_leaf()
            && self.rank() == finer.rank()
            && self.modes().zip(finer.modes()).all(|(coarse, fine)| coarse.is_compatible(&fine))
    }
}

/// The largest size and the largest distance from offset 0: two of them add up without overflow.
pub(crate) const LIMIT: i64 = 1 << 62;

/// The product of extents. Those beside a 0 must keep to the limit too, so that parts without it do.
pub(crate) fn product(extents: &[i64]) -> Result<i64> {
    product_of(extents.iter().copied())
}

/// [`product`] of extents that aren't in a list of their own.
pub(crate) fn product_of(extents: impl Iterator<Item = i64> + Clone) -> Result<i64> {
    let (mut product, mut is_empty) = (Some(1i64), false);
    for extent in extents.clone() {
        match extent {
            0 => is_empty = true,
            _ => product = product.and_then(|product| product.checked_mul(extent)),
        }
    }
    match product {
        Some(product) if product <= LIMIT => Ok(if is_empty { 0 } else { product }),
        _ => {
            let extents: Ints = extents.collect();
            let message = alloc::format!("the size of {} exceeds 2^62", IntTuple::flat(&extents));
            Err(LayoutError::new(ErrorKind::Overflow, message))
        }
    }
}

impl fmt::Debug for IntTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<i64> for IntTuple {
    fn from(value: i64) -> IntTuple {
        IntTuple::leaf(value)
    }
}

impl From<i32> for IntTuple {
    fn from(value: i32) -> IntTuple {
        IntTuple::leaf(value.into())
    }
}

impl From<&IntTuple> for IntTuple {
    fn from(tuple: &IntTuple) -> IntTuple {
        tuple.clone()
    }
}

impl From<&[i64]> for IntTuple {
    fn from(values: &[i64]) -> IntTuple {
        IntTuple::flat(values)
    }
}

impl<T: Into<IntTuple>, const N: usize> From<[T; N]> for IntTuple {
    fn from(values: [T; N]) -> IntTuple {
        IntTuple::tuple(&values.map(Into::into))
    }
}

macro_rules! from_rust_tuples {
    ($(($($name:ident),+))+) => {$(
        impl<$($name: Into<IntTuple>),+> From<($($name,)+)> for IntTuple {
            #[allow(non_snake_case, reason = "type parameters double as the names of the parts")]
            fn from(($($name,)+): ($($name,)+)) -> IntTuple {
                IntTuple::tuple(&[$($name.into()),+])
            }
        }
    )+};
}
from_rust_tuples! { (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) }

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn modes_split_leaves_and_nesting_alike() {
        let tuple = IntTuple::from((((1, 2), 3), 4, IntTuple::flat(&[]), (5,)));
        let modes: alloc::vec::Vec<_> = tuple.modes().map(|mode| mode.to_string()).collect();
        assert_eq!(modes, ["((1,2),3)", "4", "()", "(5)"]);
        assert_eq!((tuple.rank(), tuple.depth()), (4, 3));
        assert_eq!(IntTuple::tuple(&tuple.modes().collect::<alloc::vec::Vec<_>>()), tuple);
    }

    #[test]
    fn products_refuse_what_does_not_fit() {
        assert_eq!(
            IntTuple::from((1i64 << 32, 1i64 << 32)).product().unwrap_err().kind(),
            ErrorKind::Overflow
        );
        assert!(IntTuple::from((1i64 << 40, (1i64 << 40, 0))).product().is_err());
        assert_eq!(IntTuple::from((4, (1i64 << 40, 0))).product().unwrap(), 0);
        assert_eq!(IntTuple::flat(&[]).product().unwrap(), 1);
    }
}
