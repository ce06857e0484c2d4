//! An atomic view is of the format and the rank that a function declares, and no other view.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[tile_fn]
    fn counted(counts: &AtomicView<'_, i32, 1>, i: usize) {
        counts.fetch_add([i], 1, Relaxed, DeviceScope);
    }

    #[tile_fn]
    fn loaded(x: PartitionView<'_, f32, 1>) -> Tile<f32, 1> {
        x.load_masked([0])
    }

    #[tile_kernel(grid = [n])]
    fn kernel(x: &Tensor<f32, n>, sums: &mut Tensor<f32, n>, counts: &mut Tensor<i32, n, 2>) {
        let (sums, counts) = (sums.atomic_view(), counts.atomic_view());
        counted(&sums, 0);
        counted(&counts, 0);
        counted(&x.partition_view([4]), 0);
        loaded(sums);
    }
}

fn main() {}
