//! Which products have their sums in tensor memory, and where these lie.

use super::super::super::{Scheduled, print, schedule, verify as verify_schedule};
use super::super::Pipelines;
use super::super::tests::{ATTENTION, MATMUL, own_of, twice};
use super::{Leaving, TensorSums};
use crate::{Instance, TargetDesc, passes};
use tile_test_edit::Edit;

fn scheduled(source: &str, [rows, columns, depth]: [usize; 3]) -> Scheduled {
    let numbers = own_of(source, [("M", rows), ("N", columns), ("K", depth)]);
    let instance = passes::optimize(Instance::parse(source, &numbers).unwrap());
    schedule(instance, TargetDesc::named("sm_100a").unwrap(), None)
}

fn sums(scheduled: &Scheduled) -> Vec<&TensorSums> {
    scheduled.pipelines().tensor_memory().sums().iter().collect()
}

#[test]
fn threads_hold_no_sums_in_the_loop() {
    insta::assert_snapshot!(print(&scheduled(MATMUL, [128, 256, 64])));
}

/// Attention that shrinks its sums in every turn.
fn shrinking() -> String {
    ATTENTION.edit(
        "    %next = mma %narrow, %value, %acc",
        "    %shrink = exp2 %most : tile<128 x 1 x f32>
    %every = broadcast %shrink : tile<128 x 128 x f32>
    %less_of_it = mul %acc, %every : tile<128 x 128 x f32>
    %next = mma %narrow, %value, %less_of_it",
    )
}

#[test]
fn what_threads_change_is_multiplied_apart_and_added_a_turn_later() {
    insta::assert_snapshot!(print(&scheduled(&shrinking(), [1, 1, 1])));
}

/// What each product's sums are, by their stages, and how consumers leave them.
#[test]
fn what_is_brought_says_that_sums_were_loaded() {
    let of = |source: &str| {
        let scheduled = scheduled(source, [1, 1, 1]);
        let sums = sums(&scheduled).into_iter();
        let found: Vec<_> =
            sums.map(|sums| (sums.are_kept, sums.stages.count, sums.leaving, sums.late.is_some())).collect();
        (found, scheduled.pipelines().tensor_memory().brought()[0].is_left)
    };
    let scores = (false, 2, Leaving::Bringing, false);
    assert_eq!(of(ATTENTION), (vec![scores, (true, 2, Leaving::Counting, false)], true));
    assert_eq!(of(&shrinking()), (vec![scores, (false, 1, Leaving::Bringing, true)], false));
}

/// The next tile's sums are added up while these are loaded, where both fit.
#[test]
fn sums_have_two_stages_where_there_is_room() {
    let places = |source: &str, tile: [usize; 3]| {
        let scheduled = scheduled(source, tile);
        let places =
            sums(&scheduled).iter().map(|sums| (sums.first, sums.stages.count, sums.stage_columns)).collect();
        let columns = scheduled.pipelines().tensor_memory().columns();
        (columns, places)
    };
    assert_eq!(places(MATMUL, [128, 16, 64]), (32, vec![(0, 2, 16)]));
    assert_eq!(places(MATMUL, [128, 256, 64]), (512, vec![(0, 2, 256)]));
    assert_eq!(places(MATMUL, [256, 128, 64]), (512, vec![(0, 2, 256)]));
    assert_eq!(places(MATMUL, [256, 256, 64]), (512, vec![(0, 1, 512)]));
    assert_eq!(places(&twice(), [128, 64, 64]), (256, vec![(0, 2, 64), (128, 2, 64)]));
    assert_eq!(places(&twice(), [256, 128, 64]), (512, vec![(0, 1, 256), (256, 1, 256)]));
}

/// Two warpgroups load the rows of 128 each, or of fewer rows half of the columns.
#[test]
fn warpgroups_share_what_they_load() {
    let loaded = |tile: [usize; 3]| {
        let scheduled = scheduled(MATMUL, tile);
        let product = scheduled.walk().into_iter().find_map(|op| scheduled.product(op).cloned()).unwrap();
        (product.instruction.shape.n, product.parts())
    };
    assert_eq!(loaded([128, 128, 64]), (64, [1, 2]));
    assert_eq!(loaded([256, 128, 64]), (128, [2, 1]));
    assert_eq!(loaded([128, 16, 64]), (8, [1, 2]));
}

#[test]
fn what_tensor_memory_cannot_hold_is_done_by_warps() {
    for tile in [[64, 64, 64], [128, 48, 64], [128, 64, 8]] {
        let scheduled = scheduled(MATMUL, tile);
        assert!(scheduled.pipelines().is_empty(), "{tile:?}");
        let remark = &scheduled.remarks()[0].message;
        assert!(
            remark.starts_with("a product isn't done in tensor memory (`tcgen05.mma`) but by "),
            "{remark}"
        );
    }
}

/// What the verifier says of a schedule that is changed.
fn problem_of(right: &Scheduled, change: impl Fn(&mut Pipelines)) -> Result<(), String> {
    let mut scheduled = right.clone();
    change(&mut scheduled.pipelines);
    verify_schedule(&scheduled).map_err(|broken| broken.problem)
}

#[test]
fn sums_that_lie_over_each_other_are_found() {
    let right = scheduled(&twice(), [128, 64, 64]);
    let problem = |change: &dyn Fn(&mut TensorSums)| {
        problem_of(&right, |pipelines| pipelines.tensor_memory.sums.iter_mut().for_each(change))
    };
    assert_eq!(problem(&|_| {}), Ok(()));
    let over = problem(&|sums| sums.first = 0);
    assert_eq!(over.unwrap_err(), "its sums overlap others in tensor memory");
    let behind = problem(&|sums| sums.stages.count = 4);
    assert_eq!(behind.unwrap_err(), "its sums overlap others in tensor memory");
    let beyond = problem_of(&right, |pipelines| pipelines.tensor_memory.columns = 128);
    assert_eq!(beyond.unwrap_err(), "its sums end behind what the block has of tensor memory");
}
