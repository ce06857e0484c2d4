//! Right schedules are accepted, and what breaks an invariant is found.

use super::super::{Threads, schedule};
use super::*;
use crate::{Instance, TargetDesc};

const SUM: &str = "\
kernel @sum(%x: tensor<m x 64 x f32>, %y: mut tensor<m x 1 x f32>) {
  %vx = partition %x [4, 64] : partition<m x 64 x f32, [4, 64]>
  %vy = partition %y [4, 1] : mut partition<m x 1 x f32, [4, 1]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<4 x 64 x f32>
  %d = mul %t, %t : tile<4 x 64 x f32>
  %s = reduce sum %d axis 1 : tile<4 x 1 x f32>
  store_masked %vy, %s
}
";

/// A right schedule, and the tiles that its loads, products of elements and sums are.
fn scheduled() -> (Scheduled, Vec<ValueId>) {
    let target = TargetDesc::named("sm_80").unwrap();
    let scheduled = schedule(Instance::parse(SUM, &[]).unwrap(), target, None);
    let tiles = scheduled.value_ids().filter(|&value| shape_of(&scheduled, value).is_some()).collect();
    (scheduled, tiles)
}

#[test]
fn a_tile_that_lies_nowhere_is_found() {
    let (mut scheduled, tiles) = scheduled();
    assert_eq!(verify(&scheduled), Ok(()));
    scheduled.laid_out.distributions.remove(&tiles[0]);
    assert_eq!(verify(&scheduled).unwrap_err().problem, "a tile lies nowhere");
}

#[test]
fn elements_in_other_threads_than_their_operands_are_found() {
    let (mut scheduled, tiles) = scheduled();
    let Threads { lanes, warps, .. } = scheduled.threads();
    let other = Distribution::blocked(&[4, 64], &[0, 1], 1, lanes, warps).unwrap();
    scheduled.laid_out.distributions.insert(tiles[0], other);
    let problem = verify(&scheduled).unwrap_err().problem;
    assert!(problem.contains("where it is read as"), "{problem}");
}

/// That a tile lies elsewhere is found of the op, for each of these that it has; how many these are.
fn assert_that_each_is_found(scheduled: &Scheduled, of: fn(&Scheduled, OpId) -> Vec<ValueId>) -> usize {
    assert_eq!(verify(scheduled), Ok(()));
    let Threads { lanes, warps, .. } = scheduled.threads();
    let tiles =
        scheduled.walk().into_iter().flat_map(|op| of(scheduled, op).into_iter().map(move |tile| (op, tile)));
    let check = |(op, tile): (OpId, ValueId)| {
        let mut moved = scheduled.clone();
        let before = scheduled.distribution(tile);
        let orders = [[0, 1], [1, 0]].into_iter();
        let mut others =
            orders.map(|order| Distribution::blocked(before.shape(), &order, 1, lanes, warps).unwrap());
        moved.laid_out.distributions.insert(tile, others.find(|other| other != before).unwrap());
        let broken = verify(&moved).expect_err("it lies elsewhere");
        assert!(broken.op == op && broken.problem.contains("where it is read as"), "{broken}");
    };
    tiles.map(check).count()
}

#[test]
fn factors_and_sums_that_lie_elsewhere_than_their_instruction_has_them_are_found() {
    let scheduled = |target: &str| {
        let instance = Instance::parse(super::super::tests::MATMUL, &[("B", 64)]).unwrap();
        schedule(instance, TargetDesc::named(target).unwrap(), None)
    };
    let found = assert_that_each_is_found(&scheduled("gfx942"), |scheduled, op| {
        let data = scheduled.op(op);
        if data.op.is_product() { data.operands[..2].to_vec() } else { Vec::new() }
    });
    assert_eq!(found, 2);
    // Sums elsewhere, wherever the loop has them.
    let mut moved = scheduled("gfx942");
    let product = moved.walk().into_iter().find(|&op| moved.op(op).op.is_product()).unwrap();
    let sums = moved.distribution(moved.op(product).results[0]).clone();
    let Threads { lanes, warps, .. } = moved.threads();
    let other = Distribution::blocked(&[64, 64], &[0, 1], 1, lanes, warps).unwrap();
    let lie = moved.laid_out.distributions.values_mut().filter(|lies| **lies == sums);
    lie.for_each(|lies| *lies = other.clone());
    assert_eq!(verify(&moved).unwrap_err().op, product);
    // By multiply-adds, of which factors lie anywhere.
    assert_eq!(verify(&scheduled("sm_80")), Ok(()));
}

