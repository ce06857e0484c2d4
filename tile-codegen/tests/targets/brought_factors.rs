//! Right factors that warpgroups bring to shared memory on simulated threads: computed, turned, widened, carried from turn to turn
//! and used for something else besides, in both orders of asynchronous work.

use crate::pipelines::check;
use crate::support::{instance, sample};
use tile_ir::array::Elements;
use tile_ir::gpu::schedule;
use tile_ir::{Array, DType, TargetDesc, passes};
use tile_test_edit::Edit;

/// c = a·f(b), with `$made` the ops between the load of b's tile and the product.
const MATMUL: &str = "\
kernel @matmul<M, N, K>(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x f32>) where \"k % 8 == 0\": rem(k, 8) eq 0, \"n % 8 == 0\": rem(n, 8) eq 0 {
  %va = partition %a [M, K] : partition<m x k x bf16, [M, K]>
  %vb = partition %b [K, N] : partition<k x n x bf16, [K, N]>
  %vc = partition %c [M, N] : mut partition<m x n x f32, [M, N]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<M x N x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(k, K) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<M x N x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<M x K x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<K x N x bf16>
$made    %next = mma %ta, %made, %acc : tile<M x N x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

const NEGATED: &str = "    %made = neg %tb : tile<K x N x bf16>\n";

fn matmul(made: &str) -> String {
    MATMUL.edit("$made", made)
}

/// How right factors are brought, as the schedule's text has it.
fn brought(source: &str, constants: &[(&str, usize)]) -> Vec<String> {
    let instance = passes::optimize(instance(source, constants));
    let scheduled = schedule(instance, TargetDesc::named("sm_90a").unwrap(), None);
    assert!(scheduled.remarks().is_empty(), "{:?}", scheduled.remarks());
    let text = tile_ir::gpu::print(&scheduled);
    text.lines().filter_map(|line| line.strip_prefix("; a right factor is ")).map(str::to_owned).collect()
}

/// Runs it on sizes that tiles divide and on others, with so many threads to a block.
fn check_all(source: &str, [m, n, k]: [usize; 3], threads: u32) {
    let constants = [("M", m), ("N", n), ("K", k)];
    // The last has fewer rows than a tile, and a loop without turns.
    for [rows, columns, depth] in [[m, n, 3 * k], [m + 3, n + 8, 2 * k + 8], [5, 8, 0]] {
        let arguments = [
            sample(DType::BF16, &[rows, depth], 1),
            sample(DType::BF16, &[depth, columns], 2),
            sample(DType::F32, &[rows, columns], 9),
        ];
        check(source, &constants, &arguments, threads, 1e-5);
    }
}

#[test]
fn that_are_computed_element_by_element() {
    // A producer and one or two warpgroups of consumers.
    for ([m, n, k], threads) in [
        ([64, 64, 64], 256),
        ([128, 128, 32], 384),
        ([128, 16, 16], 384),
        ([64, 8, 32], 256),
        ([128, 256, 64], 384),
    ] {
        check_all(&matmul(NEGATED), [m, n, k], threads);
    }
}

/// Where the product can't go on into the next turn: its sums are looked at in every turn.
#[test]
fn that_are_computed_for_sums_in_use() {
    let source = matmul(NEGATED).edit(
        "    yield %next\n",
        "    %one = constant 1.0 : f32\n    %ones = splat %one : tile<M x N x f32>\n    \
         %more = add %next, %ones : tile<M x N x f32>\n    yield %more\n",
    );
    check_all(&source, [128, 64, 32], 384);
}

/// The left factor of one of two products that share a right one lies in registers.
#[test]
fn beside_left_factors_in_registers() {
    let made = "    %made = neg %tb : tile<K x N x bf16>\n    %one = constant 1.0 : bf16\n    \
                %ones = splat %one : tile<M x K x bf16>\n    %plain = mma %ta, %made, %acc : tile<M x N x f32>\n";
    let source = matmul(made).edit("%next = mma %ta, %made, %acc", "%next = mma %ones, %made, %plain");
    assert_eq!(brought(&source, &[("M", 64), ("N", 64), ("K", 32)]).len(), 2);
    check_all(&source, [64, 64, 32], 256);
}

#[test]
fn that_are_turned_after_they_were_computed() {
    let source = matmul(
        "    %less = neg %tb : tile<N x K x bf16>\n    %made = permute %less [1, 0] : tile<K x N x bf16>\n",
    )
    .edit("%b: tensor<k x n x bf16>", "%b: tensor<n x k x bf16>")
    .edit("partition<k x n x bf16, [K, N]>", "partition<n x k x bf16, [N, K]>")
    .edit("%b [K, N]", "%b [N, K]")
    .edit("%vb[%p, %j] pad %pad : tile<K x N x bf16>", "%vb[%j, %p] pad %pad : tile<N x K x bf16>");
    let constants = [("M", 128), ("N", 64), ("K", 32)];
    assert_eq!(brought(&source, &constants).len(), 1);
    for [rows, columns, depth] in [[128, 64, 96], [131, 72, 72]] {
        let arguments = [
            sample(DType::BF16, &[rows, depth], 1),
            sample(DType::BF16, &[columns, depth], 2),
            sample(DType::F32, &[rows, columns], 9),
        ];
        check(&source, &constants, &arguments, 384, 1e-5);
    }
}

