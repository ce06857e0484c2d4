//! Decides the vocabulary that all instruction families share: the shape of a matrix instruction, its operands,
//! and how a fragment is written down. Knows no instruction: those are in `nvidia` and `amd`. Invariants: a
//! fragment maps `(Register, Lane[, Warp])` to `(Axis(0), Axis(1))`, row and column of one operand tile;
//! `A` is m x k, `B` is k x n, the accumulator m x n; registers count elements in the order in which a lane's
//! 32-bit registers hold them, the low half first.

mod amd;
mod matrix_move;
mod nvidia;
mod shared_operand;

use core::fmt;

use alloc::string::String;
use alloc::vec::Vec;

pub use amd::{WmmaGeneration, mfma, mfma_by_sums, mfma_scale, wmma};
pub use matrix_move::MatrixMove;
pub use nvidia::{
    WgmmaSlabs, mma_sync, mma_sync_scale, tensor_memory_accumulator, wgmma_accumulator,
    wgmma_register_operand, wgmma_slabs,
};
pub use shared_operand::{Major, SharedOperand, SwizzleWidth, wgmma_shared_operand};

use super::{Dim, LinearError, LinearLayout};

/// Rows, columns and depth of a matrix instruction: `m x k` times `k x n`.
///
/// ```
/// assert_eq!(tile_layout::linear::MatrixShape { m: 16, n: 8, k: 16 }.to_string(), "m16n8k16");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixShape {
    /// Rows of `A` and of the accumulator.
    pub m: u32,
    /// Columns of `B` and of the accumulator.
    pub n: u32,
    /// Columns of `A`, rows of `B`.
    pub k: u32,
}

impl fmt::Display for MatrixShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}n{}k{}", self.m, self.n, self.k)
    }
}

/// An operand of a matrix instruction.
///
/// ```
/// use tile_layout::linear::{MatrixShape, Operand, mma_sync};
/// let shape = MatrixShape { m: 16, n: 8, k: 16 };
/// let b = mma_sync(shape, 16, Operand::B)?;
/// assert_eq!(b.outputs().iter().map(|axis| axis.extent()).collect::<Vec<_>>(), [16, 8]);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The left factor, m x k.
    A,
    /// The right factor, k x n.
    B,
    /// The sum `C` and the result `D`, m x n; both have the same fragment.
    Accumulator,
}

/// A fragment under construction: bits are added from the lowest of each dimension upwards.
struct Fragment {
    extents: [(Dim, u64); 2],
    dims: Vec<(Dim, Vec<[u64; 2]>)>,
}

impl Fragment {
    fn new(rows: u32, columns: u32) -> Fragment {
        let extents = [(Dim::Axis(0), u64::from(rows)), (Dim::Axis(1), u64::from(columns))];
        Fragment { extents, dims: Vec::new() }
    }

    /// The next `bits` bits of `dim` choose the rows `first`, `2·first`, `4·first`, …
    fn rows(self, dim: Dim, first: u32, bits: u32) -> Fragment {
        self.bits(dim, bits, |bit| [u64::from(first) << bit, 0])
    }

    /// The next `bits` bits of `dim` choose the columns `first`, `2·first`, `4·first`, …
    fn columns(self, dim: Dim, first: u32, bits: u32) -> Fragment {
        self.bits(dim, bits, |bit| [0, u64::from(first) << bit])
    }

    /// The next `bits` bits of `dim` hold copies.
    fn copies(self, dim: Dim, bits: u32) -> Fragment {
        self.bits(dim, bits, |_| [0, 0])
    }

    fn bits(mut self, dim: Dim, bits: u32, base: impl Fn(u32) -> [u64; 2]) -> Fragment {
        let position = self.dims.iter().position(|&(known, _)| known == dim).unwrap_or_else(|| {
            self.dims.push((dim, Vec::new()));
            self.dims.len() - 1
        });
        self.dims[position].1.extend((0..bits).map(base));
        self
    }

    /// The fragment of the transposed tile: `B` is held as `A` is, with rows and columns exchanged.
    fn transposed(mut self) -> Fragment {
        let [(_, rows), (_, columns)] = self.extents;
        self.extents = [(Dim::Axis(0), columns), (Dim::Axis(1), rows)];
        self.dims.iter_mut().flat_map(|(_, bases)| bases).for_each(|base| base.reverse());
        self
    }

    fn build(self) -> Result<LinearLayout, LinearError> {
        let dims: Vec<(Dim, &[[u64; 2]])> =
            self.dims.iter().map(|(dim, bases)| (*dim, bases.as_slice())).collect();
        LinearLayout::new(&dims, self.extents)
    }
}

fn unsupported<T>(instruction: &'static str, reason: String) -> Result<T, LinearError> {
    Err(LinearError::UnsupportedFragment { instruction, reason })
}
