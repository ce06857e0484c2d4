//! Persistent schedules on every target: the order that code computes against the formula, and kernels whose blocks
//! carry values, shared memory and scratch memory from one tile to the next.

use crate::gpu;
use crate::support::{Memory, Native, close, instance, run_native, run_simt, run_simt_as, sample};
use tile_codegen::{Options, simt};
use tile_ir::abi::Sharing;
use tile_ir::ops::Literal;
use tile_ir::tile_order::TileOrder;
use tile_ir::{Array, DType, TargetDesc, interp};
use tile_test_edit::Edit;

const ORDERS: [(&str, TileOrder); 5] = [
    ("row_major", TileOrder::RowMajor),
    ("grouped(1)", TileOrder::Grouped(1)),
    ("grouped(3)", TileOrder::Grouped(3)),
    ("grouped(8)", TileOrder::Grouped(8)),
    ("hilbert", TileOrder::Hilbert),
];

/// Writes to each tile 100 times the number of blocks, 10 times the block's number, and how many tiles the block has
/// handled before.
fn turns(order: &str, rank: usize) -> String {
    let extents = ["m", "n", "k"][..rank].join(" x ");
    let ones = vec!["1"; rank];
    let (tile, shape) = (ones.join(", "), ones.join(" x "));
    format!(
        "\
kernel @turns(%y: mut tensor<{extents} x i64>) {{
  %v = partition %y [{tile}] : mut partition<{extents} x i64, [{tile}]>
  %0 = constant 0 : i64
  %1 = constant 1 : i64
  %10 = constant 10 : i64
  %block = block_id axis 0 : index
  %blocks = block_count axis 0 : index
  %b = cast %block : i64
  %c = cast %blocks : i64
  %tens = mul %c, %10 : i64
  %sum = add %tens, %b : i64
  %place = mul %sum, %10 : i64
  %last = tiles %v {order} carry (%turn = %0) : i64 {{
    %all = add %place, %turn : i64
    %t = splat %all : tile<{shape} x i64>
    store_masked %v, %t
    %next = add %turn, %1 : i64
    yield %next
  }}
}}
"
    )
}

fn expected_turns(order: TileOrder, shape: &[usize], blocks: usize, tiles: usize) -> Vec<f64> {
    let mut expected = vec![-7.0; shape.iter().product()];
    for number in 0..tiles {
        let index = order.index_of(shape, number);
        let at = index.iter().zip(shape).fold(0, |at, (i, extent)| at * extent + i);
        expected[at] = (100 * blocks + 10 * (number % blocks) + number / blocks) as f64;
    }
    expected
}

#[test]
fn blocks_take_the_tiles_that_the_formula_gives_them() {
    let shapes: [&[&[usize]]; 3] =
        [&[&[1], &[7]], &[&[1, 6], &[5, 7], &[9, 4], &[12, 11]], &[&[2, 3, 5], &[3, 6, 4]]];
    let target = TargetDesc::named("sm_90a").unwrap();
    for (name, order) in ORDERS {
        for (rank, shapes) in (1..).zip(shapes) {
            let instance = instance(&turns(name, rank), &[]);
            let native = Native::of(&instance, &Options::default());
            let threads = simt::compile(&instance, target, Some(2)).unwrap();
            for &shape in shapes {
                let all: usize = shape.iter().product();
                for (blocks, first_tiles) in
                    [(1, None), (4, None), (all, None), (all + 2, Some(all / 2)), (3, Some(0))]
                {
                    let arguments = [Array::full(DType::I64, shape, Literal::Int(-7))];
                    let sharing = Sharing { blocks: Some(blocks), first_tiles };
                    let expected = expected_turns(order, shape, blocks, first_tiles.unwrap_or(all));
                    let memory = Memory::shared(&instance, &arguments, sharing);
                    native.run(&memory);
                    let check = |found: &Array, target| {
                        let found: Vec<f64> = (0..all).map(|i| found.get_f64(i)).collect();
                        assert_eq!(
                            found, expected,
                            "{target}: {name} of {shape:?}, {blocks} blocks, {first_tiles:?}"
                        );
                    };
                    check(&memory.arrays(&arguments)[0], "cpu");
                    let memory = Memory::shared(&instance, &arguments, sharing);
                    // SAFETY: the slots are as the instance's ABI says, and tensors are as large as their shapes.
                    unsafe { threads.run(&memory.slots, memory.blocks) }.unwrap();
                    check(&memory.arrays(&arguments)[0], "simt");
                }
            }
        }
    }
}

