//! Which loops become pipelines, and what of them.

use super::super::{Scheduled, pair_axis, print, schedule, verify as verify_schedule};
use super::{Pipelines, Slice};
use crate::kernel::OpId;
use crate::ops::Op;
use crate::{Instance, TargetDesc, VerifiedKernel};
use tile_test_edit::Edit;

pub(in super::super) const MATMUL: &str = "\
kernel @matmul<M, N, K>(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x f32>) where \"k % 64 == 0\": rem(k, 64) eq 0, \"n % 8 == 0\": rem(n, 8) eq 0 {
  %va = partition %a [M, K] : partition<m x k x bf16, [M, K]>
  %vb = partition %b [K, N] : partition<k x n x bf16, [K, N]>
  %vc = partition %c [M, N] : mut partition<m x n x f32, [M, N]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<M x N x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, K) : index
  %sum = for %p = %1 to %2 carry (%acc = %zero) : tile<M x N x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<M x K x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<K x N x bf16>
    %next = mma %ta, %tb, %acc : tile<M x N x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

fn scheduled(source: &str, bindings: &[(&str, usize)]) -> String {
    let instance = crate::passes::optimize(Instance::parse(source, bindings).unwrap());
    print(&schedule(instance, TargetDesc::named("sm_90a").unwrap(), None))
}

#[test]
fn tiles_of_a_product_are_copied_ahead() {
    insta::assert_snapshot!(scheduled(MATMUL, &[("M", 128), ("N", 256), ("K", 64)]));
}

/// The loop again behind itself, over other columns of b, for what is added.
pub(in super::super) fn twice() -> String {
    let (before, rest) = MATMUL.split_once("  %sum = for").unwrap();
    let (body, after) = rest.split_once("  store_masked").unwrap();
    let renamed = [("%p", "%q"), ("%qad", "%pad"), ("%acc", "%more"), ("%ta", "%ua"), ("%tb", "%ub")];
    let renamed = renamed.into_iter().chain([("%vb[%q, %j]", "%vb[%q, %i]"), ("%next", "%then")]);
    let again = renamed.fold(body.to_owned(), |text, (from, to)| text.edit(from, to));
    let all = "  %all = add %sum, %other : tile<M x N x f32>\n";
    format!(
        "{before}  %sum = for{body}  %other = for{again}{all}  store_masked{}",
        after.edit("%sum", "%all")
    )
}

/// Rings have fewer stages where there are more of them.
#[test]
fn two_loops_share_the_room_for_their_stages() {
    let scheduled = in_tiles_of_64(&twice());
    let stages: Vec<u64> = scheduled.pipelines().all().map(|(_, pipeline)| pipeline.stages).collect();
    assert_eq!(stages, [8, 5]);
    let wide = twice().edit("<M, N, K>", "").replace('M', "128").replace('N', "256").replace('K', "64");
    let wide = in_tiles_of_64(&wide);
    let stages: Vec<u64> = wide.pipelines().all().map(|(_, pipeline)| pipeline.stages).collect();
    assert_eq!((stages, wide.remarks().len()), (vec![2, 2], 0));
}

/// The product of a and of what `factor` makes b, summed in `sum`.
fn matmul_of(dtype: &str, sum: &str, b: [&str; 3]) -> super::super::Scheduled {
    scheduled_matmul(&matmul_source(dtype, sum, b))
}

fn scheduled_matmul(source: &str) -> super::super::Scheduled {
    let numbers = ["M", "N", "K"].map(|name| (name, 64));
    let instance = crate::passes::optimize(Instance::parse(source, &numbers).unwrap());
    schedule(instance, TargetDesc::named("sm_90a").unwrap(), None)
}