/// Bytes with a scale for each column, as quantized weights are.
#[test]
fn that_are_widened_and_scaled() {
    let source = matmul(
        "    %wide = cast %tb : tile<K x N x f32>\n    %ts = load_masked %vs[%0, %j] pad %none : tile<1 x N x f32>\n    \
         %every = broadcast %ts : tile<K x N x f32>\n    %scaled = mul %wide, %every : tile<K x N x f32>\n    \
         %made = cast %scaled : tile<K x N x bf16>\n",
    )
    .edit("%b: tensor<k x n x bf16>", "%b: tensor<k x n x i8>, %s: tensor<1 x n x f32>")
    .edit(
        "  %vb = partition %b [K, N] : partition<k x n x bf16, [K, N]>\n",
        "  %vb = partition %b [K, N] : partition<k x n x i8, [K, N]>\n  \
         %vs = partition %s [1, N] : partition<1 x n x f32, [1, N]>\n",
    )
    .edit(
        "%vb[%p, %j] pad %pad : tile<K x N x bf16>",
        "%vb[%p, %j] pad %no : tile<K x N x i8>",
    )
    .edit("  %pad = ", "  %no = constant 0 : i8\n  %pad = ");
    let constants = [("M", 128), ("N", 128), ("K", 64)];
    assert_eq!(brought(&source, &constants).len(), 1);
    for [rows, columns, depth] in [[128, 128, 256], [100, 136, 200]] {
        let arguments = [
            sample(DType::BF16, &[rows, depth], 1),
            sample(DType::I8, &[depth, columns], 2),
            sample(DType::F32, &[1, columns], 3),
            sample(DType::F32, &[rows, columns], 9),
        ];
        check(&source, &constants, &arguments, 384, 1e-5);
    }
}

/// Linear attention in chunks: a state is multiplied, and then added to.
const STATE: &str = "\
kernel @state(%q: tensor<t x 64 x bf16>, %k: tensor<t x 64 x bf16>, %v: tensor<t x e x bf16>, %o: mut tensor<t x e x f32>) where \"e % 8 == 0\": rem(e, 8) eq 0 {
  %vq = partition %q [64, 64] : partition<t x 64 x bf16, [64, 64]>
  %vk = partition %k [64, 64] : partition<t x 64 x bf16, [64, 64]>
  %vv = partition %v [64, 32] : partition<t x e x bf16, [64, 32]>
  %vo = partition %o [64, 32] spanning [0] : mut partition<t x e x f32, [64, 32] spanning [0]>
  %first, %j = block_index %vo : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<64 x 32 x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(t, 64) : index
  %last = for %p = %0 to %end carry (%state = %zero) : tile<64 x 32 x f32> {
    %tq = load_masked %vq[%p, %0] pad %pad : tile<64 x 64 x bf16>
    %tk = load_masked %vk[%p, %0] pad %pad : tile<64 x 64 x bf16>
    %tv = load_masked %vv[%p, %j] pad %pad : tile<64 x 32 x bf16>
    %half = constant 0.5 : f32
    %halves = splat %half : tile<64 x 32 x f32>
    %less = mul %state, %halves : tile<64 x 32 x f32>
    %narrow = cast %less : tile<64 x 32 x bf16>
    %to = mma %tq, %narrow, %zero : tile<64 x 32 x f32>
    %turned = permute %tk [1, 0] : tile<64 x 64 x bf16>
    %next = mma %turned, %tv, %less : tile<64 x 32 x f32>
    store_masked %vo[%p], %to
    yield %next
  }
}
";

/// Queries, keys, values and the output, of so many rows.
fn of_state(rows: usize, columns: usize) -> [Array; 4] {
    [
        sample(DType::BF16, &[rows, 64], 1),
        sample(DType::BF16, &[rows, 64], 2),
        sample(DType::BF16, &[rows, columns], 3),
        sample(DType::F32, &[rows, columns], 9),
    ]
}

#[test]
fn that_are_carried_from_turn_to_turn() {
    assert_eq!(brought(STATE, &[]).len(), 1);
    for (rows, columns) in [(64, 32), (200, 72)] {
        check(STATE, &[], &of_state(rows, columns), 256, 1e-2);
    }
}

/// What was loaded is multiplied, and weighed besides; a branch that isn't always taken has the product of it.
#[test]
fn that_threads_use_besides() {
    let source = STATE.edit(
        "    %next = mma %turned, %tv, %less",
        "    %double = add %tv, %tv : tile<64 x 32 x bf16>\n    \
         %wide = cast %double : tile<64 x 32 x f32>\n    \
         %more = add %less, %wide : tile<64 x 32 x f32>\n    \
         %next = mma %turned, %tv, %more",
    );
    assert_eq!(brought(&source, &[]).len(), 2);
    for (rows, columns) in [(64, 32), (200, 72)] {
        check(&source, &[], &of_state(rows, columns), 256, 1e-2);
    }
}

/// A number that says which tile is copied is the producer's, too, which knows that of its own turn: it isn't loaded ahead
/// with what consumers bring.
#[test]
fn beside_tiles_at_loaded_places() {
    let source = matmul(NEGATED)
        .edit("%c: mut tensor", "%pages: tensor<p x i32>, %c: mut tensor")
        .edit("  %i, %j =", "  %vp = partition %pages [1] : partition<p x i32, [1]>\n  %i, %j =")
        .edit("  %none =", "  %first = constant 0 : i32\n  %none =")
        .edit(
            "    %ta = load_masked %va[%i, %p]",
            "    %tp = load_masked %vp[%p] pad %first : tile<1 x i32>\n    %page = item %tp : i32\n    \
             %at = cast %page : index\n    %ta = load_masked %va[%i, %at]",
        );
    let constants = [("M", 64), ("N", 64), ("K", 32)];
    assert_eq!(brought(&source, &constants).len(), 1);
    let arguments = [
        sample(DType::BF16, &[67, 96], 1),
        sample(DType::BF16, &[96, 72], 2),
        Array::new(DType::I32, vec![3], Elements::Int(vec![2, 0, 1])),
        sample(DType::F32, &[67, 72], 9),
    ];
    check(&source, &constants, &arguments, 256, 1e-5);
}
