//! Every wait, arrival, fence and barrier of a generated pipeline is taken away in turn, and missed.
//!
//! They are instructions that the executor carries out, so a kernel is compiled once and then runs without one of them.

use crate::simt::instruction::{Operation, Then};
use crate::simt::*;
use inkwell::values::{
    AnyValue, AnyValueEnum, BasicValueEnum, CallSiteValue, FunctionValue, InstructionValue, PhiValue,
};
use tile_ir::Instance;
use tile_test_edit::Edit;

pub(super) const MATMUL: &str = "\
kernel @matmul(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x f32>) where \"k % 8 == 0\": rem(k, 8) eq 0, \"n % 8 == 0\": rem(n, 8) eq 0 {
  %va = partition %a [64, 32] : partition<m x k x bf16, [64, 32]>
  %vb = partition %b [32, 96] : partition<k x n x bf16, [32, 96]>
  %vc = partition %c [64, 96] : mut partition<m x n x f32, [64, 96]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<64 x 96 x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(k, 32) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<64 x 96 x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<64 x 32 x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<32 x 96 x bf16>
    %next = mma %ta, %tb, %acc : tile<64 x 96 x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

/// The same with sums that are looked at in every turn.
fn with_sums_in_use() -> String {
    MATMUL.edit(
        "    yield %next\n",
        "    %one = constant 1.0 : f32\n    %ones = splat %one : tile<64 x 96 x f32>\n    \
         %more = add %next, %ones : tile<64 x 96 x f32>\n    yield %more\n",
    )
}

/// Sums are shrunk, and what was computed is added a turn later.
pub(super) const ATTENTION: &str = "\
kernel @attention(%k: tensor<t x 64 x bf16>, %v: tensor<t x 96 x bf16>, %o: mut tensor<s x 96 x f32>) {
  %vk = partition %k [32, 64] : partition<t x 64 x bf16, [32, 64]>
  %vv = partition %v [32, 96] : partition<t x 96 x bf16, [32, 96]>
  %vo = partition %o [64, 96] : mut partition<s x 96 x f32, [64, 96]>
  %i, %j = block_index %vo : index, index
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %0 = constant 0 : index
  %one = constant 1.0 : bf16
  %query = splat %one : tile<64 x 64 x bf16>
  %none = splat %zero : tile<64 x 96 x f32>
  %start = splat %zero : tile<64 x 32 x f32>
  %least = splat %zero : tile<64 x 1 x f32>
  %end = extent ceil_div(t, 32) : index
  %sum, %last = for %p = %0 to %end carry (%acc = %none, %most = %least) : tile<64 x 96 x f32>, tile<64 x 1 x f32> {
    %key = load_masked %vk[%p, %0] pad %pad : tile<32 x 64 x bf16>
    %value = load_masked %vv[%p, %0] pad %pad : tile<32 x 96 x bf16>
    %turned = permute %key [1, 0] : tile<64 x 32 x bf16>
    %scores = mma %query, %turned, %start : tile<64 x 32 x f32>
    %largest = reduce max %scores axis 1 : tile<64 x 1 x f32>
    %larger = max %most, %largest : tile<64 x 1 x f32>
    %all = broadcast %larger : tile<64 x 32 x f32>
    %less = sub %scores, %all : tile<64 x 32 x f32>
    %weights = exp2 %less : tile<64 x 32 x f32>
    %narrow = cast %weights : tile<64 x 32 x bf16>
    %shrinks = sub %most, %larger : tile<64 x 1 x f32>
    %shrink = exp2 %shrinks : tile<64 x 1 x f32>
    %every = broadcast %shrink : tile<64 x 96 x f32>
    %before = mul %acc, %every : tile<64 x 96 x f32>
    %next = mma %narrow, %value, %before : tile<64 x 96 x f32>
    yield %next, %larger
  }
  store_masked %vo, %sum
}
";

