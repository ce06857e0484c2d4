//! What is taken away from right code makes a fault that names the place.

use crate::simt::*;
use inkwell::values::{CallSiteValue, FunctionValue, InstructionOpcode, InstructionValue};
use tile_ir::{Instance, Loc};

const SOFTMAX: &str = "\
file \"kernel.rs\"
kernel @softmax<B>(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [3, B] : partition<m x n x f32, [3, B]>
  %vy = partition %y [3, B] : mut partition<m x n x f32, [3, B]>
  %i, %j = block_index %vy : index, index
  %pad = constant -inf : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<3 x B x f32>
  %m = reduce max %t axis 1 : tile<3 x 1 x f32> @5:13
  %mb = broadcast %m : tile<3 x B x f32> @6:17
  %d = sub %t, %mb : tile<3 x B x f32>
  %e = exp %d : tile<3 x B x f32>
  %s = reduce sum %e axis 1 : tile<3 x 1 x f32> @8:15
  %sb = broadcast %s : tile<3 x B x f32> @9:17
  %r = div %e, %sb : tile<3 x B x f32>
  store_masked %vy, %r
}
";

const MATMUL: &str = "\
file \"kernel.rs\"
kernel @matmul<B>(%a: tensor<m x n x f32>, %b: tensor<n x n x f32>, %c: mut tensor<m x n x f32>) {
  %va = partition %a [B, B] : partition<m x n x f32, [B, B]>
  %vb = partition %b [B, B] : partition<n x n x f32, [B, B]>
  %vc = partition %c [B, B] : mut partition<m x n x f32, [B, B]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : f32
  %zero = splat %pad : tile<B x B x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(n, B) : index
  %sum = for %p = %1 to %2 carry (%acc = %zero) : tile<B x B x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<B x B x f32>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<B x B x f32>
    %next = mma %ta, %tb, %acc : tile<B x B x f32> @6:19
    yield %next
  }
  store_masked %vc, %sum
}
";

fn instance(source: &str, tile: usize) -> Instance {
    Instance::parse(source, &[("B", tile)]).unwrap_or_else(|error| panic!("{error}"))
}

/// The calls of intrinsics whose name has this part, without those that only tell LLVM's scheduler an order.
pub(super) fn calls<'c>(ir: &Ir<'c>, part: &str) -> Vec<InstructionValue<'c>> {
    let kernel: FunctionValue<'c> = ir.module.get_function(KERNEL).expect("the kernel");
    let instructions = kernel.get_basic_blocks().into_iter().flat_map(|block| block.get_instructions());
    let calls = |instruction: &InstructionValue<'c>| {
        let call = CallSiteValue::try_from(*instruction).ok()?;
        let callee = call.get_called_fn_value()?;
        let name = callee.get_name().to_string_lossy();
        (name.contains(part) && !name.contains(".sched.")).then_some(())
    };
    instructions.filter(|instruction| calls(instruction).is_some()).collect()
}

/// Runs the kernel on tensors of these shapes, in so many blocks if that is given, after a change.
fn changed(
    target: &str,
    instance: &Instance,
    (shapes, blocks): (&[[usize; 2]], Option<u64>),
    change: &mut dyn FnMut(&Ir<'_>),
) -> Result<Trace, Fault> {
    let target = TargetDesc::named(target).expect("a target");
    let kernel =
        compile_changed(instance, target, Some(128), change).unwrap_or_else(|error| panic!("{error}"));
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| shape.as_slice()).collect();
    let mut tensors: Vec<Vec<f32>> = shapes.iter().map(|shape| vec![1.0; shape.iter().product()]).collect();
    let bound = KernelAbi::of(instance).bind(&shapes).expect("shapes that fit");
    let mut slots: Vec<u64> = tensors.iter_mut().map(|tensor| tensor.as_mut_ptr() as u64).collect();
    slots.extend(&bound.sizes);
    // SAFETY: the slots are as the ABI says, and the tensors as large as their shapes.
    let result = unsafe { kernel.run(&slots, blocks.unwrap_or(bound.blocks() as u64)) };
    result.map_err(|error| match error {
        RunError::Fault(fault) => fault,
        other => panic!("{other}"),
    })
}

/// Runs it without its barrier of this number; `None` where it has no such barrier.
fn without_barrier(
    target: &str,
    instance: &Instance,
    run: (&[[usize; 2]], Option<u64>),
    number: usize,
) -> Option<Result<Trace, Fault>> {
    let mut found = false;
    let result = changed(target, instance, run, &mut |ir| {
        if let Some(barrier) = calls(ir, "barrier").get(number) {
            barrier.erase_from_basic_block();
            found = true;
        }
    });
    found.then_some(result)
}

