//! Random kernels, natively, thread by thread as on GPUs, and by the evaluator.
//!
//! Every program is **exact**: elementwise ops round once by definition on both sides, and what is summed
//! (by `reduce sum` and `mma`, whose order is free) is first clamped to integers so small that no partial sum
//! rounds. So the comparison allows no tolerance, not even in the sign of a zero, and a wrong buffer can't hide in one. A
//! kernel that differs is made as small as lines can be dropped, and shown.
//!
//! There are three kinds of kernels: of any ops, of lines ([`lines`]), and of products in loops ([`products`]).

mod check;
mod control;
mod elements;
mod extremes;
mod kept;
mod lines;
mod memory;
mod minimize;
mod mistakes;
mod placement;
mod products;
mod reached;
mod tiles;
mod writer;

use crate::deadline;
use crate::support::{all_cpus, sample};
use check::{Given, Shown, Way, check, fails};
use extremes::extreme;
use memory::Layout;
use placement::Placement;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestError, TestRunner};
use std::cell::Cell;
use std::fmt::Debug;
use tile_ir::array::Elements;
use tile_ir::ops::{Leaf, Movement, Op};
use tile_ir::target::TARGETS;
use tile_ir::view::TensorMovement;
use tile_ir::{Array, DType, TargetDesc, text};
use writer::{Kind, Writer};

/// The formats that tiles have, and that most ops accept.
fn formats() -> Vec<DType> {
    let accepted = |dtype: &DType| dtype.is_element() && (dtype.is_number() || *dtype == DType::Bool);
    DType::ALL.iter().copied().filter(accepted).collect()
}

/// A kernel of so many ops.
fn kernel(tape: &[u8], layout: &Layout, ops: usize, kind: Kind) -> String {
    let mut writer = Writer::new(tape, layout.tile.clone(), kind);
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

fn extents() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 1usize..=9, 1 => Just(16), 1 => 30usize..=40]
}

/// How many axes tensors have, and the extents of those in front of two.
fn axes() -> impl Strategy<Value = (usize, [usize; 3])> {
    let rank = prop_oneof![2 => Just(1usize), 8 => Just(2), 4 => Just(3), 1 => Just(4), 1 => Just(5)];
    (rank, [0usize..4, 0usize..4, 1usize..3])
}

fn layouts() -> impl Strategy<Value = Layout> {
    let numbers = prop::sample::select(formats());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let tensors = ([extents(), extents()], [0usize..20, 0usize..50], 0usize..9, axes());
    (numbers.clone(), numbers, tensors, flags).prop_map(
        |(dtype, other, sizes, (fixed, two, whole, extreme))| {
            let (mut tile, mut extents, counters, (rank, front)) = sizes;
            if rank > 3 {
                // As few blocks as others have.
                tile = tile.map(|extent| extent.min(9));
                extents = [extents[0].min(2 * tile[0]), extents[1].min(2 * tile[1])];
            }
            let axes = |front: Vec<usize>, last: [usize; 2]| -> Vec<usize> {
                front.into_iter().take(rank.saturating_sub(2)).chain(last.into_iter().take(rank)).collect()
            };
            let tile = axes(front.iter().map(|extent| 1 + extent % 2).collect(), tile);
            let mut extents = axes(front.to_vec(), extents);
            if whole {
                extents =
                    extents.iter().zip(&tile).map(|(extent, tile)| extent.div_ceil(*tile) * tile).collect();
            }
            Layout { dtype, other, tile, extents, fixed, two, counters, extreme }
        },
    )
}

fn ways() -> impl Strategy<Value = Way> {
    let gpus = TARGETS.iter().map(|target| target.name).filter(|name| *name != TargetDesc::cpu().name);
    let gpus: Vec<&str> = gpus.collect();
    let threads = [Some(8), Some(8), Some(1), Some(32), Some(64), Some(128), None, None];
    let (cpus, gpus) = (prop::sample::select(all_cpus()), prop::sample::select(gpus));
    (cpus, any::<bool>(), gpus, prop::sample::select(threads.to_vec())).prop_map(
        |(cpu, skip_passes, gpu, threads)| Way { cpu, skip_passes, gpu, threads, after_every_pass: true },
    )
}

