//! Blocks that own several tiles of an output: native code and GPU code on the host against the evaluator, and what the
//! targets' compilers make of it. What a block wrote it reads again by other threads, so every access is checked for
//! races.

use crate::gathers::agree;
use crate::gpu;
use crate::kernels::zero;
use crate::support::{instance, sample};
use tile_ir::DType;

/// Every tile is added to the one before it, turned around; the last one again to the first.
fn chained(elem: &str) -> String {
    format!(
        "kernel @chained<R, B>(%y: mut tensor<m x n x {elem}>) {{
  %vy = partition %y [R, B] spanning [1] : mut partition<m x n x {elem}, [R, B] spanning [1]>
  %pad = constant {zero} : {elem}
  %0 = constant 0 : index
  %1 = constant 1 : index
  %2 = extent ceil_div(n, B) : index
  for %j = %1 to %2 {{
    %k = sub %j, %1 : index
    %a = load_masked %vy[%k] pad %pad : tile<R x B x {elem}>
    %turned = flip %a axis 1 : tile<R x B x {elem}>
    %b = load_masked %vy[%j] pad %pad : tile<R x B x {elem}>
    %sum = add %turned, %b : tile<R x B x {elem}>
    store_masked %vy[%j], %sum
    store_masked %vy[%0], %sum
  }}
}}
",
        zero = zero(elem),
    )
}

/// Running sums of rows, and their totals, which are a second output with one tile per block.
const RUNNING: &str = "\
kernel @running<R, B>(%x: tensor<m x n x i32>, %total: mut tensor<m x 1 x i32>, %y: mut tensor<m x n x i32>) {
  %vx = partition %x [R, B] : partition<m x n x i32, [R, B]>
  %vt = partition %total [R, 1] : mut partition<m x 1 x i32, [R, 1]>
  %vy = partition %y [R, B] spanning [1] : mut partition<m x n x i32, [R, B] spanning [1]>
  %i, %none = block_index %vy : index, index
  %pad = constant 0 : i32
  %zero = splat %pad : tile<R x 1 x i32>
  %0 = constant 0 : index
  %2 = extent ceil_div(n, B) : index
  %sum = for %j = %0 to %2 carry (%before = %zero) : tile<R x 1 x i32> {
    %t = load_masked %vx[%i, %j] pad %pad : tile<R x B x i32>
    %up = scan sum %t axis 1 : tile<R x B x i32>
    %bb = broadcast %before : tile<R x B x i32>
    %all = add %up, %bb : tile<R x B x i32>
    store_masked %vy[%j], %all
    %s = reduce sum %t axis 1 : tile<R x 1 x i32>
    %after = add %before, %s : tile<R x 1 x i32>
    yield %after
  }
  store_masked %vt, %sum
}
";

/// A band of a product's tiles; where one is stored is computed after its sums.
fn band(operand: &str, accumulator: &str) -> String {
    format!(
        "kernel @band<BM, BN, BK>(%a: tensor<m x k x {operand}>, %b: tensor<k x n x {operand}>, %c: mut tensor<m x n x {accumulator}>) {{
  %va = partition %a [BM, BK] : partition<m x k x {operand}, [BM, BK]>
  %vb = partition %b [BK, BN] : partition<k x n x {operand}, [BK, BN]>
  %vc = partition %c [BM, BN] spanning [1] : mut partition<m x n x {accumulator}, [BM, BN] spanning [1]>
  %i, %none = block_index %vc : index, index
  %z = constant {zero} : {accumulator}
  %zo = constant {zero_operand} : {operand}
  %zero = splat %z : tile<BM x BN x {accumulator}>
  %0 = constant 0 : index
  %1 = constant 1 : index
  %2 = extent ceil_div(k, BK) : index
  %3 = extent ceil_div(n, BN) : index
  for %back = %0 to %3 {{
    %left = sub %3, %1 : index
    %from = sub %left, %back : index
    %sum = for %p = %0 to %2 carry (%acc = %zero) : tile<BM x BN x {accumulator}> {{
      %ta = load_masked %va[%i, %p] pad %zo : tile<BM x BK x {operand}>
      %tb = load_masked %vb[%p, %from] pad %zo : tile<BK x BN x {operand}>
      %next = mma %ta, %tb, %acc : tile<BM x BN x {accumulator}>
      yield %next
    }}
    %back1 = add %back, %1 : index
    %to = sub %3, %back1 : index
    store_masked %vc[%to], %sum
  }}
}}
",
        zero = zero(accumulator),
        zero_operand = zero(operand),
    )
}

#[test]
fn threads_read_what_others_of_the_block_wrote() {
    for (rows, width, shape) in
        [(1, 4, [3, 22]), (1, 64, [2, 300]), (4, 32, [6, 128]), (1, 1024, [2, 4096]), (2, 3, [5, 10])]
    {
        for dtype in [DType::F32, DType::BF16, DType::I64] {
            let instance = instance(&chained(dtype.name()), &[("R", rows), ("B", width)]);
            agree(&instance, &[sample(dtype, &shape, 1)]);
        }
    }
}

#[test]
fn a_block_carries_sums_through_its_tiles() {
    for (rows, width, shape) in [(1, 256, [3, 1000]), (4, 16, [6, 64]), (2, 8, [3, 5])] {
        let instance = instance(RUNNING, &[("R", rows), ("B", width)]);
        let arguments = [
            sample(DType::I32, &shape, 1),
            sample(DType::I32, &[shape[0], 1], 2),
            sample(DType::I32, &shape, 3),
        ];
        agree(&instance, &arguments);
    }
}

#[test]
fn a_block_multiplies_a_band_of_tiles() {
    for (operand, accumulator) in
        [(DType::BF16, DType::F32), (DType::F32, DType::F32), (DType::I8, DType::I32)]
    {
        for (tiles, [m, n, k]) in
            [([64, 64, 32], [100, 200, 96]), ([128, 128, 64], [128, 256, 128]), ([16, 16, 16], [33, 40, 0])]
        {
            let constants = [("BM", tiles[0]), ("BN", tiles[1]), ("BK", tiles[2])];
            let instance = instance(&band(operand.name(), accumulator.name()), &constants);
            let arguments =
                [sample(operand, &[m, k], 1), sample(operand, &[k, n], 2), sample(accumulator, &[m, n], 3)];
            agree(&instance, &arguments);
        }
    }
}

#[test]
fn every_targets_compiler_takes_them() {
    gpu::check(&instance(&chained("f32"), &[("R", 1), ("B", 1024)]));
    gpu::check(&instance(RUNNING, &[("R", 1), ("B", 1024)]));
    let constants = [("BM", 64), ("BN", 64), ("BK", 32)];
    gpu::check(&instance(&band("bf16", "f32"), &constants));
}