/// A product whose rows are then divided by their sum, which goes through shared memory at the end of each turn, and
/// from tile to tile a carried tile: the sum of what the block has written, added to the next tile's factor `a`.
const MATMUL: &str = "\
kernel @matmul<BM, BN, BK>(%a: tensor<m x k x f32>, %b: tensor<k x n x f32>, %c: mut tensor<m x n x f32>, %d: mut tensor<m x n x i32>) {
  %va = partition %a [BM, BK] : partition<m x k x f32, [BM, BK]>
  %vb = partition %b [BK, BN] : partition<k x n x f32, [BK, BN]>
  %vc = partition %c [BM, BN] : mut partition<m x n x f32, [BM, BN]>
  %vd = partition %d [BM, BN] : mut partition<m x n x i32, [BM, BN]>
  %0 = constant 0.0 : f32
  %i0 = constant 0 : i32
  %zero = splat %0 : tile<BM x BN x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, BK) : index
  %seen_2 = tiles %vc ORDER carry (%seen = %zero) : tile<BM x BN x f32> {
    %i, %j = block_index %vc : index, index
    %acc_2 = for %p = %1 to %2 carry (%acc = %zero) : tile<BM x BN x f32> {
      %4 = load_masked %va[%i, %p] pad %0 : tile<BM x BK x f32>
      %6 = load_masked %vb[%p, %j] pad %0 : tile<BK x BN x f32>
      %7 = mma %4, %6, %acc : tile<BM x BN x f32>
      yield %7
    }
    %most = reduce max %acc_2 axis 1 : tile<BM x 1 x f32>
    %wide = broadcast %most : tile<BM x BN x f32>
    %turned = permute %acc_2 [1, 0] : tile<BN x BM x f32>
    %back = permute %turned [1, 0] : tile<BM x BN x f32>
    %less = sub %back, %wide : tile<BM x BN x f32>
    store_masked %vc, %less
    %old = load_masked %vd pad %i0 : tile<BM x BN x i32>
    %whole = cast %less : tile<BM x BN x i32>
    %new = add %old, %whole : tile<BM x BN x i32>
    store_masked %vd, %new
    %next = max %seen, %less : tile<BM x BN x f32>
    yield %next
  }
}
";

/// By plain loops: what `c` and `d` hold.
fn product_by_hand(arguments: &[Array], bn: usize) -> [Vec<f64>; 2] {
    let [m, k] = arguments[0].shape()[..] else { unreachable!("a matrix") };
    let n = arguments[1].shape()[1];
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            let term = |p: usize| arguments[0].get_f64(i * k + p) * arguments[1].get_f64(p * n + j);
            c[i * n + j] = (0..k).map(term).sum();
        }
    }
    let products = c.clone();
    for i in 0..m {
        for j in 0..n {
            // Beyond the tensor the products are 0.
            let first = j / bn * bn;
            let outside = if first + bn > n { 0.0 } else { f64::NEG_INFINITY };
            let most =
                products[i * n + first..i * n + n.min(first + bn)].iter().copied().fold(outside, f64::max);
            c[i * n + j] -= most;
        }
    }
    let d = (0..m * n).map(|at| arguments[3].get_f64(at) + c[at].trunc()).collect();
    [c, d]
}

fn matmul_arguments(m: usize, n: usize, k: usize) -> [Array; 4] {
    [
        sample(DType::F32, &[m, k], 1),
        sample(DType::F32, &[k, n], 2),
        sample(DType::F32, &[m, n], 3),
        sample(DType::I32, &[m, n], 4),
    ]
}

#[test]
fn products_and_what_they_carry_are_those_of_plain_loops() {
    for (order, tiles, (m, n, k)) in [
        ("row_major", [16, 32, 8], (33, 70, 20)),
        ("grouped(2)", [8, 4, 3], (50, 23, 7)),
        ("hilbert", [4, 16, 16], (19, 65, 17)),
        ("grouped(8)", [64, 64, 16], (130, 70, 33)),
    ] {
        let source = MATMUL.edit("ORDER", order);
        let instance = instance(&source, &[("BM", tiles[0]), ("BN", tiles[1]), ("BK", tiles[2])]);
        let arguments = matmul_arguments(m, n, k);
        let expected = product_by_hand(&arguments, tiles[1]);
        let check = |found: &[Array], what: &str| {
            for (array, expected) in found[2..].iter().zip(&expected) {
                let numbers: Vec<f64> = (0..array.len()).map(|i| array.get_f64(i)).collect();
                assert_eq!(&numbers, expected, "{what}: {order} {tiles:?}");
            }
        };
        let mut evaluated = arguments.to_vec();
        interp::run(&instance, &mut evaluated).unwrap();
        check(&evaluated, "evaluator");
        check(&run_native(&instance, &arguments, &Options::default()), "cpu");
        for threads in [None, Some(32), Some(4)] {
            check(&run_simt(&instance, &arguments, threads), &format!("{threads:?} threads"));
        }
    }
}

