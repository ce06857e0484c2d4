//! Loops whose tiles are copied ahead of warpgroups that multiply them, on simulated threads: every way in which a factor
//! may lie in memory, edges that are masked, fewer turns than stages and more, in both orders of asynchronous work.

use crate::eight_bits::of_two_kinds;
use crate::support::{Memory, close, compile_simt, instance, sample};
use tile_codegen::simt::{self, Mode, Timing};
use tile_codegen::{Options, compile};
use tile_ir::gpu::schedule;
use tile_ir::{Array, DType, Instance, TargetDesc, interp, passes};
use tile_test_edit::Edit;

/// A target, and how many threads a block must have there.
pub(crate) type On<'a> = (&'a str, u32);

/// The arguments after a run on simulated threads.
fn run(instance: &Instance, arguments: &[Array], (target, threads): On<'_>, timing: Timing) -> Vec<Array> {
    let target = TargetDesc::named(target).unwrap();
    let scheduled = schedule(passes::optimize(instance.clone()), target, None);
    let remarks = scheduled.remarks();
    assert!(!scheduled.pipelines().is_empty(), "{} has no pipeline: {remarks:?}", instance.name);
    let kernel = compile_simt(instance, target, None);
    assert_eq!(kernel.threads(), threads, "threads of a block of {}", instance.name);
    let memory = Memory::of(instance, arguments);
    // So that a block has several places of the grid.
    let blocks = if scheduled.shares_grid() { memory.blocks.min(2) } else { memory.blocks };
    let mode = Mode { timing, counted: false };
    // SAFETY: the slots are as the instance's ABI says, and tensors are as large as their shapes.
    let result = unsafe { kernel.run_as(&memory.slots, blocks, mode) };
    result.unwrap_or_else(|error| panic!("{error} in {} ({timing:?})", instance.name));
    memory.arrays(arguments)
}

pub(crate) fn check(
    source: &str,
    constants: &[(&str, usize)],
    arguments: &[Array],
    threads: u32,
    tolerance: f64,
) {
    check_on(("sm_90a", threads), source, constants, arguments, tolerance);
}

pub(crate) fn check_on(
    on: On<'_>,
    source: &str,
    constants: &[(&str, usize)],
    arguments: &[Array],
    tolerance: f64,
) {
    let instance = instance(source, constants);
    let mut expected = arguments.to_vec();
    interp::run(&instance, &mut expected).unwrap();
    for instance in [instance].into_iter().chain(pairs(on.0, source, constants, arguments)) {
        for timing in [Timing::Late, Timing::Early] {
            let actual = run(&instance, arguments, on, timing);
            for (actual, expected) in actual.iter().zip(&expected) {
                close(
                    actual,
                    expected,
                    tolerance,
                    &format!("{timing:?} pairs {:?} {source}", instance.pairs),
                );
            }
        }
    }
}

/// The kernel with blocks in pairs along each axis of its grid along which there are pairs that share a factor.
fn pairs(target: &str, source: &str, constants: &[(&str, usize)], arguments: &[Array]) -> Vec<Instance> {
    let bound = Memory::of(&instance(source, constants), arguments).bound;
    let space = bound.shared.map_or(bound.grid, |shared| shared.space);
    let even = (0..space.len()).filter(|&axis| space[axis].is_multiple_of(2));
    let along =
        even.map(|axis| instance(&source.replacen(" {\n", &format!(" pairs {axis} {{\n"), 1), constants));
    let target = TargetDesc::named(target).unwrap();
    along.filter(|it| schedule(passes::optimize(it.clone()), target, None).cluster() == 2).collect()
}

