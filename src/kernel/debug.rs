//! How views print themselves, for `dbg!` and errors in a kernel that runs as plain Rust: what they are of, without elements.

use super::{
    AtomicView, Element, PartitionView, PartitionViewMut, SpanningViewMut, TensorView, TensorViewMut,
    ViewTileMut,
};
use std::fmt;

impl<T: Element, const R: usize> fmt::Debug for TensorView<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "view of {:?}", self.seen().extents::<R>())
    }
}

impl<T: Element, const R: usize> fmt::Debug for TensorViewMut<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mutable view of {:?}", self.seen().extents::<R>())
    }
}

impl<T: Element, const R: usize> fmt::Debug for PartitionView<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.cut();
        write!(f, "view of {:?} in tiles of {:?}", cut.extents, cut.tile)
    }
}

impl<T: Element, const R: usize> fmt::Debug for PartitionViewMut<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mutable view of {:?} in tiles of {:?}", self.cut.extents, self.cut.tile)
    }
}

impl<T: Element, const R: usize, const S: usize> fmt::Debug for SpanningViewMut<'_, T, R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, whose blocks span the axes {:?}", self.view, self.axes)
    }
}

impl<T: Element, const R: usize> fmt::Debug for ViewTileMut<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tile {:?} of a mutable view", self.index())
    }
}

impl<T: Element, const R: usize> fmt::Debug for AtomicView<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "atomic view of {:?}", self.seen().extents::<R>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_say_what_they_are_of() {
        let elements = [1.0f32; 12];
        let view = TensorView::over(&elements, [3, 4]);
        assert_eq!(format!("{view:?}"), "view of [3, 4]");
        let tiles = view.partition_view([2, 2]);
        assert_eq!(format!("{tiles:?}"), "view of [3, 4] in tiles of [2, 2]");
    }
}
