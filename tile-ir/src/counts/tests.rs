//! Counts against formulas written by hand, and against loops that go through every tile.

mod forms;
mod nested;

use super::*;
use crate::VerifiedKernel;
use crate::abi::Sharing;
use crate::specialize::specialize_for;
use crate::view::{ArgumentLayout, GivenTensor};

fn totals(source: &str, constants: &[(&str, usize)], shapes: &[&[usize]]) -> Totals {
    let instance = Instance::parse(source, constants).unwrap();
    let abi = KernelAbi::of(&instance);
    Counts::of(&instance).total(&abi, &abi.bind(shapes).unwrap())
}

/// Bytes read and written of a tensor.
fn traffic(totals: &Totals, name: &str) -> [u64; 2] {
    let tensor = totals.tensors.iter().find(|tensor| tensor.name == name).unwrap();
    [tensor.read, tensor.written]
}

const MATMUL: &str = "\
kernel @matmul<BM, BN, BK>(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x f32>) {
  %va = partition %a [BM, BK] : partition<m x k x bf16, [BM, BK]>
  %vb = partition %b [BK, BN] : partition<k x n x bf16, [BK, BN]>
  %vc = partition %c [BM, BN] : mut partition<m x n x f32, [BM, BN]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %0 = constant 0.0 : f32
  %zero = splat %0 : tile<BM x BN x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, BK) : index
  %sum = for %p = %1 to %2 carry (%acc = %zero) : tile<BM x BN x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<BM x BK x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<BK x BN x bf16>
    %next = mma %ta, %tb, %acc : tile<BM x BN x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

const TILES: &[(&str, usize)] = &[("BM", 64), ("BN", 32), ("BK", 16)];

#[test]
fn a_product_is_two_mnk() {
    let (m, n, k) = (256, 160, 96);
    let totals = totals(MATMUL, TILES, &[&[m, k], &[k, n], &[m, n]]);
    let (m, n, k) = (m as u64, n as u64, k as u64);
    assert_eq!(totals.flops(), 2 * m * n * k);
    assert_eq!(totals.tiles, 4 * 5);
    assert_eq!(totals.loading_turns, 4 * 5 * 6);
    assert_eq!(traffic(&totals, "a"), [2 * m * k * (n / 32), 0]);
    assert_eq!(traffic(&totals, "b"), [2 * n * k * (m / 64), 0]);
    assert_eq!(traffic(&totals, "c"), [0, 4 * m * n]);
    assert_eq!(totals.compulsory(), 2 * m * k + 2 * n * k + 4 * m * n);
    assert!(totals.is_exact());
}

/// What blocks of a row, and blocks below each other, read alike of a product's factors.
#[test]
fn factors_are_shared_by_blocks() {
    let (m, n, k) = (256, 160, 96);
    let totals = totals(MATMUL, TILES, &[&[m, k], &[k, n], &[m, n]]);
    let shared: Vec<_> = totals.accesses.iter().map(|access| (access.repeated, access.row)).collect();
    // 4 × 5 tiles with six turns each: four of five have their `a` from the block before.
    assert_eq!(shared, [(96, None), (0, Some(5)), (0, None)]);
    let bytes = |part: f64| totals.touched_anew(64, |_, _| part);
    assert_eq!(bytes(1.0) - bytes(0.25), totals.tensors[1].read * 3 / 4);
}

/// What a mask leaves out isn't read, but is multiplied.
#[test]
fn tiles_at_the_edge_are_clipped() {
    let (m, n, k) = (70, 33, 17);
    let totals = totals(MATMUL, TILES, &[&[m, k], &[k, n], &[m, n]]);
    assert_eq!(totals.flops(), 2 * 128 * 64 * 32);
    assert_eq!(traffic(&totals, "a"), [2 * 70 * 17 * 2, 0]);
    assert_eq!(traffic(&totals, "b"), [2 * 33 * 17 * 2, 0]);
    assert_eq!(traffic(&totals, "c"), [0, 4 * 70 * 33]);
    assert!(totals.is_exact());
}

