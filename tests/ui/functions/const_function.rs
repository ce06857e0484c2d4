//! Constants that call a `const fn` which the macro doesn't see or can't compute, and one that is a function of kernels.

use tile::prelude::*;

const fn square(x: u32) -> u32 {
    x * x
}

mod tables {
    pub const fn table() -> [u8; 4] {
        [1; 4]
    }
}

#[tile_fn]
const fn cube(x: u32) -> u32 {
    x * x * x
}

#[tile_kernels]
mod kernels {
    use super::{square, tables};
    use tile::prelude::*;

    const TABLE: [u8; 4] = tables::table();

    #[tile_kernel]
    pub fn of_constants(x: &Tensor<u8, n>, y: &mut Tensor<u8, n>) {
        const NINE: u8 = square(3) as u8;
        let mut y = y.partition_view_mut([4]);
        let x = x.partition_view([4]).load_masked(y.index());
        y.store_masked(x.lookup(TABLE) + NINE + const { square(2) } as u8);
    }

    const fn sum(n: u32) -> u32 {
        let mut sum = 0;
        for i in 0..n {
            sum += i;
        }
        sum
    }

    const fn open() -> u32 {
        let mask = !0;
        mask >> 1
    }

    const fn of_texts(text: &str) -> usize {
        text.len()
    }

    const fn small(n: u32) -> u32 {
        assert!(n < 3);
        n
    }

    const fn sized<const N: usize>() -> usize {
        N
    }

    #[tile_kernel]
    pub fn of_functions(x: &Tensor<u32, n>, k: u32, y: &mut Tensor<u32, n>) {
        const SUM: u32 = sum(4);
        const MASK: u32 = open();
        const LENGTH: usize = of_texts("length");
        const ASSERTED: u32 = small(3);
        const OF_ARGUMENT: u32 = small(k);
        const SIZE: usize = sized();
        let two = small(2);
        let mut y = y.partition_view_mut([SIZE]);
        let x = x.partition_view([LENGTH]).load_masked(y.index());
        y.store_masked(x + SUM + MASK + ASSERTED + OF_ARGUMENT);
    }
}

fn main() {}
