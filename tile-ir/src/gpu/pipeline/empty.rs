//! Axes that may have no element although a box is copied: a tensor map has one element there in place of none, since a
//! driver knows no axis without elements, so that the box must lie outside.
//!
//! Most can't: an index that counts the tiles of an axis has no value where the axis has no tile. Others are a number that
//! was loaded, of a stack without matrices, or count the tiles of another tensor.

use crate::analysis::Ranges;
use crate::dim::{Atom, Dim};
use crate::kernel::{Kernel, OpId};

/// The axes of a load's view that may be empty where it is copied.
pub(super) fn axes(kernel: &Kernel, ranges: &Ranges, load: OpId) -> Vec<usize> {
    let operands = kernel.op(load).load().expect("a load");
    let view = kernel.ty(operands.view).as_partition().expect("verified: a view");
    let counts_tiles = |axis: usize| {
        let range = ranges.at(load, operands.index[axis]);
        let is_known = range.requires.iter().all(Dim::is_natural);
        let none_if_empty = |most: &Dim| is_negative_where_empty(most, &view.tensor.extents[axis]);
        is_known && range.max.iter().any(none_if_empty)
    };
    let may_be_empty = |axis: usize| match view.tensor.extents[axis].as_const() {
        Some(extent) => extent == 0,
        None => !counts_tiles(axis),
    };
    (0..view.tile.len()).filter(|&axis| may_be_empty(axis)).collect()
}

/// Whether a number is negative for all sizes for which an extent is zero: of a product, if one of its sizes is.
fn is_negative_where_empty(number: &Dim, extent: &Dim) -> bool {
    let mut terms = extent.terms();
    let (Some((factors, _)), None) = (terms.next(), terms.next()) else { return false };
    let is_negative_without = |atom: &Atom| {
        let rest = number.substitute(&|other| (other == atom).then(|| Dim::from(0)));
        matches!(atom, Atom::Size(_)) && (Dim::from(-1) - rest).is_natural()
    };
    factors.iter().all(is_negative_without)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tile_is_negative_where_there_is_none() {
        let [k, n] = ["k", "n"].map(Dim::size);
        let last = |extent: &Dim| extent.ceil_div(&Dim::from(64)) - Dim::from(1);
        assert!(is_negative_where_empty(&last(&k), &k));
        assert!(is_negative_where_empty(&(Dim::from(2) * last(&k) + Dim::from(1)), &k));
        assert!(is_negative_where_empty(&last(&(Dim::from(2) * k.clone())), &(Dim::from(2) * k.clone())));
        assert!(is_negative_where_empty(&(k.clone() * n.clone() - Dim::from(1)), &(k.clone() * n.clone())));
        assert!(!is_negative_where_empty(&last(&n), &k), "another extent");
        assert!(!is_negative_where_empty(&last(&k), &(k.clone() * n.clone())), "`n` may be zero");
        assert!(!is_negative_where_empty(&last(&k), &(k.clone() - n)), "both may be the same");
        assert!(!is_negative_where_empty(&k.clone(), &k), "there is one index more");
    }
}
