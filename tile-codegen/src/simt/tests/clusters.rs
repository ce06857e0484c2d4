//! Blocks that share a tile: what is taken away from their barriers and addresses is objected to.

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

/// What the executor says of the kernel after a change.
fn run(change: &mut dyn FnMut(&Ir<'_>)) -> Result<(), String> {
    let instance = Instance::parse(NORMS, &[]).unwrap_or_else(|error| panic!("{error}"));
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

#[test]
fn it_is_right_as_it_is() {
    assert_eq!(run(&mut |_| {}), Ok(()));
}

/// That before blocks reach each other, that by which a reduction joins blocks, and that before the next turn's.
#[test]
fn every_barrier_is_missed() {
    let count = |part: &str| {
        let mut found = 0;
        run(&mut |ir| found = calls(ir, part).len()).expect("it is right");
        found
    };
    assert_eq!([count("barrier.cluster.arrive"), count("barrier.cta")], [3, 1]);
    let without = |part: &str, number: usize| {
        run(&mut |ir| calls(ir, part)[number].erase_from_basic_block()).expect_err("a barrier is missed")
    };
    let said = without("barrier.cta", 0);
    assert!(said.contains(" at 9:9: "), "{said}");
    for number in 0..3 {
        let said = run(&mut |ir| {
            for part in ["barrier.cluster.arrive", "barrier.cluster.wait"] {
                calls(ir, part)[number].erase_from_basic_block();
            }
        });
        let said = said.expect_err("a barrier of the cluster is missed");
        let expected = if number == 0 { "which may not have begun" } else { "no barrier" };
        assert!(said.contains(expected) && said.contains(" at 9:9: "), "{number}: {said}");
    }
}

/// Each block has a place of its own for every block.
#[test]
fn blocks_write_to_all_and_not_twice_to_one() {
    let said = run(&mut |ir| {
        let first = calls(ir, "mapa")[0].get_operand(1).expect("a rank").value().expect("a number");
        assert!(calls(ir, "mapa")[3].set_operand(1, first));
    });
    let said = said.expect_err("a block lacks what others have");
    assert!(said.contains("nobody wrote") || said.contains("no barrier"), "{said}");
}
