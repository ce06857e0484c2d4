//! Decides the algebra of matrices over GF(2): product, elimination, inverses. Knows nothing of dimensions,
//! lanes or memory. Invariants: at most 64 rows and 64 columns; a column has no bit at or above the number of
//! rows; unused columns are zero, so equal matrices are equal values.
//!
//! Columns are stored, not rows: a layout is given by the images of its input bits, and applying it is the xor
//! of the selected columns.

use core::fmt;

use super::{LinearError, Subspace};

/// The most rows or columns of a [`BitMatrix`].
///
/// ```
/// use tile_layout::linear::{BitMatrix, MAX_BITS};
/// assert!(BitMatrix::identity(MAX_BITS).is_ok() && BitMatrix::identity(MAX_BITS + 1).is_err());
/// ```
pub const MAX_BITS: u32 = 64;

/// A matrix over GF(2) as the images of its input bits.
///
/// ```
/// use tile_layout::linear::BitMatrix;
/// let matrix = BitMatrix::new(3, &[0b101, 0b011, 0b111])?;
/// let inverse = matrix.inverse()?;
/// assert_eq!(inverse.columns(), [0b111, 0b101, 0b110]);
/// assert_eq!(matrix.multiply(&inverse)?, BitMatrix::identity(3)?);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BitMatrix {
    rows: u32,
    count: u32,
    columns: [u64; 64],
}

impl BitMatrix {
    /// A matrix with this many rows and these columns; bit `r` of a column is its entry in row `r`.
    ///
    /// # Errors
    /// [`LinearError::TooManyBits`] above 64 rows or columns, [`LinearError::ColumnOutOfRange`].
    ///
    /// ```
    /// use tile_layout::linear::BitMatrix;
    /// assert!(BitMatrix::new(2, &[4]).is_err());
    /// ```
    pub fn new(rows: u32, columns: &[u64]) -> Result<BitMatrix, LinearError> {
        let mut matrix = BitMatrix::zeros(rows, columns.len() as u64)?;
        for (column, &value) in columns.iter().enumerate() {
            if value & !low_bits(rows) != 0 {
                return Err(LinearError::ColumnOutOfRange { column, value, rows });
            }
            matrix.columns[column] = value;
        }
        Ok(matrix)
    }