fn matmul_source(dtype: &str, sum: &str, b: [&str; 3]) -> String {
    let [ty, loaded, index] = b;
    let turned = if ty == "n x k" { "    %tt = permute %tb [1, 0] : tile<K x N x bf16>\n" } else { "" };
    MATMUL
        .edit("k x n x bf16", &format!("{ty} x bf16"))
        .edit("[K, N] : partition", &format!("[{loaded}] : partition"))
        .edit("bf16, [K, N]>", &format!("bf16, [{loaded}]>"))
        .edit("load_masked %vb[%p, %j] pad %pad : tile<K x N x bf16>\n", &{
            let loaded = loaded.edit(", ", " x ");
            format!("load_masked %vb[{index}] pad %pad : tile<{loaded} x bf16>\n{turned}")
        })
        .edit("mma %ta, %tb,", if turned.is_empty() { "mma %ta, %tb," } else { "mma %ta, %tt," })
        .edit("x f32", &format!("x {sum}"))
        .edit("0.0 : f32", &format!("{} : {sum}", if sum == "i32" { "0" } else { "0.0" }))
        .edit("0.0 : bf16", &format!("{} : bf16", if sum == "i32" { "0" } else { "0.0" }))
        .edit("n % 8 == 0\": rem(n, 8)", "n % 16 == 0\": rem(n, 16)")
        .edit("bf16", dtype)
}

const ACROSS: [&str; 3] = ["k x n", "K, N", "%p, %j"];
const ALONG: [&str; 3] = ["n x k", "N, K", "%j, %p"];

#[test]
fn factors_of_8_bits_that_lie_across_are_remarked_upon() {
    let scheduled = matmul_of("i8", "i32", ACROSS);
    assert!(
        scheduled.pipelines().is_empty()
            && scheduled.walk().into_iter().any(|op| scheduled.product(op).is_some())
    );
    let messages: Vec<&str> = scheduled.remarks().iter().map(|remark| remark.message.as_str()).collect();
    let message = "a product isn't done by warpgroups (`wgmma`) but by `mma.sync` m16n8k32, with tiles of the left factor \
                   alone copied ahead by all threads: they take factors of i8 along the depth of the product, and `b` \
                   has them across it; pass that transposed";
    assert_eq!(messages, [message]);
    let along = matmul_of("i8", "i32", ALONG);
    assert!(!along.pipelines().is_empty() && along.remarks().is_empty());
}

#[test]
fn sums_of_a_turn_of_8_bit_floats_begin_at_zero() {
    insta::assert_snapshot!(print(&matmul_of("f8e4m3fn", "f32", ALONG)));
}

/// Where a kernel says that fewer bits will do, they go on from turn to turn as those of other formats do.
#[test]
fn sums_of_8_bit_floats_go_on_with_fast_accumulation() {
    let text = |source: &str| print(&scheduled_matmul(source));
    let plain = matmul_source("f8e4m3fn", "f32", ALONG);
    let fast = plain.replacen(" {\n", " fast_accumulation {\n", 1);
    assert!(text(&plain).contains(" = add %"));
    assert!(!text(&fast).contains(" = add %") && text(&fast).contains("fast_accumulation {"));
    let of_bytes = matmul_source("i8", "i32", ALONG);
    let said_of_bytes = text(&of_bytes.replacen(" {\n", " fast_accumulation {\n", 1));
    assert_eq!(said_of_bytes.edit(" fast_accumulation", ""), text(&of_bytes));
}

#[test]
fn narrow_sums_are_no_warpgroups() {
    assert!(matmul_of("f16", "f16", ACROSS).pipelines().is_empty());
    assert!(!matmul_of("f16", "f32", ACROSS).pipelines().is_empty());
}

/// Of a product in tiles of 128 by 128 whose sums are stored in a format.
fn matrices_of_store(dtype: &str) -> Option<(u64, bool)> {
    let source = MATMUL.edit("mut tensor<m x n x f32>", &format!("mut tensor<m x n x {dtype}>"));
    let source = source.edit("mut partition<m x n x f32", &format!("mut partition<m x n x {dtype}"));
    let source = source.edit(
        "  store_masked %vc, %sum\n",
        &format!("  %stored = cast %sum : tile<M x N x {dtype}>\n  store_masked %vc, %stored\n"),
    );
    let numbers = [("M", 128), ("N", 128), ("K", 64)];
    let instance = crate::passes::optimize(Instance::parse(&source, &numbers).unwrap());
    let scheduled = schedule(instance, TargetDesc::named("sm_90a").unwrap(), None);
    let store = scheduled.walk().into_iter().find_map(|op| scheduled.pipelines().store(op));
    let matrices = &store.expect("a copy stores the sums").matrices;
    matrices.as_ref().map(|matrices| (matrices.matrices, matrices.transposed))
}

