//! Tiles of computed numbers: ranges, the identity, random numbers. Each is several ops, in the steps in which the
//! front end lowers them.
//!
//! # Random numbers
//!
//! Every number is a function of a seed and a position, by Philox4x32-10 ([`philox`]): there is no state, and the
//! same seed and position give the same bits on every device. Element `i` of `Tile::random_…(shape, seed, offset)`,
//! counted in row-major order, has the position `offset + i`. So two tiles are independent where their seeds differ
//! or their ranges of positions don't meet, and a tile cut in two along its first axis has the numbers of the whole.
//! For other positions, such as the place in a tensor whose rows are longer than the tile's, give a tile of them to
//! `Tile::random_…_at(positions, seed)`, or to [`philox`].

use super::gather::GatherIndex;
use super::{Element, Int, Number, Tile, cos, eq, log, philox, select, sqrt};
use std::f32::consts::TAU;

impl<T: Number> Tile<T, 1> {
    /// The numbers `start`, `start + step`, … Element `i` is `start + i * step` in the tile's format: `i` is
    /// converted to it, then the product and the sum are rounded (or wrap), on every device alike.
    ///
    /// # Panics
    /// If the extent is zero; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// assert_eq!(Tile::arange([3], 1.0f32, 0.5).to_vec(), [1.0, 1.5, 2.0]);
    /// ```
    pub fn arange(shape: [usize; 1], start: T, step: T) -> Self {
        let steps = Tile::iota(shape, 0);
        steps * Tile::full(shape, step) + Tile::full(shape, start)
    }
}

impl<T: Element> Tile<T, 1> {
    /// The numbers of an array. In a kernel they are constants, which lie in memory beside the code: `const` items, or
    /// literals. To look such numbers up, [`Tile::lookup`] needs no tile of them.
    ///
    /// # Panics
    /// If the array is empty; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// const WEIGHTS: [f32; 3] = [0.25, 0.5, 0.25];
    /// assert_eq!((Tile::from_array(WEIGHTS) * 2.0).to_vec(), [0.5, 1.0, 0.5]);
    /// ```
    pub fn from_array<const N: usize>(numbers: [T; N]) -> Self {
        Tile::<i32, 1>::iota([N], 0).lookup(numbers)
    }
}

impl<T: Int, const R: usize> Tile<T, R> {
    /// The number of a table at each of these integers, and 0 (`false`) where an integer is below 0 or beyond the table's
    /// end. In a kernel the table is an array of constants, which lies in memory beside the code: `const` items, or literals.
    ///
    /// # Panics
    /// If the table is empty; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// const SQUARES: [f32; 4] = [0.0, 1.0, 4.0, 9.0];
    /// assert_eq!(Tile::<i32, 1>::arange([4], -1, 2).lookup(SQUARES).to_vec(), [0.0, 1.0, 9.0, 0.0]);
    /// ```
    pub fn lookup<U: Element, const N: usize>(self, table: [U; N]) -> Tile<U, R> {
        assert!(N > 0, "the table has no numbers");
        Tile::hold(self.array().lookup(U::DTYPE, &table.map(U::number)))
    }
}

impl<T: Number> Tile<T, 2> {
    /// Ones where row and column are equal, zeros elsewhere.
    ///
    /// # Panics
    /// If an extent is zero; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// assert_eq!(Tile::<f32, 2>::eye([2, 3]).to_vec(), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    /// ```
    pub fn eye(shape: [usize; 2]) -> Self {
        let diagonal = eq(Tile::<i32, 2>::iota(shape, 0), Tile::<i32, 2>::iota(shape, 1));
        select(diagonal, Tile::ones(shape), Tile::zeros(shape))
    }
}

impl<const R: usize> Tile<u64, R> {
    /// [`philox`] of these positions.
    pub fn philox(self, seed: u64) -> Self {
        philox(self, seed)
    }
}

impl<const R: usize> Tile<u32, R> {
    /// Random bits: the low word of `philox(offset + i, seed)` for element `i` in row-major order. An offset is an integer
    /// of any type, such as the position of a tile's first element: `i * B`.
    ///
    /// # Panics
    /// If an extent is zero; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let bits = Tile::random_bits([2, 2], 0, 0);
    /// assert_eq!(bits.to_vec()[0], 0x6627_e8d5); // Philox's first known answer
    /// assert_eq!(Tile::random_bits([2], 0, 2usize).to_vec(), bits.to_vec()[2..]);
    /// ```
    pub fn random_bits(shape: [usize; R], seed: u64, offset: impl GatherIndex<0>) -> Self {
        random_words(shape, seed, offset).cast()
    }

