//! Kernels whose blocks go on to further tiles though their author didn't say so, in fewer blocks than tiles and in more,
//! against the evaluator: what a block leaves in shared memory, in rings and at barriers is there in its next turn.

use crate::support::{Memory, close, instance, sample, taken};
use tile_codegen::simt::{self, Mode, Timing};
use tile_ir::{Array, DType, TargetDesc, gpu, interp, passes};

/// Runs the kernel in one block, in some, and in more than there are tiles.
fn check(target: &str, source: &str, arguments: &[Array], tolerance: f64) {
    let (instance, target) = (instance(source, &[]), TargetDesc::named(target).unwrap());
    let mut expected = arguments.to_vec();
    interp::run(&instance, &mut expected).unwrap();
    let tiles = Memory::of(&instance, arguments).blocks;
    let variant = taken(&instance, target, &Memory::of(&instance, arguments).bound);
    let scheduled = gpu::schedule(passes::optimize(variant.clone()), target, None);
    assert!(scheduled.shares_grid(), "blocks of {} share no tiles", instance.name);
    let kernel = simt::compile(&variant, target, None).unwrap_or_else(|error| panic!("{error}"));
    for blocks in [1, 3, tiles + 2] {
        for timing in [Timing::Late, Timing::Early] {
            let memory = Memory::of(&instance, arguments);
            let mode = Mode { timing, counted: false };
            // SAFETY: the slots are as the instance's ABI says, and tensors are as large as their shapes.
            let result = unsafe { kernel.run_as(&memory.slots, blocks, mode) };
            let what = format!("{blocks} blocks ({timing:?}) of\n{source}");
            result.unwrap_or_else(|error| panic!("{error} in {what}"));
            for (actual, expected) in memory.arrays(arguments).iter().zip(&expected) {
                close(actual, expected, tolerance, &what);
            }
        }
    }
}

/// A product that goes into `stored`.
fn product([m, n, k]: [usize; 3], format: &str, stored: &str) -> String {
    format!(
        "kernel @product(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x {format}>) {{
  %va = partition %a [{m}, {k}] : partition<m x k x bf16, [{m}, {k}]>
  %vb = partition %b [{k}, {n}] : partition<k x n x bf16, [{k}, {n}]>
  %vc = partition %c [{m}, {n}] : mut partition<m x n x {format}, [{m}, {n}]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<{m} x {n} x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(k, {k}) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<{m} x {n} x f32> {{
    %ta = load_masked %va[%i, %p] pad %pad : tile<{m} x {k} x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<{k} x {n} x bf16>
    %next = mma %ta, %tb, %acc : tile<{m} x {n} x f32>
    yield %next
  }}
{stored}  store_masked %vc, %out
}}
"
    )
}

/// More turns than stages, fewer, and none; sums as they are, rounded and stored through panels, and divided by what a row
/// has most of, which threads exchange.
#[test]
fn rings_go_on_from_tile_to_tile() {
    let plain = |[m, n, _]: [usize; 3]| format!("  %out = mul %sum, %one : tile<{m} x {n} x f32>\n");
    let one = |[m, n, _]: [usize; 3]| {
        format!("  %unit = constant 1.0 : f32\n  %one = splat %unit : tile<{m} x {n} x f32>\n")
    };
    for (tile, [m, n, k]) in
        [([64, 64, 32], [136, 200, 328]), ([128, 64, 64], [264, 72, 64]), ([64, 128, 64], [200, 264, 0])]
    {
        let arguments = |format| {
            [sample(DType::BF16, &[m, k], 1), sample(DType::BF16, &[k, n], 2), sample(format, &[m, n], 3)]
        };
        let stored = one(tile) + &plain(tile);
        check("sm_90a", &product(tile, "f32", &stored), &arguments(DType::F32), 0.0);
        let narrow = format!("  %out = cast %sum : tile<{} x {} x bf16>\n", tile[0], tile[1]);
        check("sm_90a", &product(tile, "bf16", &narrow), &arguments(DType::BF16), 0.0);
        let [rows, columns, _] = tile;
        let turned = format!(
            "  %most = reduce max %sum axis 0 : tile<1 x {columns} x f32>
  %all = broadcast %most : tile<{rows} x {columns} x f32>
  %out = sub %sum, %all : tile<{rows} x {columns} x f32>\n"
        );
        check("sm_90a", &product(tile, "f32", &turned), &arguments(DType::F32), 0.0);
    }
}

