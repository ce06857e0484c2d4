//! Kernels and functions of a module that is a file.

tile::kernels! {
    use tile::prelude::*;

    const SHIFT: i32 = 40;

    #[tile_fn]
    pub(super) fn doubled<T: Number>(x: Tile<T, 1>) -> Tile<T, 1> {
        x + x
    }

    #[tile_kernel]
    pub(super) fn shifted<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let tile = x.load_masked(y.index());
        y.store_masked(tile_test_functions::offset(doubled(tile + SHIFT)));
    }
}