/// Every barrier of the kernel in turn is taken away; gives their number.
fn every_barrier_is_missed(source: &str, tile: usize, shapes: &[[usize; 2]], places: &[Loc]) {
    for target in ["sm_90a", "gfx942"] {
        let number = every_barrier_of_blocks_is_missed(target, (source, tile), (shapes, None), places);
        assert!(number > 1, "the kernel has {number} barriers");
    }
}

/// The same on one target, in so many blocks if that is given; gives the number of barriers.
fn every_barrier_of_blocks_is_missed(
    target: &str,
    (source, tile): (&str, usize),
    run: (&[[usize; 2]], Option<u64>),
    places: &[Loc],
) -> usize {
    let instance = instance(source, tile);
    let mut number = 0;
    while let Some(result) = without_barrier(target, &instance, run, number) {
        let fault = result.expect_err(&format!("{target} without its barrier {number} is right"));
        let found = match &fault.problem {
            Problem::Race { memory: Memory::Shared, earlier, .. } => places.contains(&earlier.place),
            Problem::Uninitialized { .. } => true,
            _ => false,
        };
        assert!(found && places.contains(&fault.place), "{target} without its barrier {number}: {fault}");
        number += 1;
    }
    number
}

#[test]
fn every_barrier_of_a_softmax_is_missed() {
    let places = [Loc::new(5, 13), Loc::new(6, 17), Loc::new(8, 15), Loc::new(9, 17)];
    every_barrier_is_missed(SOFTMAX, 300, &[[5, 280]; 2], &places);
}

/// A thread stores the sum of a row, and all of them load it.
const STORED: &str = "\
file \"kernel.rs\"
kernel @stored<B>(%x: tensor<m x B x f32>, %s: mut tensor<m x 1 x f32>, %y: mut tensor<m x B x f32>) {
  %vx = partition %x [1, B] : partition<m x B x f32, [1, B]>
  %vs = partition %s [1, 1] : mut partition<m x 1 x f32, [1, 1]>
  %vy = partition %y [1, B] : mut partition<m x B x f32, [1, B]>
  %i, %j = block_index %vy : index, index
  %t = load %vx[%i, %j] : tile<1 x B x f32>
  %sum = reduce sum %t axis 1 : tile<1 x 1 x f32>
  store %vs, %sum @6:3
  %again = load %vs : tile<1 x 1 x f32> @7:13
  %all = broadcast %again : tile<1 x B x f32>
  %r = div %t, %all : tile<1 x B x f32>
  store %vy, %r
}
";

fn fences<'c>(ir: &Ir<'c>) -> Vec<InstructionValue<'c>> {
    let kernel: FunctionValue<'c> = ir.module.get_function(KERNEL).expect("the kernel");
    let instructions = kernel.get_basic_blocks().into_iter().flat_map(|block| block.get_instructions());
    instructions.filter(|instruction| instruction.get_opcode() == InstructionOpcode::Fence).collect()
}

/// The barrier of the reduction orders shared memory alone; those before the store and before the load the tensor, too. Were
/// one of the last one's fences like those of the first, nothing would order the load behind the store.
#[test]
fn a_barrier_that_orders_a_tensor_is_missed_where_it_orders_shared_memory_alone() {
    for target in ["gfx942", "gfx1100", "gfx1201"] {
        let instance = instance(STORED, 256);
        let run: (&[[usize; 2]], _) = (&[[2, 256], [2, 1], [2, 256]], None);
        let mut complete = Vec::new();
        let found = changed(target, &instance, run, &mut |ir| {
            let kind = ir.context.get_kind_id("mmra");
            let orders_all = |fence: &InstructionValue<'_>| fence.get_metadata(kind).is_none();
            complete = fences(ir).iter().map(orders_all).collect();
        });
        found.unwrap_or_else(|fault| panic!("{target}: {fault}"));
        assert_eq!(complete, [false, false, true, true, true, true], "{target}");
        for number in [4, 5] {
            let result = changed(target, &instance, run, &mut |ir| {
                let kind = ir.context.get_kind_id("mmra");
                let of_shared = fences(ir)[0].get_metadata(kind).expect("it orders shared memory");
                fences(ir)[number].set_metadata(of_shared, kind).expect("an instruction takes metadata");
            });
            let fault =
                result.expect_err(&format!("{target} is right though fence {number} orders no tensor"));
            let Problem::Race { memory: Memory::Tensor(name), earlier, .. } = &fault.problem else {
                panic!("{target}: {fault}")
            };
            assert_eq!((name.as_str(), earlier.place, fault.place), ("s", Loc::new(6, 3), Loc::new(7, 13)));
        }
    }
}

