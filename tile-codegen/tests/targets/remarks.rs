//! What a build script warns of for Hopper, with the lines of kernels as users write them.

use crate::budgets::instance_in;
use tile_ir::gpu::schedule;
use tile_ir::{TargetDesc, Variant, passes};

const KERNELS: &str = r#"
#[tile_kernel(where(k % 8 == 0))]
fn four_bit_weights<const BM: usize, const BN: usize, const W: usize>(
    x: &Tensor<bf16, m, { 8 * k }>,
    w: &Tensor<u32, n, k>,
    y: &mut Tensor<f32, m, n>,
) {
    let (x, w, mut y) = (x.partition_view([BM, 8 * W]), w.partition_view([BN, W]), y.partition_view_mut([BM, BN]));
    let [i, j] = y.index();
    let shift = Tile::<u32, 3>::iota([1, 1, 8], 2) * 4;
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..x.tiles(1) {
        let nibbles = (w.load_masked([j, p]).unsqueeze(2) >> shift) & 15;
        let weights = nibbles.reshape([BN, 8 * W]).cast::<bf16>();
        acc = mma(x.load_masked([i, p]), weights.t(), acc);
    }
    y.store_masked(acc);
}

#[tile_kernel(where(k % 8 == 0))]
fn transposed<const BM: usize, const BN: usize, const W: usize>(
    x: &Tensor<bf16, m, { 8 * k }>,
    w: &Tensor<u32, n, k>,
    y: &mut Tensor<f32, n, m>,
) {
    let (x, w, mut y) = (x.partition_view([BM, 8 * W]), w.partition_view([BN, W]), y.partition_view_mut([BN, BM]));
    let [j, i] = y.index();
    let shift = Tile::<u32, 3>::iota([1, 1, 8], 2) * 4;
    let mut acc = Tile::zeros([BN, BM]);
    for p in 0..x.tiles(1) {
        let nibbles = (w.load_masked([j, p]).unsqueeze(2) >> shift) & 15;
        acc = mma(nibbles.reshape([BN, 8 * W]).cast::<bf16>(), x.load_masked([i, p]).t(), acc);
    }
    y.store_masked(acc);
}

#[tile_kernel(where(k % 8 == 0))]
fn normalized<const BM: usize, const BN: usize, const BK: usize>(
    x: &Tensor<bf16, m, k>,
    w: &Tensor<bf16, n, k>,
    y: &mut Tensor<f32, m, n>,
) {
    let (x, w, mut y) = (x.partition_view([BM, BK]), w.partition_view([BN, BK]), y.partition_view_mut([BM, BN]));
    let [i, j] = y.index();
    let mut acc = Tile::zeros([BM, BN]);
    let mut squares = Tile::zeros([BM, 1]);
    for p in 0..x.tiles(1) {
        let rows = x.load_masked([i, p]);
        let wide = rows.cast::<f32>();
        squares += (wide * wide).sum(1);
        acc = mma(rows, w.load_masked([j, p]).t(), acc);
    }
    y.store_masked(acc * rsqrt(squares));
}

#[tile_kernel(where(d % 8 == 0))]
fn chunk<const B: usize, const D: usize>(
    q: &Tensor<bf16, s, d>,
    k: &Tensor<bf16, s, d>,
    v: &Tensor<bf16, s, d>,
    o: &mut Tensor<f32, s, d>,
) {
    let (q, k, v) = (q.partition_view([B, D]), k.partition_view([B, D]), v.partition_view([B, D]));
    let mut o = o.partition_view_mut([B, D]);
    let [i, _] = o.index();
    let scores = mma(q.load_masked([i, 0]), k.load_masked([i, 0]).t(), Tile::zeros([B, B]));
    o.store_masked(mma(scores.cast::<bf16>(), v.load_masked([i, 0]), Tile::zeros([B, D])));
}

#[tile_kernel(where(c % 8 == 0, l % 8 == 0))]
fn convolution<const BM: usize, const BN: usize, const BC: usize>(
    x: &Tensor<bf16, l, c>,
    w: &Tensor<bf16, 2, n, c>,
    y: &mut Tensor<f32, n, l>,
) {
    let before = x.pad([(1, 0), (0, 0)]).partition_view([BM, BC]);
    let x = x.partition_view([BM, BC]);
    let w = w.partition_view([1, BN, BC]);
    let mut y = y.partition_view_mut([BN, BM]);
    let [j, i] = y.index();
    let mut acc = Tile::zeros([BN, BM]);
    for p in 0..w.tiles(2) {
        acc = mma(w.load_masked([0, j, p]).reshape([BN, BC]), before.load_masked([i, p]).t(), acc);
        acc = mma(w.load_masked([1, j, p]).reshape([BN, BC]), x.load_masked([i, p]).t(), acc);
    }
    y.store_masked(acc);
}
"#;

/// What is said of a kernel for Hopper, in the variant that most is relied on for, as a build script says it.
fn said(name: &str, constants: &[(&str, usize)]) -> Vec<String> {
    let target = TargetDesc::named("sm_90a").unwrap();
    let instance = instance_in(KERNELS, name, None, constants);
    let (_, first) = Variant::first_of(Variant::of_target(target).iter().copied(), &instance);
    schedule(passes::optimize(first), target, None).remarks().iter().map(ToString::to_string).collect()
}

const BY_WARPS: &str = "a product isn't done by warpgroups (`wgmma`) but by `mma.sync` m16n8k16, with";

/// Either way in which they are multiplied is a warpgroup's.
#[test]
fn weights_that_are_computed() {
    let tiles = [("BM", 64), ("BN", 64), ("W", 8)];
    assert_eq!(said("four_bit_weights", &tiles), [] as [String; 0]);
    assert_eq!(said("transposed", &tiles), [] as [String; 0]);
}

#[test]
fn a_tile_that_is_summed_besides() {
    let message = "line 51: warpgroups take the left factor of a product from registers, with no tiles copied ahead: \
                   `cast` in line 49 uses the tile of `x`, too, and no thread holds a tile that was copied; do that in a \
                   loop of its own";
    assert_eq!(said("normalized", &[("BM", 64), ("BN", 64), ("BK", 64)]), [message]);
}

#[test]
fn products_in_no_loop() {
    let message = |line: usize| {
        format!(
            "line {line}: {BY_WARPS} no tiles copied ahead: it stands in no loop, for whose next turns tiles would be \
             copied; multiply in a loop over the depth, which loads the factors"
        )
    };
    assert_eq!(said("chunk", &[("B", 64), ("D", 64)]), [message(66), message(67)]);
}

/// The tap that needs no margin is multiplied by warpgroups.
#[test]
fn a_part_of_a_loop() {
    let message = format!(
        "line 83: {BY_WARPS} no tiles copied ahead: a view of `x` has margins, which no tensor map has; pass a tensor that \
         has them, or gather its rows as the left factor"
    );
    assert_eq!(said("convolution", &[("BM", 64), ("BN", 64), ("BC", 64)]), [message]);
}
