//! Which kernels' blocks go on to further tiles, how that is written, and that it can't be seen.

use super::*;
use crate::abi::{KernelAbi, Sharing};
use crate::gpu::room::Room;
use crate::gpu::{print, schedule};
use crate::{Array, Instance, interp, passes, text};
use tile_test_edit::Edit;

fn instance(source: &str) -> Instance {
    passes::optimize(Instance::parse(source, &[]).unwrap_or_else(|error| panic!("{error}\n{source}")))
}

fn order_for(source: &str, target: &str) -> Option<String> {
    let (instance, target) = (instance(source), TargetDesc::named(target).unwrap());
    let pipelines = Pipelines::of(&instance, target, None, Room::ALL);
    order(&instance, target, &pipelines).map(|order| order.to_string())
}

/// y = x + 1 in tiles of `width` by 4 elements, with what a test adds to the kernel.
fn add(width: usize, attribute: &str, before: &str, after: &str) -> String {
    format!(
        "kernel @add(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>){attribute} {{
  %vx = partition %x [4, {width}] : partition<m x n x f32, [4, {width}]>
  %vy = partition %y [4, {width}] : mut partition<m x n x f32, [4, {width}]>
  %i, %j = block_index %vy : index, index
  %pad = constant 1.0 : f32
{before}  %ones = splat %pad : tile<4 x {width} x f32>
  %t = load_masked %vx[%i, %j] pad %pad : tile<4 x {width} x f32>
  %r = add %t, %ones : tile<4 x {width} x f32>
{after}  store_masked %vy, %r
}}
"
    )
}

/// A product in tiles of 128 × 128 × 64, whose factors tensor maps can bring.
fn product(attribute: &str, after: &str) -> String {
    format!(
        "kernel @product(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x f32>) \
         where \"k % 8 == 0\": rem(k, 8) eq 0, \"n % 8 == 0\": rem(n, 8) eq 0{attribute} {{
  %va = partition %a [128, 64] : partition<m x k x bf16, [128, 64]>
  %vb = partition %b [64, 128] : partition<k x n x bf16, [64, 128]>
  %vc = partition %c [128, 128] : mut partition<m x n x f32, [128, 128]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<128 x 128 x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(k, 64) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<128 x 128 x f32> {{
    %ta = load_masked %va[%i, %p] pad %pad : tile<128 x 64 x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<64 x 128 x bf16>
    %next = mma %ta, %tb, %acc : tile<128 x 128 x f32>
    yield %next
  }}
{after}  store_masked %vc, %sum
}}
"
    )
}

#[test]
fn blocks_of_a_pipeline_share_tiles_in_bands() {
    for target in ["sm_90a", "sm_100a"] {
        assert_eq!(order_for(&product("", ""), target).as_deref(), Some("grouped(8)"), "{target}");
    }
    // Where all threads copy, several blocks run on a multiprocessor.
    for target in ["sm_80", "sm_120f", "gfx942"] {
        assert_eq!(order_for(&product("", ""), target), None, "{target}");
    }
}

/// A block of 4 × 63 elements reads and writes 2016 bytes, one of 4 × 64 2048; on older GPUs half of that is small.
#[test]
fn blocks_share_small_tiles() {
    for (target, most) in [("sm_80", 31), ("sm_90a", 63), ("sm_100a", 63)] {
        assert_eq!(order_for(&add(most, "", "", ""), target).as_deref(), Some("row_major"), "{target}");
        assert_eq!(order_for(&add(most + 1, "", "", ""), target), None, "{target}");
    }
    for target in ["gfx90a", "gfx942", "gfx1201"] {
        assert_eq!(order_for(&add(16, "", "", ""), target), None, "{target}");
    }
}

#[test]
fn what_could_be_seen_keeps_one_block_per_tile() {
    let flag = "  %yes = extent m : index\n  %no = lt %i, %yes : bool\n";
    let assertion = format!("{flag}  assert 0 \"small\" %no\n");
    for said in ["  print 0 \"a tile\"\n", &assertion] {
        assert_eq!(order_for(&product("", said), "sm_90a"), None, "{said}");
        assert_eq!(order_for(&add(16, "", "", said), "sm_90a"), None, "{said}");
    }
    let counts = "  %one = constant 1 : i32
  %first = constant 0 : i32
  %by = splat %one : tile<1 x i32>
  %at = splat %first : tile<1 x i32>
  %before = atomic add relaxed device %n[%at], %by : tile<1 x i32>
";
    let counted = add(16, "", "", counts).edit("%y: mut", "%n: mut tensor<k x i32>, %y: mut");
    assert_eq!(order_for(&counted, "sm_90a"), None);
    // A view that depends on the block can't be made before the loop.
    let moved = add(16, "", "", "")
        .edit(
            "%pad = constant 1.0 : f32\n",
            "%pad = constant 1.0 : f32
  %own = view %x select 0 at %i : tensor<n x f32>
  %vo = partition %own [1] : partition<n x f32, [1]>
  %u = load_masked %vo[%j] pad %pad : tile<1 x f32>
  %w = item %u : f32
",
        )
        .edit("splat %pad", "splat %w");
    assert_eq!(order_for(&moved, "sm_90a"), None);
    // The author has the word.
    assert_eq!(order_for(&product(" grid tiles", ""), "sm_90a"), None);
    let asked = add(16, " grid tiles", "", "");
    assert_eq!(text::print(&text::parse(&asked).unwrap()), asked);
    assert_eq!(order_for(&asked, "sm_90a"), None);
}