/// What is checked here is checked of pairs, too.
#[test]
fn products_of_even_grids_run_in_pairs() {
    let source = matmul(HALF, "mk", "kn", [64, 64, 64]);
    let pairs_of = |[m, n, k]: [usize; 3]| {
        let arguments = [[m, k], [k, n], [m, n]];
        let formats = [DType::BF16, DType::BF16, DType::F32];
        let arguments: Vec<Array> =
            arguments.iter().zip(formats).map(|(shape, format)| sample(format, shape, 1)).collect();
        pairs("sm_90a", &source, &[], &arguments)
            .iter()
            .map(|instance| instance.pairs.unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(pairs_of([72, 136, 200]), [0]);
    assert_eq!(pairs_of([72, 120, 64]), [0, 1]);
    assert_eq!(pairs_of([64, 72, 64]), [1]);
    assert!(pairs_of([64, 136, 64]).is_empty());
}

/// c = a·b, with views of the factors that make matrices of them.
pub(crate) fn matmul([dtype, sum]: [DType; 2], a: &str, b: &str, [m, n, k]: [usize; 3]) -> String {
    let zero = |dtype: DType| if dtype.is_float() { "0.0" } else { "0" };
    let step = 16 / dtype.bytes();
    format!(
        "kernel @matmul(%a: tensor<{a_type} x {dtype}>, %b: tensor<{b_type} x {dtype}>, %c: mut tensor<m x n x {sum}>) \
         where \"m % {step} == 0\": rem(m, {step}) eq 0, \"n % {step} == 0\": rem(n, {step}) eq 0, \
         \"k % {step} == 0\": rem(k, {step}) eq 0 {{
  %va = partition %a [{a_tile}] : partition<{a_type} x {dtype}, [{a_tile}]>
  %vb = partition %b [{b_tile}] : partition<{b_type} x {dtype}, [{b_tile}]>
  %vc = partition %c [{m}, {n}] : mut partition<m x n x {sum}, [{m}, {n}]>
  %i, %j = block_index %vc : index, index
  %pad = constant {pad} : {dtype}
  %none = constant {none} : {sum}
  %zero = splat %none : tile<{m} x {n} x {sum}>
  %0 = constant 0 : index
  %end = extent ceil_div(k, {k}) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<{m} x {n} x {sum}> {{
    %la = load_masked %va[{a_index}] pad %pad : tile<{a_loaded} x {dtype}>
    %lb = load_masked %vb[{b_index}] pad %pad : tile<{b_loaded} x {dtype}>
{turns}    %next = mma {ta}, {tb}, %acc : tile<{m} x {n} x {sum}>
    yield %next
  }}
  store_masked %vc, %sum
}}
",
        a_type = if a == "mk" { "m x k" } else { "k x m" },
        b_type = if b == "kn" { "k x n" } else { "n x k" },
        a_tile = if a == "mk" { format!("{m}, {k}") } else { format!("{k}, {m}") },
        b_tile = if b == "kn" { format!("{k}, {n}") } else { format!("{n}, {k}") },
        a_loaded = if a == "mk" { format!("{m} x {k}") } else { format!("{k} x {m}") },
        b_loaded = if b == "kn" { format!("{k} x {n}") } else { format!("{n} x {k}") },
        a_index = if a == "mk" { "%i, %p" } else { "%p, %i" },
        b_index = if b == "kn" { "%p, %j" } else { "%j, %p" },
        turns = [
            if a == "mk" { String::new() } else { format!("    %ta = permute %la [1, 0] : tile<{m} x {k} x {dtype}>\n") },
            if b == "kn" { String::new() } else { format!("    %tb = permute %lb [1, 0] : tile<{k} x {n} x {dtype}>\n") },
        ]
        .concat(),
        ta = if a == "mk" { "%la" } else { "%ta" },
        tb = if b == "kn" { "%lb" } else { "%tb" },
        pad = zero(dtype),
        none = zero(sum),
    )
}

/// The arguments of a product of these extents, whose factors lie so.
pub(crate) fn arguments_of_product(
    [dtype, sum]: [DType; 2],
    a: &str,
    b: &str,
    [m, n, k]: [usize; 3],
) -> [Array; 3] {
    let a_shape = if a == "mk" { [m, k] } else { [k, m] };
    let b_shape = if b == "kn" { [k, n] } else { [n, k] };
    [sample(dtype, &a_shape, 1), sample(dtype, &b_shape, 2), sample(sum, &[m, n], 3)]
}

fn product(formats: [DType; 2], a: &str, b: &str, tile: [usize; 3], extents: [usize; 3], threads: u32) {
    let source = matmul(formats, a, b, tile);
    check(&source, &[], &arguments_of_product(formats, a, b, extents), threads, 0.0);
}

pub(crate) const HALF: [DType; 2] = [DType::BF16, DType::F32];

#[test]
fn factors_of_either_direction() {
    for a in ["mk", "km"] {
        for b in ["kn", "nk"] {
            product(HALF, a, b, [64, 64, 64], [72, 136, 200], 256);
        }
    }
}

