//! Loops whose tiles all threads copy to shared memory some turns ahead, on simulated threads: every way in which a factor
//! may lie in memory, edges that are masked, fewer turns than stages and more, in both orders of asynchronous work.

use crate::pipelines::ATTENTION;
use crate::support::{Memory, close, compile_simt, instance, sample};
use tile_codegen::simt::{Mode, Timing};
use tile_codegen::{Options, compile};
use tile_ir::array::{Elements, round_float};
use tile_ir::gpu::schedule;
use tile_ir::{Array, DType, Instance, TargetDesc, interp, passes};
use tile_test_edit::Edit;

/// What a loop should have copied: so many tiles in a turn.
const BOTH: usize = 2;

/// The arguments after a run on simulated threads of a target, if a loop has so many tiles copied.
fn run(
    target: &TargetDesc,
    instance: &Instance,
    arguments: &[Array],
    copied: usize,
    timing: Timing,
) -> Vec<Array> {
    let scheduled = schedule(passes::optimize(instance.clone()), target, None);
    let copies: usize = scheduled.copies().loops().map(|(_, copied)| copied.copies.len()).sum();
    assert_eq!(copies, copied, "copied tiles of {}", instance.name);
    let kernel = compile_simt(instance, target, None);
    let memory = Memory::of(instance, arguments);
    let mode = Mode { timing, counted: false };
    // SAFETY: the slots are as the instance's ABI says, and tensors are as large as their shapes.
    let result = unsafe { kernel.run_as(&memory.slots, memory.blocks, mode) };
    result.unwrap_or_else(|error| panic!("{error} in {} ({timing:?})", instance.name));
    memory.arrays(arguments)
}

fn check(source: &str, arguments: &[Array], copied: usize, tolerance: f64) {
    check_on("sm_80", source, arguments, copied, tolerance);
}

/// Runs a kernel on a target in both orders of asynchronous work, if a loop has so many tiles copied, and compares it with
/// the evaluator.
pub(crate) fn check_on(target: &str, source: &str, arguments: &[Array], copied: usize, tolerance: f64) {
    let (target, instance) = (TargetDesc::named(target).unwrap(), instance(source, &[]));
    let mut expected = arguments.to_vec();
    interp::run(&instance, &mut expected).unwrap();
    for timing in [Timing::Late, Timing::Early] {
        let actual = run(target, &instance, arguments, copied, timing);
        for (actual, expected) in actual.iter().zip(&expected) {
            close(actual, expected, tolerance, &format!("{timing:?} {source}"));
        }
    }
}

/// How the factors lie in memory, by the names of their axes.
#[derive(Clone, Copy)]
struct Factors {
    a: &'static str,
    b: &'static str,
    dtype: DType,
    sum: DType,
    /// What divides all extents.
    step: usize,
}

/// A row-major A and B of bf16.
const PLAIN: Factors = Factors { a: "mk", b: "kn", dtype: DType::BF16, sum: DType::F32, step: 8 };

/// A factor's view: its axes with their tile extents, its index, and, where it lies the other way round, the op that
/// turns it.
fn factor(name: &str, axes: &str, turned: bool, tile: impl Fn(char) -> usize, dtype: DType) -> [String; 3] {
    let of = |axis: char| {
        if axis == 'k' {
            "%p"
        } else if axis == 'm' {
            "%i"
        } else {
            "%j"
        }
    };
    let order: Vec<char> = axes.chars().collect();
    let list = |text: &dyn Fn(char) -> String, separator: &str| {
        order.iter().map(|&axis| text(axis)).collect::<Vec<_>>().join(separator)
    };
    let tensor = format!("tensor<{} x {dtype}>", list(&|axis| axis.to_string(), " x "));
    let cut = list(&|axis| tile(axis).to_string(), ", ");
    let loaded = list(&|axis| tile(axis).to_string(), " x ");
    let index = list(&|axis| of(axis).to_owned(), ", ");
    let view = format!(
        "  %v{name} = partition %{name} [{cut}] : partition<{}, [{cut}]>\n",
        tensor.strip_prefix("tensor<").unwrap().strip_suffix('>').unwrap()
    );
    let mut load =
        format!("    %l{name} = load_masked %v{name}[{index}] pad %pad : tile<{loaded} x {dtype}>\n");
    let (first, second) = (tile(order[1]), tile(order[0]));
    if turned {
        load += &format!("    %t{name} = permute %l{name} [1, 0] : tile<{first} x {second} x {dtype}>\n");
    }
    [format!("%{name}: {tensor}"), view, load]
}