#[test]
fn sums_of_16_bits_are_stored_by_matrices() {
    assert_eq!(matrices_of_store("bf16"), Some((4, false)));
    assert_eq!(matrices_of_store("f16"), Some((4, false)));
    assert_eq!(matrices_of_store("f32"), None);
}

pub(in super::super) const ATTENTION: &str = "\
kernel @attention(%q: tensor<h x s x 128 x bf16>, %k: tensor<h x t x 128 x bf16>, %v: tensor<h x t x 128 x bf16>, %o: mut tensor<h x s x 128 x f32>) {
  %vq = partition %q [1, 128, 128] : partition<h x s x 128 x bf16, [1, 128, 128]>
  %vk = partition %k [1, 64, 128] : partition<h x t x 128 x bf16, [1, 64, 128]>
  %vv = partition %v [1, 64, 128] : partition<h x t x 128 x bf16, [1, 64, 128]>
  %vo = partition %o [1, 128, 128] : mut partition<h x s x 128 x f32, [1, 128, 128]>
  %h, %i, %j = block_index %vo : index, index, index
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %0 = constant 0 : index
  %tq = load_masked %vq[%h, %i, %0] pad %pad : tile<1 x 128 x 128 x bf16>
  %query = reshape %tq : tile<128 x 128 x bf16>
  %none = splat %zero : tile<128 x 128 x f32>
  %end = extent ceil_div(t, 64) : index
  %sum = for %p = %0 to %end carry (%acc = %none) : tile<128 x 128 x f32> {
    %tk = load_masked %vk[%h, %p, %0] pad %pad : tile<1 x 64 x 128 x bf16>
    %tv = load_masked %vv[%h, %p, %0] pad %pad : tile<1 x 64 x 128 x bf16>
    %key = reshape %tk : tile<64 x 128 x bf16>
    %value = reshape %tv : tile<64 x 128 x bf16>
    %turned = permute %key [1, 0] : tile<128 x 64 x bf16>
    %start = splat %zero : tile<128 x 64 x f32>
    %scores = mma %query, %turned, %start : tile<128 x 64 x f32>
    %most = reduce max %scores axis 1 : tile<128 x 1 x f32>
    %all = broadcast %most : tile<128 x 64 x f32>
    %less = sub %scores, %all : tile<128 x 64 x f32>
    %weights = exp2 %less : tile<128 x 64 x f32>
    %narrow = cast %weights : tile<128 x 64 x bf16>
    %next = mma %narrow, %value, %acc : tile<128 x 128 x f32>
    yield %next
  }
  %out = reshape %sum : tile<1 x 128 x 128 x f32>
  store_masked %vo, %out
}
";

#[test]
fn keys_and_values_are_copied_ahead() {
    insta::assert_snapshot!(scheduled(ATTENTION, &[]));
}

/// Scores of keys and queries, and what is added to every key's sums for them: each query is read along its row by one
/// product and down the columns by the other.
const TWO_WAYS: &str = "\
kernel @two_ways(%q: tensor<s x 64 x bf16>, %k: tensor<t x 64 x bf16>, %o: mut tensor<t x 64 x f32>) {
  %vq = partition %q [64, 64] : partition<s x 64 x bf16, [64, 64]>
  %vk = partition %k [64, 64] : partition<t x 64 x bf16, [64, 64]>
  %vo = partition %o [64, 64] : mut partition<t x 64 x f32, [64, 64]>
  %i, %j = block_index %vo : index, index
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %0 = constant 0 : index
  %key = load_masked %vk[%i, %0] pad %pad : tile<64 x 64 x bf16>
  %none = splat %zero : tile<64 x 64 x f32>
  %end = extent ceil_div(s, 64) : index
  %sum = for %p = %0 to %end carry (%acc = %none) : tile<64 x 64 x f32> {
    %query = load_masked %vq[%p, %0] pad %pad : tile<64 x 64 x bf16>
    %turned = permute %query [1, 0] : tile<64 x 64 x bf16>
    %scores = mma %key, %turned, %none : tile<64 x 64 x f32>
    %narrow = cast %scores : tile<64 x 64 x bf16>
    %next = mma %narrow, %query, %acc : tile<64 x 64 x f32>
    yield %next
  }
  store_masked %vo, %sum
}
";