    /// The zero matrix.
    ///
    /// # Errors
    /// [`LinearError::TooManyBits`] above 64 rows or columns.
    ///
    /// ```
    /// use tile_layout::linear::BitMatrix;
    /// assert_eq!(BitMatrix::zeros(4, 2)?.rank(), 0);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn zeros(rows: u32, columns: u64) -> Result<BitMatrix, LinearError> {
        let bits = columns.max(u64::from(rows));
        if bits > u64::from(MAX_BITS) {
            return Err(LinearError::TooManyBits { bits, limit: MAX_BITS });
        }
        Ok(BitMatrix { rows, count: columns as u32, columns: [0; 64] })
    }

    /// The square matrix that changes nothing.
    ///
    /// # Errors
    /// [`LinearError::TooManyBits`] above 64.
    ///
    /// ```
    /// use tile_layout::linear::BitMatrix;
    /// assert_eq!(BitMatrix::identity(3)?.columns(), [1, 2, 4]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn identity(size: u32) -> Result<BitMatrix, LinearError> {
        let mut matrix = BitMatrix::zeros(size, u64::from(size))?;
        matrix.fill(|column| 1 << column);
        Ok(matrix)
    }

    /// The number of output bits.
    ///
    /// ```
    /// # use tile_layout::linear::BitMatrix;
    /// assert_eq!(BitMatrix::new(5, &[1])?.rows(), 5);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The images of the input bits, lowest bit first.
    ///
    /// ```
    /// # use tile_layout::linear::BitMatrix;
    /// assert_eq!(BitMatrix::new(5, &[1, 9])?.columns(), [1, 9]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn columns(&self) -> &[u64] {
        &self.columns[..self.count as usize]
    }

    /// The xor of the columns that `x` selects. Bits of `x` past the last column select nothing.
    ///
    /// ```
    /// # use tile_layout::linear::BitMatrix;
    /// assert_eq!(BitMatrix::new(4, &[1, 8, 3])?.apply(0b110), 8 ^ 3);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn apply(&self, x: u64) -> u64 {
        let mut image = 0;
        let mut pending = x & low_bits(self.count);
        while pending != 0 {
            image ^= self.columns[pending.trailing_zeros() as usize];
            pending &= pending - 1;
        }
        image
    }

    /// The matrix of first applying `right`, then this one.
    ///
    /// # Errors
    /// [`LinearError::SizeMismatch`] where `right` has not as many rows as this one has columns.
    ///
    /// ```
    /// # use tile_layout::linear::BitMatrix;
    /// let left = BitMatrix::new(2, &[3, 1])?;
    /// let right = BitMatrix::new(2, &[2, 3])?;
    /// assert_eq!(left.multiply(&right)?.columns(), [1, 2]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn multiply(&self, right: &BitMatrix) -> Result<BitMatrix, LinearError> {
        if self.count != right.rows {
            return Err(LinearError::SizeMismatch { left_columns: self.count, right_rows: right.rows });
        }
        let mut product = BitMatrix { rows: self.rows, count: right.count, columns: [0; 64] };
        product.fill(|column| self.apply(right.columns[column]));
        Ok(product)
    }

    /// The number of independent columns.
    ///
    /// ```
    /// # use tile_layout::linear::BitMatrix;
    /// assert_eq!(BitMatrix::new(4, &[1, 2, 3])?.rank(), 2);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn rank(&self) -> u32 {
        self.image().dimension()
    }

    /// Everything that the matrix can produce.
    ///
    /// ```
    /// # use tile_layout::linear::{BitMatrix, Subspace};
    /// assert_eq!(BitMatrix::new(4, &[1, 2, 3])?.image(), Subspace::span([1, 2]));
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn image(&self) -> Subspace {
        Subspace::span(self.columns().iter().copied())
    }

    /// Everything that the matrix maps to zero.
    ///
    /// ```
    /// # use tile_layout::linear::{BitMatrix, Subspace};
    /// assert_eq!(BitMatrix::new(4, &[1, 2, 3])?.kernel(), Subspace::span([0b111]));
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn kernel(&self) -> Subspace {
        kernel(self.columns())
    }

    /// A mask of the input bits whose column is a xor of the columns before it: holding them at zero loses
    /// nothing of the image.
    ///
    /// ```
    /// # use tile_layout::linear::BitMatrix;
    /// assert_eq!(BitMatrix::new(4, &[1, 0, 2, 3])?.free_columns(), 0b1010);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn free_columns(&self) -> u64 {
        low_bits(self.count) & !Elimination::of(self.columns()).independent
    }

    /// The reduced row echelon form: the independent columns become `1, 2, 4, …`, and every other column says
    /// which of them it is the xor of. The number of rows is the rank.
    ///
    /// ```
    /// # use tile_layout::linear::BitMatrix;
    /// let reduced = BitMatrix::new(4, &[6, 8, 14, 1])?.row_echelon();
    /// assert_eq!((reduced.rows(), reduced.columns()), (3, &[1, 2, 3, 4][..]));
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    #[must_use]
    pub fn row_echelon(&self) -> BitMatrix {
        let elimination = Elimination::of(self.columns());
        let mut reduced =
            BitMatrix { rows: elimination.independent.count_ones(), count: self.count, columns: [0; 64] };
        reduced.fill(|column| {
            // The column's solution selects independent columns; number those from zero.
            let (_, mut solution) = elimination.reduce(self.columns[column]);
            let mut packed = 0;
            while solution != 0 {
                let before = low_bits(solution.trailing_zeros()) & elimination.independent;
                packed |= 1 << before.count_ones();
                solution &= solution - 1;
            }
            packed
        });
        reduced
    }

    /// The input that maps to `y`, with zero in every free input bit; `None` outside the image.
    ///
    /// ```
    /// # use tile_layout::linear::BitMatrix;
    /// let matrix = BitMatrix::new(3, &[1, 1, 6])?;
    /// assert_eq!(matrix.solve(7), Some(0b101));
    /// assert_eq!(matrix.solve(2), None);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn solve(&self, y: u64) -> Option<u64> {
        combination(self.columns(), y)
    }

    /// The inverse of a square matrix of full rank.
    ///
    /// # Errors
    /// [`LinearError::NotInvertible`].
    ///
    /// ```
    /// # use tile_layout::linear::BitMatrix;
    /// assert!(BitMatrix::new(2, &[1, 1])?.inverse().is_err());
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn inverse(&self) -> Result<BitMatrix, LinearError> {
        let rank = self.rank();
        if self.rows != self.count || rank != self.rows {
            return Err(LinearError::NotInvertible { rows: self.rows, columns: self.count, rank });
        }
        Ok(self.pseudo_inverse())
    }

    /// A matrix `P` with `self · P · self = self` that never sets a free input bit.
    ///
    /// It is a right inverse where this matrix is surjective, a left inverse where it is injective, and the
    /// inverse where it is both. Outside the image, `P` gives the solution for a nearby member of the image.
    ///
    /// ```
    /// # use tile_layout::linear::BitMatrix;
    /// let broadcast = BitMatrix::new(2, &[1, 0, 2])?;
    /// assert_eq!(broadcast.pseudo_inverse().columns(), [0b001, 0b100]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    #[must_use]
    pub fn pseudo_inverse(&self) -> BitMatrix {
        let elimination = Elimination::of(self.columns());
        let mut inverse = BitMatrix { rows: self.count, count: self.rows, columns: [0; 64] };
        inverse.fill(|row| elimination.reduce(1 << row).1);
        inverse
    }

    fn fill(&mut self, column: impl Fn(usize) -> u64) {
        for (position, slot) in self.columns[..self.count as usize].iter_mut().enumerate() {
            *slot = column(position);
        }
    }
}

