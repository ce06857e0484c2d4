//! Items of Rust inside of a kernel.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, mode: i32, y: &mut Tensor<f32, n>) {
    use std::f32::consts::PI;
    static SCALE: f32 = 2.0;
    enum Mode {
        Relu,
    }
    struct State {
        sum: f32,
    }
    impl State {
        fn new() -> State {
            State { sum: 0.0 }
        }
    }
    impl Clone for State {
        fn clone(&self) -> State {
            State { sum: self.sum }
        }
    }
    fn twice(x: f32) -> f32 {
        x * 2.0
    }
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let angle = t * PI;
    let which = Mode::Relu;
    y.store_masked(angle);
}

fn main() {}