/// Instructions without which the pipeline is wrong.
const NEEDED: [&str; 20] = [
    "llvm.nvvm.mbarrier.init",
    "llvm.nvvm.fence.mbarrier_init.release.cluster",
    "llvm.nvvm.mbarrier.arrive.scope",
    "llvm.nvvm.mbarrier.arrive.expect.tx",
    "llvm.nvvm.mbarrier.try.wait.parity",
    "llvm.nvvm.barrier.cta",
    "llvm.nvvm.barrier.cluster.arrive",
    "llvm.nvvm.barrier.cluster.wait",
    "llvm.nvvm.wgmma.fence",
    "llvm.nvvm.wgmma.commit_group",
    "llvm.nvvm.wgmma.wait_group",
    "tile.wgmma.wait",
    "llvm.nvvm.fence.proxy.async",
    "llvm.nvvm.cp.async.bulk.commit.group",
    "llvm.nvvm.cp.async.bulk.wait.group",
    "llvm.nvvm.tcgen05.alloc",
    "llvm.nvvm.tcgen05.dealloc",
    "llvm.nvvm.tcgen05.fence",
    "llvm.nvvm.tcgen05.commit",
    "llvm.nvvm.bar.warp.sync",
];

pub(super) fn callee(instruction: InstructionValue<'_>) -> Option<String> {
    let call = CallSiteValue::try_from(instruction).ok()?;
    Some(call.get_called_fn_value()?.get_name().to_string_lossy().into_owned())
}

/// The numbers of these instructions of a kernel.
pub(super) fn needed(kernel: &SimtKernel) -> Vec<usize> {
    let named = kernel.code.program.instructions.iter().map(|instruction| &instruction.name).enumerate();
    let needed = named.filter(|(_, name)| NEEDED.iter().any(|needed| name.starts_with(needed)));
    needed.map(|(number, _)| number).collect()
}

/// The name of an instruction.
pub(super) fn name(kernel: &SimtKernel, number: usize) -> &str {
    &kernel.code.program.instructions[number].name
}

/// Runs a kernel without one of its instructions. What that gives is what it would give at once: a test says that all is
/// there, and registers are passed on.
pub(super) fn without<R>(kernel: &mut SimtKernel, number: usize, run: impl FnOnce(&SimtKernel) -> R) -> R {
    let instruction = &mut kernel.code.program.instructions[number];
    let (is_test, is_wait) =
        (instruction.name.contains("try.wait"), instruction.name.starts_with("tile.wgmma.wait"));
    let nothing = Operation::Alone(Box::new(move |_, call| {
        for (i, slot) in call.instruction.results.iter().enumerate() {
            match (is_test, is_wait) {
                (true, _) => call.give_word(i, 1),
                (_, true) => call.give(i, call.bytes(i)),
                _ => call.give(i, &vec![0; slot.bytes]),
            }
        }
        Ok(Then::GoOn)
    }));
    let operation = std::mem::replace(&mut instruction.operation, nothing);
    let result = run(kernel);
    kernel.code.program.instructions[number].operation = operation;
    result
}

/// The instructions that use what one gives, each with the number of the operand.
fn uses<'c>(of: InstructionValue<'c>) -> Vec<(InstructionValue<'c>, u32)> {
    let users = std::iter::successors(of.get_first_use(), |used| used.get_next_use());
    let users = users.map(|used| used.get_user().as_any_value_enum());
    let users = users.filter_map(|user| match user {
        AnyValueEnum::PhiValue(phi) => Some(phi.as_instruction()),
        AnyValueEnum::InstructionValue(user) => Some(user),
        AnyValueEnum::IntValue(user) => user.as_instruction(),
        AnyValueEnum::FloatValue(user) => user.as_instruction(),
        AnyValueEnum::StructValue(user) => user.as_instruction(),
        AnyValueEnum::VectorValue(user) => user.as_instruction(),
        _ => None,
    });
    let value = BasicValueEnum::try_from(of.as_any_value_enum()).expect("it gives a value");
    let places = users.flat_map(|user| (0..user.get_num_operands()).map(move |i| (user, i)));
    places
        .filter(|(user, i)| user.get_operand(*i).and_then(|operand| operand.value()) == Some(value))
        .collect()
}

