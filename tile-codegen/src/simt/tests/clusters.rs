//! Blocks that share a tile: what is taken away from their barriers and addresses is objected to.

use super::mutations::replace_uses;
use super::pairs::rename;
use super::removed::calls;
use crate::simt::*;
use tile_ir::Instance;

const NORMS: &str = "\
file \"kernel.rs\"
kernel @norms(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [65536] : partition<n x f32, [65536]>
  %vy = partition %y [65536] : mut partition<n x f32, [65536]>
  %i = block_index %vy : index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i] pad %pad : tile<65536 x f32>
  %0 = constant 0 : index
  %3 = constant 3 : index
  %result = for %p = %0 to %3 carry (%all = %t) : tile<65536 x f32> {
    %most = reduce max %all axis 0 : tile<1 x f32> @9:9
    %b = broadcast %most : tile<65536 x f32>
    %next = sub %all, %b : tile<65536 x f32>
    yield %next
  }
  store_masked %vy, %result
}
";

/// The same without its loop: blocks send each other what they join.
const NORM: &str = "\
file \"kernel.rs\"
kernel @norm(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [65536] : partition<n x f32, [65536]>
  %vy = partition %y [65536] : mut partition<n x f32, [65536]>
  %i = block_index %vy : index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i] pad %pad : tile<65536 x f32>
  %most = reduce max %t axis 0 : tile<1 x f32> @9:9
  %b = broadcast %most : tile<65536 x f32>
  %result = sub %t, %b : tile<65536 x f32>
  store_masked %vy, %result
}
";

/// What the executor says of a kernel after a change.
fn run(source: &str, change: &mut dyn FnMut(&Ir<'_>)) -> Result<(), String> {
    let instance = Instance::parse(source, &[]).unwrap_or_else(|error| panic!("{error}"));
    let target = TargetDesc::named("sm_90a").expect("a target");
    let kernel = compile_changed(&instance, target, None, change).unwrap_or_else(|error| panic!("{error}"));
    let mut tensors = [vec![1.0f32; 65536], vec![0.0; 65536]];
    let bound = KernelAbi::of(&instance).bind(&[&[65536], &[65536]]).expect("shapes that fit");
    let mut slots: Vec<u64> = tensors.iter_mut().map(|tensor| tensor.as_mut_ptr() as u64).collect();
    slots.extend(&bound.sizes);
    // SAFETY: the slots are as the ABI says, and the tensors as large as their shapes.
    let result = unsafe { kernel.run(&slots, bound.blocks() as u64) };
    result.map(|_| ()).map_err(|error| match error {
        RunError::Fault(fault) => fault.to_string(),
        other => panic!("{other}"),
    })
}

/// Without its cluster's barrier of this number.
fn without_meeting(source: &str, number: usize) -> String {
    let said = run(source, &mut |ir| {
        for part in ["barrier.cluster.arrive", "barrier.cluster.wait"] {
            calls(ir, part)[number].erase_from_basic_block();
        }
    });
    said.expect_err("a barrier of the cluster is missed")
}

#[test]
fn they_are_right_as_they_are() {
    for (source, found) in [(NORM, [1, 1, 1, 1]), (NORMS, [3, 1, 0, 0])] {
        let mut counts = [0; 4];
        let parts = ["barrier.cluster.arrive", "barrier.cta", "mbarrier.try.wait", "tile.send.b32"];
        assert_eq!(run(source, &mut |ir| counts = parts.map(|part| calls(ir, part).len())), Ok(()));
        assert_eq!(counts, found);
    }
}

#[test]
fn that_within_a_block_is_missed() {
    for source in [NORM, NORMS] {
        let said = run(source, &mut |ir| calls(ir, "barrier.cta")[0].erase_from_basic_block());
        let said = said.expect_err("a barrier is missed");
        assert!(said.contains(" at 9:9: "), "{said}");
    }
}

/// That before blocks reach each other, that by which a reduction in a loop joins blocks, and that before the next turn's.
#[test]
fn those_of_the_cluster_are_missed() {
    for (source, number, expected) in [
        (NORM, 0, "which may not have begun"),
        (NORMS, 1, "no order between them"),
        (NORMS, 2, "which nobody wrote"),
    ] {
        let said = without_meeting(source, number);
        assert!(said.contains(expected) && said.contains(" at 9:9: "), "{number} of {source}: {said}");
    }
}

/// A barrier that nobody hands anything on at orders nothing.
#[test]
fn arrivals_behind_writes_release() {
    let said = run(NORMS, &mut |ir| {
        let arrival = calls(ir, "barrier.cluster.arrive")[2];
        rename(ir, arrival, "arrive", "arrive.relaxed");
    });
    let said = said.expect_err("what is written isn't seen");
    assert!(said.contains("no order between them"), "{said}");
}

/// Each block has a place of its own for every block.
#[test]
fn blocks_write_to_all_and_not_twice_to_one() {
    let said = run(NORMS, &mut |ir| to_the_first(ir, 0));
    let said = said.expect_err("lanes write to one place");
    assert!(said.contains("no barrier between them"), "{said}");
}

/// The address of this number that is mapped to other blocks is mapped to the first one.
fn to_the_first(ir: &Ir<'_>, number: usize) {
    assert!(calls(ir, "mapa")[number].set_operand(1, ir.context.i32_type().const_zero()));
}

/// What is sent is counted where it comes to, by an mbarrier that is ready, to its last byte.
#[test]
fn what_is_sent_is_waited_for() {
    type Change<'t> = (&'t str, fn(&Ir<'_>), &'t str);
    let changes: [Change<'_>; 6] = [
        (
            "a send",
            |ir| calls(ir, "tile.send")[0].erase_from_basic_block(),
            "misses 0 of 1 arrivals and 16 bytes",
        ),
        (
            "what is expected",
            |ir| calls(ir, "mbarrier.arrive.expect.tx")[0].erase_from_basic_block(),
            "misses 1 of 1 arrivals and -16 bytes",
        ),
        (
            "the fence",
            |ir| calls(ir, "fence.mbarrier_init")[0].erase_from_basic_block(),
            "`fence.mbarrier_init`",
        ),
        (
            "the mbarrier",
            |ir| {
                calls(ir, "mbarrier.arrive.expect.tx")[0].erase_from_basic_block();
                calls(ir, "mbarrier.init")[0].erase_from_basic_block();
            },
            "there is no mbarrier at",
        ),
        (
            "its block",
            |ir| to_the_first(ir, 1),
            "sends to block 1 of the cluster what an mbarrier of block 0 counts",
        ),
        (
            "the wait",
            |ir| {
                let wait = calls(ir, "mbarrier.try.wait")[0];
                replace_uses(wait, ir.bool(true).into());
                wait.erase_from_basic_block();
            },
            "which nobody wrote",
        ),
    ];
    for (what, change, expected) in changes {
        let said = run(NORM, &mut |ir| change(ir)).expect_err(what);
        assert!(said.contains(expected), "without {what}: {said}");
    }
}