#[test]
fn rows_shorter_and_longer_than_a_swizzle() {
    product(HALF, "mk", "kn", [64, 32, 32], [64, 40, 96], 256);
    product(HALF, "mk", "nk", [64, 16, 16], [64, 16, 80], 256);
    product([DType::F16, DType::F32], "km", "kn", [128, 128, 32], [136, 128, 64], 384);
    product(HALF, "mk", "kn", [64, 96, 64], [64, 96, 128], 256);
}

#[test]
fn two_warpgroups_share_the_rows() {
    product(HALF, "mk", "kn", [128, 128, 64], [136, 136, 584], 384);
    product(HALF, "km", "nk", [256, 64, 32], [264, 64, 64], 384);
}

#[test]
fn bytes_by_their_rows() {
    product([DType::I8, DType::I32], "mk", "nk", [64, 32, 64], [80, 48, 144], 256);
    product([DType::U8, DType::I32], "mk", "nk", [128, 64, 128], [128, 64, 128], 384);
    product([DType::F8E4M3FN, DType::F32], "mk", "nk", [64, 32, 64], [80, 48, 144], 256);
    product([DType::F8E5M2, DType::F32], "mk", "nk", [128, 64, 128], [128, 64, 128], 384);
}

/// The right factor is of another kind of 8-bit floats than the left one.
#[test]
fn products_of_two_kinds_of_8_bit_floats() {
    let [narrow, wide] = [DType::F8E4M3FN, DType::F8E5M2];
    for [left, right] in [[narrow, wide], [wide, narrow]] {
        for (tile, [m, n, k], threads) in
            [([64, 32, 64], [80, 48, 144], 256), ([128, 64, 128], [144, 64, 400], 384)]
        {
            let source = of_two_kinds([left, right], "nk", tile);
            let arguments =
                [sample(left, &[m, k], 1), sample(right, &[n, k], 2), sample(DType::F32, &[m, n], 3)];
            check(&source, &[], &arguments, threads, 0.0);
            let artifact =
                compile(&instance(&source, &[]), TargetDesc::named("sm_90a").unwrap(), &Options::default());
            let text = String::from_utf8(artifact.unwrap().code.bytes().to_vec()).unwrap();
            let kind = |dtype| if dtype == narrow { "e4m3" } else { "e5m2" };
            let name = format!("n{}k32.f32.{}.{} ", tile[1], kind(left), kind(right));
            assert!(text.contains(&name), "no {name} in\n{text}");
        }
    }
}

/// There are fewer instructions for integers than for floats (PTX ISA, "wgmma.mma_async"): by 40 columns `mma.sync` multiplies.
#[test]
fn integers_have_columns_that_there_are_instructions_for() {
    let target = TargetDesc::named("sm_90a").unwrap();
    for (dtype, columns, has_one) in
        [(DType::I8, 48, true), (DType::I8, 40, false), (DType::U8, 24, true), (DType::U8, 56, false)]
    {
        let source = matmul([dtype, DType::I32], "mk", "nk", [64, columns, 64]);
        if has_one {
            let [m, n, k] = [80, 2 * columns, 144];
            let factors = [sample(dtype, &[m, k], 1), sample(dtype, &[n, k], 2)];
            let arguments = [&factors[..], &[sample(DType::I32, &[m, n], 3)]].concat();
            check(&source, &[], &arguments, 256, 0.0);
        }
        let artifact = compile(&instance(&source, &[]), target, &Options::default()).unwrap();
        let text = String::from_utf8(artifact.code.bytes().to_vec()).unwrap();
        let [by_warpgroups, by_warps] = ["wgmma.mma_async", "mma.sync"].map(|name| text.contains(name));
        assert_eq!([by_warpgroups, by_warps], [has_one, !has_one], "{text}");
    }
}

/// Both sets of sums are more than a thread has registers for: half of the columns at a time, or the rows of one
/// instruction.
#[test]
fn floats_of_8_bits_in_parts() {
    let formats = [DType::F8E4M3FN, DType::F32];
    product(formats, "mk", "nk", [128, 256, 64], [144, 272, 208], 384);
    product(formats, "mk", "nk", [64, 256, 64], [64, 272, 64], 256);
    product(formats, "mk", "nk", [256, 128, 64], [272, 128, 144], 384);
}