    /// Random bits at a tile of positions: the low word of [`philox`] of each.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let positions = Tile::<u64, 1>::iota([4], 0) + 2;
    /// assert_eq!(Tile::random_bits_at(positions, 7).to_vec(), Tile::random_bits([4], 7, 2).to_vec());
    /// ```
    pub fn random_bits_at(positions: Tile<u64, R>, seed: u64) -> Self {
        philox(positions, seed).cast()
    }
}

impl<const R: usize> Tile<f32, R> {
    /// Random numbers, uniform in 0 ≤ x < 1: the upper 24 of the bits that [`Tile::random_bits`] gives, times 2⁻²⁴.
    ///
    /// # Panics
    /// If an extent is zero; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::random_uniform([1000], 7, 0);
    /// assert!(x.to_vec().iter().all(|x| (0.0..1.0).contains(x)));
    /// assert!((x.mean(0).to_vec()[0] - 0.5).abs() < 0.05);
    /// ```
    pub fn random_uniform(shape: [usize; R], seed: u64, offset: impl GatherIndex<0>) -> Self {
        uniform(random_words(shape, seed, offset))
    }

    /// Random numbers as [`Tile::random_uniform`] gives, at a tile of positions. With an element's place in a tensor as its
    /// position they are the same in tiles of any extents.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let positions = Tile::<u64, 2>::iota([2, 1], 0) * 100 + Tile::<u64, 2>::iota([1, 3], 1);
    /// let second_row = Tile::random_uniform([3], 7, 100);
    /// assert_eq!(Tile::random_uniform_at(positions, 7).to_vec()[3..], second_row.to_vec());
    /// ```
    pub fn random_uniform_at(positions: Tile<u64, R>, seed: u64) -> Self {
        uniform(philox(positions, seed))
    }

    /// Random numbers, normally distributed with mean 0 and variance 1, by Box and Muller's method from the two
    /// words of `philox(offset + i, seed)`: `√(−2 ln u) · cos 2πv` with `u = (word 0 + 1) · 2⁻³²`, where word 0 and the
    /// sum are rounded to f32, and `v` the upper 24 bits of word 1 times 2⁻²⁴. No number is beyond ±6.7. `u` and `v` are
    /// the same on every device, the result is within the accuracy of `log` and `cos`.
    ///
    /// # Panics
    /// If an extent is zero; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::random_normal([10_000], 7, 0);
    /// assert!(x.mean(0).to_vec()[0].abs() < 0.05);
    /// assert!(((x * x).mean(0).to_vec()[0] - 1.0).abs() < 0.1);
    /// ```
    pub fn random_normal(shape: [usize; R], seed: u64, offset: impl GatherIndex<0>) -> Self {
        normal(random_words(shape, seed, offset))
    }

    /// Random numbers as [`Tile::random_normal`] gives, at a tile of positions. With an element's place in a tensor as its
    /// position they are the same in tiles of any extents.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let positions = Tile::<u64, 1>::iota([4], 0) + 2;
    /// assert_eq!(Tile::random_normal_at(positions, 7).to_vec(), Tile::random_normal([4], 7, 2).to_vec());
    /// ```
    pub fn random_normal_at(positions: Tile<u64, R>, seed: u64) -> Self {
        normal(philox(positions, seed))
    }
}

/// 2⁻²⁴.
const TO_UNIT: f32 = 1.0 / (1u32 << 24) as f32;

/// 2⁻³².
const TO_UNIT_32: f32 = TO_UNIT / 256.0;

fn uniform<const R: usize>(words: Tile<u64, R>) -> Tile<f32, R> {
    let bits: Tile<u32, R> = words.cast();
    (bits >> 8).cast::<f32>() * TO_UNIT
}

/// Box and Muller's method on the two words.
fn normal<const R: usize>(words: Tile<u64, R>) -> Tile<f32, R> {
    let u = (words.cast::<u32>().cast::<f32>() + 1.0) * TO_UNIT_32;
    let angle = (words >> 40).cast::<f32>() * (TAU * TO_UNIT);
    sqrt(log(u) * -2.0) * cos(angle)
}

