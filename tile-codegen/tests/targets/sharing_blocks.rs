//! Tiles that the blocks of a cluster hold together, run as a Hopper GPU's threads would, beside the evaluator.

use crate::support::{close, instance, run_simt_as, sample};
use tile_codegen::{Code, Options, compile};
use tile_ir::gpu::schedule;
use tile_ir::target::TARGETS;
use tile_ir::{Array, DType, Instance, TargetDesc, interp, passes};

/// The blocks that share each tile.
fn blocks(instance: &Instance) -> u32 {
    let target = TargetDesc::named("sm_90a").unwrap();
    schedule(passes::optimize(instance.clone()), target, None).blocks_per_tile()
}

/// Runs a kernel whose tiles so many blocks share; its last argument is the output.
fn check(source: &str, expected_blocks: u32, arguments: &[Array], tolerance: f64) {
    let instance = instance(source, &[]);
    assert_eq!(blocks(&instance), expected_blocks, "{source}");
    let mut expected = arguments.to_vec();
    interp::run(&instance, &mut expected).unwrap();
    let found = run_simt_as("sm_90a", &instance, arguments, None);
    let last = arguments.len() - 1;
    close(&found[last], &expected[last], tolerance, source);
}

/// The code of a kernel whose tiles four blocks share, for every target that has clusters.
fn codes(source: &str) -> Vec<String> {
    let of_target = |target: &TargetDesc| {
        let artifact = compile(&instance(source, &[]), target, &Options::default()).unwrap();
        assert_eq!((artifact.launch.cluster, artifact.launch.blocks_per_tile), (4, 4));
        let Code::Ptx(ptx) = artifact.code else { panic!("PTX") };
        assert!(ptx.contains(".reqnctapercluster 4"), "{ptx}");
        ptx
    };
    let codes: Vec<String> = TARGETS.iter().filter(|target| target.clusters).map(of_target).collect();
    assert!(codes.len() >= 2);
    codes
}

/// Whether a kernel's code comes to the cluster's barrier, on all of these targets or on none.
fn meets_at_the_clusters_barrier(source: &str) -> bool {
    let meets: Vec<bool> = codes(source).iter().map(|code| code.contains("barrier.cluster")).collect();
    assert!(meets.iter().all(|&one| one == meets[0]), "{meets:?}");
    meets[0]
}

fn softmax(dtype: DType, extent: usize) -> String {
    format!(
        "kernel @softmax(%x: tensor<m x n x {dtype}>, %y: mut tensor<m x n x {dtype}>) {{
  %vx = partition %x [1, {extent}] : partition<m x n x {dtype}, [1, {extent}]>
  %vy = partition %y [1, {extent}] : mut partition<m x n x {dtype}, [1, {extent}]>
  %i, %j = block_index %vy : index, index
  %pad = constant -inf : {dtype}
  %t = load_masked %vx[%i, %j] pad %pad : tile<1 x {extent} x {dtype}>
  %f = cast %t : tile<1 x {extent} x f32>
  %m = reduce max %f axis 1 : tile<1 x 1 x f32>
  %mb = broadcast %m : tile<1 x {extent} x f32>
  %d = sub %f, %mb : tile<1 x {extent} x f32>
  %e = exp %d : tile<1 x {extent} x f32>
  %s = reduce sum %e axis 1 : tile<1 x 1 x f32>
  %sb = broadcast %s : tile<1 x {extent} x f32>
  %r = div %e, %sb : tile<1 x {extent} x f32>
  %z = cast %r : tile<1 x {extent} x {dtype}>
  store_masked %vy, %z
}}
"
    )
}

#[test]
fn rows_are_normalised_by_clusters() {
    // Of 32769 elements one alone is in the second half.
    for (dtype, extent, rows, n, blocks) in [
        (DType::F32, 65536, 2, 65536, 4),
        (DType::F32, 65536, 2, 32769, 4),
        (DType::BF16, 131072, 1, 131072, 8),
        (DType::BF16, 131072, 2, 70001, 8),
    ] {
        let arguments = [sample(dtype, &[rows, n], 1), sample(dtype, &[rows, n], 2)];
        check(&softmax(dtype, extent), blocks, &arguments, 1e-6);
    }
}

/// Of a matrix each block has rows, so that columns are joined by blocks and rows aren't.
#[test]
fn matrices_are_reduced_along_both_axes() {
    for (axis, shape, barriers) in [(0, "1 x 256", true), (1, "256 x 1", false)] {
        let source = format!(
            "kernel @centred(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {{
  %vx = partition %x [256, 256] : partition<m x n x f32, [256, 256]>
  %vy = partition %y [256, 256] : mut partition<m x n x f32, [256, 256]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<256 x 256 x f32>
  %m = reduce sum %t axis {axis} : tile<{shape} x f32>
  %b = broadcast %m : tile<256 x 256 x f32>
  %r = sub %t, %b : tile<256 x 256 x f32>
  store_masked %vy, %r
}}
"
        );
        check(&source, 4, &[sample(DType::F32, &[300, 250], 1), sample(DType::F32, &[300, 250], 2)], 1e-5);
        assert_eq!(meets_at_the_clusters_barrier(&source), barriers, "axis {axis}");
    }
}