/// Each turn's sums begin at zero.
#[test]
fn floats_of_8_bits_by_their_rows() {
    product([DType::F8E4M3FN, DType::F32], "mk", "nk", [64, 32, 64], [80, 48, 144], 256);
    product([DType::F8E5M2, DType::F32], "mk", "nk", [128, 64, 128], [144, 64, 400], 384);
}

/// Sums go on from turn to turn, and tiles need no second set of them.
#[test]
fn floats_of_8_bits_with_fast_accumulation() {
    for (tile, [m, n, k], threads) in
        [([64, 32, 64], [80, 48, 144], 256), ([128, 256, 64], [144, 272, 208], 384)]
    {
        let source = matmul([DType::F8E4M3FN, DType::F32], "mk", "nk", tile);
        let source = source.replacen(" {\n", " fast_accumulation {\n", 1);
        let arguments = arguments_of_product([DType::F8E4M3FN, DType::F32], "mk", "nk", [m, n, k]);
        check(&source, &[], &arguments, threads, 0.0);
    }
}

#[test]
fn no_turns_at_all() {
    product(HALF, "mk", "kn", [64, 64, 64], [64, 64, 0], 256);
}

/// A tile of another tensor, in a format of its own, that is added to the sums: it is loaded to where they lie.
#[test]
fn a_residual_is_added() {
    check(&with_residual(), &[], &arguments_with_residual(), 384, 0.0);
}

pub(crate) fn arguments_with_residual() -> [Array; 4] {
    let [m, n, k] = [136, 72, 200];
    [
        sample(DType::BF16, &[m, k], 1),
        sample(DType::BF16, &[n, k], 2),
        sample(DType::BF16, &[m, n], 3),
        sample(DType::F32, &[m, n], 4),
    ]
}

/// A product of 128×64, to which that tile is added.
pub(crate) fn with_residual() -> String {
    matmul(HALF, "mk", "nk", [128, 64, 64])
        .edit("%c: mut tensor", "%d: tensor<m x n x bf16>, %c: mut tensor")
        .edit(
            "  %i, %j = block_index",
            "  %vd = partition %d [128, 64] : partition<m x n x bf16, [128, 64]>\n  %i, %j = block_index",
        )
        .edit(
            "  store_masked %vc, %sum\n",
            "  %td = load_masked %vd[%i, %j] pad %pad : tile<128 x 64 x bf16>
  %wide = cast %td : tile<128 x 64 x f32>\n  %new = add %wide, %sum : tile<128 x 64 x f32>
  store_masked %vc, %new\n",
        )
}

/// What the kernel adds to changes threads in rounds, through what rings leave.
#[test]
fn what_was_there_is_added_in_rounds() {
    let source = matmul(HALF, "mk", "nk", [128, 256, 64]).edit(
        "  store_masked %vc, %sum\n",
        "  %old = load_masked %vc pad %none : tile<128 x 256 x f32>
  %new = add %old, %sum : tile<128 x 256 x f32>\n  store_masked %vc, %new\n",
    );
    let [m, n, k] = [136, 264, 72];
    let arguments =
        [sample(DType::BF16, &[m, k], 1), sample(DType::BF16, &[n, k], 2), sample(DType::F32, &[m, n], 3)];
    check(&source, &[], &arguments, 384, 0.0);
}

/// The sums change places through more shared memory than a pipeline leaves at first.
#[test]
fn a_pipeline_makes_room() {
    let source = matmul(HALF, "mk", "nk", [128, 128, 64]);
    let source = source.edit(
        "  store_masked %vc, %sum\n",
        "  %turned = permute %sum [1, 0] : tile<128 x 128 x f32>\n  %bits = flip %turned axis 1 : tile<128 x 128 x f32>\n  store_masked %vc, %bits\n",
    );
    let arguments = [
        sample(DType::BF16, &[128, 200], 1),
        sample(DType::BF16, &[128, 200], 2),
        sample(DType::F32, &[128, 128], 3),
    ];
    check(&source, &[], &arguments, 384, 0.0);
}

