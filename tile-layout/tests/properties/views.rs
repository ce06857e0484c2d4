//! Tiles, recasts and shares of views against what goes through each element, and what is no view.

use std::collections::BTreeSet;
use tile_layout::{ErrorKind, Movement, Swizzle, Threads, View};

/// Text may say any shape; a negative one is none.
#[test]
fn a_window_in_a_negative_shape_is_refused() {
    for text in [
        "4:1 + 0 within (-9223372036854775808) at (0)",
        "4:1 + 0 within (-1) at (-5)",
        "(4,2):(1,4) + 0 within (-9223372036854775808,2) at (0,0)",
        "(4,0):(1,4) + 0 within (4,-2) at (0,0)",
    ] {
        let error = text.parse::<View>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidExtent, "{text}: {error}");
    }
    let error = "(4,2):(1,4) + 0 within (8,-2) at (0,0)".parse::<View>().unwrap_err();
    assert_eq!((error.modes(), error.to_string().as_str()), (&[1][..], "extent -2 of axis 1 is negative"));
}

/// Two columns of a matrix whose columns were joined are no view where they come from different rows.
#[test]
fn an_iterator_leaves_no_tile_out() {
    let columns = View::row_major(&[3, 4]).unwrap().t().unwrap().flatten(0, 1).unwrap();
    let offsets: Vec<Option<i64>> = columns.offsets().collect();
    let tiles: Vec<_> = columns.tiled_iterator(&[2], &[0], 0).unwrap().collect();
    assert_eq!(tiles.len(), 6);
    let mut refused = Vec::new();
    for (number, tile) in tiles.into_iter().enumerate() {
        assert_eq!(tile, columns.tile(&[2], &[number as i64]));
        match tile {
            Ok(tile) => assert!(tile.offsets().eq(offsets[number * 2..][..2].iter().copied()), "{tile}"),
            Err(error) => refused.push((number, error.kind())),
        }
    }
    assert_eq!(refused, [(1, ErrorKind::Unsupported), (4, ErrorKind::Unsupported)]);
}

/// Words in halves and quarters: each word's parts, wherever the window lies and however few words it has.
#[test]
fn windows_of_one_column_are_recast() {
    let rows = View::row_major(&[4, 8]).unwrap();
    let matrices = [rows.clone(), rows.t().unwrap(), View::row_major(&[2, 3, 1, 4]).unwrap()];
    for matrix in matrices {
        for seed in 0..64i64 {
            let pick = |axis: usize, extent: i64| match (seed >> (2 * axis)) % 4 {
                0 => (0, extent),
                1 => (extent - 1, extent),
                2 => (0, 1),
                _ => (extent / 2, extent),
            };
            let window: Vec<_> =
                matrix.shape().iter().enumerate().map(|(axis, &extent)| Some(pick(axis, extent))).collect();
            let window = matrix.shrink(&window).unwrap();
            for factor in [2, 4] {
                let parts = window.recast(32, 32 / factor).unwrap();
                let found: BTreeSet<i64> = parts.offsets().flatten().collect();
                let whole = window.offsets().flatten();
                let expected: BTreeSet<i64> =
                    whole.flat_map(|word| word * factor..(word + 1) * factor).collect();
                assert_eq!(
                    (parts.size(), &found),
                    (window.size() * factor, &expected),
                    "{window} is {parts}"
                );
                assert_eq!(parts.recast(32 / factor, 32), Ok(window.clone()), "{parts}");
            }
        }
    }
    let column = rows.shrink(&[None, Some((2, 3))]).unwrap();
    assert_eq!(column.recast(32, 16).unwrap().to_string(), "(4,2):(16,1) + 4");
    let element = column.shrink(&[Some((1, 2)), None]).unwrap();
    assert_eq!(element.recast(32, 16).unwrap().to_string(), "(1,2):(0,1) + 20");
    // Where each axis steps over more than an element, no place is left.
    let sparse = View::strided(&[4, 2], &[8, 2], 0).unwrap();
    assert_eq!(sparse.recast(32, 16).unwrap_err().kind(), ErrorKind::NoUnitStride);
}

/// A swizzle may move a vector's begin up to 2^62, counted in vectors.
#[test]
fn a_share_beyond_the_limits_is_refused() {
    let far = View::strided(&[4, 4], &[4, 1], 4).unwrap().vectorize(&[1, 4]).unwrap();
    let swizzle = Swizzle::new(1, 0, -61).unwrap();
    let threads = Threads::new("(4,1):(1,0)".parse().unwrap()).swizzled(swizzle);
    let error = far.distribute(&threads, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overflow);
    assert_eq!(
        error.to_string(),
        "(1,1):(0,0) + 4 of (1,4):(0,1) would begin at a swizzled offset beyond 2^62"
    );
}
