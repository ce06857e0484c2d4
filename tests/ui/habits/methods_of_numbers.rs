//! What Rust's numbers have and kernels call otherwise.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, s: f32, k: i32, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let relu = t.max(0.0);
    let fraction = s.fract();
    let logarithm = s.log(10.0);
    let degrees = t.to_degrees();
    let bits = t.to_bits();
    let power = k.pow(2);
    let angle = t.rem_euclid(6.28);
    let turns = s.div_floor(6.28);
    let bound = t.saturating_add(1.0);
    let network = k.to_be();
    let order = s.partial_cmp(&1.0);
    let wide: i64 = k.into();
    let signed = n as isize - 1;
    let inferred: f32 = k as _;
    let zero = f32::default();
    let larger = f32::max(s, 1.0);
    y.store_masked(t);
}

fn main() {}
