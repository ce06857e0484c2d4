//! Constants that call a `const fn`, and one that is a function of kernels.

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
}

fn main() {}
