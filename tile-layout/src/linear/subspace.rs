//! Decides how a set of bit vectors closed under xor is stored and compared. Knows nothing of matrices or
//! layouts. Invariant: the basis is in reduced echelon form (each vector alone has its highest bit), so equal
//! subspaces are equal values.

use core::fmt;

/// A subspace of the 64-bit vectors over GF(2).
///
/// ```
/// use tile_layout::linear::Subspace;
/// let a = Subspace::span([0b011, 0b110]);
/// let b = Subspace::span([0b101, 0b1000]);
/// assert!(a.contains(0b101));
/// assert_eq!(a.intersection(&b), Subspace::span([0b101]));
/// assert_eq!(a.sum(&b).dimension(), 3);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Subspace {
    /// At position `p`, the basis vector whose highest bit is `p`; zero where there is none.
    vectors: [u64; 64],
    /// The positions that hold a vector.
    pivots: u64,
}

impl Subspace {
    /// The subspace of the zero vector alone.
    ///
    /// ```
    /// assert_eq!(tile_layout::linear::Subspace::zero().dimension(), 0);
    /// ```
    pub const fn zero() -> Subspace {
        Subspace { vectors: [0; 64], pivots: 0 }
    }

    /// All xors of the vectors.
    ///
    /// ```
    /// assert_eq!(tile_layout::linear::Subspace::span([1, 2, 3]).dimension(), 2);
    /// ```
    pub fn span(vectors: impl IntoIterator<Item = u64>) -> Subspace {
        let mut space = Subspace::zero();
        for vector in vectors {
            space.insert(vector);
        }
        space
    }

    /// Adds a vector to the span; whether it was new.
    ///
    /// ```
    /// let mut space = tile_layout::linear::Subspace::span([1, 2]);
    /// assert!(!space.insert(3));
    /// assert!(space.insert(4));
    /// ```
    pub fn insert(&mut self, vector: u64) -> bool {
        let vector = self.reduce(vector);
        if vector == 0 {
            return false;
        }
        let pivot = vector.ilog2();
        // Only vectors with a higher pivot can contain this one's; clearing the bit keeps the form reduced.
        for other in &mut self.vectors[pivot as usize + 1..] {
            if *other >> pivot & 1 == 1 {
                *other ^= vector;
            }
        }
        self.vectors[pivot as usize] = vector;
        self.pivots |= 1 << pivot;
        true
    }

    /// The smallest number that differs from `vector` by a member; zero exactly for members.
    ///
    /// ```
    /// assert_eq!(tile_layout::linear::Subspace::span([0b110]).reduce(0b111), 0b001);
    /// ```
    pub fn reduce(&self, vector: u64) -> u64 {
        let mut rest = vector;
        // The form is reduced: no basis vector touches another's pivot, so the pivots to clear are known at once.
        let mut pending = vector & self.pivots;
        while pending != 0 {
            rest ^= self.vectors[pending.trailing_zeros() as usize];
            pending &= pending - 1;
        }
        rest
    }

    /// Whether the vector is a member.
    ///
    /// ```
    /// assert!(tile_layout::linear::Subspace::zero().contains(0));
    /// ```
    pub fn contains(&self, vector: u64) -> bool {
        self.reduce(vector) == 0
    }

    /// The number of basis vectors.
    ///
    /// ```
    /// assert_eq!(tile_layout::linear::Subspace::span([5, 5]).dimension(), 1);
    /// ```
    pub fn dimension(&self) -> u32 {
        self.pivots.count_ones()
    }

    /// The reduced basis, smallest vector first.
    ///
    /// ```
    /// let space = tile_layout::linear::Subspace::span([0b111, 0b011]);
    /// assert!(space.basis().eq([0b011, 0b100]));
    /// ```
    pub fn basis(&self) -> impl Iterator<Item = u64> + '_ {
        self.vectors.iter().copied().filter(|&vector| vector != 0)
    }

    /// All xors of members of both.
    ///
    /// ```
    /// use tile_layout::linear::Subspace;
    /// assert_eq!(Subspace::span([1]).sum(&Subspace::span([2])), Subspace::span([3, 1]));
    /// ```
    #[must_use]
    pub fn sum(&self, other: &Subspace) -> Subspace {
        let mut sum = self.clone();
        for vector in other.basis() {
            sum.insert(vector);
        }
        sum
    }

    /// The common members (Zassenhaus' algorithm).
    ///
    /// ```
    /// use tile_layout::linear::Subspace;
    /// assert_eq!(Subspace::span([1, 2]).intersection(&Subspace::span([2, 4])), Subspace::span([2]));
    /// ```
    #[must_use]
    pub fn intersection(&self, other: &Subspace) -> Subspace {
        // `shares[p]` is the part of the vector at pivot `p` of the sum that came from `self`. A vector of `other`
        // that reduces to zero equals what was taken from `self` up to what came from `other`: it is common.
        let mut sum = self.vectors;
        let mut shares = self.vectors;
        let mut common = Subspace::zero();
        for vector in other.basis() {
            let (mut rest, mut share) = (vector, 0);
            while rest != 0 {
                let pivot = rest.ilog2() as usize;
                if sum[pivot] == 0 {
                    (sum[pivot], shares[pivot]) = (rest, share);
                    break;
                }
                rest ^= sum[pivot];
                share ^= shares[pivot];
            }
            if rest == 0 {
                common.insert(share);
            }
        }
        common
    }
}

impl fmt::Debug for Subspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.basis()).finish()
    }
}
