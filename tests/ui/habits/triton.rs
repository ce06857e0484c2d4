//! What Triton, cuTile and CubeCL call things.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>, seed: u64) {
    let mut y = y.partition_view_mut([B, B]);
    let t = x.partition_view([B, B]).load_masked(y.index());
    let largest = max(t, 1);
    let total = tl::sum(t, 1);
    let keep = rand(seed, 0);
    let [a, b] = t.split();
    let both = join(a, b);
    static_assert(B % 16 == 0);
    device_print("t", t);
    for p in static_range(0, 4) {
        atomic_add(y, t);
    }
    let lower = tril(t);
    y.store_masked(t.masked_fill(lower, 0.0).softplus());
    sync_cube();
}

fn main() {}