#[test]
fn what_regions_give_elsewhere_than_it_is_taken_from_is_found() {
    let source = "\
kernel @regions(%x: tensor<m x 64 x f32>, %y: mut tensor<m x 64 x f32>, %flag: bool) {
  %vx = partition %x [64, 64] : partition<m x 64 x f32, [64, 64]>
  %vy = partition %y [64, 64] : mut partition<m x 64 x f32, [64, 64]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %0 = constant 0 : index
  %8 = constant 8 : index
  %t = load_masked %vx[%i, %j] pad %pad : tile<64 x 64 x f32>
  %sum = for %p = %0 to %8 carry (%acc = %t) : tile<64 x 64 x f32> {
    %next = add %acc, %acc : tile<64 x 64 x f32>
    yield %next
  }
  %taken = if %flag : tile<64 x 64 x f32> {
    %more = add %sum, %t : tile<64 x 64 x f32>
    yield %more
  } else {
    %less = sub %sum, %t : tile<64 x 64 x f32>
    yield %less
  }
  store_masked %vy, %taken
}
";
    let instance = Instance::parse(source, &[]).unwrap();
    let scheduled = schedule(instance, TargetDesc::named("sm_80").unwrap(), None);
    let found = assert_that_each_is_found(&scheduled, |scheduled, op| {
        let data = scheduled.op(op);
        let ends = data.regions.iter().map(|&region| *scheduled.region(region).ops.last().unwrap());
        let given = ends.map(|end| scheduled.op(end).operands[0]).chain(data.results.iter().copied());
        match data.op {
            Op::For => given.chain([data.operands[2], scheduled.region(data.regions[0]).params[1]]).collect(),
            Op::If => given.collect(),
            _ => Vec::new(),
        }
    });
    assert_eq!(found, 4 + 3);
}

#[test]
fn factors_that_lie_over_each_other_are_found() {
    let instance = Instance::parse(super::super::tests::MATMUL, &[("B", 64)]).unwrap();
    let mut scheduled = schedule(instance, TargetDesc::named("gfx942").unwrap(), None);
    assert_eq!(verify(&scheduled), Ok(()));
    scheduled.scratch.begin_all_at(0);
    assert_eq!(verify(&scheduled).unwrap_err().problem, "a buffer lies over another that is in use");
    scheduled.scratch.begin_all_at(1 << 20);
    let problem = verify(&scheduled).unwrap_err().problem;
    assert_eq!(problem, "a buffer lies over a ring, or beyond shared memory");
}

#[test]
fn several_additions_at_once_whose_old_elements_are_used_are_found() {
    use super::super::tests::{ADDED, cache};
    let scheduled = |operation: &str| {
        let instance = Instance::parse(&cache(operation), &[]).unwrap();
        let scheduled = schedule(instance, TargetDesc::named("sm_90a").unwrap(), None);
        let is_atomic = |&op: &OpId| matches!(scheduled.op(op).op, Op::Atomic(_));
        let atomic = scheduled.walk().into_iter().find(is_atomic).unwrap();
        (scheduled, atomic)
    };
    let (unused, addition) = scheduled(ADDED);
    let access = unused.laid_out.accesses[&addition].clone();
    let (mut used, addition) = scheduled(&format!("{ADDED}\n  store_masked %vy, %old"));
    assert_eq!(verify(&used), Ok(()));
    used.laid_out.accesses.insert(addition, access);
    assert_eq!(used.scattered(addition), 8);
    assert_eq!(
        verify(&used).unwrap_err().problem,
        "its old elements are used, and one instruction gives those of several to nobody"
    );
}

#[test]
fn copies_that_come_before_what_they_need_are_found() {
    let mut scheduled = super::super::tests::gathered_factor("sm_80");
    assert_eq!(verify(&scheduled), Ok(()));
    let right = scheduled.copies.clone();
    let mut problem = |change: &dyn Fn(&mut CopiedLoop)| {
        scheduled.copies = right.clone();
        scheduled.copies.change(change);
        verify(&scheduled).unwrap_err().problem
    };
    assert_eq!(problem(&|copied| copied.address.clear()), "it is copied ahead of its indices");
    let ahead = "it can't be computed ahead of its turn, by every thread alone";
    assert_eq!(problem(&|copied| copied.address.reverse()), ahead);
    assert_eq!(problem(&|copied| copied.address = vec![copied.copies[1].load]), ahead);
    assert_eq!(problem(&|copied| copied.copies[1].offset = 0), "two copies of a stage overlap");
    let together = "a copy moves more together than lies together";
    assert_eq!(problem(&|copied| copied.copies[0].group = 16), together);
    let room = "a stage has no room for its copies, or there is one alone";
    assert_eq!(problem(&|copied| copied.stage_bytes -= 1), room);
    assert_eq!(problem(&|copied| copied.stages = 1), room);
}

#[test]
fn a_distribution_of_other_extents_is_found() {
    let (mut scheduled, tiles) = scheduled();
    let sum = scheduled.laid_out.distributions[&tiles[2]].clone();
    scheduled.laid_out.distributions.insert(tiles[0], sum);
    let problem = verify(&scheduled).unwrap_err().problem;
    assert_eq!(problem, "a distribution is of [4, 1], its tile of [4, 64]");
}
