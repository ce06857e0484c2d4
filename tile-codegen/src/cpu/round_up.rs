//! Integers rounded up to whole pieces: the standard library has this for unsigned integers alone.

/// How many pieces of a size something is cut into, of which the last may be shorter. Neither number is negative.
pub(super) const fn div_ceil(extent: i64, piece: i64) -> i64 {
    (extent + piece - 1) / piece
}

/// The least multiple of a piece's size that isn't less than `extent`. Neither number is negative.
pub(super) const fn whole_pieces(extent: i64, piece: i64) -> i64 {
    div_ceil(extent, piece) * piece
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_piece_may_be_shorter() {
        assert_eq!([0, 1, 15, 16, 17].map(|extent| div_ceil(extent, 16)), [0, 1, 1, 1, 2]);
        assert_eq!([0, 1, 15, 16, 17].map(|extent| whole_pieces(extent, 16)), [0, 16, 16, 16, 32]);
    }
}