fn random_words<const R: usize>(shape: [usize; R], seed: u64, offset: impl GatherIndex<0>) -> Tile<u64, R> {
    philox(positions_of(shape, offset), seed)
}

/// `offset + i` for element `i`.
pub(super) fn positions_of<const R: usize>(shape: [usize; R], offset: impl GatherIndex<0>) -> Tile<u64, R> {
    // Of an integer the low 64 bits count, as of a cast.
    let offset = offset.numbers().first().map_or(0, |&offset| offset as u64);
    let place = Tile::<u64, 1>::iota([shape.iter().product()], 0).reshape(shape);
    place + Tile::full(shape, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_and_tiles_have_the_same_random_numbers() {
        let device = crate::Device::cpu();
        let uniform = crate::Tensor::<f32>::random(&device, [1000], 7).unwrap().to_vec().unwrap();
        assert_eq!(Tile::random_uniform([1000], 7, 0).to_vec(), uniform);
        let normal = crate::Tensor::<f32>::normal(&device, [1000], 7).unwrap().to_vec().unwrap();
        let of_tile = Tile::random_normal([1000], 7, 0).to_vec();
        for (of_tensor, of_tile) in normal.iter().zip(of_tile) {
            assert!((of_tensor - of_tile).abs() < 4e-6, "{of_tensor} {of_tile}");
        }
    }

    #[test]
    fn tensors_and_tiles_round_alike_before_a_logarithm_close_to_zero() {
        // Word 0 is 0xffffd997, so `log u` is what `u` lacks to 1: of it, rounding leaves few digits.
        let (seed, place) = (7, 1_204_548);
        let device = crate::Device::cpu();
        let tensor = crate::Tensor::<f32>::normal(&device, [place + 1], seed).unwrap().to_vec().unwrap();
        let of_tile = Tile::random_normal([1], seed, place).to_vec()[0];
        for (name, value) in [("tensor", tensor[place]), ("tile", of_tile)] {
            assert!((value + 0.002_117_77).abs() < 1e-8, "{name}: {value}");
        }
    }

    #[test]
    fn positions_of_tiles_continue_each_other() {
        let whole = Tile::random_bits([4, 8], 3, u64::MAX - 9).to_vec();
        let [top, bottom] =
            [0, 2].map(|row| Tile::random_bits([2, 8], 3, (u64::MAX - 9).wrapping_add(8 * row)));
        assert_eq!([top.to_vec(), bottom.to_vec()].concat(), whole);
        assert_ne!(Tile::random_bits([4, 8], 4, u64::MAX - 9).to_vec(), whole);
    }

    #[test]
    fn uniform_numbers_fill_their_interval() {
        let mut counts = [0; 16];
        for x in Tile::random_uniform([1 << 14], 1, 5).to_vec() {
            counts[(x * 16.0) as usize] += 1;
        }
        // 1024 expected in each; the standard deviation is 31.
        assert!(counts.iter().all(|count| (880..1170).contains(count)), "{counts:?}");
    }

    #[test]
    fn normal_numbers_have_the_moments_of_their_distribution() {
        let x: Vec<f64> = Tile::random_normal([1 << 14], 2, 0).to_vec().into_iter().map(f64::from).collect();
        let moment = |power| x.iter().map(|x: &f64| x.powi(power)).sum::<f64>() / x.len() as f64;
        // Standard errors: 0.008, 0.011, 0.03, 0.08.
        for (power, expected, tolerance) in [(1, 0.0, 0.04), (2, 1.0, 0.05), (3, 0.0, 0.15), (4, 3.0, 0.4)] {
            assert!((moment(power) - expected).abs() < tolerance, "{power}: {}", moment(power));
        }
    }

    #[test]
    fn ranges_round_after_every_step() {
        use half::f16;
        let step = f16::from_f32(0.1);
        let x = Tile::arange([4], f16::from_f32(1000.0), step).to_vec();
        let expected: Vec<f16> =
            (0..4).map(|i| f16::from_f32(1000.0) + f16::from_f32(i as f32) * step).collect();
        assert_eq!(x, expected);
        assert_eq!(Tile::arange([3], 250u8, 5).to_vec(), [250, 255, 4]);
    }
}