/// Softmax without the division, so that what is compared doesn't depend on its rounding.
pub(crate) const ATTENTION: &str = "\
kernel @attention(%q: tensor<h x s x 64 x bf16>, %k: tensor<h x t x 64 x bf16>, %v: tensor<h x t x 64 x bf16>, %o: mut tensor<h x s x 64 x f32>) {
  %vq = partition %q [1, 128, 64] : partition<h x s x 64 x bf16, [1, 128, 64]>
  %vk = partition %k [1, 64, 64] : partition<h x t x 64 x bf16, [1, 64, 64]>
  %vv = partition %v [1, 64, 64] : partition<h x t x 64 x bf16, [1, 64, 64]>
  %vo = partition %o [1, 128, 64] : mut partition<h x s x 64 x f32, [1, 128, 64]>
  %h, %i, %j = block_index %vo : index, index, index
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %0 = constant 0 : index
  %tq = load_masked %vq[%h, %i, %0] pad %pad : tile<1 x 128 x 64 x bf16>
  %query = reshape %tq : tile<128 x 64 x bf16>
  %none = splat %zero : tile<128 x 64 x f32>
  %end = extent ceil_div(t, 64) : index
  %sum = for %p = %0 to %end carry (%acc = %none) : tile<128 x 64 x f32> {
    %tk = load_masked %vk[%h, %p, %0] pad %pad : tile<1 x 64 x 64 x bf16>
    %tv = load_masked %vv[%h, %p, %0] pad %pad : tile<1 x 64 x 64 x bf16>
    %key = reshape %tk : tile<64 x 64 x bf16>
    %value = reshape %tv : tile<64 x 64 x bf16>
    %turned = permute %key [1, 0] : tile<64 x 64 x bf16>
    %start = splat %zero : tile<128 x 64 x f32>
    %scores = mma %query, %turned, %start : tile<128 x 64 x f32>
    %most = reduce max %scores axis 1 : tile<128 x 1 x f32>
    %all = broadcast %most : tile<128 x 64 x f32>
    %less = sub %scores, %all : tile<128 x 64 x f32>
    %weights = exp2 %less : tile<128 x 64 x f32>
    %narrow = cast %weights : tile<128 x 64 x bf16>
    %next = mma %narrow, %value, %acc : tile<128 x 64 x f32>
    yield %next
  }
  %out = reshape %sum : tile<1 x 128 x 64 x f32>
  store_masked %vo, %out
}
";

/// Queries, keys, values and outputs of [`ATTENTION`]: two heads, of no whole tiles.
pub(crate) fn arguments_of_heads() -> [Array; 4] {
    let [heads, queries, keys] = [2, 136, 200];
    [
        sample(DType::BF16, &[heads, queries, 64], 1),
        sample(DType::BF16, &[heads, keys, 64], 2),
        sample(DType::BF16, &[heads, keys, 64], 3),
        sample(DType::F32, &[heads, queries, 64], 4),
    ]
}

#[test]
fn weights_stay_in_registers() {
    check(ATTENTION, &[], &arguments_of_heads(), 384, 1e-2);
}

/// The largest score so far is carried, and sums are shrunk when it grows: the weighted values of a turn are added in
/// the next one.
pub(crate) fn online_attention(rows: usize, keys: usize, width: usize) -> String {
    format!(
        "kernel @online(%q: tensor<s x {width} x bf16>, %k: tensor<t x {width} x bf16>, %v: tensor<t x {width} x bf16>, \
         %o: mut tensor<s x {width} x f32>, %l: mut tensor<s x 1 x f32>) {{
  %vq = partition %q [{rows}, {width}] : partition<s x {width} x bf16, [{rows}, {width}]>
  %vk = partition %k [{keys}, {width}] : partition<t x {width} x bf16, [{keys}, {width}]>
  %vv = partition %v [{keys}, {width}] : partition<t x {width} x bf16, [{keys}, {width}]>
  %vo = partition %o [{rows}, {width}] : mut partition<s x {width} x f32, [{rows}, {width}]>
  %vl = partition %l [{rows}, 1] : mut partition<s x 1 x f32, [{rows}, 1]>
  %i, %j = block_index %vo : index, index
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %low = constant -16.0 : f32
  %0 = constant 0 : index
  %query = load_masked %vq[%i, %0] pad %pad : tile<{rows} x {width} x bf16>
  %none = splat %zero : tile<{rows} x {width} x f32>
  %start = splat %zero : tile<{rows} x {keys} x f32>
  %least = splat %low : tile<{rows} x 1 x f32>
  %nothing = splat %zero : tile<{rows} x 1 x f32>
  %end = extent ceil_div(t, {keys}) : index
  %sum, %last, %all = for %p = %0 to %end carry (%acc = %none, %most = %least, %total = %nothing) : \
         tile<{rows} x {width} x f32>, tile<{rows} x 1 x f32>, tile<{rows} x 1 x f32> {{
    %key = load_masked %vk[%p, %0] pad %pad : tile<{keys} x {width} x bf16>
    %value = load_masked %vv[%p, %0] pad %pad : tile<{keys} x {width} x bf16>
    %turned = permute %key [1, 0] : tile<{width} x {keys} x bf16>
    %scores = mma %query, %turned, %start : tile<{rows} x {keys} x f32>
    %largest = reduce max %scores axis 1 : tile<{rows} x 1 x f32>
    %larger = max %most, %largest : tile<{rows} x 1 x f32>
    %largests = broadcast %larger : tile<{rows} x {keys} x f32>
    %less = sub %scores, %largests : tile<{rows} x {keys} x f32>
    %weights = exp2 %less : tile<{rows} x {keys} x f32>
    %narrow = cast %weights : tile<{rows} x {keys} x bf16>
    %by = sub %most, %larger : tile<{rows} x 1 x f32>
    %shrink = exp2 %by : tile<{rows} x 1 x f32>
    %own = reduce sum %weights axis 1 : tile<{rows} x 1 x f32>
    %shrunk = mul %total, %shrink : tile<{rows} x 1 x f32>
    %more = add %shrunk, %own : tile<{rows} x 1 x f32>
    %shrinks = broadcast %shrink : tile<{rows} x {width} x f32>
    %before = mul %acc, %shrinks : tile<{rows} x {width} x f32>
    %next = mma %narrow, %value, %before : tile<{rows} x {width} x f32>
    yield %next, %larger, %more
  }}
  store_masked %vo, %sum
  store_masked %vl, %all
}}
"
    )
}