#[test]
fn a_tile_that_two_products_read_is_copied_once() {
    insta::assert_snapshot!(scheduled(TWO_WAYS, &[]));
}

/// A left factor that is loaded before the loop lies in shared memory where the loop's own tiles leave room for it beside
/// two stages, and in registers where they don't. The next tile's has a stage of its own where the loop has all of its
/// stages beside both.
#[test]
fn what_is_loaded_before_a_loop_takes_the_room_that_is_left() {
    let before = MATMUL.edit("%va[%i, %p]", "%va[%i, %1]");
    let rings = |columns: usize, depth: usize| {
        let numbers = [("M", 128), ("N", columns), ("K", depth)];
        let instance = crate::passes::optimize(Instance::parse(&before, &numbers).unwrap());
        let scheduled = schedule(instance, TargetDesc::named("sm_90a").unwrap(), None);
        assert!(scheduled.remarks().is_empty(), "{:?}", scheduled.remarks());
        let rings = scheduled.pipelines().all().map(|(_, ring)| (ring.stages, ring.stage_bytes));
        rings.collect::<Vec<_>>()
    };
    assert_eq!(rings(128, 64), [(2, 16 * 1024), (8, 16 * 1024)]);
    assert_eq!(rings(128, 256), [(1, 64 * 1024), (2, 64 * 1024)]);
    assert_eq!(rings(160, 256), [(2, 80 * 1024)]);
}

/// The products of what a loop loads, and the transposed of that.
#[test]
fn both_factors_may_be_one_tile() {
    let by_itself = MATMUL.edit("    %tb = load_masked %vb[%p, %j] pad %pad", "    %tb = permute %ta [1, 0]");
    let by_itself = ["M, K", "K, N", "M, N"].iter().fold(by_itself.edit("<M, N, K>", ""), |text, shape| {
        let tile = |shape: &str| format!("tile<{} x", shape.edit(", ", " x "));
        text.edit(&format!("[{shape}]"), "[64, 64]").edit(&tile(shape), &tile("64, 64"))
    });
    let by_itself = by_itself.edit("ceil_div(k, K)", "ceil_div(k, 64)");
    let scheduled = in_tiles_of_64(&by_itself);
    let (_, pipeline) = scheduled.pipelines().all().next().expect("the loop is a pipeline");
    let [fill] = pipeline.fills.as_slice() else { panic!("{:?}", pipeline.fills) };
    assert!(fill.copies.len() == 1 && fill.keeps_running && pipeline.stage_bytes == 64 * 64 * 2);
}

/// No thread holds a tile of a ring: one that is used besides lies in none, and consumers bring it.
#[test]
fn what_is_used_besides_lies_in_no_ring() {
    let besides = "%more = cast %query : tile<64 x 64 x f32>\n    %some = add %next, %more : tile<64 x 64 x f32>\n    \
                   yield %some";
    let used = TWO_WAYS.edit("yield %next", besides);
    let brought = |source: &str| in_tiles_of_64(source).pipelines().brought_right().len();
    assert_eq!((brought(TWO_WAYS), brought(&used)), (0, 2));
    let carried = TWO_WAYS
        .edit("%sum = for", "%sum, %last = for")
        .edit(
            "(%acc = %none) : tile<64 x 64 x f32>",
            "(%acc = %none, %before = %key) : tile<64 x 64 x f32>, tile<64 x 64 x bf16>",
        )
        .edit("mma %key,", "mma %before,")
        .edit("yield %next", "yield %next, %query");
    assert!(in_tiles_of_64(&carried).pipelines().is_empty());
}

