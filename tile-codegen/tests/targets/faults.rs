//! The executor of GPU code finds what is wrong with a kernel's code or launch, and says where.

use crate::support::{Memory, instance, sample};
use tile_codegen::simt::{self, Problem, RunError};
use tile_ir::{DType, TargetDesc};

const SUM: &str = "\
kernel @sum<B>(%x: tensor<n x B x f32>, %y: mut tensor<n x 1 x f32>) {
  %vx = partition %x [1, B] : partition<n x B x f32, [1, B]>
  %vy = partition %y [1, 1] : mut partition<n x 1 x f32, [1, 1]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<1 x B x f32>
  %s = reduce sum %t axis 1 : tile<1 x 1 x f32>
  store_masked %vy, %s
}
";

/// What running the kernel reports after the slots were changed.
fn fault(target: &str, change: impl FnOnce(&mut Memory)) -> Option<Problem> {
    let instance = instance(SUM, &[("B", 300)]);
    let target = TargetDesc::named(target).unwrap();
    let kernel = simt::compile(&instance, target, None).unwrap_or_else(|error| panic!("{error}"));
    let arguments = [sample(DType::F32, &[3, 300], 1), sample(DType::F32, &[3, 1], 2)];
    let mut memory = Memory::of(&instance, &arguments);
    change(&mut memory);
    // SAFETY: the slots are as the instance's ABI says; what a test makes of them is found before it is used.
    let error = unsafe { kernel.run(&memory.slots, memory.blocks) }.err()?;
    match error {
        RunError::Fault(fault) => Some(fault.problem),
        other => panic!("{other}"),
    }
}

#[test]
fn right_kernels_of_every_target_have_no_fault() {
    for target in tile_ir::target::TARGETS.iter().filter(|target| target.warp > 1) {
        assert_eq!(fault(target.name, |_| {}), None, "{}", target.name);
    }
}

#[test]
fn an_output_that_shares_an_inputs_memory_writes_it() {
    let problem = fault("sm_90a", |memory| memory.slots[1] = memory.slots[0]);
    assert!(matches!(problem, Some(Problem::WritesInput { ref argument }) if argument == "x"), "{problem:?}");
}

#[test]
fn an_address_that_is_not_aligned_is_found() {
    let problem = fault("gfx942", |memory| memory.slots[0] += 2);
    assert!(matches!(problem, Some(Problem::Misaligned { .. })), "{problem:?}");
}