#[test]
fn vectors_are_added_in_small_pieces() {
    let source = "\
kernel @add(%x: tensor<n x f32>, %w: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [128] : partition<n x f32, [128]>
  %vw = partition %w [128] : partition<n x f32, [128]>
  %vy = partition %y [128] : mut partition<n x f32, [128]>
  %i = block_index %vy : index
  %pad = constant 0.0 : f32
  %a = load_masked %vx[%i] pad %pad : tile<128 x f32>
  %b = load_masked %vw[%i] pad %pad : tile<128 x f32>
  %r = add %a, %b : tile<128 x f32>
  store_masked %vy, %r
}
";
    for n in [1, 128, 1000, 1028] {
        let arguments = [1, 2, 3].map(|seed| sample(DType::F32, &[n], seed));
        check("sm_90a", source, &arguments, 0.0);
        check("sm_100a", source, &arguments, 0.0);
    }
}

/// The sum and the largest element of a row go through the same shared memory in each turn.
#[test]
fn rows_are_reduced_in_small_pieces() {
    let source = "\
kernel @softmax(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [1, 200] : partition<m x n x f32, [1, 200]>
  %vy = partition %y [1, 200] : mut partition<m x n x f32, [1, 200]>
  %i, %j = block_index %vy : index, index
  %pad = constant -inf : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<1 x 200 x f32>
  %m = reduce max %t axis 1 : tile<1 x 1 x f32>
  %mb = broadcast %m : tile<1 x 200 x f32>
  %d = sub %t, %mb : tile<1 x 200 x f32>
  %e = exp %d : tile<1 x 200 x f32>
  %s = reduce sum %e axis 1 : tile<1 x 1 x f32>
  %sb = broadcast %s : tile<1 x 200 x f32>
  %r = div %e, %sb : tile<1 x 200 x f32>
  store_masked %vy, %r
}
";
    for shape in [[7, 200], [5, 130]] {
        let arguments = [1, 2].map(|seed| sample(DType::F32, &shape, seed));
        // Four roundings and an exponential of 2 ulp.
        check("sm_90a", source, &arguments, 1e-6);
    }
}

/// Elements change threads through shared memory; another output has tiles of its own, of which the block reads the old ones.
#[test]
fn matrices_are_transposed_in_small_pieces() {
    let source = "\
kernel @transpose(%x: tensor<m x n x f16>, %y: mut tensor<n x m x f16>, %z: mut tensor<n x m x i8>) {
  %vx = partition %x [24, 8] : partition<m x n x f16, [24, 8]>
  %vy = partition %y [8, 24] : mut partition<n x m x f16, [8, 24]>
  %vz = partition %z [8, 24] : mut partition<n x m x i8, [8, 24]>
  %i, %j = block_index %vy : index, index
  %row = block_id axis 0 : index
  %rows = block_count axis 0 : index
  %left = sub %rows, %row : index
  %pad = constant 0.0 : f16
  %p8 = constant 0 : i8
  %t = load_masked %vx[%j, %i] pad %pad : tile<24 x 8 x f16>
  %r = permute %t [1, 0] : tile<8 x 24 x f16>
  store_masked %vy, %r
  %old = load_masked %vz pad %p8 : tile<8 x 24 x i8>
  %more = cast %left : i8
  %by = splat %more : tile<8 x 24 x i8>
  %new = add %old, %by : tile<8 x 24 x i8>
  store_masked %vz, %new
}
";
    for [m, n] in [[50, 20], [24, 8], [72, 40]] {
        let arguments =
            [sample(DType::F16, &[m, n], 1), sample(DType::F16, &[n, m], 2), sample(DType::I8, &[n, m], 3)];
        check("sm_90a", source, &arguments, 0.0);
    }
}