/// Nothing goes from block to block, and loops and branches are those of all of them.
#[test]
fn elements_in_loops_need_no_barrier() {
    let source = "\
kernel @powers(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [65536] : partition<n x f32, [65536]>
  %vy = partition %y [65536] : mut partition<n x f32, [65536]>
  %i = block_index %vy : index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i] pad %pad : tile<65536 x f32>
  %0 = constant 0 : index
  %3 = constant 3 : index
  %product = for %p = %0 to %3 carry (%all = %t) : tile<65536 x f32> {
    %next = mul %all, %t : tile<65536 x f32>
    yield %next
  }
  store_masked %vy, %product
}
";
    check(source, 4, &[sample(DType::F32, &[70000], 1), sample(DType::F32, &[70000], 2)], 1e-6);
    assert!(!meets_at_the_clusters_barrier(source));
}

/// A loop that joins blocks in each turn: its buffers are written again while others may still read them.
#[test]
fn reductions_in_loops_wait_for_all_blocks() {
    let source = "\
kernel @norms(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [65536] : partition<n x f32, [65536]>
  %vy = partition %y [65536] : mut partition<n x f32, [65536]>
  %i = block_index %vy : index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i] pad %pad : tile<65536 x f32>
  %0 = constant 0 : index
  %3 = constant 3 : index
  %result = for %p = %0 to %3 carry (%all = %t) : tile<65536 x f32> {
    %most = reduce max %all axis 0 : tile<1 x f32>
    %b = broadcast %most : tile<65536 x f32>
    %next = sub %all, %b : tile<65536 x f32>
    yield %next
  }
  store_masked %vy, %result
}
";
    check(source, 4, &[sample(DType::F32, &[65536], 1), sample(DType::F32, &[65536], 2)], 1e-6);
}

/// The second reduction of a turn joins blocks, and the first one only warps, whose barrier no other block comes to.
#[test]
fn reductions_within_blocks_and_across_them_in_one_loop() {
    let source = "\
kernel @levelled(%x: tensor<256 x 256 x f32>, %y: mut tensor<256 x 256 x f32>) {
  %vx = partition %x [256, 256] : partition<256 x 256 x f32, [256, 256]>
  %vy = partition %y [256, 256] : mut partition<256 x 256 x f32, [256, 256]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<256 x 256 x f32>
  %0 = constant 0 : index
  %3 = constant 3 : index
  %result = for %p = %0 to %3 carry (%all = %t) : tile<256 x 256 x f32> {
    %rows = reduce max %all axis 1 : tile<256 x 1 x f32>
    %most = reduce max %rows axis 0 : tile<1 x 1 x f32>
    %b = broadcast %most : tile<256 x 256 x f32>
    %next = sub %all, %b : tile<256 x 256 x f32>
    yield %next
  }
  store_masked %vy, %result
}
";
    check(source, 4, &[sample(DType::F32, &[256, 256], 1), sample(DType::F32, &[256, 256], 2)], 1e-6);
}

/// Threads of all blocks wait before they load what one of them stores later, and have arrived at the same barrier before.
#[test]
fn what_is_there_is_loaded_before_blocks_join_anything() {
    let source = "\
kernel @added(%x: tensor<m x 65536 x f32>, %s: mut tensor<m x 1 x f32>) {
  %vx = partition %x [1, 65536] : partition<m x 65536 x f32, [1, 65536]>
  %vs = partition %s [1, 1] : mut partition<m x 1 x f32, [1, 1]>
  %i, %j = block_index %vs : index, index
  %pad = constant 0.0 : f32
  %0 = constant 0 : index
  %old = load_masked %vs pad %pad : tile<1 x 1 x f32>
  %t = load_masked %vx[%i, %0] pad %pad : tile<1 x 65536 x f32>
  %sum = reduce sum %t axis 1 : tile<1 x 1 x f32>
  %new = add %old, %sum : tile<1 x 1 x f32>
  store_masked %vs, %new
}
";
    check(source, 4, &[sample(DType::F32, &[2, 65536], 1), sample(DType::F32, &[2, 1], 2)], 1e-4);
}

/// What threads of different blocks would have to exchange otherwise stays in one block.
#[test]
fn other_exchanges_keep_a_tile_in_one_block() {
    let of = |op: &str| {
        let source = format!(
            "kernel @moved(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {{
  %vx = partition %x [65536] : partition<n x f32, [65536]>
  %vy = partition %y [65536] : mut partition<n x f32, [65536]>
  %i = block_index %vy : index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i] pad %pad : tile<65536 x f32>
  {op}
  store_masked %vy, %r
}}
"
        );
        blocks(&instance(&source, &[]))
    };
    assert_eq!(of("%r = exp %t : tile<65536 x f32>"), 4);
    assert_eq!(of("%r = scan sum %t axis 0 : tile<65536 x f32>"), 1);
    assert_eq!(of("%r = flip %t axis 0 : tile<65536 x f32>"), 1);
}
