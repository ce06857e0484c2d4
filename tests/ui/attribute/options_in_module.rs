//! Inside a module attributes have the options that they have outside.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[derive(TileStruct)]
    struct Scaled(Tile<f32, 1>);

    #[tile_fn(inline)]
    impl Scaled {
        fn value(self) -> Tile<f32, 1> {
            self.0 * 2.0
        }
    }

    #[tile_fn(inline)]
    fn doubled(x: Tile<f32, 1>) -> Tile<f32, 1> {
        Scaled(x).value()
    }

    #[tile_fn = "inline"]
    fn plain(x: Tile<f32, 1>) -> Tile<f32, 1> {
        x
    }

    #[tile_kernel = "instances(B = 64)"]
    pub fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        y.store_masked(plain(doubled(x.load_masked(y.index()))));
    }
}

fn main() {}
