//! Decides which thread of a block holds which elements of a tile, for tiles of any extents. Knows nothing of
//! element types or instructions. Invariants: every element is held; along an axis whose extent is a power of two
//! no place lies outside the tile; no register of a thread repeats another.
//!
//! A linear layout places a **piece**, whose extents are powers of two. A tile is covered by equal pieces side by
//! side, each in further registers of the same threads. An axis of a power of two is one piece long: its bits are
//! all in the linear layout. An axis of 300 might be five pieces of 64, of which the last is partly **padding**:
//! places that hold no element.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::{BitMatrix, Dim, Group, LinearError, LinearLayout};

/// A position along every axis.
type Position = Vec<u64>;

/// How the elements of a tile lie in the registers, lanes and warps of a block.
///
/// A **slot** is a register of a thread that holds one element; slots are counted piece by piece.
///
/// ```
/// use tile_layout::linear::Distribution;
/// // Two neighbours a thread, two threads a row, the four rows in the other lanes and the two warps.
/// let tile = Distribution::blocked(&[4, 4], &[1, 0], 2, 4, 2)?;
/// assert_eq!((tile.slots(), tile.threads()), (2, 8));
/// assert_eq!(tile.place(1, 3), [1, 3]);
/// assert_eq!(tile.to_string(), "[4, 4] registers (0, 1) lanes (0, 2) (1, 0) warps (2, 0)");
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Distribution {
    shape: Vec<u64>,
    /// Extents of a piece.
    piece: Vec<u64>,
    /// Where the bits of a register's number lead, lowest first; and so on.
    registers: Vec<Position>,
    lanes: Vec<Position>,
    warps: Vec<Position>,
}

impl Distribution {
    /// A distribution from the places that single bits of register, lane and warp lead to. What they don't reach
    /// within an axis of a power of two goes to further registers; what lies beyond its end repeats.
    ///
    /// # Errors
    /// [`LinearError::EmptyTile`] for a shape without elements, [`LinearError::ElementNotHeld`] where a piece has
    /// elements that no place leads to.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let lanes = vec![vec![1], vec![2]];
    /// let tile = Distribution::new(&[12], vec![], lanes, vec![])?;
    /// assert_eq!((tile.slots(), tile.pieces()), (3, vec![3]));
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn new(
        shape: &[u64],
        registers: Vec<Position>,
        lanes: Vec<Position>,
        warps: Vec<Position>,
    ) -> Result<Distribution, LinearError> {
        if shape.contains(&0) {
            return Err(LinearError::EmptyTile);
        }
        let mut tile = Distribution { shape: shape.to_vec(), piece: Vec::new(), registers, lanes, warps };
        tile.clip();
        tile.piece = (0..shape.len()).map(|axis| tile.reach(axis)).collect();
        tile.fill();
        tile.drop_copies();
        tile.check()?;
        Ok(tile)
    }