/// Transposes through shared memory, once in each turn: nothing but a barrier between two turns keeps threads of the
/// next from writing what others still read.
const TURNED: &str = "\
kernel @turned<B>(%x: tensor<n x m x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [B, B] : partition<n x m x f32, [B, B]>
  %vy = partition %y [B, B] : mut partition<m x n x f32, [B, B]>
  %0 = constant 0.0 : f32
  tiles %vy row_major {
    %i, %j = block_index %vy : index, index
    %t = load_masked %vx[%j, %i] pad %0 : tile<B x B x f32>
    %turned = permute %t [1, 0] : tile<B x B x f32>
    store_masked %vy, %turned
  }
}
";

#[test]
fn memory_is_reused_from_tile_to_tile() {
    let instance = instance(TURNED, &[("B", 16)]);
    let [n, m] = [64, 80];
    let arguments = [sample(DType::F32, &[n, m], 1), sample(DType::F32, &[m, n], 2)];
    let check = |found: &[Array], what: &str| {
        for at in 0..n * m {
            let (i, j) = (at / n, at % n);
            assert_eq!(found[1].get_f64(at), arguments[0].get_f64(j * m + i), "[{i}, {j}] of {what}");
        }
    };
    check(&run_native(&instance, &arguments, &Options::default()), "cpu");
    // Each of the 4 blocks has 5 turns, and threads of several warps or waves take part in each.
    for target in ["sm_90a", "gfx942"] {
        for threads in [64, 128, 256] {
            let what = format!("{threads} threads of {target}");
            check(&run_simt_as(target, &instance, &arguments, Some(threads)), &what);
        }
    }
}

/// What a block carries from tile to tile is written by its next turn: a running sum of tiles.
const RUNNING: &str = "\
kernel @running<B>(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [B] : partition<n x f32, [B]>
  %vy = partition %y [B] : mut partition<n x f32, [B]>
  %0 = constant 0.0 : f32
  %zero = splat %0 : tile<B x f32>
  %end = tiles %vy row_major carry (%sum = %zero) : tile<B x f32> {
    %i = block_index %vy : index
    %t = load_masked %vx[%i] pad %0 : tile<B x f32>
    %total = reduce sum %t axis 0 : tile<1 x f32>
    %wide = broadcast %total : tile<B x f32>
    %next = add %sum, %wide : tile<B x f32>
    store_masked %vy, %next
    yield %next
  }
}
";

#[test]
fn tiles_are_carried_from_turn_to_turn() {
    for (b, threads) in [(8, None), (256, Some(64)), (1024, Some(4))] {
        let instance = instance(RUNNING, &[("B", b)]);
        let n = 10 * b - 3;
        let arguments = [sample(DType::F32, &[n], 1), sample(DType::F32, &[n], 2)];
        let sum =
            |tile: usize| -> f64 { (tile * b..n.min(tile * b + b)).map(|i| arguments[0].get_f64(i)).sum() };
        // Four blocks: tile 9 is the third of block 1.
        let expected: Vec<f64> =
            (0..n).map(|i| (0..=i / b).filter(|tile| tile % 4 == i / b % 4).map(sum).sum()).collect();
        let expected = Array::new(DType::F32, vec![n], tile_ir::array::Elements::Float(expected));
        let mut evaluated = arguments.to_vec();
        interp::run(&instance, &mut evaluated).unwrap();
        close(&evaluated[1], &expected, 1e-6, "the evaluator");
        close(&run_native(&instance, &arguments, &Options::default())[1], &expected, 1e-6, "cpu");
        close(&run_simt(&instance, &arguments, threads)[1], &expected, 1e-6, "simt");
    }
}

#[test]
fn every_gpu_target_compiles_persistent_kernels() {
    for (order, _) in ORDERS {
        gpu::check(&instance(&turns(order, 3), &[]));
    }
    let constants = [("BM", 64), ("BN", 64), ("BK", 16)];
    gpu::check(&instance(&MATMUL.edit("ORDER", "hilbert"), &constants));
    gpu::check(&instance(RUNNING, &[("B", 256)]));
}