#[test]
fn what_takes_long_besides_keeps_one_block_per_tile() {
    let sorted = "  %s, %at = sort %t axis 1 : tile<4 x 16 x f32>, tile<4 x 16 x i32>\n";
    let looped = "  %0 = constant 0 : index\n  %u = for %p = %0 to %i carry (%v = %r) : tile<4 x 16 x f32> {
    %w = add %v, %t : tile<4 x 16 x f32>\n    yield %w\n  }\n";
    for more in [sorted, looped] {
        let source = add(16, "", "", more);
        let (used, unused) = if more == sorted { ("%s", "%r") } else { ("%u", "%r") };
        let source =
            source.edit(&format!("store_masked %vy, {unused}"), &format!("store_masked %vy, {used}"));
        assert_eq!(order_for(&source, "sm_90a"), None, "{source}");
    }
}

/// Views and numbers that are the same for every tile stand before the loop, tiles don't; the block's place in the grid is
/// its tile's.
#[test]
fn the_body_becomes_that_of_a_loop_over_tiles() {
    let place = "  %row = block_id axis 0 : index
  %rows = block_count axis 0 : index
  %back = sub %rows, %row : index
  %far = cast %back : f32
";
    let source = add(16, "", place, "").edit("splat %pad", "splat %far");
    insta::assert_snapshot!(print(&schedule(instance(&source), TargetDesc::named("sm_90a").unwrap(), None)));
}

fn numbers(shape: &[usize]) -> Array {
    let count: usize = shape.iter().product();
    let values = (0..count).map(|i| (i * 37 % 101) as f64);
    Array::new(DType::F32, shape.to_vec(), crate::array::Elements::Float(values.collect()))
}

/// However many blocks share the tiles, the kernel gives what its author's gives.
#[test]
fn the_rewritten_kernel_means_the_same() {
    let place = "  %row = block_id axis 0 : index
  %columns = block_count axis 1 : index
  %at = mul %row, %columns : index
  %far = cast %at : f32
";
    let view = "  %vy = partition %y [4, 16] : mut partition<m x n x f32, [4, 16]>\n";
    let index = "  %i, %j = block_index %vy : index, index\n";
    let ids = "  %i = block_id axis 0 : index\n  %j = block_id axis 1 : index\n";
    let sources = [
        add(16, "", "", ""),
        add(16, "", place, "").edit("splat %pad", "splat %far"),
        // A block id in a branch, and the tile's old elements.
        add(16, "", "", "").edit(
            "  store_masked %vy, %r",
            "  %c = block_id axis 1 : index
  %z = constant 0 : index
  %left = eq %c, %z : bool
  %old = load_masked %vy pad %pad : tile<4 x 16 x f32>
  %s = if %left : tile<4 x 16 x f32> {
    %d = block_id axis 0 : index
    %e = cast %d : f32
    %f = splat %e : tile<4 x 16 x f32>
    %g = add %old, %f : tile<4 x 16 x f32>
    yield %g
  } else {
    yield %r
  }
  store_masked %vy, %s",
        ),
        // The block's place is used before there is a view of its own tile.
        add(16, "", "", "")
            .edit(view, "")
            .edit(index, ids)
            .edit("  store_masked", &format!("{view}  store_masked")),
    ];
    for source in sources {
        let plain = instance(&source);
        let order = order(&plain, TargetDesc::named("sm_90a").unwrap(), &Pipelines::default());
        let shared = plain.clone().rewrite("persistent", |kernel| run(kernel, order.expect("it is small")));
        for shape in [[9, 40], [1, 1], [12, 16], [0, 5]] {
            let arguments = [numbers(&shape), numbers(&[shape[0], shape[1]])];
            let mut expected = arguments.to_vec();
            interp::run(&plain, &mut expected).unwrap();
            for blocks in [1, 2, 5, 100] {
                let sharing = Sharing { blocks: Some(blocks), first_tiles: None };
                let mut found = arguments.to_vec();
                interp::run_shared(&shared, &mut found, sharing).unwrap();
                assert_eq!(found, expected, "{blocks} blocks, {shape:?} of\n{source}");
            }
        }
    }
}

#[test]
fn a_launch_passes_what_it_passes_to_the_kernel_as_written() {
    for (source, shares) in
        [(add(16, "", "", ""), true), (add(64, "", "", ""), false), (product("", ""), true)]
    {
        let instance = instance(&source);
        let scheduled = schedule(instance.clone(), TargetDesc::named("sm_90a").unwrap(), None);
        assert_eq!(scheduled.shares_grid(), shares);
        assert_eq!(scheduled.is_persistent(), shares);
        assert_eq!(scheduled.abi(), KernelAbi::of(&instance));
    }
}
