//! Tiles, recasts and shares of views against what goes through each element, and what is no view.

use tile_layout::{ErrorKind, Movement, View};

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
