//! Random numbers of f64, of 53 bits each.
//!
//! A trait has them, because inherent functions come first: `Tile::random_uniform(…)` without a format is of f32, and
//! `Tile::<f64, 2>::random_uniform(…)` this one.

use super::constructors::positions_of;
use super::gather::GatherIndex;
use super::{Tile, cos, log, philox, sqrt};
use std::f64::consts::TAU;

/// The random numbers of [`Tile`] with 53 bits, where the format f64 is written. Seeds and positions are those of the
/// others.
pub trait RandomDoubles<const R: usize>: Sized {
    /// Random numbers, uniform in 0 ≤ x < 1: the upper 53 of the 64 bits of `philox(offset + i, seed)`, times 2⁻⁵³. They are
    /// the same on every device.
    ///
    /// # Panics
    /// If an extent is zero; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<f64, 1>::random_uniform([1000], 7, 0);
    /// assert!(x.to_vec().iter().all(|x| (0.0..1.0).contains(x)));
    /// // More than f32 has.
    /// assert!(x.to_vec().iter().any(|&x| f64::from(x as f32) != x));
    /// ```
    fn random_uniform(shape: [usize; R], seed: u64, offset: impl GatherIndex<0>) -> Self;

    /// Random numbers as [`Self::random_uniform`] gives, at a tile of positions.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let positions = Tile::<u64, 1>::iota([4], 0) + 2;
    /// let at = Tile::<f64, 1>::random_uniform_at(positions, 7);
    /// assert_eq!(at.to_vec(), Tile::<f64, 1>::random_uniform([4], 7, 2).to_vec());
    /// ```
    fn random_uniform_at(positions: Tile<u64, R>, seed: u64) -> Self;

    /// Random numbers, normally distributed with mean 0 and variance 1, by Box and Muller's method: `√(−2 ln u) · cos 2πv`,
    /// where `u` is the uniform number plus 2⁻⁵³, and `v` the uniform number of the seed with all bits turned, `!seed`. No
    /// number is beyond ±8.6. The result is within the accuracy of `log` and `cos`.
    ///
    /// # Panics
    /// If an extent is zero; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<f64, 1>::random_normal([10_000], 7, 0);
    /// assert!(x.mean(0).to_vec()[0].abs() < 0.05);
    /// assert!(((x * x).mean(0).to_vec()[0] - 1.0).abs() < 0.1);
    /// ```
    fn random_normal(shape: [usize; R], seed: u64, offset: impl GatherIndex<0>) -> Self;

    /// Random numbers as [`Self::random_normal`] gives, at a tile of positions.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let positions = Tile::<u64, 1>::iota([4], 0) + 2;
    /// let at = Tile::<f64, 1>::random_normal_at(positions, 7);
    /// assert_eq!(at.to_vec(), Tile::<f64, 1>::random_normal([4], 7, 2).to_vec());
    /// ```
    fn random_normal_at(positions: Tile<u64, R>, seed: u64) -> Self;
}

impl<const R: usize> RandomDoubles<R> for Tile<f64, R> {
    fn random_uniform(shape: [usize; R], seed: u64, offset: impl GatherIndex<0>) -> Self {
        Self::random_uniform_at(positions_of(shape, offset), seed)
    }

    fn random_uniform_at(positions: Tile<u64, R>, seed: u64) -> Self {
        upper_bits(positions, seed) * TO_UNIT
    }

    fn random_normal(shape: [usize; R], seed: u64, offset: impl GatherIndex<0>) -> Self {
        Self::random_normal_at(positions_of(shape, offset), seed)
    }

    fn random_normal_at(positions: Tile<u64, R>, seed: u64) -> Self {
        let u = (upper_bits(positions, seed) + 1.0) * TO_UNIT;
        let angle = upper_bits(positions, !seed) * (TAU * TO_UNIT);
        sqrt(log(u) * -2.0) * cos(angle)
    }
}

/// 2⁻⁵³.
const TO_UNIT: f64 = 1.0 / (1u64 << 53) as f64;

/// The upper 53 bits at each position, as integers.
fn upper_bits<const R: usize>(positions: Tile<u64, R>, seed: u64) -> Tile<f64, R> {
    (philox(positions, seed) >> 11).cast()
}
