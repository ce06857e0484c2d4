//! Random arguments, the same in every run.

use crate::sizes::{Sizes, shapes};
use tile_ir::DType;
use tile_ir::abi::{Argument, KernelAbi};
use tile_ir::array::{Array, Elements, round_float, wrap_int};

const SEED: u64 = 0x5eed;

/// Integers lie between minus this and this.
const LARGEST: i128 = 16;

/// Numbers that look random: SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// From −1 to 1.
    fn float(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn int(&mut self, dtype: DType) -> i128 {
        let (low, high) = dtype.int_range();
        let (low, high) = (low.max(-LARGEST), high.min(LARGEST));
        low + i128::from(self.next()) % (high - low + 1)
    }
}

/// Arguments of these sizes: floats from −1 to 1, integers of at most [`LARGEST`].
///
/// # Errors
/// An extent that has no value.
pub(crate) fn arguments(abi: &KernelAbi, sizes: &Sizes) -> Result<Vec<Array>, String> {
    let mut random = Random(SEED);
    let arguments = abi.arguments.iter().zip(shapes(abi, sizes)?);
    Ok(arguments.map(|(argument, shape)| array(&mut random, dtype_of(argument), shape)).collect())
}

/// The format of an argument's elements.
pub(crate) fn dtype_of(argument: &Argument) -> DType {
    let (Argument::Tensor { dtype, .. } | Argument::Scalar { dtype, .. }) = argument;
    *dtype
}

fn array(random: &mut Random, dtype: DType, shape: Vec<usize>) -> Array {
    let count = shape.iter().product();
    let elements = if dtype.is_float() {
        Elements::Float((0..count).map(|_| round_float(dtype, random.float())).collect())
    } else {
        Elements::Int((0..count).map(|_| wrap_int(dtype, random.int(dtype))).collect())
    };
    Array::new(dtype, shape, elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the generator with seed 0, as its authors' code gives them.
    #[test]
    fn numbers_are_the_generators() {
        let mut random = Random(0);
        assert_eq!([random.next(), random.next()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn numbers_are_in_their_ranges() {
        let mut random = Random(SEED);
        for _ in 0..1000 {
            assert!((-1.0..1.0).contains(&random.float()));
            assert!((-16..=16).contains(&random.int(DType::I32)));
            assert!((0..=16).contains(&random.int(DType::U8)));
            assert!((0..=1).contains(&random.int(DType::Bool)));
        }
    }
}
