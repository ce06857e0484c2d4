//! Where the elements of a tile lie: what may be asked of a distribution.

use alloc::vec;
use alloc::vec::Vec;

use super::{Distribution, Position};
use crate::linear::BitMatrix;

impl Distribution {
    /// Extents of the tile.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert_eq!(tile.shape(), [3, 64]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Extents of a piece: powers of two.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert_eq!(tile.piece(), [1, 64]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn piece(&self) -> &[u64] {
        &self.piece
    }

    /// How many pieces lie along each axis: 1 where its extent is a power of two.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert_eq!(tile.pieces(), [3, 1]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn pieces(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.piece).map(|(extent, piece)| extent.div_ceil(*piece)).collect()
    }

    /// Slots of a piece.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert_eq!(tile.piece_slots(), 4);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn piece_slots(&self) -> u64 {
        1 << self.registers.len()
    }

    /// Slots of a thread.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert_eq!(tile.slots(), 12);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn slots(&self) -> u64 {
        self.pieces().iter().product::<u64>() << self.registers.len()
    }

    /// Lanes of a warp.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert_eq!(tile.lane_count(), 8);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn lane_count(&self) -> u64 {
        1 << self.lanes.len()
    }

    /// Warps of the block.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert_eq!(tile.warp_count(), 2);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn warp_count(&self) -> u64 {
        1 << self.warps.len()
    }

    /// Threads of the block; their numbers count lanes, then warps.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert_eq!(tile.threads(), 16);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn threads(&self) -> u64 {
        self.lane_count() * self.warp_count()
    }

    /// Where the bits of a register's number lead within a piece, lowest first.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert_eq!(tile.registers(), [[0, 1], [0, 2]]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn registers(&self) -> &[Vec<u64>] {
        &self.registers
    }

    /// Where the bits of a thread's number lead, lowest first: lanes, then warps.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert_eq!(tile.thread_bits().last(), Some(&[0, 32][..]));
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn thread_bits(&self) -> impl Iterator<Item = &[u64]> {
        self.lanes.iter().chain(&self.warps).map(Vec::as_slice)
    }

    /// Where a slot's piece begins, and where the slot lies in it for thread 0. The two may be added.
    ///
    /// # Panics
    /// If there is no such slot.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert_eq!(tile.slot(9), (vec![2, 0], vec![0, 1]));
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn slot(&self, slot: u64) -> (Vec<u64>, Vec<u64>) {
        assert!(slot < self.slots(), "slot {slot} of {}", self.slots());
        let (mut rest, register) = (slot >> self.registers.len(), slot & (self.piece_slots() - 1));
        let mut start = vec![0; self.shape.len()];
        for (axis, count) in self.pieces().into_iter().enumerate().rev() {
            start[axis] = rest % count * self.piece[axis];
            rest /= count;
        }
        (start, combine(self.registers.iter().map(Vec::as_slice), register, self.shape.len()))
    }

    /// The position that a thread's slot stands for; outside the shape where it is padding.
    ///
    /// # Panics
    /// If there is no such slot.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[6], &[0], 1, 4, 1)?;
    /// assert_eq!([tile.place(0, 3), tile.place(1, 1), tile.place(1, 2)], [[3], [5], [6]]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn place(&self, slot: u64, thread: u64) -> Vec<u64> {
        let (start, within) = self.slot(slot);
        let own = combine(self.thread_bits(), thread, self.shape.len());
        (0..self.shape.len()).map(|axis| start[axis] + (within[axis] ^ own[axis])).collect()
    }

    /// Whether some places along an axis hold no element.
    ///
    /// # Panics
    /// If there is no such axis.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert!(!tile.is_padded(0) && !tile.is_padded(1));
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn is_padded(&self, axis: usize) -> bool {
        !self.shape[axis].is_multiple_of(self.piece[axis])
    }

    /// The bits of a thread's number that lead to copies of what other threads hold. Of all threads that hold an
    /// element, one has zeros there.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// assert_eq!(Distribution::blocked(&[4], &[0], 1, 8, 2)?.copies(), 0b1100);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn copies(&self) -> u64 {
        let columns: Vec<u64> = self.positions().map(|position| self.flat(position)).collect();
        let matrix = BitMatrix::new(self.piece_bits(), &columns).expect("checked when it was made");
        matrix.free_columns() >> self.registers.len()
    }

    /// How many neighbours along an axis the lowest slots of a thread hold: a power of two.
    ///
    /// # Panics
    /// If there is no such axis.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[8, 64], &[1, 0], 4, 32, 2)?;
    /// assert_eq!((tile.neighbours(1), tile.neighbours(0)), (4, 1));
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn neighbours(&self, axis: usize) -> u64 {
        let leads = |(bit, position): (usize, &Position)| {
            position.iter().enumerate().all(|(i, &place)| place == if i == axis { 1 << bit } else { 0 })
        };
        let own = self.registers.iter().enumerate().take_while(|&it| leads(it)).count() as u32;
        // Another thread's place must not begin within the neighbours.
        let others = self.thread_bits().chain(self.registers.iter().skip(own as usize).map(Vec::as_slice));
        let lowest = others.map(|position| position[axis]).filter(|&place| place > 0);
        lowest.map(|place| 1 << place.trailing_zeros()).fold(1 << own, u64::min)
    }
}

/// The sum of the places that the bits of a number lead to.
fn combine<'b>(bits: impl Iterator<Item = &'b [u64]>, number: u64, rank: usize) -> Position {
    let chosen = bits.enumerate().filter(|&(bit, _)| number >> bit & 1 == 1);
    chosen.fold(vec![0; rank], |sum, (_, place)| sum.iter().zip(place).map(|(a, b)| a ^ b).collect())
}