/// The same where queries don't see what lies behind them.
pub(crate) fn causal_attention(rows: usize, keys: usize, width: usize) -> String {
    let whole = format!("    %scores = mma %query, %turned, %start : tile<{rows} x {keys} x f32>\n");
    let masked = format!(
        "    %products = mma %query, %turned, %start : tile<{rows} x {keys} x f32>
    %at = mul %p, %keys : index
    %first = cast %at : i32
    %firsts = splat %first : tile<1 x {keys} x i32>
    %own = iota 1 : tile<1 x {keys} x i32>
    %column = add %own, %firsts : tile<1 x {keys} x i32>
    %across = broadcast %column : tile<{rows} x {keys} x i32>
    %down = broadcast %row : tile<{rows} x {keys} x i32>
    %seen = le %across, %down : tile<{rows} x {keys} x bool>
    %scores = select %seen, %products, %hidden : tile<{rows} x {keys} x f32>
"
    );
    let end = format!("  %end = extent ceil_div(t, {keys}) : index\n");
    let row = format!(
        "{end}  %keys = constant {keys} : index
  %rows = constant {rows} : index
  %where = mul %i, %rows : index
  %begin = cast %where : i32
  %begins = splat %begin : tile<{rows} x 1 x i32>
  %positions = iota 0 : tile<{rows} x 1 x i32>
  %row = add %positions, %begins : tile<{rows} x 1 x i32>
  %hidden = splat %low : tile<{rows} x {keys} x f32>
"
    );
    let source = online_attention(rows, keys, width).edit("%own", "%gain");
    let source = source.edit(&whole, &masked).edit(&end, &row);
    assert!(source.contains("%seen") && source.contains("%hidden"));
    source
}

/// The arguments of [`online_attention`] and [`causal_attention`]: so many queries and keys of a width, and the results.
pub(crate) fn arguments_of_attention([queries, keys, width]: [usize; 3]) -> [Array; 5] {
    [
        sample(DType::BF16, &[queries, width], 1),
        sample(DType::BF16, &[keys, width], 2),
        sample(DType::BF16, &[keys, width], 3),
        sample(DType::F32, &[queries, width], 4),
        sample(DType::F32, &[queries, 1], 5),
    ]
}

/// Tiles below, on and above the diagonal, which is in the middle of some.
#[test]
fn most_turns_hide_nothing() {
    for (rows, queries, keys) in [(128, 392, 456), (64, 136, 72)] {
        let source = causal_attention(rows, 64, 64);
        let scheduled =
            schedule(passes::optimize(instance(&source, &[])), TargetDesc::named("sm_90a").unwrap(), None);
        assert!(tile_ir::gpu::print(&scheduled).contains("    %scores = if "));
        let arguments = arguments_of_attention([queries, keys, 64]);
        check(&source, &[], &arguments, if rows == 128 { 384 } else { 256 }, 1e-2);
    }
}

