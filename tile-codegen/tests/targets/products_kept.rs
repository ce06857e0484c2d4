//! Products whose packed factors the CPU target keeps for the blocks that come next, also those of a launch's next range.

use crate::support::{
    Memory, close, cpus_of, instance, is_emulated, run_native, run_range, sample, scratch_of,
};
use tile_codegen::{Options, jit};
use tile_ir::{Array, DType, Instance, interp};

/// A product in tiles of 32×32×64.
const PRODUCT: &str = "\
kernel @k(%a: tensor<m x k x f32>, %b: tensor<k x n x f32>, %c: mut tensor<m x n x f32>) {
  %va = partition %a [32, 64] : partition<m x k x f32, [32, 64]>
  %vb = partition %b [64, 32] : partition<k x n x f32, [64, 32]>
  %vc = partition %c [32, 32] : mut partition<m x n x f32, [32, 32]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : f32
  %first = splat %pad : tile<32 x 32 x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(k, 64) : index
  %sum = for %p = %0 to %end carry (%acc = %first) : tile<32 x 32 x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<32 x 64 x f32>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<64 x 32 x f32>
    %next = mma %ta, %tb, %acc : tile<32 x 32 x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

/// Its arguments, and what becomes of them.
fn arguments([m, n, k]: [usize; 3], instance: &Instance) -> ([Array; 3], Vec<Array>) {
    let arguments = [[m, k], [k, n], [m, n]].map(|shape| sample(DType::F32, &shape, shape[0]));
    let mut expected = arguments.to_vec();
    interp::run(instance, &mut expected).unwrap();
    (arguments, expected)
}

/// Rows of 4096 bytes are read in their tensor where no other block shares them, and else packed.
#[test]
fn ranges_of_a_launch_go_on_where_others_have_ended() {
    if is_emulated() {
        return;
    }
    let instance = instance(PRODUCT, &[]);
    let compiled = |cpu| (cpu, jit::compile_cpu(&instance, &Options { cpu, ..Options::default() }).unwrap());
    let kernels: Vec<_> = cpus_of(&instance).into_iter().map(compiled).collect();
    for sizes in [[128, 96, 64], [97, 70, 300], [128, 32, 512], [40, 160, 1000], [96, 64, 1024]] {
        let (arguments, expected) = arguments(sizes, &instance);
        for ((cpu, kernel), length) in kernels.iter().flat_map(|kernel| [1, 2, 3, 5, 7].map(|n| (kernel, n)))
        {
            let memory = Memory::of(&instance, &arguments);
            let what = format!("{cpu:?}, {sizes:?} in ranges of {length}");
            let mut scratch = scratch_of(kernel, u64::MAX);
            // Two threads take turns; this one has every second range.
            let starts = (0..memory.blocks).step_by(length);
            let of_thread = |thread| starts.clone().skip(thread).step_by(2);
            for (number, first) in of_thread(0).enumerate().chain(of_thread(1).enumerate()) {
                let blocks = first..(first + length as u64).min(memory.blocks);
                // SAFETY: the slots are as the instance's ABI says, and point to memory of this test.
                unsafe { run_range(kernel, &memory.slots, blocks, (&mut scratch, number > 0)) };
            }
            close(&memory.arrays(&arguments)[2], &expected[2], 0.0, &what);
        }
    }
}

/// The first column of blocks multiplies by a matrix before the first of a stack, where there is none, the second by the first
/// one, which is deeper than `a`.
const STACKED: &str = "\
kernel @k(%a: tensor<m x k x f32>, %b: tensor<h x l x n x f32>, %c: mut tensor<m x w x f32>) {
  %va = partition %a [32, 64] : partition<m x k x f32, [32, 64]>
  %vb = partition %b [1, 64, 32] : partition<h x l x n x f32, [1, 64, 32]>
  %vc = partition %c [32, 32] : mut partition<m x w x f32, [32, 32]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : f32
  %first = splat %pad : tile<32 x 32 x f32>
  %0 = constant 0 : index
  %1 = constant 1 : index
  %matrix = sub %j, %1 : index
  %end = extent ceil_div(l, 64) : index
  %sum = for %p = %0 to %end carry (%acc = %first) : tile<32 x 32 x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<32 x 64 x f32>
    %stacked = load_masked %vb[%matrix, %p, %0] pad %pad : tile<1 x 64 x 32 x f32>
    %tb = reshape %stacked : tile<64 x 32 x f32>
    %next = mma %ta, %tb, %acc : tile<32 x 32 x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