/// c = a·b, `around` whose loop stands.
fn matmul(factors: Factors, [m, n, k]: [usize; 3], around: Option<&str>) -> String {
    let Factors { a, b, dtype, sum, step } = factors;
    let tile = |axis: char| match axis {
        'm' => m,
        'n' => n,
        _ => k,
    };
    let [a_parameter, a_view, a_load] = factor("a", a, a == "km", tile, dtype);
    let [b_parameter, b_view, b_load] = factor("b", b, b == "nk", tile, dtype);
    let zero = |dtype: DType| if dtype.is_float() { "0.0" } else { "0" };
    let whole = |axis: &str| format!("\"{axis} % {step} == 0\": rem({axis}, {step}) eq 0");
    let wheres =
        if step > 1 { format!("where {} ", ["m", "n", "k"].map(whole).join(", ")) } else { String::new() };
    let (open, close) = around.map_or(("", ""), |open| (open, "  }\n"));
    format!(
        "kernel @matmul({a_parameter}, {b_parameter}, %c: mut tensor<m x n x {sum}>) {wheres}{{
{a_view}{b_view}  %vc = partition %c [{m}, {n}] : mut partition<m x n x {sum}, [{m}, {n}]>
{open}  %i, %j = block_index %vc : index, index
  %pad = constant {pad} : {dtype}
  %none = constant {none} : {sum}
  %zero = splat %none : tile<{m} x {n} x {sum}>
  %0 = constant 0 : index
  %end = extent ceil_div(k, {k}) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<{m} x {n} x {sum}> {{
{a_load}{b_load}    %next = mma {left}, {right}, %acc : tile<{m} x {n} x {sum}>
    yield %next
  }}
  store_masked %vc, %sum
{close}}}
",
        left = if a == "km" { "%ta" } else { "%la" },
        right = if b == "nk" { "%tb" } else { "%lb" },
        pad = zero(dtype),
        none = zero(sum),
    )
}

fn arguments(factors: Factors, [m, n, k]: [usize; 3]) -> [Array; 3] {
    let extent = |axis: char| match axis {
        'm' => m,
        'n' => n,
        _ => k,
    };
    let shape = |axes: &str| axes.chars().map(extent).collect::<Vec<_>>();
    let Factors { a, b, dtype, sum, .. } = factors;
    [sample(dtype, &shape(a), 1), sample(dtype, &shape(b), 2), sample(sum, &[m, n], 3)]
}

fn product(factors: Factors, tile: [usize; 3], extents: [usize; 3], copied: usize) {
    check(&matmul(factors, tile, None), &arguments(factors, extents), copied, 0.0);
}

#[test]
fn factors_of_either_direction() {
    for a in ["mk", "km"] {
        for b in ["kn", "nk"] {
            product(Factors { a, b, ..PLAIN }, [64, 64, 32], [72, 136, 200], BOTH);
        }
    }
}

/// From none to more than there are stages, with a last one that is cut.
#[test]
fn any_number_of_turns() {
    for k in [0, 8, 32, 64, 96, 104, 128, 160, 296] {
        product(PLAIN, [64, 32, 32], [64, 32, k], BOTH);
    }
}

#[test]
fn tiles_of_which_some_lie_outside() {
    product(PLAIN, [64, 64, 64], [8, 8, 72], BOTH);
    product(Factors { a: "km", b: "nk", ..PLAIN }, [128, 32, 32], [136, 40, 40], BOTH);
}