pub(super) fn replace_uses<'c>(of: InstructionValue<'c>, by: BasicValueEnum<'c>) {
    for (user, operand) in uses(of) {
        user.set_operand(operand, by);
    }
}

/// The shapes of a kernel's arguments, for so many elements along the axis that its loop goes along.
pub(super) type Shapes = fn(usize) -> Vec<Vec<usize>>;

/// A kernel's text, and these.
pub(super) type Case<'a> = (&'a str, Shapes);

const OF_MATMUL: Shapes = |depth| vec![vec![128, depth], vec![depth, 96], vec![128, 96]];
const OF_ATTENTION: Shapes = |keys| vec![vec![keys, 64], vec![keys, 96], vec![128, 96]];

/// The tensors after a run of the kernel, of zeros at first.
pub(super) type Outcome = Result<Vec<Vec<u128>>, RunError>;

/// Runs the kernel after a change of its code.
pub(super) fn run(case: Case<'_>, how: (usize, Timing), change: &mut dyn FnMut(&Ir<'_>)) -> Outcome {
    run_on("sm_90a", case, how, change)
}

/// The same on a target.
pub(super) fn run_on(
    target: &str,
    case: Case<'_>,
    how: (usize, Timing),
    change: &mut dyn FnMut(&Ir<'_>),
) -> Outcome {
    run_compiled(&compile_for(target, case, change), case, how)
}

fn compile_for(target: &str, (source, _): Case<'_>, change: &mut dyn FnMut(&Ir<'_>)) -> SimtKernel {
    let instance = Instance::parse(source, &[]).unwrap();
    let target = TargetDesc::named(target).unwrap();
    compile_changed(&instance, target, None, change).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a kernel that was compiled of a case.
fn run_compiled(kernel: &SimtKernel, (_, shapes): Case<'_>, (depth, timing): (usize, Timing)) -> Outcome {
    let blocks = kernel.code.geometry.cluster.into();
    let shapes = shapes(depth);
    let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    // Aligned as a device's memory is, and somewhere even where there are no elements.
    let words = |shape: &&[usize]| vec![0u128; shape.iter().product::<usize>().div_ceil(4).max(1)];
    let mut tensors: Vec<Vec<u128>> = shapes.iter().map(words).collect();
    let bound = kernel.abi.bind(&shapes).expect("shapes that fit");
    let mut slots: Vec<u64> = tensors.iter_mut().map(|tensor| tensor.as_mut_ptr() as u64).collect();
    slots.extend(&bound.sizes);
    // SAFETY: the slots are as the ABI says, and the tensors as large as their shapes.
    unsafe { kernel.run_as(&slots, blocks, Mode { timing, counted: false }) }.map(|_| tensors)
}

/// More turns than stages, and none at all, late and early.
pub(super) const RUNS: [(usize, Timing); 4] =
    [(320, Timing::Late), (320, Timing::Early), (0, Timing::Late), (0, Timing::Early)];

/// An instruction is missed where the executor objects, or where the kernel gives something else: sums that nobody
/// waited for are none.
pub(super) fn every_one_is_missed(case: Case<'_>) {
    let number = every_one_is_missed_on("sm_90a", case);
    // A pipeline of warpgroups has more than one of most kinds.
    assert!(number > 15, "the kernel has {number} of them");
}

/// The same on a target; gives the number of these instructions.
pub(super) fn every_one_is_missed_on(target: &str, case: Case<'_>) -> usize {
    let (number, unmissed) = unmissed_on(target, case);
    assert!(unmissed.is_empty(), "of {number} instructions the executor doesn't miss {unmissed:#?}");
    number
}

/// How many of these instructions a kernel has, and those that nobody misses, by their numbers among them.
pub(super) fn unmissed_on(target: &str, case: Case<'_>) -> (usize, Vec<String>) {
    let mut kernel = compile_for(target, case, &mut |_| {});
    let run = |kernel: &SimtKernel, how| run_compiled(kernel, case, how);
    let whole = RUNS.map(|how| run(&kernel, how).unwrap_or_else(|fault| panic!("{fault}")));
    let needed = needed(&kernel);
    let mut is_missed = |number: usize| {
        without(&mut kernel, number, |kernel| {
            RUNS.iter().zip(&whole).any(|(&how, whole)| run(kernel, how).map_or(true, |it| it != *whole))
        })
    };
    let unmissed: Vec<usize> = (0..needed.len()).filter(|&i| !is_missed(needed[i])).collect();
    let describe = |i: usize| format!("{i}: {}", name(&kernel, needed[i]));
    (needed.len(), unmissed.into_iter().map(describe).collect())
}

#[test]
fn nothing_can_be_left_out_of_a_product_that_keeps_running() {
    every_one_is_missed((MATMUL, OF_MATMUL));
}

#[test]
fn nothing_can_be_left_out_of_a_product_that_is_waited_for() {
    every_one_is_missed((&with_sums_in_use(), OF_MATMUL));
}

/// What a copy of the sums writes is there before others are told so. They are no blocks of this launch, so that nothing else
/// shows what is missing.
#[test]
fn a_product_that_others_are_told_of_is_written_before() {
    let source = MATMUL
        .edit("mut tensor<m x n x f32>)", "mut tensor<m x n x f32>, %ready: mut tensor<r x i32>)")
        .edit(
            "  store_masked %vc, %sum\n",
            "  store_masked %vc, %sum\n  %told = constant 1 : i32\n  %ones = splat %told : tile<1 x i32>\n  \
         %block = cast %i : i32\n  %at = splat %block : tile<1 x i32>\n  \
         atomic store release system %ready[%at], %ones\n",
        );
    let case: Case<'_> = (&source, |depth| vec![vec![128, depth], vec![depth, 96], vec![128, 96], vec![4]]);
    let mut kernel = compile_for("sm_90a", case, &mut |_| {});
    let is_wait = |&number: &usize| name(&kernel, number) == "llvm.nvvm.cp.async.bulk.wait.group";
    let waits: Vec<usize> = needed(&kernel).into_iter().filter(is_wait).collect();
    let [wait] = waits[..] else { panic!("{} waits", waits.len()) };
    for how in RUNS {
        run_compiled(&kernel, case, how).unwrap_or_else(|fault| panic!("{fault}"));
        let fault = without(&mut kernel, wait, |kernel| run_compiled(kernel, case, how).expect_err("a race"));
        assert!(fault.to_string().contains("may still write when its thread releases"), "{fault}");
    }
}

/// The right factor is computed, so that consumers bring it.
fn with_right_brought(source: &str, columns: &str) -> String {
    source.edit("96", columns).edit("mma %ta, %tb,", "mma %ta, %made,").edit(
        "    %next = mma",
        &format!("    %made = neg %tb : tile<32 x {columns} x bf16>\n    %next = mma"),
    )
}

#[test]
fn nothing_can_be_left_out_of_a_product_whose_right_factor_is_brought() {
    let shapes: Shapes = |depth| vec![vec![128, depth], vec![depth, 128], vec![128, 128]];
    every_one_is_missed((&with_right_brought(MATMUL, "128"), shapes));
    every_one_is_missed((&with_right_brought(&with_sums_in_use(), "128"), shapes));
    // So deep that there is room for one of it, and turns enough for the ring to come round; two warpgroups.
    let shapes: Shapes = |depth| vec![vec![256, 3 * depth], vec![3 * depth, 128], vec![256, 128]];
    let deep = with_right_brought(MATMUL, "128").edit("[64,", "[128,").edit("<64 x", "<128 x");
    let deep = deep.edit(" 32]", " 256]").edit("[32,", "[256,").edit("k, 32", "k, 256");
    let deep = deep.edit("x 32 x", "x 256 x").edit("<32 x", "<256 x");
    every_one_is_missed((&deep, shapes));
}

/// The right factor is one of a stack, by a number that the producer loads for each tile.
#[test]
fn nothing_can_be_left_out_of_a_product_with_a_matrix_of_a_stack() {
    let source =
        MATMUL.edit("%b: tensor<k x n x bf16>", "%b: tensor<e x k x n x bf16>, %w: tensor<r x i32>").edit(
            "  %vb = partition %b",
            "  %vw = partition %w [1] : partition<r x i32, [1]>\n  %first = constant 0 : index\n  \
             %one = load %vw[%first] : tile<1 x i32>\n  %number = item %one : i32\n  \
             %at = cast %number : index\n  %m = view %b select 0 at %at : tensor<k x n x bf16>\n  \
             %vb = partition %m",
        );
    let shapes: Shapes = |depth| vec![vec![128, depth], vec![2, depth, 96], vec![4], vec![128, 96]];
    every_one_is_missed((&source, shapes));
}

/// Of 8-bit floats, so wide that half of the columns is done at a time.
fn in_parts() -> String {
    MATMUL
        .edit("bf16", "f8e4m3fn")
        .edit("% 8", "% 16")
        .edit(", 8)", ", 16)")
        .edit("96", "256")
        .edit("k x n x", "n x k x")
        .edit("%b [32, 256]", "%b [256, 32]")
        .edit("[32, 256]>", "[256, 32]>")
        .edit(
            "%tb = load_masked %vb[%p, %j] pad %pad : tile<32 x 256 x f8e4m3fn>",
            "%lb = load_masked %vb[%j, %p] pad %pad : tile<256 x 32 x f8e4m3fn>\n    \
             %tb = permute %lb [1, 0] : tile<32 x 256 x f8e4m3fn>",
        )
}

#[test]
fn nothing_can_be_left_out_of_a_product_that_is_done_in_parts() {
    every_one_is_missed((&in_parts(), |depth| vec![vec![128, depth], vec![256, depth], vec![128, 256]]));
}

#[test]
fn nothing_can_be_left_out_of_a_product_that_is_done_a_turn_later() {
    every_one_is_missed((ATTENTION, OF_ATTENTION));
}

/// Each tile of queries is read by two products, of which the second is done a turn later.
const TWO_WAYS: &str = "\
kernel @two_ways(%q: tensor<s x 96 x bf16>, %k: tensor<t x 96 x bf16>, %o: mut tensor<t x 96 x f32>) {
  %vq = partition %q [32, 96] : partition<s x 96 x bf16, [32, 96]>
  %vo = partition %o [64, 96] : mut partition<t x 96 x f32, [64, 96]>
  %i, %j = block_index %vo : index, index
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %0 = constant 0 : index
  %one = constant 1.0 : bf16
  %key = splat %one : tile<64 x 96 x bf16>
  %none = splat %zero : tile<64 x 96 x f32>
  %start = splat %zero : tile<64 x 32 x f32>
  %end = extent ceil_div(s, 32) : index
  %sum = for %p = %0 to %end carry (%acc = %none) : tile<64 x 96 x f32> {
    %query = load_masked %vq[%p, %0] pad %pad : tile<32 x 96 x bf16>
    %turned = permute %query [1, 0] : tile<96 x 32 x bf16>
    %scores = mma %key, %turned, %start : tile<64 x 32 x f32>
    %weights = exp2 %scores : tile<64 x 32 x f32>
    %narrow = cast %weights : tile<64 x 32 x bf16>
    %next = mma %narrow, %query, %acc : tile<64 x 96 x f32>
    yield %next
  }
  store_masked %vo, %sum
}
";

