//! Tiles of one rank that are broadcast to one shape: the indices of a `gather`, and what an atomic operation is given.

/// A tile of `S` axes, and its numbers.
pub(super) type Numbers<N, const S: usize> = ([usize; S], Vec<N>);

/// The element of a tile for a place of the shape that it is broadcast to.
pub(super) fn at<N: Copy, const S: usize>((shape, numbers): &Numbers<N, S>, place: &[usize]) -> N {
    let axes = place.iter().zip(shape);
    numbers[axes.fold(0, |at, (&i, &extent)| at * extent + if extent == 1 { 0 } else { i })]
}

/// The shape that all tiles broadcast to, which the operation `name` is given.
pub(super) fn together<'s, const S: usize>(
    shapes: impl Iterator<Item = &'s [usize; S]>,
    name: &str,
) -> [usize; S] {
    let mut common = [1; S];
    for shape in shapes {
        for (common, &extent) in common.iter_mut().zip(shape) {
            assert!(
                *common == extent || *common == 1 || extent == 1,
                "tiles of `{name}` with {common} and {extent} elements along an axis"
            );
            *common = (*common).max(extent);
        }
    }
    common
}