/// Two tiles of one block go through the same shared memory, one after the other.
const LARGEST: &str = "\
file \"kernel.rs\"
kernel @largest<B>(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [1, B] : partition<m x n x f32, [1, B]>
  %vy = partition %y [1, B] : mut partition<m x n x f32, [1, B]>
  %i, %j = block_index %vy : index, index
  %pad = constant -inf : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<1 x B x f32>
  %m = reduce max %t axis 1 : tile<1 x 1 x f32> @5:13
  %mb = broadcast %m : tile<1 x B x f32> @6:17
  %d = sub %t, %mb : tile<1 x B x f32>
  store_masked %vy, %d
}
";

/// One barrier before the partial results of warps are read, and one before those of the next tile are written.
#[test]
fn every_barrier_of_a_block_that_goes_on_is_missed() {
    let places = [Loc::new(5, 13), Loc::new(6, 17)];
    let run: (&[[usize; 2]], _) = (&[[5, 200]; 2], Some(2));
    assert_eq!(every_barrier_of_blocks_is_missed("sm_90a", (LARGEST, 200), run, &places), 2);
}

#[test]
fn every_barrier_of_a_matrix_product_is_missed() {
    every_barrier_is_missed(MATMUL, 16, &[[20, 33], [33, 33], [20, 33]], &[Loc::new(6, 19)]);
}

/// Two lines, one after the other, whose keys go to other warps.
const SORTED: &str = "\
file \"kernel.rs\"
kernel @sorted<B>(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [2, B] : partition<m x n x f32, [2, B]>
  %vy = partition %y [2, B] : mut partition<m x n x f32, [2, B]>
  %i, %j = block_index %vy : index, index
  %pad = constant inf : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<2 x B x f32>
  %s, %at = sort %t axis 1 : tile<2 x B x f32>, tile<2 x B x i32> @5:13
  store_masked %vy, %s
}
";

/// One before elements are read and one before places are. Those before keys are written and read stand where runs are
/// compared backwards, and once more for what is nearer, if that is in another warp.
#[test]
fn every_barrier_of_a_sort_is_missed() {
    for (target, barriers) in [("sm_90a", 6), ("gfx942", 4)] {
        let run: (&[[usize; 2]], _) = (&[[2, 1000]; 2], None);
        let number = every_barrier_of_blocks_is_missed(target, (SORTED, 1000), run, &[Loc::new(5, 13)]);
        assert_eq!(number, barriers, "{target}");
    }
}

/// Tiles are copied to shared memory some turns ahead.
const COPIED: &str = "\
kernel @copied(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x f32>) where \"k % 8 == 0\": rem(k, 8) eq 0, \"n % 8 == 0\": rem(n, 8) eq 0 {
  %va = partition %a [32, 32] : partition<m x k x bf16, [32, 32]>
  %vb = partition %b [32, 32] : partition<k x n x bf16, [32, 32]>
  %vc = partition %c [32, 32] : mut partition<m x n x f32, [32, 32]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<32 x 32 x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, 32) : index
  %sum = for %p = %1 to %2 carry (%acc = %zero) : tile<32 x 32 x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<32 x 32 x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<32 x 32 x bf16>
    %next = mma %ta, %tb, %acc : tile<32 x 32 x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