/// Sums of integers need no tolerance, and 16 bytes are 16 of them.
#[test]
fn integers_by_their_rows() {
    let bytes = Factors { a: "mk", b: "nk", dtype: DType::I8, sum: DType::I32, step: 16 };
    product(bytes, [64, 32, 64], [80, 48, 144], BOTH);
    product(Factors { dtype: DType::U8, ..bytes }, [128, 64, 32], [128, 64, 160], BOTH);
    // No instruction turns bytes: the factor that lies by columns is written element by element.
    product(Factors { b: "kn", ..bytes }, [64, 32, 64], [80, 48, 144], 1);
}

#[test]
fn halves_in_tiles_of_three_and_two_stages() {
    let halves = Factors { dtype: DType::F16, ..PLAIN };
    product(halves, [128, 256, 64], [136, 264, 328], BOTH);
    product(halves, [128, 128, 128], [128, 128, 520], BOTH);
}

/// Groups of 8 and of 4 bytes are copied too, single elements aren't.
#[test]
fn shorter_groups() {
    product(Factors { step: 4, ..PLAIN }, [64, 64, 32], [68, 68, 100], BOTH);
    product(Factors { step: 2, ..PLAIN }, [64, 64, 32], [66, 70, 98], BOTH);
    product(Factors { step: 1, ..PLAIN }, [64, 64, 32], [67, 65, 99], 0);
}

/// Factors of f32 that are rounded to TF32 numbers are copied as they are, and rounded when products read them.
#[test]
fn factors_in_tf32() {
    let singles = Factors { dtype: DType::F32, step: 4, ..PLAIN };
    for (a, b) in [("mk", "kn"), ("mk", "nk"), ("km", "kn")] {
        let factors = Factors { a, b, ..singles };
        let source = in_tf32(&matmul(factors, [64, 64, 32], None));
        // Cut off instead of rounded, these numbers would be smaller by more than the sums may be off.
        let ragged = arguments(factors, [68, 72, 100]).map(|array| {
            let numbers = (0..array.len()).map(|i| round_float(DType::F32, array.get_f64(i) * 1.0007));
            Array::new(DType::F32, array.shape().to_vec(), Elements::Float(numbers.collect()))
        });
        check(&source, &ragged, BOTH, 1e-5);
        let artifact =
            compile(&instance(&source, &[]), TargetDesc::named("sm_80").unwrap(), &Options::default());
        let text = String::from_utf8(artifact.unwrap().code.bytes().to_vec()).unwrap();
        assert!(text.contains("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"), "{text}");
    }
}

/// The same product of rounded factors.
fn in_tf32(source: &str) -> String {
    let [left, right] = ["%lhs", "%rhs"].map(|name| format!("{name}_rounded"));
    let line = source.lines().find(|line| line.contains("= mma ")).unwrap();
    let (result, operands) = line.trim().split_once(" = mma ").unwrap();
    let [a, b, rest] = operands.splitn(3, ", ").collect::<Vec<_>>()[..] else { panic!("{line}") };
    let ty = |name: &str| {
        let definition = source.lines().find(|line| line.trim().starts_with(&format!("{name} = "))).unwrap();
        definition.rsplit_once(" : ").unwrap().1
    };
    let rounded = format!(
        "    {left} = round_tf32 {a} : {}\n    {right} = round_tf32 {b} : {}\n    {result} = mma {left}, {right}, {rest}",
        ty(a),
        ty(b)
    );
    source.edit(line, &rounded)
}

/// A pad that isn't zero, in a turn that is cut: such tiles pass through registers.
#[test]
fn other_pads_arent_copied() {
    let source = matmul(PLAIN, [64, 64, 32], None).edit("constant 0.0 : bf16", "constant 1.0 : bf16");
    check(&source, &arguments(PLAIN, [64, 64, 40]), 0, 0.0);
}