#[test]
fn rows_are_read_and_written_once() {
    let source = "\
kernel @softmax<B, W>(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [B, W] : partition<m x n x f32, [B, W]>
  %vy = partition %y [B, W] : mut partition<m x n x f32, [B, W]>
  %i, %j = block_index %vy : index, index
  %pad = constant -inf : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<B x W x f32>
  %m = reduce max %t axis 1 : tile<B x 1 x f32>
  %mb = broadcast %m : tile<B x W x f32>
  %d = sub %t, %mb : tile<B x W x f32>
  %e = exp %d : tile<B x W x f32>
  %s = reduce sum %e axis 1 : tile<B x 1 x f32>
  %sb = broadcast %s : tile<B x W x f32>
  %r = div %e, %sb : tile<B x W x f32>
  store_masked %vy, %r
}
";
    let totals = totals(source, &[("B", 4), ("W", 1024)], &[&[10, 1000], &[10, 1000]]);
    assert_eq!((totals.read(), totals.written(), totals.compulsory()), (40_000, 40_000, 80_000));
    // Three tiles of 4 rows; a subtraction per element, two reductions of 1023 joins per row.
    assert_eq!(totals.operations[&(Operation::Arithmetic, DType::F32)], 12 * (1024 + 2 * 1023));
    assert_eq!(totals.operations[&(Operation::Special, DType::F32)], 12 * 2 * 1024);
    assert!(totals.is_exact());
}

/// A window that slides over three neighbours, up to the block's own place, on every second element.
const TANGLED: &str = "\
kernel @tangled(%x: tensor<m x n x f32>, %y: mut tensor<a x b x f32>) {
  %vx = partition %x [2, 4] step [1, 2] : partition<m x n x f32, [2, 4] step [1, 2]>
  %vy = partition %y [1, 1] : mut partition<a x b x f32, [1, 1]>
  %i, %j = block_index %vy : index, index
  %one = constant 1 : index
  %three = constant 3 : index
  %zero = constant 0 : index
  %pad = constant 0.0 : f32
  %none = splat %pad : tile<1 x 1 x f32>
  %end = add %i, %one : index
  %sum = for %p = %zero to %end carry (%s = %none) : tile<1 x 1 x f32> {
    %inner = for %q = %p to %three carry (%r = %s) : tile<1 x 1 x f32> {
      %at = add %j, %q : index
      %t = load_masked %vx[%p, %at] pad %pad : tile<2 x 4 x f32>
      %u = reduce sum %t axis 1 : tile<2 x 1 x f32>
      %v = reduce sum %u axis 0 : tile<1 x 1 x f32>
      %w = add %v, %r : tile<1 x 1 x f32>
      yield %w
    }
    yield %inner
  }
  store_masked %vy, %sum
}
";

#[test]
fn loops_that_depend_on_each_other_are_gone_through() {
    for (m, n, a, b) in [(5, 9, 4, 3), (1, 1, 3, 3), (9, 30, 2, 7), (2, 3, 1, 1)] {
        let totals = totals(TANGLED, &[], &[&[m, n], &[a, b]]);
        let (mut turns, mut elements) = (0, 0);
        for i in 0..a {
            for j in 0..b {
                for p in 0..=i {
                    for q in p..3 {
                        turns += 1;
                        let inside = |start: usize, tile: usize, extent: usize| {
                            (start..start + tile).filter(|&at| at < extent).count()
                        };
                        elements += inside(p, 2, m) * inside((j + q) * 2, 4, n);
                    }
                }
            }
        }
        assert_eq!(totals.loading_turns, turns, "{m} {n} {a} {b}");
        assert_eq!(traffic(&totals, "x")[0], 4 * elements as u64, "{m} {n} {a} {b}");
        assert_eq!(totals.flops(), turns * (6 + 1 + 1));
        assert!(totals.is_exact());
    }
}

#[test]
fn tiles_of_persistent_kernels_count_once() {
    let source = "\
kernel @double(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [8] : partition<n x f32, [8]>
  %vy = partition %y [8] : mut partition<n x f32, [8]>
  %pad = constant 0.0 : f32
  tiles %vy row_major {
    %i = block_index %vy : index
    %t = load_masked %vx[%i] pad %pad : tile<8 x f32>
    %d = add %t, %t : tile<8 x f32>
    store_masked %vy, %d
  }
}
";
    let totals = totals(source, &[], &[&[100], &[100]]);
    assert_eq!((totals.tiles, totals.read(), totals.written(), totals.flops()), (13, 400, 400, 104));
}