#[test]
fn readers_that_a_fill_does_not_wait_for_are_found() {
    let right = in_tiles_of_64(TWO_WAYS);
    assert_eq!(problem_of(&right, &|_| {}), Ok(()));
    let left_early = problem_of(&right, &|pipelines| {
        let fills = pipelines.by_region.values_mut().flat_map(|pipeline| &mut pipeline.fills);
        fills.for_each(|fill| fill.readers.truncate(1));
        pipelines.by_region.values_mut().for_each(|pipeline| pipeline.late = None);
    });
    let problem = "it neither waits for the tile that it reads, nor keeps it from being left";
    assert_eq!(left_early.unwrap_err(), problem);
    let turned = problem_of(&right, &|pipelines| {
        let fills = pipelines.by_region.values_mut().flat_map(|pipeline| &mut pipeline.fills);
        fills.for_each(|fill| fill.readers.reverse());
    });
    assert_eq!(turned.unwrap_err(), "a tile is read before it was waited for, or after it was left");
}

/// The axis along which pairs of blocks of a kernel's tiles share factors, for tiles of so many rows and columns.
fn axis_of_pairs(source: &str, [rows, columns]: [usize; 2]) -> Option<usize> {
    let numbers = own_of(source, [("M", rows), ("N", columns), ("K", 64)]);
    pair_axis(&Instance::parse(source, &numbers).unwrap(), TargetDesc::named("sm_90a").unwrap())
}

/// Pairs along rows share the right factor, and pairs along columns the left one: the larger of both is taken.
#[test]
fn pairs_share_the_larger_factor() {
    assert_eq!(axis_of_pairs(MATMUL, [128, 256]), Some(0));
    assert_eq!(axis_of_pairs(MATMUL, [128, 128]), Some(0));
    assert_eq!(axis_of_pairs(MATMUL, [256, 128]), Some(1));
    let instance = Instance::parse(MATMUL, &[("M", 128), ("N", 256), ("K", 64)]).unwrap();
    assert_eq!(pair_axis(&instance, TargetDesc::named("sm_80").unwrap()), None);
}

/// An axis of one tile, or of another odd number, has no pairs; the other one may.
#[test]
fn axes_of_an_odd_number_of_tiles_have_no_pairs() {
    let columns = |columns: usize| {
        let text = MATMUL.edit("k x n x", &format!("k x {columns} x"));
        text.edit("m x n x", &format!("m x {columns} x")).edit(", \"n % 8 == 0\": rem(n, 8) eq 0", "")
    };
    assert_eq!(axis_of_pairs(&columns(256), [256, 128]), Some(1));
    assert_eq!(axis_of_pairs(&columns(128), [256, 128]), Some(0));
    assert_eq!(axis_of_pairs(&columns(384), [256, 128]), Some(0));
    let rows = |rows: usize, text: &str| text.edit("<m x", &format!("<{rows} x"));
    assert_eq!(axis_of_pairs(&rows(256, &columns(128)), [256, 128]), None);
    assert_eq!(axis_of_pairs(&rows(512, &columns(128)), [256, 128]), Some(0));
}

#[test]
fn blocks_that_share_nothing_or_are_seen_are_no_pairs() {
    // Both factors depend on the one axis of the grid.
    let alone = MATMUL.edit("%va[%i, %p]", "%va[%j, %p]");
    assert_eq!(axis_of_pairs(&alone, [128, 128]), Some(0), "the other axis is free");
    let counted = MATMUL.edit("for %p = %1 to %2", "for %p = %1 to %i").edit("%vb[%p, %j]", "%vb[%j, %j]");
    assert_eq!(axis_of_pairs(&counted, [128, 256]), Some(1), "turns depend on the other axis");
    let counted = counted.edit("%va[%i, %p]", "%va[%j, %p]");
    assert_eq!(axis_of_pairs(&counted, [128, 256]), None, "turns depend on one axis, factors on the other");
    let said = MATMUL.edit("  store_masked", "  print 0 \"{0}\" %i\n  store_masked");
    assert_eq!(axis_of_pairs(&said, [128, 128]), None);
    // Of a number that a loop carries nothing is known but what it begins with and what comes around.
    let carried = MATMUL
        .edit(
            "carry (%acc = %zero) : tile<M x N x f32>",
            "carry (%acc = %zero, %at = %1) : tile<M x N x f32>, index",
        )
        .edit("%sum = for", "%sum, %last = for")
        .edit("%vb[%p, %j]", "%vb[%at, %j]")
        .edit("yield %next", "%more = add %at, %i : index\n    yield %next, %more");
    assert_eq!(axis_of_pairs(&carried, [128, 256]), Some(1), "the right factor depends on both axes");
    assert_eq!(axis_of_pairs(ATTENTION, [128, 128]), None, "several products of a loop");
}