fn placements(tensors: usize) -> impl Strategy<Value = Vec<Placement>> {
    let dense = Just(vec![Placement::Dense; tensors]);
    let any = prop::collection::vec(prop::sample::select(Placement::USUAL), tensors);
    prop_oneof![1 => dense, 1 => any]
}

/// How many kernels a run tries; `cargo xtask fuzz` asks for more.
fn cases() -> u32 {
    std::env::var("TILE_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40)
}

/// Tries programs that a strategy makes, in some way each, as long as there is time; the first that fails is made small,
/// and shown.
fn agree<Drawn: Debug + Clone>(
    drawn: impl Strategy<Value = (Drawn, Way)>,
    cases: u32,
    written: impl Fn(&Drawn) -> (String, Given),
) {
    let config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 40,
        ..ProptestConfig::with_cases(cases)
    };
    let (tried, shown) = (Cell::new(0), Cell::new(0));
    let result = TestRunner::new(config).run(&drawn, |(drawn, way)| {
        if deadline::is_past() {
            return Ok(());
        }
        let (source, given) = written(&drawn);
        tried.set(tried.get() + 1);
        shown.set(shown.get() + u32::from(check(&source, &given, way) == Shown::All));
        Ok(())
    });
    match result {
        // Half of them are by far: if most were refused, no simulated thread would show a thing.
        Ok(()) => {
            assert!(
                tried.get() < 20 || 2 * shown.get() > tried.get(),
                "{shown:?} of {tried:?} fit their GPU"
            );
        }
        Err(TestError::Fail(_, (drawn, way))) => {
            let (source, given) = written(&drawn);
            let source = minimize::minimize(&source, fails(&source, &given, way));
            let shapes: Vec<_> = given.arguments.iter().map(Array::shape).collect();
            println!("{way:?}, {shapes:?}, {:?}:\n{source}", given.placements);
            check(&source, &given, way);
        }
        Err(aborted) => panic!("{aborted}"),
    }
}

/// What a kernel is made of: the choices, the sizes, how many ops it has, and how its tensors lie.
type Drawn = (Vec<u8>, Layout, usize, Vec<Placement>);

fn kernels_agree(drawn: impl Strategy<Value = Drawn>, cases: u32, kind: Kind) {
    let written = |(tape, layout, ops, placements): &Drawn| {
        let tensors = [layout.dtype, layout.other, layout.dtype, layout.other];
        let numbers = if layout.extreme { extreme } else { sample };
        let mut arguments: Vec<Array> =
            (1..).zip(tensors).map(|(seed, dtype)| numbers(dtype, &layout.extents, seed)).collect();
        let source = kernel(tape, layout, *ops, kind);
        let counted = text::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}"));
        let counters = counted.ty(counted.params()[4]).elem().known().expect("no kernel is generic");
        // What is added to the greatest floats is added in any order.
        let numbers = if counters.is_float() { sample } else { numbers };
        arguments.push(numbers(counters, &[layout.counters], 5));
        arguments.push(if layout.extreme { extreme } else { sample }(layout.other, &[], 6));
        (source, Given { arguments, placements: placements.clone() })
    };
    agree((drawn, ways()), cases, written);
}

#[test]
fn random_kernels_agree_exactly() {
    let tapes = prop::collection::vec(any::<u8>(), 0..260);
    kernels_agree((tapes, layouts(), 1usize..24, placements(5)), cases(), Kind::Any);
}

#[test]
fn random_lines_agree_exactly() {
    let tapes = prop::collection::vec(any::<u8>(), 0..400);
    kernels_agree((tapes, lines::layouts(), 4usize..24, placements(5)), cases() / 2, Kind::Lines);
}

