//! Random kernels, natively, thread by thread as on a GPU, and by the evaluator.
//!
//! Every program is **exact**: elementwise ops round once by definition on both sides, and what is summed
//! (by `reduce sum` and `mma`, whose order is free) is first clamped to integers so small that no partial sum
//! rounds. So the comparison allows no tolerance, and a wrong buffer can't hide in one. A kernel that differs is made
//! as small as lines can be dropped, and shown.

mod control;
mod elements;
mod extremes;
mod memory;
mod minimize;
mod tiles;
mod writer;

use crate::accuracy::{PAIR_BOUNDS, is_exact};
use crate::support::{close, cpus, instance, is_emulated, run_native, run_simt_as, sample};
use extremes::extreme;
use memory::Layout;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestError, TestRunner};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tile_codegen::{Cpu, Options};
use tile_ir::ops::{BinaryOp, Movement, Op, UnaryOp};
use tile_ir::view::TensorMovement;
use tile_ir::{Array, DType, interp, passes, text, verify};
use writer::Writer;

/// The formats that tiles have.
fn formats() -> Vec<DType> {
    DType::ALL.iter().copied().filter(|dtype| dtype.is_element()).collect()
}

fn kernel(tape: &[u8], layout: &Layout, ops: usize) -> String {
    let mut writer = Writer {
        tape: tape.iter(),
        text: String::new(),
        scope: Vec::new(),
        names: 0,
        depth: 0,
        tile: layout.tile.clone(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        tensors: Vec::new(),
        counters: None,
    };
    writer.arguments(layout);
    let persistent = writer.own_tile();
    writer.load_own(0);
    writer.region(ops);
    for (which, output) in writer.outputs.clone().into_iter().enumerate() {
        let mut result = writer.fitted(output.dtype);
        for _ in 0..3 {
            let other = writer.fitted(output.dtype);
            let op = if output.dtype == DType::Bool { "xor" } else { "add" };
            let body = format!("{op} {}, {}", result.name, other.name);
            result = writer.define(&body, &layout.tile, output.dtype);
        }
        let own = writer.own(which, true);
        writer.line(&format!("store_masked {own}, {}", result.name));
    }
    if persistent {
        writer.depth -= 1;
        writer.line("}");
    }
    writer.text.push_str("}\n");
    writer.text
}

/// Where and how a kernel is compiled.
#[derive(Clone, Copy, Debug)]
struct Way {
    cpu: Cpu,
    skip_passes: bool,
    gpu: &'static str,
    /// Threads of a block; as many as a launch has where it isn't said.
    threads: Option<u32>,
}

fn check(source: &str, arguments: &[Array], way: Way) {
    let instance = instance(source, &[]);
    let mut expected = arguments.to_vec();
    interp::run(&instance, &mut expected).expect("the shapes fit");
    let same = |found: &[Array], what: &str| {
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            close(found, expected, 0.0, &format!("argument {i} {what}: {source}"));
        }
    };
    let options = Options { cpu: way.cpu, skip_passes: way.skip_passes, ..Options::default() };
    same(&run_native(&instance, arguments, &options), "natively");
    if is_emulated() {
        // The rest is the same for every architecture.
        return;
    }
    let mut rewritten = instance.clone();
    for pass in passes::PIPELINE {
        rewritten = passes::run(rewritten, pass);
        let mut arguments = arguments.to_vec();
        interp::run(&rewritten, &mut arguments).expect("the shapes fit");
        same(&arguments, &format!("after `{}`", pass.name));
    }
    same(&run_simt_as(way.gpu, &instance, arguments, way.threads), "on simulated threads");
}

/// Whether a text is a kernel that fails.
fn fails(source: &str, arguments: &[Array], way: Way) -> bool {
    let valid = text::parse(source).is_ok_and(|kernel| verify(kernel).is_ok());
    valid && catch_unwind(AssertUnwindSafe(|| check(source, arguments, way))).is_err()
}

fn extents() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 1usize..=9, 1 => Just(16), 1 => 30usize..=40]
}

/// How many axes tensors have, and the extent of the third.
fn axes() -> impl Strategy<Value = (usize, usize)> {
    (prop_oneof![1 => Just(1usize), 4 => Just(2), 2 => Just(3)], 0usize..4)
}

