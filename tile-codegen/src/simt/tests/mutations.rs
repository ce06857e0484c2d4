//! Every wait, arrival, fence and barrier of a generated pipeline is taken away in turn, and missed.

use crate::simt::*;
use inkwell::values::{
    AnyValue, AnyValueEnum, BasicValueEnum, CallSiteValue, FunctionValue, InstructionValue,
};
use tile_ir::{specialize, text, verify};

const MATMUL: &str = "\
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
    MATMUL.replace(
        "    yield %next\n",
        "    %one = constant 1.0 : f32\n    %ones = splat %one : tile<64 x 96 x f32>\n    \
         %more = add %next, %ones : tile<64 x 96 x f32>\n    yield %more\n",
    )
}

/// Instructions without which the pipeline is wrong. What `fence.mbarrier_init` orders for other blocks of a cluster and
/// for copies the executor takes for ordered.
const NEEDED: [&str; 12] = [
    "llvm.nvvm.mbarrier.init",
    "llvm.nvvm.mbarrier.arrive.scope",
    "llvm.nvvm.mbarrier.arrive.expect.tx",
    "llvm.nvvm.mbarrier.try.wait.parity",
    "llvm.nvvm.barrier.cta",
    "llvm.nvvm.wgmma.fence",
    "llvm.nvvm.wgmma.commit_group",
    "llvm.nvvm.wgmma.wait_group",
    "tile.wgmma.wait",
    "llvm.nvvm.fence.proxy.async",
    "llvm.nvvm.cp.async.bulk.commit.group",
    "llvm.nvvm.cp.async.bulk.wait.group.read",
];

fn callee(instruction: InstructionValue<'_>) -> Option<String> {
    let call = CallSiteValue::try_from(instruction).ok()?;
    Some(call.get_called_fn_value()?.get_name().to_string_lossy().into_owned())
}

fn needed<'c>(ir: &Ir<'c>) -> Vec<(String, InstructionValue<'c>)> {
    let kernel: FunctionValue<'c> = ir.module.get_function(KERNEL).expect("the kernel");
    let instructions = kernel.get_basic_blocks().into_iter().flat_map(|block| block.get_instructions());
    let named = instructions.filter_map(|instruction| Some((callee(instruction)?, instruction)));
    named.filter(|(name, _)| NEEDED.iter().any(|needed| name.starts_with(needed))).collect()
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
        _ => None,
    });
    let value = BasicValueEnum::try_from(of.as_any_value_enum()).expect("it gives a value");
    let places = users.flat_map(|user| (0..user.get_num_operands()).map(move |i| (user, i)));
    places
        .filter(|(user, i)| user.get_operand(*i).and_then(|operand| operand.value()) == Some(value))
        .collect()
}

fn replace_uses<'c>(of: InstructionValue<'c>, by: BasicValueEnum<'c>) {
    for (user, operand) in uses(of) {
        user.set_operand(operand, by);
    }
}

/// Takes a call away; what it gives is what it would give at once.
fn remove<'c>(ir: &Ir<'c>, name: &str, call: InstructionValue<'c>) {
    if name.contains("try.wait") {
        replace_uses(call, ir.bool(true).into());
    }
    if name.starts_with("tile.wgmma.wait") {
        for (part, _) in uses(call) {
            let index = part.get_indices()[0];
            let operand = call.get_operand(index).and_then(|operand| operand.value());
            replace_uses(part, operand.expect("the wait passes its operands on"));
            part.erase_from_basic_block();
        }
    }
    call.erase_from_basic_block();
}

/// Runs the kernel without its needed instruction of this number, whose name it gives; `None` where it has none.
fn without(
    source: &str,
    number: usize,
    (depth, timing): (usize, Timing),
) -> Option<(String, Result<Trace, Fault>)> {
    let kernel = verify(text::parse(source).unwrap_or_else(|error| panic!("{error}"))).unwrap();
    let instance = specialize(&kernel, &[]).unwrap();
    let mut removed = None;
    let mut change = |ir: &Ir<'_>| {
        if let Some((name, call)) = needed(ir).into_iter().nth(number) {
            remove(ir, &name, call);
            removed = Some(name);
        }
    };
    let target = TargetDesc::named("sm_90a").unwrap();
    let kernel =
        compile_changed(&instance, target, None, &mut change).unwrap_or_else(|error| panic!("{error}"));
    let name = removed?;
    let shapes: [&[usize]; 3] = [&[128, depth], &[depth, 96], &[128, 96]];
    // Aligned as a device's memory is, and somewhere even where there are no elements.
    let words = |shape: &&[usize]| vec![0u128; shape.iter().product::<usize>().div_ceil(4).max(1)];
    let mut tensors: Vec<Vec<u128>> = shapes.iter().map(words).collect();
    let bound = KernelAbi::of(&instance).bind(&shapes).expect("shapes that fit");
    let mut slots: Vec<u64> = tensors.iter_mut().map(|tensor| tensor.as_mut_ptr() as u64).collect();
    slots.extend(&bound.sizes);
    // SAFETY: the slots are as the ABI says, and the tensors as large as their shapes.
    let result = unsafe { kernel.run_as(&slots, 1, Mode { timing, counted: false }) };
    Some((name, result))
}

/// More turns than stages, and none at all, late and early.
const RUNS: [(usize, Timing); 4] =
    [(256, Timing::Late), (256, Timing::Early), (0, Timing::Late), (0, Timing::Early)];

fn every_one_is_missed(source: &str) {
    let mut unmissed = Vec::new();
    let mut number = 0;
    while let Some((name, first)) = without(source, number, RUNS[0]) {
        let is_missed =
            |run: &(usize, Timing)| without(source, number, *run).is_some_and(|(_, it)| it.is_err());
        if first.is_ok() && !RUNS[1..].iter().any(is_missed) {
            unmissed.push(format!("{number}: {name}"));
        }
        number += 1;
    }
    assert!(unmissed.is_empty(), "of {number} instructions the executor doesn't miss {unmissed:#?}");
    assert!(number > NEEDED.len(), "the kernel has {number} of them");
}

#[test]
fn nothing_can_be_left_out_of_a_product_that_keeps_running() {
    every_one_is_missed(MATMUL);
}

#[test]
fn nothing_can_be_left_out_of_a_product_that_is_waited_for() {
    every_one_is_missed(&with_sums_in_use());
}