/// The right factor is a matrix of a stack, at a number that these lines make.
fn stacked(number: &str) -> String {
    let select =
        format!("{number}  %m = view %b select 0 at %at : tensor<k x n x bf16>\n  %vb = partition %m");
    let cut = "  %vb = partition %b [K, N] : partition<k x n x bf16, [K, N]>\n";
    let index = "  %i, %j = block_index %vc : index, index\n";
    MATMUL
        .edit(cut, "")
        .edit(index, &format!("{index}{}", cut.edit("  %vb = partition %b", &select)))
        .edit("%b: tensor<k x n x bf16>", "%b: tensor<e x k x n x bf16>, %w: tensor<r x i32>")
}

const BY_ELEMENT: &str = "  %vw = partition %w [1] : partition<r x i32, [1]>
  %first = constant 0 : i32
  %tile = load_masked %vw[%i] pad %first : tile<1 x i32>
  %number = item %tile : i32
  %at = cast %number : index
";

/// The same element, by `gather`.
const BY_PLACE: &str = "  %first = constant 0 : i32
  %one = cast %i : i64
  %place = splat %one : tile<1 x i64>
  %tile = gather_load %w[%place] pad %first : tile<1 x i32>
  %number = item %tile : i32
  %at = cast %number : index
";

/// Consumers have neither the number nor the tile that it comes from; the view of the stack stands before the loop over
/// tiles.
#[test]
fn a_matrix_of_a_stack_is_copied_as_tiles_of_that() {
    insta::assert_snapshot!(scheduled(&stacked(BY_ELEMENT), &[("M", 128), ("N", 256), ("K", 64)]));
}

/// What is the same in both blocks of a pair they share; an element is where its place is.
#[test]
fn pairs_share_a_matrix_of_a_stack() {
    let axis = |number: &str| axis_of_pairs(&stacked(number), [128, 256]);
    assert_eq!(axis("  %at = constant 2 : index\n"), Some(0));
    assert_eq!(axis("  %one = constant 1 : index\n  %at = add %i, %one : index\n"), Some(1));
    assert_eq!(axis(BY_ELEMENT), Some(1));
    assert_eq!(axis(BY_PLACE), Some(1));
}

fn remarks(source: &str) -> Vec<String> {
    let scheduled = in_tiles_of_64(source);
    assert!(scheduled.pipelines().is_empty() != scheduled.remarks().is_empty());
    scheduled.remarks().iter().map(|remark| remark.message.clone()).collect()
}

#[test]
fn what_producers_do_not_know_is_remarked_upon() {
    assert!(remarks(&stacked(BY_ELEMENT)).is_empty());
    assert!(remarks(&stacked(BY_PLACE)).is_empty());
    let most = BY_ELEMENT.edit("%w [1]", "%w [4]").edit("i32, [1]>", "i32, [4]>").edit(
        "  %tile = load_masked %vw[%i] pad %first : tile<1 x i32>",
        "  %four = load_masked %vw[%i] pad %first : tile<4 x i32>\n  %tile = reduce max %four axis 0 : tile<1 x i32>",
    );
    let message = "a product isn't done by warpgroups (`wgmma`) but by `mma.sync` m16n8k16, with tiles copied ahead by \
                   all threads: the threads that copy `b` don't know which of its tiles, where `max` decides that; of \
                   tiles they know those of one element of a tensor that isn't written";
    assert_eq!(remarks(&stacked(&most)), [message]);
    // It decides whether there is anything to copy, too.
    let branch =
        in_branch(&stacked(&most.edit("%at = cast", "%some = ge %number, %first : bool\n  %at = cast")));
    assert_eq!(remarks(&branch), [message]);
}