fn layouts() -> impl Strategy<Value = Layout> {
    let numbers = prop::sample::select(formats());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let tensors = ([extents(), extents()], [0usize..20, 0usize..50], 0usize..9, axes());
    (numbers.clone(), numbers, tensors, flags).prop_map(
        |(dtype, other, sizes, (fixed, two, whole, extreme))| {
            let (tile, extents, counters, (rank, batch)) = sizes;
            let mut tile: Vec<usize> = tile.into_iter().chain([1 + batch % 2]).collect();
            let mut extents: Vec<usize> = extents.into_iter().chain([batch]).collect();
            tile.truncate(rank);
            extents.truncate(rank);
            // The third axis is the first, as that of a batch is.
            tile.rotate_right(rank / 3);
            extents.rotate_right(rank / 3);
            if whole {
                extents =
                    extents.iter().zip(&tile).map(|(extent, tile)| extent.div_ceil(*tile) * tile).collect();
            }
            Layout { dtype, other, tile, extents, fixed, two, counters, extreme }
        },
    )
}

fn ways() -> impl Strategy<Value = Way> {
    let processors: Vec<Cpu> = cpus().into_iter().chain([Cpu::Host]).collect();
    let gpus = prop::sample::select(vec!["sm_80", "sm_90a", "gfx942", "gfx1100"]);
    let threads = [Some(8), Some(8), Some(1), Some(32), Some(64), Some(128), None, None];
    (prop::sample::select(processors), any::<bool>(), gpus, prop::sample::select(threads.to_vec()))
        .prop_map(|(cpu, skip_passes, gpu, threads)| Way { cpu, skip_passes, gpu, threads })
}

/// How many kernels a run tries; `cargo xtask fuzz` asks for more.
fn cases() -> u32 {
    std::env::var("TILE_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(96)
}

#[test]
fn random_kernels_agree_exactly() {
    let config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::with_cases(cases())
    };
    let tapes = prop::collection::vec(any::<u8>(), 0..260);
    let written = |tape: &[u8], layout: &Layout, ops: usize| {
        let tensors = [layout.dtype, layout.other, layout.dtype, layout.other];
        let numbers = if layout.extreme { extreme } else { sample };
        let mut arguments: Vec<Array> =
            (1..).zip(tensors).map(|(seed, dtype)| numbers(dtype, &layout.extents, seed)).collect();
        let source = kernel(tape, layout, ops);
        let counted = text::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}"));
        let counters = counted.ty(counted.params()[4]).elem().known().expect("no kernel is generic");
        arguments.push(numbers(counters, &[layout.counters], 5));
        arguments.push(numbers(layout.other, &[], 6));
        (source, arguments)
    };
    let result =
        TestRunner::new(config).run(&(tapes, layouts(), 1usize..24, ways()), |(tape, layout, ops, way)| {
            let (source, arguments) = written(&tape, &layout, ops);
            check(&source, &arguments, way);
            Ok(())
        });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(_, (tape, layout, ops, way))) => {
            let (source, arguments) = written(&tape, &layout, ops);
            let source = minimize::minimize(&source, |text| fails(text, &arguments, way));
            println!("{way:?}, {layout:?}:\n{source}");
            check(&source, &arguments, way);
        }
        Err(aborted) => panic!("{aborted}"),
    }
}

/// Ops that no random kernel has, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("print", "its order is free"),
    ("assert", "its order is free"),
    ("extent", "loops have ends of their own"),
    ("block_id", "the outputs make the grid"),
    ("block_count", "the outputs make the grid"),
    ("load_unchecked", "nobody vouches for random indices"),
    ("convert_layout", "schedules add it"),
];

#[test]
fn random_kernels_have_every_op() {
    let mut runner = TestRunner::deterministic();
    let tapes = (prop::collection::vec(any::<u8>(), 100..260), layouts(), 8usize..24);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..1500 {
        let (tape, layout, ops) = tapes.new_tree(&mut runner).expect("nothing is rejected").current();
        let kernel = text::parse(&kernel(&tape, &layout, ops)).expect("it is a kernel");
        for op in kernel.walk() {
            let op = &kernel.op(op).op;
            seen.insert(op.name());
            if let Op::View(movement) = op {
                seen.insert(movement.kind());
            }
        }
    }
    let leaves = UnaryOp::ALL.iter().filter(|op| is_exact(**op)).map(|op| op.name());
    let pairs = BinaryOp::ALL.iter().filter(|op| PAIR_BOUNDS.iter().all(|(bounded, ..)| bounded != *op));
    let kinds = Op::KINDS.iter().chain(Movement::KINDS).chain(TensorMovement::KINDS).map(|kind| kind.name);
    let tables = ["unary", "binary", "compare", "classify", "movement"];
    let names = kinds.chain(leaves).chain(pairs.map(|op| op.name())).filter(|name| !tables.contains(name));
    let wrong: Vec<&str> =
        names.filter(|name| seen.contains(name) == LEFT_OUT.iter().any(|(op, _)| op == name)).collect();
    assert_eq!(wrong, [""; 0], "missing, or left out though they are there");
}
