//! What is told of products that are slower than a target could do them.

use super::super::pipeline::tests::{MATMUL, in_tiles_of_64};
use super::super::{Remark, print, schedule};
use crate::types::{PartitionType, TensorType, Type};
use crate::view::TensorMovement;
use crate::{DType, Dim, Instance, TargetDesc};
use tile_test_edit::Edit;

/// What is said of a product that a change of its text takes from warpgroups, behind what became of it.
fn reason(change: impl Fn(String) -> String) -> String {
    let scheduled = in_tiles_of_64(&change(MATMUL.to_owned()));
    assert!(scheduled.pipelines().is_empty());
    let [Remark { message, .. }] = scheduled.remarks() else { panic!("{:?}", scheduled.remarks()) };
    let (fallback, reason) = message.split_once(": ").unwrap();
    let known = "a product isn't done by warpgroups (`wgmma`) but by `mma.sync` m16n8k16, with ";
    assert!(fallback.starts_with(known), "{message}");
    reason.to_owned()
}

/// Puts ops between the load of the right factor and the product.
fn made_of_b(ops: &'static str) -> impl Fn(String) -> String {
    move |text| text.edit("    %next = mma %ta, %tb,", &format!("{ops}    %next = mma %ta, %made,"))
}

#[test]
fn right_factors_that_no_copy_brings_are_remarked_upon() {
    // Consumers bring what is computed, if there are tiles for a producer besides.
    let computed = made_of_b("    %made = neg %tb : tile<K x N x bf16>\n");
    let computed = in_tiles_of_64(&computed(MATMUL.to_owned()));
    assert!(!computed.pipelines().is_empty() && computed.remarks().is_empty());
    let both =
        made_of_b("    %made = neg %tb : tile<K x N x bf16>\n    %mine = abs %ta : tile<M x K x bf16>\n");
    assert_eq!(
        reason(|text| both(text).edit("mma %ta,", "mma %mine,")),
        "its right factor is computed, by `-`, and they take that from copied tiles; the left one is, too, by `abs`; \
         have another kernel store one of them, so that it is loaded"
    );
    // One that is loaded before the loop is copied before that.
    let before = in_tiles_of_64(&MATMUL.edit("%vb[%p, %j]", "%vb[%j, %j]"));
    assert!(!before.pipelines().is_empty() && before.remarks().is_empty());
    let padded = |text: String| text.edit("%pad = constant 0.0", "%pad = constant 1.0");
    assert_eq!(reason(padded), "what lies outside of `b` isn't zero, as copies have it; load zeros there");
    let in_branch = |text: String| {
        text.edit("%next = mma %ta", "%inner = mma %ta")
            .edit("    %inner", "      %inner")
            .edit(
                "      %inner",
                "    %some = lt %p, %i : bool\n    %next = if %some : tile<M x N x f32> {\n      %inner",
            )
            .edit(
                "    yield %next",
                "      yield %inner\n    } else {\n      yield %acc\n    }\n    yield %next",
            )
    };
    assert_eq!(reason(in_branch), "it stands in the branch of its loop; multiply outside of that");
}

/// The product of what a movement makes of b, where `k` of that are the columns of a.
fn of_moved(movement: &TensorMovement) -> impl Fn(String) -> String {
    let tensor = TensorType::dense(["k", "n"].map(Dim::size).to_vec(), DType::BF16, false);
    let (tensor, _) = movement.apply(&tensor).unwrap();
    let tile = vec![Dim::from(64); 2];
    let moved = format!("  %m = view %b {movement} : {}", Type::Tensor(tensor.clone()));
    let cut = PartitionType { tensor, tile: tile.clone(), steps: tile, spanned: Vec::new() };
    let cut = format!("{moved}\n  %vb = partition %m [64, 64] : {}", Type::Partition(cut));
    move |text| in_numbers(text.edit("  %vb = partition %b [K, N] : partition<k x n x bf16, [K, N]>", &cut))
}

/// The text with extents in place of parameters.
fn in_numbers(text: String) -> String {
    let text = text.edit("<M, N, K>", "").edit("ceil_div(k, K)", "ceil_div(k, 64)");
    let text = ["[M, N]", "[M, K]", "[K, N]"].iter().fold(text, |text, tile| text.replace(tile, "[64, 64]"));
    ["M x N", "M x K", "K x N"].iter().fold(text, |text, shape| text.edit(shape, "64 x 64"))
}

#[test]
fn views_that_no_tensor_map_shows_are_remarked_upon() {
    let number = |number: i64| Dim::from(number);
    let padded = TensorMovement::Pad(vec![(number(0), number(0)), (number(8), number(0))]);
    assert_eq!(
        reason(of_moved(&padded)),
        "a view of `b` has margins, which no tensor map has; pass a tensor that has them, or gather its rows as the \
         left factor"
    );
    assert_eq!(
        reason(of_moved(&TensorMovement::Flip(vec![0]))),
        "a view of `b` repeats elements or goes backwards; do that with its tiles, or when they are stored"
    );
    assert_eq!(
        reason(of_moved(&TensorMovement::Step { axis: 1, step: number(2) })),
        "elements of tiles of a view of `b` don't lie next to each other in memory; cut tiles that are long along the \
         axis whose elements do"
    );
    let narrow = |text: String| text.edit("k x n x", "k x 60 x");
    assert_eq!(
        reason(narrow),
        "rows of `b` don't all begin at multiples of 16 bytes; pass rows of such lengths"
    );
}