/// Small integers, so that sums of their products are exact.
fn small(dtype: DType, shape: &[usize], seed: usize) -> Array {
    let least = if dtype.is_float() || dtype.is_signed() { -2 } else { 0 };
    let number = |i: usize| (i * 7919 + seed * 104_729 + i / 13) % 5;
    let count = shape.iter().product();
    let elements = if dtype.is_float() {
        Elements::Float((0..count).map(|i| number(i) as f64 - 2.0).collect())
    } else if dtype == DType::Bool {
        Elements::Int((0..count).map(|i| i128::from(number(i) % 2 != 0)).collect())
    } else {
        Elements::Int((0..count).map(|i| number(i) as i128 + least).collect())
    };
    Array::new(dtype, shape.to_vec(), elements)
}

#[test]
fn random_products_agree_exactly() {
    let tapes = prop::collection::vec(any::<u8>(), 0..160);
    let written = |(tape, shape, ops, placements): &(Vec<u8>, products::Shape, usize, Vec<Placement>)| {
        let (source, declared) = products::kernel(tape, shape, *ops);
        let arguments = (1..).zip(&declared).map(|(seed, it)| small(it.dtype, &it.extents, seed)).collect();
        let placements = placements.iter().copied().cycle().take(declared.len()).collect();
        (source, Given { arguments, placements })
    };
    let ops = prop_oneof![3 => Just(0usize), 1 => 1usize..6];
    let drawn = ((tapes, products::shapes(), ops, placements(7)), product_ways());
    agree(drawn, cases() / 2, written);
}

/// Mostly as programs are compiled, with code of producers and consumers, which differs most, more often than others'.
fn product_ways() -> impl Strategy<Value = Way> {
    let divided = prop_oneof![1 => Just(Some("sm_90a")), 1 => Just(Some("sm_100a")), 4 => Just(None)];
    (ways(), 0usize..4, divided).prop_map(|(way, optimized, divided)| Way {
        skip_passes: way.skip_passes && optimized == 0,
        gpu: divided.unwrap_or(way.gpu),
        threads: if divided.is_some() { None } else { way.threads },
        after_every_pass: false,
        ..way
    })
}

/// Ops that no random kernel has, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("print", "its order is free"),
    ("assert", "its order is free"),
    ("extent", "loops have ends of their own"),
    ("load_unchecked", "nobody vouches for random indices"),
    ("convert_layout", "schedules add it"),
    ("mma_scaled", "schedules add it"),
    ("require", "random movements ask nothing of sizes that a launch would decide"),
];

#[test]
fn random_kernels_have_every_op() {
    let mut runner = TestRunner::deterministic();
    let tapes = (prop::collection::vec(any::<u8>(), 100..260), layouts(), 8usize..24);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..1500 {
        let (tape, layout, ops) = tapes.new_tree(&mut runner).expect("nothing is rejected").current();
        let kernel = text::parse(&kernel(&tape, &layout, ops, Kind::Any)).expect("it is a kernel");
        for op in kernel.walk() {
            let op = &kernel.op(op).op;
            seen.insert(op.name());
            if let Op::View(movement) = op {
                seen.insert(movement.kind());
            }
        }
    }
    let leaves =
        Leaf::all().filter(|leaf| matches!(leaf, Leaf::Unary(_) | Leaf::Binary(_)) && leaf.ulps().is_none());
    let kinds = Op::KINDS.iter().chain(Movement::KINDS).chain(TensorMovement::KINDS).map(|kind| kind.name);
    let tables = ["unary", "binary", "compare", "classify", "movement"];
    let names = kinds.chain(leaves.map(Leaf::name)).filter(|name| !tables.contains(name));
    let wrong: Vec<&str> =
        names.filter(|name| seen.contains(name) == LEFT_OUT.iter().any(|(op, _)| op == name)).collect();
    assert_eq!(wrong, [""; 0], "missing, or left out though they are there");
}