/// Everything behind `%some` in a branch that it takes, with the store.
fn in_branch(source: &str) -> String {
    let (before, inside) = source.split_once("  %sum = for").unwrap();
    let inside = inside.strip_suffix("}\n").unwrap();
    format!("{before}  if %some {{\n  %sum = for{inside}    yield\n  }} else {{\n    yield\n  }}\n}}\n")
}

/// The producer takes the branches around copies by conditions that it knows, as an early exit is one.
#[test]
fn producers_take_branches() {
    let by_place = MATMUL.edit("  %sum = for", "  %some = lt %i, %j : bool\n  %sum = for");
    let by_element = BY_ELEMENT.edit("%at = cast", "%some = ge %number, %first : bool\n  %at = cast");
    let gathered = BY_PLACE.edit("%at = cast", "%some = ge %number, %first : bool\n  %at = cast");
    for source in [in_branch(&by_place), in_branch(&stacked(&by_element)), in_branch(&stacked(&gathered))] {
        let scheduled = in_tiles_of_64(&source);
        assert!(!scheduled.pipelines().is_empty() && scheduled.remarks().is_empty(), "{source}");
        let branches = scheduled.walk().into_iter().filter(|&op| scheduled.op(op).op == Op::If);
        let branches: Vec<OpId> = branches.collect();
        assert!(branches.iter().all(|&op| scheduled.pipelines().slice().executes(op)));
        let stores = scheduled.walk().into_iter().filter(|&op| scheduled.op(op).op.is_store());
        assert!(stores.into_iter().all(|op| scheduled.pipelines().store(op).is_some()));
        let unknown = problem_of(&scheduled, &|pipelines| {
            pipelines.slice.forget(scheduled.op(branches[0]).operands[0]);
        });
        assert_eq!(unknown.unwrap_err(), "the producer executes it without a number that it needs");
    }
}

/// Numbers of turns that a branch decides, and sums that one gives.
#[test]
fn producers_know_what_branches_give() {
    let branch = "  %some = lt %i, %j : bool
  %turns = if %some : index {
    yield %1
  } else {
    yield %2
  }
";
    let turns = MATMUL.edit("  %sum = for", &format!("{branch}  %sum = for")).edit("to %2", "to %turns");
    let scheduled = in_tiles_of_64(&turns);
    assert!(!scheduled.pipelines().is_empty() && scheduled.remarks().is_empty());
    let (before, rest) = MATMUL.split_once("  %sum = for").unwrap();
    let (product, _) = rest.split_once("  store_masked").unwrap();
    let sums = format!(
        "{before}  %some = lt %i, %j : bool\n  %sum = if %some : tile<M x N x f32> {{\n  %product = for{product}    \
         yield %product\n  }} else {{\n    yield %zero\n  }}\n  store_masked %vc, %sum\n}}\n"
    );
    let scheduled = in_tiles_of_64(&sums);
    assert!(!scheduled.pipelines().is_empty() && scheduled.remarks().is_empty());
}

/// Both blocks of a pair come to every copy.
#[test]
fn pairs_take_branches_together() {
    let branch = |condition: &str| {
        let condition = format!("  %some = {condition} : bool\n  %sum = for");
        axis_of_pairs(&in_branch(&MATMUL.edit("  %sum = for", &condition)), [128, 256])
    };
    assert_eq!(branch("lt %1, %2"), Some(0));
    assert_eq!(branch("lt %i, %2"), Some(1));
    assert_eq!(branch("lt %i, %j"), None);
    // An element depends on the place that it is loaded from.
    let element = |place: &str| {
        let number = BY_ELEMENT.edit("%vw[%i]", &format!("%vw[{place}]"));
        let number = number.edit("%at = cast", "%some = ge %number, %first : bool\n  %at = cast");
        let number = format!("  %zeroth = constant 0 : index\n{number}");
        axis_of_pairs(&in_branch(&stacked(&number)), [128, 256])
    };
    assert_eq!(element("%i"), Some(1));
    assert_eq!(element("%j"), Some(0));
    assert_eq!(element("%zeroth"), Some(0));
}