const OF_TWO_WAYS: Shapes = |queries| vec![vec![queries, 96], vec![128, 96], vec![128, 96]];

#[test]
fn nothing_can_be_left_out_of_products_that_read_one_tile() {
    every_one_is_missed((TWO_WAYS, OF_TWO_WAYS));
    // Both in their turn: what is done with the sums after it keeps the second from being late.
    let in_turn = TWO_WAYS.edit(
        "    yield %next\n",
        "    %more = add %next, %none : tile<64 x 96 x f32>\n    %some = exp2 %more : tile<64 x 96 x f32>\n    yield %some\n",
    );
    every_one_is_missed((&in_turn, OF_TWO_WAYS));
    // One that stands before the product that is done ahead, and is done after it.
    let overtaken = TWO_WAYS
        .edit("%sum = for", "%sum, %others = for")
        .edit(
            "(%acc = %none) : tile<64 x 96 x f32>",
            "(%acc = %none, %all = %start) : tile<64 x 96 x f32>, tile<64 x 32 x f32>",
        )
        .edit("    %scores", "    %other = mma %key, %turned, %all : tile<64 x 32 x f32>\n    %scores")
        .edit("yield %next", "yield %next, %other");
    every_one_is_missed((&overtaken, OF_TWO_WAYS));
}