/// The same with a left factor whose rows are gathered.
const GATHERED: &str = "\
kernel @gathered(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %ids: tensor<r x i32>, %c: mut tensor<r x n x f32>) where \"k % 8 == 0\": rem(k, 8) eq 0, \"n % 8 == 0\": rem(n, 8) eq 0 {
  %vi = partition %ids [32] : partition<r x i32, [32]>
  %vb = partition %b [32, 32] : partition<k x n x bf16, [32, 32]>
  %vc = partition %c [32, 32] : mut partition<r x n x f32, [32, 32]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<32 x 32 x f32>
  %which = load %vi[%i] : tile<32 x i32>
  %column = reshape %which : tile<32 x 1 x i32>
  %rows = broadcast %column : tile<32 x 32 x i32>
  %counted = iota 1 : tile<32 x 32 x i32>
  %width = constant 32 : index
  %1 = constant 0 : index
  %2 = extent ceil_div(k, 32) : index
  %sum = for %p = %1 to %2 carry (%acc = %zero) : tile<32 x 32 x f32> {
    %start = mul %p, %width : index
    %from = cast %start : i32
    %starts = splat %from : tile<32 x 32 x i32>
    %columns = add %starts, %counted : tile<32 x 32 x i32>
    %ta = gather_load %a[%rows, %columns] pad %pad : tile<32 x 32 x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<32 x 32 x bf16>
    %next = mma %ta, %tb, %acc : tile<32 x 32 x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

/// Runs [`COPIED`] or [`GATHERED`] for sm_80, through more turns than there are stages, without the call of this number of
/// an intrinsic whose name has this part; tells whether there is such a call.
fn without_call(source: &str, part: &str, number: usize, timing: Timing) -> (bool, Result<Trace, RunError>) {
    let instance = Instance::parse(source, &[]).expect("a right kernel");
    let target = TargetDesc::named("sm_80").expect("a target");
    let mut found = false;
    let mut change = |ir: &Ir<'_>| {
        if let Some(call) = calls(ir, part).get(number) {
            call.erase_from_basic_block();
            found = true;
        }
    };
    let kernel =
        compile_changed(&instance, target, None, &mut change).unwrap_or_else(|error| panic!("{error}"));
    let (factors, sums): ([&[usize]; 2], &[usize]) = ([&[32, 256], &[256, 32]], &[32, 32]);
    let ids: &[&[usize]] = if source == GATHERED { &[&[32]] } else { &[] };
    let shapes: Vec<&[usize]> = [&factors[..], ids, &[sums]].concat();
    // As aligned as kernels rely on.
    let tensor = |shape: &&[usize]| vec![0u128; shape.iter().product::<usize>().div_ceil(4)];
    let mut tensors: Vec<Vec<u128>> = shapes.iter().map(tensor).collect();
    let bound = KernelAbi::of(&instance).bind(&shapes).expect("shapes that fit");
    let mut slots: Vec<u64> = tensors.iter_mut().map(|tensor| tensor.as_mut_ptr() as u64).collect();
    slots.extend(&bound.sizes);
    let mode = Mode { timing, counted: false };
    // SAFETY: the slots are as the ABI says, and the tensors at least as large as their shapes.
    let result = unsafe { kernel.run_as(&slots, bound.blocks() as u64, mode) };
    (found, result)
}

/// Three prologues and the loop end groups, the loop waits for one, and there are so many barriers.
fn every_wait_is_missed(source: &str, barriers: usize) {
    for timing in [Timing::Late, Timing::Early] {
        let (_, whole) = without_call(source, "no such call", 0, timing);
        whole.unwrap_or_else(|fault| panic!("{fault}"));
    }
    for (part, count) in [("cp.async.commit.group", 4), ("cp.async.wait.group", 1), ("barrier", barriers)] {
        for number in 0..count {
            let run = |timing| without_call(source, part, number, timing);
            let results = [Timing::Late, Timing::Early].map(run);
            let is_missed = results.iter().any(|(found, result)| *found && result.is_err());
            assert!(is_missed, "the kernel is right without call {number} of {part}");
        }
        assert!(!without_call(source, part, count, Timing::Late).0, "there are more calls of {part}");
    }
}

/// There is one barrier, in the loop.
#[test]
fn every_wait_of_copies_is_missed() {
    every_wait_is_missed(COPIED, 1);
}

/// Before the loop threads give each other the numbers of the rows that they copy, by a barrier, and behind another one
/// copy to where these were.
#[test]
fn every_wait_of_gathered_copies_is_missed() {
    every_wait_is_missed(GATHERED, 3);
}

/// The second product of a turn goes on in the next one.
const LATE: &str = "\
kernel @late(%q: tensor<s x 64 x bf16>, %k: tensor<t x 64 x bf16>, %v: tensor<t x 64 x bf16>, %o: mut tensor<s x 64 x f32>) {
  %vq = partition %q [64, 64] : partition<s x 64 x bf16, [64, 64]>
  %vk = partition %k [64, 64] : partition<t x 64 x bf16, [64, 64]>
  %vv = partition %v [64, 64] : partition<t x 64 x bf16, [64, 64]>
  %vo = partition %o [64, 64] : mut partition<s x 64 x f32, [64, 64]>
  %i, %j = block_index %vo : index, index
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %0 = constant 0 : index
  %query = load_masked %vq[%i, %0] pad %pad : tile<64 x 64 x bf16>
  %none = splat %zero : tile<64 x 64 x f32>
  %end = extent ceil_div(t, 64) : index
  %sum = for %p = %0 to %end carry (%acc = %none) : tile<64 x 64 x f32> {
    %key = load_masked %vk[%p, %0] pad %pad : tile<64 x 64 x bf16>
    %value = load_masked %vv[%p, %0] pad %pad : tile<64 x 64 x bf16>
    %turned = permute %key [1, 0] : tile<64 x 64 x bf16>
    %scores = mma %query, %turned, %none : tile<64 x 64 x f32>
    %weights = exp2 %scores : tile<64 x 64 x f32>
    %narrow = cast %weights : tile<64 x 64 x bf16>
    %next = mma %narrow, %value, %acc : tile<64 x 64 x f32>
    yield %next
  }
  store_masked %vo, %sum
}
";