/// Of no turn, of one, of two, and of more than the ring has stages; blocks have several places of the grid each.
#[test]
fn weighted_values_are_added_a_turn_later() {
    for keys in [0, 64, 128, 72, 640] {
        let source = online_attention(128, 64, 64);
        let scheduled =
            schedule(passes::optimize(instance(&source, &[])), TargetDesc::named("sm_90a").unwrap(), None);
        let late = scheduled.pipelines().all().filter(|(_, pipeline)| pipeline.late.is_some()).count();
        assert_eq!(late, 1);
        check(&source, &[], &arguments_of_attention([392, keys, 64]), 384, 1e-2);
    }
}

/// Blocks that go from tile to tile: the ring goes on where the tile before left it.
#[test]
fn tiles_of_one_block_share_a_ring() {
    let arguments = arguments_of_product(HALF, "mk", "kn", [136, 200, 328]);
    check(&persistent([64, 64, 64]), &[], &arguments, 256, 0.0);
}

/// A product whose author says that blocks go from tile to tile.
pub(crate) fn persistent(tile: [usize; 3]) -> String {
    let source = matmul(HALF, "mk", "kn", tile);
    let (before, rest) = source.split_once("  %i, %j = block_index").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    let body = rest.strip_suffix("}\n").unwrap();
    format!("{before}  tiles %vc row_major {{\n  %i, %j = block_index %vc : index, index\n{body}  }}\n}}\n")
}

/// C in bf16, in tiles of 128 rows and a depth of 64.
fn narrow_matmul(columns: usize) -> String {
    let source = matmul(HALF, "mk", "kn", [128, columns, 64]);
    let cast = format!("  %narrow = cast %sum : tile<128 x {columns} x bf16>\n  store_masked %vc, %narrow\n");
    source
        .edit("%c: mut tensor<m x n x f32>", "%c: mut tensor<m x n x bf16>")
        .edit("mut partition<m x n x f32", "mut partition<m x n x bf16")
        .edit("  store_masked %vc, %sum\n", &cast)
}

/// Sums are rounded and stored through panels; the tile's rows and columns end within one.
#[test]
fn narrow_sums_are_stored_by_copies() {
    for (columns, [m, n, k]) in [(128, [136, 192, 64]), (128, [256, 72, 16]), (192, [136, 264, 72])] {
        narrow_sums_are_stored(("sm_90a", 384), columns, [m, n, k]);
    }
}

/// Checks a product of tiles of 128 rows and so many columns, whose sums are rounded and stored through panels.
pub(crate) fn narrow_sums_are_stored(on: On<'_>, columns: usize, [m, n, k]: [usize; 3]) {
    let source = narrow_matmul(columns);
    let shapes = [[m, k], [k, n], [m, n]];
    let arguments: Vec<Array> =
        (1..).zip(&shapes).map(|(seed, shape)| sample(DType::BF16, shape, seed)).collect();
    check_on(on, &source, &[], &arguments, 0.0);
    if columns == 128 {
        stored_without_conflicts(on.0, &instance(&source, &[]), &arguments);
    }
}

/// Each panel of 64 by 64 is written by four instructions of a warp, each of four turns: 512 bytes.
fn stored_without_conflicts(target: &str, instance: &Instance, arguments: &[Array]) {
    let kernel = simt::compile(instance, TargetDesc::named(target).unwrap(), None);
    let kernel = kernel.unwrap_or_else(|error| panic!("{error}"));
    let memory = Memory::of(instance, arguments);
    let mode = Mode { timing: Timing::Early, counted: true };
    // SAFETY: the slots are as the instance's ABI says, and tensors are as large as their shapes.
    let trace = unsafe { kernel.run_as(&memory.slots, 1, mode) };
    let counters = trace.unwrap_or_else(|error| panic!("{error}")).counters.expect("they were asked for");
    let stores: Vec<_> = counters.accesses.iter().filter(|access| access.name.contains("stmatrix")).collect();
    // Two panels of a tile.
    assert_eq!(stores.len(), 8);
    for store in stores {
        assert_eq!((store.bytes, store.parts, store.least), (16, 4 * store.warps, 4 * store.warps));
    }
}