/// The blocks of a persistent kernel aren't its tiles, and how many there are is the launch's choice.
#[test]
fn turns_by_the_blocks_of_persistent_kernels_are_an_estimate() {
    for block in ["block_id axis 0", "block_count axis 0"] {
        let source = format!(
            "\
kernel @turns(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {{
  %vx = partition %x [8] : partition<n x f32, [8]>
  %vy = partition %y [8] : mut partition<n x f32, [8]>
  %pad = constant 0.0 : f32
  %zero = constant 0 : index
  tiles %vy row_major {{
    %i = block_index %vy : index
    %e = {block} : index
    %t = load_masked %vx[%i] pad %pad : tile<8 x f32>
    %s = for %p = %zero to %e carry (%a = %t) : tile<8 x f32> {{
      %b = add %a, %t : tile<8 x f32>
      yield %b
    }}
    store_masked %vy, %s
  }}
}}
"
        );
        let totals = totals(&source, &[], &[&[64], &[64]]);
        assert!(matches!(totals.estimates[..], [Estimate::Turns(_)]), "{block}: {:?}", totals.estimates);
        assert!(!totals.is_exact());
    }
}

#[test]
fn what_data_decides_is_an_estimate() {
    let source = "\
kernel @data(%count: index, %x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [8] : partition<n x f32, [8]>
  %vy = partition %y [8] : mut partition<n x f32, [8]>
  %i = block_index %vy : index
  %zero = constant 0 : index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i] pad %pad : tile<8 x f32>
  %s = for %p = %zero to %count carry (%a = %t) : tile<8 x f32> {
    %b = add %a, %t : tile<8 x f32>
    yield %b
  }
  %more = gt %count, %i : bool
  %c = if %more : tile<8 x f32> {
    %d = mul %s, %t : tile<8 x f32>
    %e = mul %d, %t : tile<8 x f32>
    yield %e
  } else {
    %f = mul %s, %s : tile<8 x f32>
    yield %f
  }
  store_masked %vy, %c
}
";
    let totals = totals(source, &[], &[&[16], &[16]]);
    // One turn of the loop, and the side of the branch that does more, in two blocks.
    assert_eq!(totals.flops(), 2 * (8 + 16));
    assert!(matches!(totals.estimates[..], [Estimate::Turns(_), Estimate::Branch(_)]));
}

/// A triangle of more rows than are gone through.
#[test]
fn a_long_triangle_is_an_estimate() {
    let source = "\
kernel @triangle(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [1] : partition<n x f32, [1]>
  %vy = partition %y [1] : mut partition<n x f32, [1]>
  %i = block_index %vy : index
  %zero = constant 0 : index
  %pad = constant 0.0 : f32
  %none = splat %pad : tile<1 x f32>
  %sum = for %p = %zero to %i carry (%s = %none) : tile<1 x f32> {
    %t = load_masked %vx[%p] pad %pad : tile<1 x f32>
    %u = add %s, %t : tile<1 x f32>
    yield %u
  }
  store_masked %vy, %sum
}
";
    let at = |n: usize| totals(source, &[], &[&[n], &[n]]);
    let short = at(60_000);
    assert!(short.is_exact());
    assert_eq!((short.loading_turns, short.read()), (60_000 * 59_999 / 2, 4 * 60_000 * 59_999 / 2));
    let long = at(1 << 20);
    assert_eq!(long.estimates, [Estimate::TooMany]);
    let exact = (1u64 << 20) * ((1 << 20) - 1) / 2;
    assert!(long.loading_turns.abs_diff(exact) < exact / 1000, "{} of {exact}", long.loading_turns);
}