/// Three tiles of keys, so that the ring of two stages that they have comes round.
const OF_KEYS: Shapes = |queries| vec![vec![queries, 96], vec![192, 96], vec![192, 96]];

/// The left factor of all turns lies in shared memory, for each tile that a block has after the other.
fn with_keys() -> String {
    let cut = "  %vo = partition %o";
    let view = format!("  %vk = partition %k [64, 96] : partition<t x 96 x bf16, [64, 96]>\n{cut}");
    let source = TWO_WAYS.edit(cut, &view).edit(
        "%key = splat %one : tile<64 x 96 x bf16>",
        "%key = load_masked %vk[%i, %0] pad %pad : tile<64 x 96 x bf16>",
    );
    source.edit("  %one = constant 1.0 : bf16\n", "")
}

#[test]
fn nothing_can_be_left_out_of_a_tile_of_all_turns() {
    every_one_is_missed((&with_keys(), OF_KEYS));
}

/// Two products add up, of which one is issued after the product that it stands before, and one a turn later.
#[test]
fn nothing_can_be_left_out_of_a_product_that_goes_on_beside_the_next() {
    let source = with_keys()
        .edit("%o: mut tensor<t x 96 x f32>", "%o: mut tensor<t x 96 x f32>, %w: mut tensor<t x 96 x f32>")
        .edit(
            "  %i, %j = block_index",
            "  %vw = partition %w [64, 96] : mut partition<t x 96 x f32, [64, 96]>\n  %i, %j = block_index",
        )
        .edit(
            "  %sum = for",
            "  %one = constant 1.0 : bf16\n  %value = splat %one : tile<64 x 96 x bf16>\n  %sum, %others = for",
        )
        .edit(
            "(%acc = %none) : tile<64 x 96 x f32>",
            "(%acc = %none, %all = %none) : tile<64 x 96 x f32>, tile<64 x 96 x f32>",
        )
        .edit(
            "    %next = mma %narrow, %query, %acc : tile<64 x 96 x f32>\n",
            "    %other = mma %narrow, %query, %all : tile<64 x 96 x f32>
    %slopes = mma %value, %turned, %start : tile<64 x 32 x f32>
    %both = mul %weights, %slopes : tile<64 x 32 x f32>
    %steep = cast %both : tile<64 x 32 x bf16>
    %next = mma %steep, %query, %acc : tile<64 x 96 x f32>
",
        )
        .edit("yield %next", "yield %next, %other")
        .edit("  store_masked %vo, %sum\n", "  store_masked %vo, %sum\n  store_masked %vw, %others\n");
    let shapes: Shapes = |queries| vec![vec![queries, 96], vec![192, 96], vec![192, 96], vec![192, 96]];
    every_one_is_missed((&source, shapes));
}