    /// `vector` neighbours along the first axis of `order` in one thread; then lanes, then warps along that axis as
    /// long as there is tile, then along the next; the rest in further registers. `vector`, `lanes` and `warps` are
    /// powers of two.
    ///
    /// # Errors
    /// As [`Distribution::new`], and [`LinearError::NotPowerOfTwo`].
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[8, 64], &[1, 0], 4, 32, 2)?;
    /// assert_eq!(tile.place(0, 16), [1, 0]);
    /// assert_eq!(tile.slots(), 8);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn blocked(
        shape: &[u64],
        order: &[usize],
        vector: u64,
        lanes: u64,
        warps: u64,
    ) -> Result<Distribution, LinearError> {
        for (what, value) in [("the vector", vector), ("the lanes", lanes), ("the warps", warps)] {
            if !value.is_power_of_two() {
                return Err(LinearError::NotPowerOfTwo { what, value });
            }
        }
        let mut deal = Deal::new(shape);
        let first = &order[..order.len().min(1)];
        let registers = deal.take(vector.ilog2(), first);
        let (lanes, warps) = (deal.take(lanes.ilog2(), order), deal.take(warps.ilog2(), order));
        Distribution::new(shape, registers, lanes, warps)
    }

    /// A matrix fragment `(register, lane[, warp]) → (row, column)` repeated over the last two axes of a tile: next
    /// to each other in `warps`, the bits of whose number each count along rows (0), columns (1) or nothing, then in
    /// registers.
    ///
    /// # Errors
    /// As [`Distribution::new`].
    ///
    /// ```
    /// use tile_layout::linear::{Distribution, MatrixShape, Operand, mma_sync};
    /// let sum = mma_sync(MatrixShape { m: 16, n: 8, k: 16 }, 16, Operand::Accumulator)?;
    /// let tile = Distribution::of_fragment(&[32, 16], &sum, &[Some(0)])?;
    /// assert_eq!((tile.slots(), tile.threads()), (8, 64));
    /// assert_eq!(tile.place(4, 32), [16, 8]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn of_fragment(
        shape: &[u64],
        fragment: &LinearLayout,
        warps: &[Option<usize>],
    ) -> Result<Distribution, LinearError> {
        let outer = shape.len().saturating_sub(2);
        let position = |flat: u64| -> Position {
            let matrix = (0..2).map(|axis| fragment.output_coordinate(flat, Dim::Axis(axis)));
            vec![0; outer].into_iter().chain(matrix).collect()
        };
        let positions = |dim: Dim| -> Vec<Position> {
            fragment.columns(dim).iter().map(|&flat| position(flat)).collect()
        };
        let mut extents: Vec<u64> = (0..2).map(|axis| 1 << fragment.output_bits(Dim::Axis(axis))).collect();
        let mut all_warps = positions(Dim::Warp);
        for &axis in warps {
            let mut position = vec![0; shape.len()];
            if let Some(axis) = axis {
                position[outer + axis] = extents[axis];
                extents[axis] *= 2;
            }
            all_warps.push(position);
        }
        Distribution::new(shape, positions(Dim::Register), positions(Dim::Lane), all_warps)
    }

    /// Places beyond an axis of a power of two hold what its first places do.
    fn clip(&mut self) {
        for axis in 0..self.shape.len() {
            let extent = self.shape[axis];
            if extent.is_power_of_two() {
                self.positions_mut().for_each(|position| position[axis] &= extent - 1);
            }
        }
    }

    /// What the bits reach along an axis, as a power of two.
    fn reach(&self, axis: usize) -> u64 {
        if self.shape[axis].is_power_of_two() {
            return self.shape[axis];
        }
        let all = self.positions().fold(0, |all, position| all | position[axis]);
        (all + 1).next_power_of_two()
    }

    /// Registers for the bits of a piece that nothing leads to.
    fn fill(&mut self) {
        for axis in (0..self.shape.len()).rev() {
            let reached = self.positions().fold(0, |all, position| all | position[axis]);
            for bit in (0..self.piece[axis].ilog2()).filter(|bit| reached >> bit & 1 == 0) {
                let mut position = vec![0; self.shape.len()];
                position[axis] = 1 << bit;
                self.registers.push(position);
            }
        }
    }

    /// Registers that repeat others go.
    fn drop_copies(&mut self) {
        let columns: Vec<u64> = self.registers.iter().map(|position| self.flat(position)).collect();
        let bits = self.piece_bits();
        let Ok(matrix) = BitMatrix::new(bits, &columns) else { return };
        let free = matrix.free_columns();
        let mut bit = 0;
        self.registers.retain(|_| {
            bit += 1;
            free >> (bit - 1) & 1 == 0
        });
    }

    fn check(&self) -> Result<(), LinearError> {
        let columns: Vec<u64> = self.positions().map(|position| self.flat(position)).collect();
        let bits = self.piece_bits();
        if BitMatrix::new(bits, &columns)?.rank() == bits {
            return Ok(());
        }
        Err(LinearError::ElementNotHeld { dim: Dim::Register, bit: self.registers.len() as u32 })
    }

    fn piece_bits(&self) -> u32 {
        self.piece.iter().map(|extent| extent.ilog2()).sum()
    }

    /// A position in a piece as one number, the last axis in the lowest bits.
    fn flat(&self, position: &[u64]) -> u64 {
        self.piece.iter().zip(position).fold(0, |flat, (extent, place)| flat << extent.ilog2() | place)
    }

    fn positions(&self) -> impl Iterator<Item = &Position> {
        self.registers.iter().chain(&self.lanes).chain(&self.warps)
    }

    fn positions_mut(&mut self) -> impl Iterator<Item = &mut Position> {
        self.registers.iter_mut().chain(&mut self.lanes).chain(&mut self.warps)
    }

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
        (start, combine(&self.registers, register, self.shape.len()))
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
        let bits: Vec<Position> = self.thread_bits().map(<[u64]>::to_vec).collect();
        let own = combine(&bits, thread, self.shape.len());
        (0..self.shape.len()).map(|axis| start[axis] + (within[axis] ^ own[axis])).collect()
    }

    /// Whether some places along an axis hold no element.
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

    /// The same tile without its extent along an axis, as a reduction leaves it: threads that differed along it
    /// hold copies.
    ///
    /// # Errors
    /// As [`Distribution::new`].
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let rows = Distribution::blocked(&[8, 64], &[1, 0], 4, 32, 2)?.without_axis(1)?;
    /// assert_eq!(rows.to_string(), "[8, 1] registers (4, 0) lanes (0, 0) (0, 0) (0, 0) (0, 0) (1, 0) warps (2, 0)");
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn without_axis(&self, axis: usize) -> Result<Distribution, LinearError> {
        let mut shape = self.shape.clone();
        shape[axis] = 1;
        self.on(&shape, |position| {
            let mut position = position.to_vec();
            position[axis] = 0;
            position
        })
    }

    /// The tile with its axes in another order: axis `i` of the result is axis `permutation[i]` of this.
    ///
    /// # Errors
    /// As [`Distribution::new`].
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert_eq!(tile.permuted(&[1, 0])?.place(1, 0), [1, 0]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn permuted(&self, permutation: &[usize]) -> Result<Distribution, LinearError> {
        let permute =
            |position: &[u64]| -> Vec<u64> { permutation.iter().map(|&axis| position[axis]).collect() };
        self.on(&permute(&self.shape), permute)
    }

    /// The tile with the same elements in row-major order in another shape; `None` where that isn't linear.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[64], &[0], 2, 8, 2)?;
    /// let square = tile.reshaped(&[8, 8]).expect("powers of two");
    /// assert_eq!((tile.place(3, 9), square.place(3, 9)), (vec![51], vec![6, 3]));
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn reshaped(&self, shape: &[u64]) -> Option<Distribution> {
        let is_linear = |extents: &[u64]| extents.iter().all(|extent| extent.is_power_of_two());
        if is_linear(&self.shape) && is_linear(shape) {
            return self.on(shape, |position| split(self.flat(position), shape)).ok();
        }
        let long =
            |shape: &[u64]| -> Vec<usize> { (0..shape.len()).filter(|&axis| shape[axis] > 1).collect() };
        let (from, to) = (long(&self.shape), long(shape));
        let alike = from.len() == to.len() && from.iter().zip(&to).all(|(&a, &b)| self.shape[a] == shape[b]);
        let moved = |position: &[u64]| {
            let mut moved = vec![0; shape.len()];
            from.iter().zip(&to).for_each(|(&a, &b)| moved[b] = position[a]);
            moved
        };
        alike.then(|| self.on(shape, moved).ok()).flatten()
    }

    fn on(&self, shape: &[u64], move_to: impl Fn(&[u64]) -> Position) -> Result<Distribution, LinearError> {
        let moved = |positions: &[Position]| positions.iter().map(|position| move_to(position)).collect();
        Distribution::new(shape, moved(&self.registers), moved(&self.lanes), moved(&self.warps))
    }

    /// The distribution as a linear layout `(register, lane, warp) → axes`; `None` where it has more than one piece.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert!(tile.linear().is_none());
    /// assert!(Distribution::blocked(&[4, 64], &[1, 0], 4, 8, 2)?.linear().is_some());
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn linear(&self) -> Option<LinearLayout> {
        if self.shape != self.piece {
            return None;
        }
        let group = |dim, bits: &[Position]| Group { dim, bits: bits.len() as u32 };
        let inputs = [
            group(Dim::Register, &self.registers),
            group(Dim::Lane, &self.lanes),
            group(Dim::Warp, &self.warps),
        ];
        // The first output dimension has the lowest bits, as the last axis does here.
        let axes = self.piece.iter().enumerate().rev();
        let outputs: Vec<Group> =
            axes.map(|(axis, extent)| Group { dim: Dim::Axis(axis as u8), bits: extent.ilog2() }).collect();
        let columns: Vec<u64> = self.positions().map(|position| self.flat(position)).collect();
        let matrix = BitMatrix::new(self.piece_bits(), &columns).ok()?;
        LinearLayout::from_matrix(&inputs, &outputs, matrix).ok()
    }
}