/// The schedule of a product of tiles of 64×64, 64 deep.
pub(in super::super) fn in_tiles_of_64(source: &str) -> Scheduled {
    let numbers = own_of(source, ["M", "N", "K"].map(|name| (name, 64)));
    let instance = crate::passes::optimize(Instance::parse(source, &numbers).unwrap());
    schedule(instance, TargetDesc::named("sm_90a").unwrap(), None)
}

/// Those of the numbers that a kernel has parameters for.
pub(in super::super) fn own_of<'n>(source: &str, numbers: [(&'n str, usize); 3]) -> Vec<(&'n str, usize)> {
    let kernel = VerifiedKernel::parse(source).unwrap();
    let is_own = |(name, _): &(&str, usize)| kernel.generics.iter().any(|own| own.name == *name);
    numbers.into_iter().filter(is_own).collect()
}

/// What the verifier says of a schedule whose pipelines are changed.
fn problem_of(right: &Scheduled, change: &dyn Fn(&mut Pipelines)) -> Result<(), String> {
    let mut scheduled = right.clone();
    change(&mut scheduled.pipelines);
    verify_schedule(&scheduled).map_err(|broken| broken.problem)
}

#[test]
fn roles_that_lack_what_they_need_are_found() {
    let right = in_tiles_of_64(&stacked(BY_ELEMENT));
    let problem = |change: &dyn Fn(&mut Pipelines)| problem_of(&right, change);
    assert_eq!(problem(&|_| {}), Ok(()));
    let idle = problem(&|pipelines| pipelines.slice = Slice::default());
    assert_eq!(idle.unwrap_err(), "nobody copies the tile");
    let named = |name: &str| {
        right.value_ids().find(|&value| right.value(value).name.as_deref() == Some(name)).unwrap()
    };
    let [number, zero] = ["number", "zero"].map(named);
    let unknown = problem(&|pipelines| pipelines.slice.forget(number));
    assert_eq!(unknown.unwrap_err(), "the producer executes it without a number that it needs");
    let spared = problem(&|pipelines| pipelines.spared.extend([zero]));
    assert_eq!(spared.unwrap_err(), "consumers need what they leave to the producer");
}

#[test]
fn tiles_of_pairs_are_copied_in_halves() {
    let paired = MATMUL.edit("rem(n, 8) eq 0 {", "rem(n, 8) eq 0 pairs 0 {");
    insta::assert_snapshot!(scheduled(&paired, &[("M", 128), ("N", 256), ("K", 64)]));
    let paired = MATMUL.edit("rem(n, 8) eq 0 {", "rem(n, 8) eq 0 pairs 2 {");
    let along_no_axis = scheduled(&paired, &[("M", 128), ("N", 256), ("K", 64)]);
    assert!(!along_no_axis.contains("blocks are pairs"), "{along_no_axis}");
}

#[test]
fn halves_that_nobody_copies_are_found() {
    let paired = MATMUL.edit("rem(n, 8) eq 0 {", "rem(n, 8) eq 0 pairs 0 {");
    let right = in_tiles_of_64(&paired);
    let problem = |change: &dyn Fn(&mut Pipelines)| problem_of(&right, change);
    assert_eq!(problem(&|_| {}), Ok(()));
    let alone = problem(&|pipelines| pipelines.pairs = None);
    assert_eq!(alone.unwrap_err(), "blocks copy halves for each other and aren't pairs");
    let halved = problem(&|pipelines| {
        let fills = pipelines.by_region.values_mut().flat_map(|pipeline| &mut pipeline.fills);
        fills.flat_map(|fill| &mut fill.copies).for_each(|copy| copy.halves = None);
    });
    assert_eq!(halved.unwrap_err(), "a copy brings another number of bytes than its tile has");
}
