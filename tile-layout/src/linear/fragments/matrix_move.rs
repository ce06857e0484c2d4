//! Decides which lane gives the address of which row, and which lane gets which element, in `ldmatrix` and
//! `stmatrix`. Knows nothing of where the rows lie in memory. Invariant: both layouts name an element of the
//! moved 8 x 8 matrices by `(Axis(0), Axis(1), Axis(2))`: row, column, and which matrix.

use alloc::format;

use super::unsupported;
use crate::linear::{Dim, LinearError, LinearLayout};

/// `ldmatrix` or `stmatrix` of one, two or four 8 x 8 matrices of 16-bit elements.
///
/// Source: PTX ISA, "ldmatrix" and "stmatrix", shape `.m8n8`, type `.b16`. Both instructions have the same two
/// layouts; a store reads the fragment and writes the rows.
///
/// ```
/// use tile_layout::linear::{Dim, MatrixMove};
/// let load = MatrixMove { matrices: 4, transposed: false };
/// // Lane 11 gives the address of row 3 of matrix 1 …
/// let row = load.row_addresses()?.apply(&[(Dim::Lane, 11)])?;
/// assert_eq!(row, [(Dim::Axis(0), 3), (Dim::Axis(1), 0), (Dim::Axis(2), 1)]);
/// // … and gets row 2, columns 6 and 7, of every matrix.
/// let element = load.fragment()?.apply(&[(Dim::Register, 3), (Dim::Lane, 11)])?;
/// assert_eq!(element, [(Dim::Axis(0), 2), (Dim::Axis(1), 7), (Dim::Axis(2), 1)]);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixMove {
    /// The `.x1`, `.x2` or `.x4` of the instruction.
    pub matrices: u32,
    /// Whether the instruction has `.trans`: rows in memory are columns of the fragment.
    pub transposed: bool,
}

impl MatrixMove {
    /// The first element of the row whose address each lane gives: `Lane` to `(Axis(0), Axis(1), Axis(2))`.
    /// Lanes whose address the instruction ignores repeat those of lower lanes.
    ///
    /// # Errors
    /// [`LinearError::UnsupportedFragment`] where the number of matrices isn't 1, 2 or 4.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, MatrixMove};
    /// let rows = MatrixMove { matrices: 1, transposed: false }.row_addresses()?;
    /// assert_eq!(rows.free_mask(Dim::Lane), 0b11000);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn row_addresses(&self) -> Result<LinearLayout, LinearError> {
        self.check()?;
        let matrix = |index: u32| [0, 0, if index < self.matrices { u64::from(index) } else { 0 }];
        let lanes = [[1, 0, 0], [2, 0, 0], [4, 0, 0], matrix(1), matrix(2)];
        LinearLayout::new(&[(Dim::Lane, &lanes)], self.outputs())
    }

    /// The elements of each lane: `(Register, Lane)` to `(Axis(0), Axis(1), Axis(2))` as the rows lie in memory.
    /// Registers 0 and 1 are the halves of the first 32-bit register.
    ///
    /// # Errors
    /// [`LinearError::UnsupportedFragment`] where the number of matrices isn't 1, 2 or 4.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, MatrixMove};
    /// let fragment = MatrixMove { matrices: 1, transposed: true }.fragment()?;
    /// let element = fragment.apply(&[(Dim::Register, 1), (Dim::Lane, 4)])?;
    /// assert_eq!(element[..2], [(Dim::Axis(0), 1), (Dim::Axis(1), 1)]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn fragment(&self) -> Result<LinearLayout, LinearError> {
        self.check()?;
        let place = |row, column| if self.transposed { [column, row, 0] } else { [row, column, 0] };
        let registers = [place(0, 1), [0, 0, 1], [0, 0, 2]];
        let lanes = [place(0, 2), place(0, 4), place(1, 0), place(2, 0), place(4, 0)];
        let held = 1 + self.matrices.ilog2() as usize;
        LinearLayout::new(&[(Dim::Register, &registers[..held]), (Dim::Lane, &lanes)], self.outputs())
    }

    fn outputs(&self) -> [(Dim, u64); 3] {
        [(Dim::Axis(0), 8), (Dim::Axis(1), 8), (Dim::Axis(2), u64::from(self.matrices))]
    }

    fn check(&self) -> Result<(), LinearError> {
        if matches!(self.matrices, 1 | 2 | 4) {
            return Ok(());
        }
        unsupported("ldmatrix", format!("no move of {} matrices; move 1, 2 or 4", self.matrices))
    }
}