/// Bits of registers, lanes and warps that are dealt to the axes of a tile, the lowest first.
///
/// ```
/// use tile_layout::linear::Deal;
/// let mut deal = Deal::new(&[4, 150]);
/// // Pieces of 64 would leave a fifth of their places empty.
/// let lanes = deal.take(6, &[1, 0]);
/// assert_eq!(lanes, [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0]]);
/// ```
#[derive(Clone, Debug)]
pub struct Deal<'s> {
    shape: &'s [u64],
    taken: Vec<u64>,
}

impl<'s> Deal<'s> {
    /// Nothing is dealt yet.
    ///
    /// ```
    /// assert_eq!(tile_layout::linear::Deal::new(&[4]).take(1, &[0]), [[1]]);
    /// ```
    pub fn new(shape: &'s [u64]) -> Deal<'s> {
        Deal { shape, taken: vec![1; shape.len()] }
    }

    /// So many bits, each for the first of the axes where a longer piece leaves few places empty; or else for the first
    /// that isn't dealt out; or else for none, which makes copies.
    ///
    /// ```
    /// let mut deal = tile_layout::linear::Deal::new(&[2]);
    /// assert_eq!(deal.take(3, &[0]), [[1], [0], [0]]);
    /// ```
    pub fn take(&mut self, bits: u32, axes: &[usize]) -> Vec<Vec<u64>> {
        (0..bits).map(|_| self.next(axes)).collect()
    }

    fn next(&mut self, axes: &[usize]) -> Position {
        let mut position = vec![0; self.shape.len()];
        let left = |&&axis: &&usize| self.taken[axis] < self.shape[axis];
        let fits = |&&axis: &&usize| {
            let covered = self.shape[axis].next_multiple_of(2 * self.taken[axis]);
            4 * covered <= 5 * self.shape[axis]
        };
        let axis = axes.iter().filter(left).find(fits).or_else(|| axes.iter().find(left));
        if let Some(&axis) = axis {
            position[axis] = self.taken[axis];
            self.taken[axis] *= 2;
        }
        position
    }
}

/// The sum of the places that the bits of a number lead to.
fn combine(bits: &[Position], number: u64, rank: usize) -> Position {
    let chosen = bits.iter().enumerate().filter(|&(bit, _)| number >> bit & 1 == 1);
    chosen.fold(vec![0; rank], |sum, (_, place)| sum.iter().zip(place).map(|(a, b)| a ^ b).collect())
}

/// A number's row-major position in a shape of powers of two.
fn split(flat: u64, shape: &[u64]) -> Position {
    let mut rest = flat;
    let mut position = vec![0; shape.len()];
    for (place, extent) in position.iter_mut().zip(shape).rev() {
        *place = rest & (extent - 1);
        rest >>= extent.ilog2();
    }
    position
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shape)?;
        if self.shape != self.piece {
            write!(f, " pieces {:?}", self.piece)?;
        }
        let parts = [("registers", &self.registers), ("lanes", &self.lanes), ("warps", &self.warps)];
        for (name, bits) in parts.into_iter().filter(|(_, bits)| !bits.is_empty()) {
            write!(f, " {name}")?;
            for position in bits {
                write!(f, " (")?;
                for (i, place) in position.iter().enumerate() {
                    write!(f, "{}{place}", if i == 0 { "" } else { ", " })?;
                }
                write!(f, ")")?;
            }
        }
        Ok(())
    }
}