#[test]
fn what_is_kept_goes_by_the_matrix_of_a_stack() {
    if is_emulated() {
        return;
    }
    let instance = instance(STACKED, &[]);
    let arguments = [vec![32, 64], vec![1, 128, 32], vec![32, 64]].map(|shape| sample(DType::F32, &shape, 3));
    let mut expected = arguments.to_vec();
    interp::run(&instance, &mut expected).unwrap();
    for cpu in cpus_of(&instance) {
        let kernel = jit::compile_cpu(&instance, &Options { cpu, ..Options::default() }).unwrap();
        let memory = Memory::of(&instance, &arguments);
        let mut scratch = scratch_of(&kernel, u64::MAX);
        // SAFETY: the slots are as the instance's ABI says, and point to memory of this test.
        unsafe { run_range(&kernel, &memory.slots, 0..memory.blocks, (&mut scratch, false)) };
        close(&memory.arrays(&arguments)[2], &expected[2], 0.0, &format!("{cpu:?}"));
    }
}

/// Blocks of a persistent kernel, whose tiles nobody foresees, multiply by the same rows one after the other.
#[test]
fn tiles_of_one_block_share_what_is_packed() {
    let loop_at = PRODUCT.find("  %i, %j").unwrap();
    let (before, body) = PRODUCT.split_at(loop_at);
    let (index, constants) = body.split_at(body.find("  %pad").unwrap());
    let (constants, sum) = constants.split_at(constants.find("  %sum").unwrap());
    let sum = sum.strip_suffix("}\n").unwrap();
    let source = format!("{before}{constants}  tiles %vc row_major {{\n{index}{sum}  }}\n}}\n");
    let instance = instance(&source, &[]);
    for sizes in [[96, 64, 1024], [96, 160, 1024], [70, 96, 2048]] {
        let (arguments, expected) = arguments(sizes, &instance);
        for cpu in cpus_of(&instance) {
            let found = run_native(&instance, &arguments, &Options { cpu, ..Options::default() });
            close(&found[2], &expected[2], 0.0, &format!("{cpu:?}, {sizes:?}"));
        }
    }
}

/// Packed factors are those of before where a range goes on, and never where a launch begins.
#[test]
fn what_is_packed_is_kept_for_the_launch_alone() {
    if is_emulated() {
        return;
    }
    // Two rows of two blocks.
    let (sizes, instance) = ([64, 64, 1024], instance(PRODUCT, &[]));
    let kernel = jit::compile_cpu(&instance, &Options::default()).unwrap();
    let (before, expected_before) = arguments(sizes, &instance);
    let other = sample(DType::F32, &[1024, 64], 7);
    let mut expected_after = [before[0].clone(), other.clone(), before[2].clone()].to_vec();
    interp::run(&instance, &mut expected_after).unwrap();
    for (goes_on, expected) in [(true, &expected_before[2]), (false, &expected_after[2])] {
        let memory = Memory::of(&instance, &before);
        let mut scratch = scratch_of(&kernel, 0);
        // SAFETY: the slots are as the instance's ABI says, and point to memory of this test.
        unsafe { run_range(&kernel, &memory.slots, 0..4, (&mut scratch, false)) };
        let bytes = other.to_bytes();
        // SAFETY: the second slot is the address of a tensor of this size, which is this test's.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.slots[1] as *mut u8, bytes.len());
            run_range(&kernel, &memory.slots, 0..4, (&mut scratch, goes_on));
        }
        close(&memory.arrays(&before)[2], expected, 0.0, &format!("goes on: {goes_on}"));
    }
}
