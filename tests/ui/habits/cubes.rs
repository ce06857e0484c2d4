//! What CubeCL, CUB and Pallas call things.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    let t = x.partition_view([B]).load_masked(y.index());
    if ABSOLUTE_POS < n {
        y.store_masked(t);
    }
    let i = CUBE_POS_X * CUBE_DIM_X + UNIT_POS;
    let all = CUBE_COUNT;
    let lane = UNIT_POS_PLANE;
    let shared = SharedMemory::<f32>::new(256);
    sync_cube();
    let product = plane_prod(t);
    let first = plane_broadcast(t, 0);
    let before = plane_exclusive_sum(t);
    let total = cub::BlockReduce::sum(t);
    let sums = BlockScan::inclusive_sum(t);
    let place = pl::program_id(0);
    let best = topk(t, 4);
    let rows = T;
    let forgotten = LIMIT;
}

fn main() {}