/// What the kernel's products are is as much a reason.
#[test]
fn products_that_are_no_warpgroups_are_remarked_upon() {
    let alone = |text: String| {
        let loads = text.lines().filter(|line| line.contains("load_masked")).collect::<Vec<_>>().join("\n");
        let (before, rest) = text.split_once("  %sum = for").unwrap();
        let (_, after) = rest.split_once("  store_masked").unwrap();
        let loads = loads.edit("%p,", "%1,").edit("%p]", "%1]");
        format!("{before}{loads}\n  %sum = mma %ta, %tb, %zero : tile<M x N x f32>\n  store_masked{after}")
    };
    assert_eq!(
        reason(alone),
        "it stands in no loop, for whose next turns tiles would be copied; multiply in a loop over the depth, which \
         loads the factors"
    );
    let few_rows = |text: String| {
        text.edit("M, K]", "32, K]").edit("<M x", "<32 x").edit("[M, N]", "[32, N]").edit("M, N, K>", "N, K>")
    };
    assert_eq!(
        reason(few_rows),
        "they take multiples of 64 rows, of 8 columns up to 256, and of a depth of 16, and its tiles are others; choose \
         such tiles where there is enough work for them"
    );
}

/// A left factor that isn't copied comes from registers; a right one consumers bring from there.
#[test]
fn a_left_factor_that_something_uses_besides_is_remarked_upon() {
    let summed = |operand: &'static str| {
        let besides = format!(
            "    %rows = reduce sum {operand} axis 0 : tile<1 x 64 x bf16>
    %wide = cast %rows : tile<1 x 64 x f32>
    %all = broadcast %wide : tile<64 x 64 x f32>
    %more = add %next, %all : tile<64 x 64 x f32>
    yield %more
"
        );
        move |text| in_numbers(text).edit("    yield %next\n", &besides)
    };
    let right = in_tiles_of_64(&summed("%tb")(MATMUL.to_owned()));
    assert!(!right.pipelines().is_empty() && right.remarks().is_empty());
    let left = in_tiles_of_64(&summed("%ta")(MATMUL.to_owned()));
    assert!(!left.pipelines().is_empty());
    let messages: Vec<&str> = left.remarks().iter().map(|remark| remark.message.as_str()).collect();
    let message = "warpgroups take the left factor of a product from registers, with no tiles copied ahead: `sum` uses the \
                   tile of `a`, too, and no thread holds a tile that was copied; do that in a loop of its own";
    assert_eq!(messages, [message]);
    assert!(print(&left).contains(&format!("; {message}\n")));
}

/// Warpgroups do the product of the loop, and not the one behind it.
#[test]
fn every_product_that_is_slower_is_remarked_upon() {
    let besides = "  %left = splat %pad : tile<M x 8 x bf16>
  %right = splat %pad : tile<8 x N x bf16>
  %more = mma %left, %right, %sum : tile<M x N x f32>
  store_masked %vc, %more
";
    let scheduled = in_tiles_of_64(&MATMUL.edit("  store_masked %vc, %sum\n", besides));
    assert!(!scheduled.pipelines().is_empty());
    let [Remark { message, .. }] = scheduled.remarks() else { panic!("{:?}", scheduled.remarks()) };
    let start = "a product isn't done by warpgroups (`wgmma`) but by `mma.sync` m16n8k8, with no tiles copied ahead: they \
                 take multiples of 64 rows, ";
    assert!(message.starts_with(start), "{message}");
    // Consumers bring the right factor of one that they can do.
    let deeper = besides.edit("M x 8", "M x K").edit("8 x N", "K x N");
    assert!(in_tiles_of_64(&MATMUL.edit("  store_masked %vc, %sum\n", &deeper)).remarks().is_empty());
}

/// A number of threads that no warpgroups have, and shared memory that holds no two turns.
#[test]
fn blocks_that_have_no_room_for_rings_are_remarked_upon() {
    let said = |threads: Option<u32>, [rows, columns, depth]: [usize; 3]| {
        let numbers = [("M", rows), ("N", columns), ("K", depth)];
        let instance = crate::passes::optimize(Instance::parse(MATMUL, &numbers).unwrap());
        let scheduled = schedule(instance, TargetDesc::named("sm_90a").unwrap(), threads);
        let [remark] = scheduled.remarks() else { panic!("{:?}", scheduled.remarks()) };
        remark.message.split_once(": ").unwrap().1.to_owned()
    };
    assert_eq!(
        said(Some(256), [64, 64, 64]),
        "a block has 256 threads, and its products rows for 1 warpgroup of 128; say no number of `threads`, or 128 for each of these"
    );
    let deep = said(None, [64, 256, 256]);
    assert!(deep.contains("two turns have to fit; choose smaller tiles"), "{deep}");
}
