//! Decides which thread of a block holds which elements of a tile, for tiles of any extents. Knows nothing of
//! element types or instructions. Invariants: every element is held; along an axis whose extent is a power of two
//! no place lies outside the tile; no register of a thread repeats another.
//!
//! A linear layout places a **piece**, whose extents are powers of two. A tile is covered by equal pieces side by
//! side, each in further registers of the same threads. An axis of a power of two is one piece long: its bits are
//! all in the linear layout. An axis of 300 might be five pieces of 64, of which the last is partly **padding**:
//! places that hold no element.

mod deal;
mod moved;
mod places;

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

pub use deal::Deal;

use super::{BitMatrix, Dim, LinearError, LinearLayout};

/// A position along every axis.
type Position = Vec<u64>;

/// Bits of the numbers of places, slots and threads: all of them are counted, and added to others, in 64 bits.
const MOST_BITS: u32 = 62;

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
    /// [`LinearError::EmptyTile`] for a shape without elements, [`LinearError::UnknownDim`] for a place with more axes than
    /// the tile, [`LinearError::MissingDim`] for one with fewer, [`LinearError::TooManyBits`] for more places or threads
    /// than are counted, [`LinearError::ElementsNotReached`] where a piece has elements that no place leads to.
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
        tile.check_ranks()?;
        tile.clip();
        tile.check_sizes()?;
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
    /// As [`Distribution::new`], [`LinearError::NotPowerOfTwo`], and [`LinearError::UnknownDim`] for an axis of `order` that
    /// the tile hasn't.
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
        check_axes(shape, order.iter().copied())?;
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
    /// As [`Distribution::new`], and [`LinearError::UnknownDim`] where the tile has fewer than two axes, or `warps` names
    /// another axis than these.
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
        let matrix = [0; 2];
        check_axes(shape, 0..matrix.len())?;
        check_axes(&matrix, warps.iter().copied().flatten())?;
        for groups in [fragment.inputs(), fragment.outputs()] {
            check_bits(groups.iter().map(|group| u64::from(group.bits)).sum(), warps.len())?;
        }
        let outer = shape.len() - matrix.len();
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

    /// Whether every position is one along the tile's axes.
    fn check_ranks(&self) -> Result<(), LinearError> {
        let rank = self.shape.len();
        match self.positions().find(|position| position.len() != rank) {
            Some(position) if position.len() > rank => Err(LinearError::UnknownDim { dim: axis_dim(rank) }),
            Some(position) => Err(LinearError::MissingDim { dim: axis_dim(position.len()) }),
            None => Ok(()),
        }
    }

    /// Whether there are numbers for all places, in all pieces, and for all threads.
    fn check_sizes(&self) -> Result<(), LinearError> {
        let bits_of = |number: u64| u64::BITS - number.leading_zeros();
        let along = |axis: usize| {
            let reached = self.positions().fold(0, |all, position| all | position[axis]);
            bits_of(reached).max(bits_of(self.shape[axis] - 1))
        };
        let places: u32 = (0..self.shape.len()).map(along).sum();
        check_bits(places.into(), 0)?;
        check_bits(self.registers.len() as u64, self.lanes.len() + self.warps.len())
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
        let reached = BitMatrix::new(bits, &columns)?.rank();
        if reached == bits {
            return Ok(());
        }
        Err(LinearError::ElementsNotReached { reached, bits })
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
}

/// An axis as a dimension.
fn axis_dim(axis: usize) -> Dim {
    Dim::Axis(u8::try_from(axis).unwrap_or(u8::MAX))
}

/// Whether a tile has these axes.
fn check_axes(shape: &[u64], mut axes: impl Iterator<Item = usize>) -> Result<(), LinearError> {
    match axes.find(|&axis| axis >= shape.len()) {
        Some(axis) => Err(LinearError::UnknownDim { dim: axis_dim(axis) }),
        None => Ok(()),
    }
}

/// Whether there are numbers of so many bits.
fn check_bits(bits: u64, more: usize) -> Result<(), LinearError> {
    let bits = bits.saturating_add(more as u64);
    if bits <= MOST_BITS.into() { Ok(()) } else { Err(LinearError::TooManyBits { bits, limit: MOST_BITS }) }
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