/// A kernel that adds up tiles of `x`, whose loop ends at what `body` gives as `%end`.
fn summing(body: &str) -> String {
    format!(
        "\
kernel @summing(%x: tensor<n x f32>, %y: mut tensor<m x f32>) {{
  %vx = partition %x [4] : partition<n x f32, [4]>
  %vy = partition %y [4] : mut partition<m x f32, [4]>
  %i = block_index %vy : index
  %zero = constant 0 : index
  %three = constant 3 : index
  %pad = constant 0.0 : f32
  %none = splat %pad : tile<4 x f32>
{body}  %sum = for %p = %zero to %end carry (%s = %none) : tile<4 x f32> {{
    %t = load_masked %vx[%p] pad %pad : tile<4 x f32>
    %u = add %s, %t : tile<4 x f32>
    yield %u
  }}
  store_masked %vy, %sum
}}
"
    )
}

#[test]
fn every_operator_of_indices_has_its_turns() {
    type Turns = fn(u64) -> u64;
    let operators: [(&str, Turns); 9] = [
        ("and", |i| i & 3),
        ("or", |i| i | 3),
        ("xor", |i| i ^ 3),
        ("rem", |i| i % 3),
        ("rem_euclid", |i| i % 3),
        ("saturating_sub", |i| i.saturating_sub(3)),
        ("div_ceil", |i| i.div_ceil(3)),
        ("div_floor", |i| i / 3),
        ("min", |i| i.min(3)),
    ];
    for (operator, turns) in operators {
        let source = summing(&format!("  %end = {operator} %i, %three : index\n"));
        let totals = totals(&source, &[], &[&[1000], &[44]]);
        let expected = (0..11).map(turns).sum();
        assert_eq!((totals.loading_turns, totals.is_exact()), (expected, true), "{operator}");
        assert_eq!(traffic(&totals, "x"), [16 * expected, 0], "{operator}");
    }
}

/// What no form says, and what no number holds: one turn for each block, and nobody calls it exact.
#[test]
fn ends_that_nobody_knows_are_estimates() {
    let unknown = totals(&summing("  %end = count_ones %i : index\n"), &[], &[&[8], &[8]]);
    assert!(matches!(unknown.estimates[..], [Estimate::Turns(_), Estimate::Indices(_)]));
    let large = totals(&summing("  %end = extent n * n * n * n : index\n"), &[], &[&[1 << 20], &[8]]);
    assert_eq!((large.loading_turns, large.estimates), (2, vec![Estimate::TooMany]));
}

/// Both sides go through the same tiles: these are read once, and what one side does more counts.
#[test]
fn loops_on_both_sides_of_a_branch_count_once() {
    let side = |turn: &str| {
        format!(
            "    %s_{turn} = for %p_{turn} = %zero to %tiles carry (%a_{turn} = %none) : tile<4 x f32> {{
      %t_{turn} = load_masked %vx[%p_{turn}] pad %pad : tile<4 x f32>
      %{turn} = {turn} %a_{turn}, %t_{turn} : tile<4 x f32>
      %u_{turn} = add %{turn}, %t_{turn} : tile<4 x f32>
      yield %u_{turn}
    }}
    yield %s_{turn}
"
        )
    };
    let source = format!(
        "\
kernel @branches(%flag: bool, %x: tensor<n x f32>, %y: mut tensor<m x f32>) {{
  %vx = partition %x [4] : partition<n x f32, [4]>
  %vy = partition %y [4] : mut partition<m x f32, [4]>
  %zero = constant 0 : index
  %pad = constant 0.0 : f32
  %none = splat %pad : tile<4 x f32>
  %tiles = extent ceil_div(n, 4) : index
  %sum = if %flag : tile<4 x f32> {{
{}  }} else {{
{}  }}
  store_masked %vy, %sum
}}
",
        side("max"),
        side("mul")
    );
    let totals = totals(&source, &[], &[&[100], &[8]]);
    // Of two blocks, 25 turns with two operations on four elements.
    assert_eq!((totals.flops(), totals.loading_turns), (2 * 25 * 2 * 4, 2 * 25));
    assert_eq!(traffic(&totals, "x"), [2 * 400, 0]);
    assert!(matches!(totals.estimates[..], [Estimate::Branch(_)]));
}