/// The next tile's keys are in another stage, and those of the one after that come to the first for the second time.
#[test]
fn keys_of_the_tile_before_are_missed() {
    let source = with_keys();
    let case: Case<'_> = (&source, OF_KEYS);
    let mut count = 0;
    run(case, RUNS[0], &mut |ir| count = carried(ir).len()).unwrap_or_else(|fault| panic!("{fault}"));
    let is_missed = |number: &usize| {
        let begin_anew = &mut |ir: &Ir<'_>| {
            let phi = carried(ir)[*number];
            replace_uses(phi.as_instruction(), ir.context.i32_type().const_zero().into());
        };
        RUNS[..2].iter().any(|&how| run(case, how, begin_anew).is_err())
    };
    // Of two rings the stage and the parity, in either role.
    assert_eq!((count, (0..count).filter(is_missed).count()), (8, 8));
}

/// The phis of numbers that are carried from tile to tile: those that begin with zero and aren't the number of the tile.
pub(super) fn carried<'c>(ir: &Ir<'c>) -> Vec<PhiValue<'c>> {
    let kernel: FunctionValue<'c> = ir.module.get_function(KERNEL).expect("the kernel");
    let instructions = kernel.get_basic_blocks().into_iter().flat_map(|block| block.get_instructions());
    let phis = instructions.filter_map(|instruction| PhiValue::try_from(instruction).ok());
    let begins_with_zero = |phi: &PhiValue<'c>| {
        let first = phi.get_incoming(0).map(|(value, _)| value);
        let is_short = phi.as_basic_value().get_type() == ir.context.i32_type().into();
        is_short && first == Some(ir.context.i32_type().const_zero().into())
    };
    phis.filter(begins_with_zero).collect()
}