/// What is also used otherwise stays in registers; the other factor is copied.
#[test]
fn a_tile_with_two_uses_isnt_copied() {
    let source = matmul(PLAIN, [64, 64, 64], None)
        .edit("yield %next", "%more = cast %lb : tile<64 x 64 x f32>\n    %all = add %next, %more : tile<64 x 64 x f32>\n    yield %all");
    check(&source, &arguments(PLAIN, [64, 64, 200]), 1, 0.0);
}

/// The sums change places through more shared memory than copies leave at first.
#[test]
fn copies_make_room() {
    let source = matmul(PLAIN, [128, 128, 64], None).edit(
        "    yield %next\n",
        "    %turned = permute %next [1, 0] : tile<128 x 128 x f32>\n    %bits = flip %turned axis 1 : tile<128 x 128 x f32>\n    yield %bits\n",
    );
    check(&source, &arguments(PLAIN, [128, 128, 200]), BOTH, 0.0);
    let artifact = compile(&instance(&source, &[]), TargetDesc::named("sm_80").unwrap(), &Options::default());
    let text = String::from_utf8(artifact.unwrap().code.bytes().to_vec()).unwrap();
    assert!(text.contains("cp.async.cg.shared.global"), "{text}");
}

#[test]
fn two_products_of_a_turn() {
    let [heads, queries, keys] = [2, 136, 328];
    let arguments = [
        sample(DType::BF16, &[heads, queries, 64], 1),
        sample(DType::BF16, &[heads, keys, 64], 2),
        sample(DType::BF16, &[heads, keys, 64], 3),
        sample(DType::F32, &[heads, queries, 64], 4),
    ];
    check(ATTENTION, &arguments, BOTH, 1e-2);
}

/// A block that goes from tile to tile fills the same stages again.
#[test]
fn a_loop_in_a_loop() {
    let source = matmul(PLAIN, [64, 64, 64], Some("  tiles %vc row_major {\n"));
    check(&source, &arguments(PLAIN, [136, 200, 328]), BOTH, 0.0);
    check(&source, &arguments(PLAIN, [136, 200, 64]), BOTH, 0.0);
}

/// On targets with tensor maps, where a tile has too few rows for a warpgroup or there are no products of warpgroups.
#[test]
fn targets_that_have_other_ways() {
    let few_rows = matmul(PLAIN, [32, 64, 32], None);
    check_on("sm_90a", &few_rows, &arguments(PLAIN, [40, 72, 200]), BOTH, 0.0);
    let many_rows = matmul(PLAIN, [128, 64, 64], None);
    check_on("sm_120f", &many_rows, &arguments(PLAIN, [136, 72, 328]), BOTH, 0.0);
}

/// A turn of the outer loop waits for its own copies, whatever the inner one's did; a loop after another fills what
/// that has read.
#[test]
fn loops_in_and_after_each_other() {
    let extents = [72, 72, 168];
    let turns = |counter: &str, sums: &str| {
        format!(
            "for %{counter} = %0 to %end carry (%{counter}acc = {sums}) : tile<64 x 64 x f32> {{
    %{counter}a = load_masked %va[%i, %{counter}] pad %pad : tile<64 x 32 x bf16>
    %{counter}b = load_masked %vb[%{counter}, %j] pad %pad : tile<32 x 64 x bf16>
    %{counter}next = mma %{counter}a, %{counter}b, %{counter}acc : tile<64 x 64 x f32>
    yield %{counter}next
  }}
"
        )
    };
    let source = matmul(PLAIN, [64, 64, 32], None);
    let inner = turns("q", "%next");
    let inside = source.edit("    yield %next\n", &format!("    %all = {inner}    yield %all\n"));
    check(&inside, &arguments(PLAIN, extents), 2 * BOTH, 0.0);
    let second = turns("r", "%sum");
    let after =
        source.edit("  store_masked %vc, %sum", &format!("  %more = {second}  store_masked %vc, %more"));
    check(&after, &arguments(PLAIN, extents), 2 * BOTH, 0.0);
}
