//! Where elements lie, as far as memory cares: it gives and takes whole lines of bytes, also for one element of each.

/// Elements along some axes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Of an element.
    element: u64,
    /// Extent and stride, in elements, the smallest stride first; no axis of one element, and none that repeats.
    axes: Vec<(u64, u64)>,
}

impl Spread {
    /// Elements of so many bytes, with an extent and a stride, in elements, for each axis.
    pub fn new(element: u64, axes: impl IntoIterator<Item = (u64, i64)>) -> Spread {
        let axes = axes.into_iter().map(|(extent, stride)| (extent, stride.unsigned_abs()));
        let mut axes: Vec<(u64, u64)> = axes.filter(|&(extent, stride)| extent != 1 && stride > 0).collect();
        axes.sort_by_key(|&(_, stride)| stride);
        Spread { element, axes }
    }

    /// Bytes of the elements, each once.
    pub fn bytes(&self) -> u64 {
        self.axes.iter().fold(self.element, |bytes, (extent, _)| bytes.saturating_mul(*extent))
    }

    /// Bytes of the lines of so many bytes that the elements lie in, where the first begins a line: of neighbours no more
    /// than their own, since what else is in their last line belongs to the next ones.
    ///
    /// ```
    /// use tile_ir::counts::Spread;
    /// // 8 columns of an f32 matrix with 100 of them, and every second element of 64.
    /// assert_eq!(Spread::new(4, [(50, 100), (8, 1)]).lines(64), 50 * 64);
    /// assert_eq!(Spread::new(4, [(32, 2)]).lines(64), 31 * 8 + 4);
    /// assert_eq!(Spread::new(4, [(50, 8), (8, 1)]).lines(64), 50 * 32); // neighbours
    /// ```
    pub fn lines(&self, line: u64) -> u64 {
        // Extents of what has no elements may be so large that no number holds their lines.
        let whole = |piece: u64| piece.checked_next_multiple_of(line).unwrap_or(u64::MAX);
        // Pieces of memory without a line between them, and how many there are.
        let (mut piece, mut pieces) = (self.element, 1_u64);
        for &(extent, stride) in &self.axes {
            let distance = stride.saturating_mul(self.element);
            let apart = extent.saturating_mul(whole(piece));
            let together = (extent.saturating_sub(1)).saturating_mul(distance).saturating_add(piece);
            if pieces == 1 && (distance == piece || together <= apart) {
                piece = together;
            } else {
                pieces = pieces.saturating_mul(extent);
            }
        }
        if pieces == 1 { piece } else { pieces.saturating_mul(whole(piece)) }
    }
}