/// The stage and the parity with which the first tile left a ring, of the producer and of the consumers: 10 turns leave a
/// ring of 8 stages at stage 2, in its second round.
#[test]
fn a_ring_that_begins_anew_at_a_tile_is_missed() {
    let mut count = 0;
    run((MATMUL, OF_MATMUL), RUNS[0], &mut |ir| count = carried(ir).len())
        .unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(count, 4);
    for number in 0..count {
        let begin_anew = &mut |ir: &Ir<'_>| {
            let phi = carried(ir)[number];
            replace_uses(phi.as_instruction(), ir.context.i32_type().const_zero().into());
        };
        let outcomes = RUNS[..2].iter().map(|&how| run((MATMUL, OF_MATMUL), how, begin_anew));
        assert!(outcomes.into_iter().any(|outcome| outcome.is_err()), "carried number {number}");
    }
}

/// The order in which warpgroups issue products is a matter of time; who isn't let begin waits forever.
#[test]
fn no_warpgroup_goes_on_before_it_is_let_begin() {
    let source = ATTENTION.edit("64 x 96", "128 x 96").edit("[64, 96]", "[128, 96]");
    let source = source.edit("<64 x 1 x", "<128 x 1 x").edit("<64 x 32 x f32", "<128 x 32 x f32");
    let source = source.edit("<64 x 64 x bf16", "<128 x 64 x bf16");
    let source = source.edit("%narrow = cast %weights : tile<64", "%narrow = cast %weights : tile<128");
    let case: Case<'_> = (&source, OF_ATTENTION);
    let mut kernel = compile_for("sm_90a", case, &mut |_| {});
    run_compiled(&kernel, case, RUNS[0]).unwrap_or_else(|fault| panic!("{fault}"));
    let mut numbers = needed(&kernel);
    numbers.retain(|&number| name(&kernel, number).contains("barrier.cta.arrive"));
    assert_eq!(numbers.len(), 2, "one before the loop, one in it");
    for number in numbers {
        let outcome = without(&mut kernel, number, |kernel| run_compiled(kernel, case, RUNS[0]));
        assert!(outcome.is_err(), "{number}");
    }
}