impl fmt::Debug for BitMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BitMatrix({} rows, {:?})", self.rows, self.columns())
    }
}

/// The lowest `count` bits set; all for 64 or more.
pub(super) const fn low_bits(count: u32) -> u64 {
    match count {
        0..=63 => (1 << count) - 1,
        _ => u64::MAX,
    }
}

/// The kernel of a matrix of at most 64 columns.
pub(super) fn kernel(columns: &[u64]) -> Subspace {
    Elimination::of(columns).kernel
}

/// Which of at most 64 columns xor to `y`, if any do.
pub(super) fn combination(columns: &[u64], y: u64) -> Option<u64> {
    let (rest, solution) = Elimination::of(columns).reduce(y);
    (rest == 0).then_some(solution)
}

/// Gaussian elimination of the columns from first to last, remembering which columns make each result.
struct Elimination {
    /// At position `p`, a vector of the image with highest bit `p`, and the columns whose xor it is.
    vectors: [(u64, u64); 64],
    pivots: u64,
    /// Columns that are no xor of those before them. Every remembered combination uses only these.
    independent: u64,
    kernel: Subspace,
}

impl Elimination {
    fn of(columns: &[u64]) -> Elimination {
        let mut this =
            Elimination { vectors: [(0, 0); 64], pivots: 0, independent: 0, kernel: Subspace::zero() };
        for (column, &value) in columns.iter().enumerate() {
            let (rest, solution) = this.reduce(value);
            let combination = solution | 1 << column;
            if rest == 0 {
                this.kernel.insert(combination);
            } else {
                let pivot = rest.ilog2();
                this.vectors[pivot as usize] = (rest, combination);
                this.pivots |= 1 << pivot;
                this.independent |= 1 << column;
            }
        }
        this
    }

    /// What is left of `y` after xoring members of the image into it, and the columns used.
    fn reduce(&self, y: u64) -> (u64, u64) {
        let (mut rest, mut solution) = (y, 0);
        let mut pending = rest & self.pivots;
        while pending != 0 {
            let pivot = pending.ilog2();
            let (vector, combination) = self.vectors[pivot as usize];
            rest ^= vector;
            solution ^= combination;
            // A vector changes only bits up to its pivot, so the pivots above stay done.
            pending = rest & self.pivots & low_bits(pivot);
        }
        (rest, solution)
    }
}