/// Runs [`LATE`] for sm_90a in one block that has three places of the grid, through more turns than there are stages, after
/// a change; tells whether the sums are right. Scores are zero, so that all weights are one, as all values are.
fn late(change: &mut dyn FnMut(&Ir<'_>), timing: Timing) -> Result<bool, RunError> {
    let instance = Instance::parse(LATE, &[]).expect("a right kernel");
    let target = TargetDesc::named("sm_90a").expect("a target");
    let kernel = compile_changed(&instance, target, None, change).unwrap_or_else(|error| panic!("{error}"));
    let shapes: [&[usize]; 4] = [&[192, 64], &[640, 64], &[640, 64], &[192, 64]];
    let mut tensors: Vec<Vec<u128>> = shapes.map(|shape| vec![0; shape.iter().product::<usize>() / 4]).into();
    tensors[2].fill(u128::from_ne_bytes([0x3f80_u16.to_ne_bytes(); 8].concat().try_into().expect("16")));
    let bound = KernelAbi::of(&instance).bind(&shapes).expect("shapes that fit");
    let mut slots: Vec<u64> = tensors.iter_mut().map(|tensor| tensor.as_mut_ptr() as u64).collect();
    slots.extend(&bound.sizes);
    // SAFETY: the slots are as the ABI says, and the tensors at least as large as their shapes.
    unsafe { kernel.run_as(&slots, 1, Mode { timing, counted: false }) }?;
    let four = u128::from_ne_bytes([640_f32.to_ne_bytes(); 4].concat().try_into().expect("16"));
    Ok(tensors[3].iter().all(|sums| *sums == four))
}

/// Makes a wait for products one that lets all go on.
fn wait_for_none<'c>(ir: &Ir<'c>, wait: InstructionValue<'c>) {
    let call = CallSiteValue::try_from(wait).expect("a call");
    let callee = call.get_called_fn_value().expect("a declaration");
    let name = callee.get_name().to_string_lossy().into_owned();
    let sums = name.splitn(5, '.').nth(4).expect("a wait's name has its sums");
    let name = format!("tile.wgmma.wait.7.{sums}");
    let other = ir.module.get_function(&name);
    let other = other.unwrap_or_else(|| ir.module.add_function(&name, callee.get_type(), None));
    let place = wait.get_num_operands() - 1;
    assert!(wait.set_operand(place, other.as_global_value().as_pointer_value()));
}

/// Before the loop, for the product of the turn before, for the next turn's first product, and after the loop: there sums
/// are wrong.
#[test]
fn every_wait_of_a_late_product_is_missed() {
    for timing in [Timing::Late, Timing::Early] {
        assert!(late(&mut |_| {}, timing).unwrap_or_else(|fault| panic!("{fault}")), "{timing:?}");
    }
    for number in 0..4 {
        let mut found = 0;
        let mut change = |ir: &Ir<'_>| {
            let waits = calls(ir, "tile.wgmma.wait.");
            found = waits.len();
            wait_for_none(ir, waits[number]);
        };
        let results = [Timing::Late, Timing::Early].map(|timing| late(&mut change, timing));
        assert_eq!(found, 4);
        let is_missed = results.iter().any(|result| {
            matches!(
                result,
                Ok(false) | Err(RunError::Fault(Fault { problem: Problem::InFlight { .. }, .. }))
            )
        });
        assert!(is_missed, "the kernel is right without its wait {number}: {results:?}");
    }
}

/// A turn leaves the stages of what it read: those of its first product, of the late one before, and of the last one; and a
/// place of the grid that of what all its turns read.
#[test]
fn every_stage_that_a_late_product_leaves_is_missed() {
    for number in 0..4 {
        let mut found = 0;
        let mut change = |ir: &Ir<'_>| {
            let arrivals = calls(ir, "mbarrier.arrive.scope");
            found = arrivals.len();
            arrivals[number].erase_from_basic_block();
        };
        let result = late(&mut change, Timing::Late);
        assert_eq!(found, 4);
        let fault = result.expect_err(&format!("the kernel is right without its arrival {number}"));
        assert!(matches!(fault, RunError::Fault(Fault { problem: Problem::Stuck(_), .. })), "{fault}");
    }
}