#[test]
fn atomic_loads_write_nothing_and_stores_read_nothing() {
    let source = |op: &str| {
        format!(
            "\
kernel @touch(%x: mut tensor<n x i32>) grid [2] {{
  %at = iota 0 : tile<8 x i32>
  {op}
}}
"
        )
    };
    for (op, expected) in [
        ("%old = atomic load relaxed device %x[%at] : tile<8 x i32>", [64, 0]),
        ("atomic store relaxed device %x[%at], %at", [0, 64]),
        ("%old = atomic add relaxed device %x[%at], %at : tile<8 x i32>", [64, 64]),
    ] {
        assert_eq!(traffic(&totals(&source(op), &[], &[&[8]]), "x"), expected, "{op}");
    }
}

/// Of tiles that are left out nothing is read or written.
#[test]
fn the_first_tiles_are_a_part_of_all() {
    let source = "\
kernel @double(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [8] : partition<n x f32, [8]>
  %vy = partition %y [8] : mut partition<n x f32, [8]>
  %pad = constant 0.0 : f32
  tiles %vy row_major {
    %i = block_index %vy : index
    %t = load_masked %vx[%i] pad %pad : tile<8 x f32>
    %d = add %t, %t : tile<8 x f32>
    store_masked %vy, %d
  }
}
";
    let instance = Instance::parse(source, &[]).unwrap();
    let abi = KernelAbi::of(&instance);
    for (first, tiles) in [(0, 0), (3, 3), (16, 16), (17, 16)] {
        let sharing = Sharing { blocks: None, first_tiles: Some(first) };
        let bound = abi.share(abi.bind(&[&[128], &[128]]).unwrap(), sharing, 4).unwrap();
        let totals = Counts::of(&instance).total(&abi, &bound);
        assert_eq!((totals.tiles, totals.flops()), (tiles, 8 * tiles), "{first}");
        assert_eq!((totals.read(), totals.written()), (32 * tiles, 32 * tiles), "{first}");
        assert_eq!(totals.is_exact(), tiles == 16, "{first}");
    }
}

/// Memory has an element that repeats once, and none of what has no elements, however long its axes are.
#[test]
fn memory_is_that_of_elements_that_are_there() {
    let source = "\
kernel @copy(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [1, 4] : partition<m x n x f32, [1, 4]>
  %vy = partition %y [1, 4] : mut partition<m x n x f32, [1, 4]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<1 x 4 x f32>
  store_masked %vy, %t
}
";
    let kernel = VerifiedKernel::parse(source).unwrap();
    let of = |extents: [usize; 2], strides: [i64; 2]| {
        let repeated = GivenTensor { extents: &extents, strides: Some(&strides), offset: 0 };
        let layout = ArgumentLayout::of(&repeated).unwrap();
        let instance = specialize_for(&kernel, &Vec::new(), &[(0, layout)]).unwrap();
        let abi = KernelAbi::of(&instance);
        let given = [repeated, GivenTensor::dense(&extents)];
        Counts::of(&instance).total(&abi, &abi.bind_tensors(&given, &|_| None).unwrap())
    };
    let rows = of([6, 8], [0, 1]);
    assert_eq!((traffic(&rows, "x"), rows.tensors[0].bytes), ([192, 0], 32));
    assert_eq!((rows.compulsory(), rows.compulsory_lines(32)), (32 + 192, 32 + 192));
    for extents in [[0, 1 << 62], [1 << 62, 0]] {
        let instance = Instance::parse(source, &[]).unwrap();
        let abi = KernelAbi::of(&instance);
        let totals = Counts::of(&instance).total(&abi, &abi.bind(&[&extents, &extents]).unwrap());
        assert_eq!((totals.tiles, totals.compulsory_lines(32), totals.touched(32)), (0, 0, 0), "{extents:?}");
    }
}

/// A random number is as much as some dozens of additions.
#[test]
fn random_numbers_are_counted_by_their_rounds() {
    let source = "\
kernel @draw(%seed: u64, %y: mut tensor<n x u64>) {
  %vy = partition %y [8] : mut partition<n x u64, [8]>
  %at = iota 0 : tile<8 x u64>
  %seeds = splat %seed : tile<8 x u64>
  %drawn = philox %at, %seeds : tile<8 x u64>
  store_masked %vy, %drawn
}
";
    let totals = totals(source, &[], &[&[20]]);
    assert_eq!(totals.operations[&(Operation::Other, DType::U64)], 3 * 8 * 64);
    assert_eq!(totals.flops(), 0);
}
