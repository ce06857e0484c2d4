//! Products whose sums lie in tensor memory, on simulated threads of sm_100a: factors of every kind and direction, edges that are
//! masked, fewer turns than stages and none, several tiles a block, and what becomes of sums, in both orders of asynchronous
//! work.

use crate::pipelines::{
    ATTENTION, HALF, On, arguments_of_attention, arguments_of_heads, arguments_of_product,
    arguments_with_residual, causal_attention, check_on, matmul, narrow_sums_are_stored, online_attention,
    persistent, with_residual,
};
use crate::support::{instance, sample};
use tile_ir::gpu::{Scheduled, schedule};
use tile_ir::{DType, TargetDesc, passes};
use tile_test_edit::Edit;

/// A block's consumers are two warpgroups; a third one copies and multiplies.
const ON: On<'static> = ("sm_100a", 384);

fn scheduled(source: &str) -> Scheduled {
    schedule(passes::optimize(instance(source, &[])), TargetDesc::named(ON.0).unwrap(), None)
}

/// How many stages the sums of a kernel have.
fn stages(source: &str) -> Vec<u64> {
    scheduled(source).pipelines().tensor_memory().sums().iter().map(|sums| sums.stages.count).collect()
}

fn product(formats: [DType; 2], a: &str, b: &str, tile: [usize; 3], extents: [usize; 3]) {
    let source = matmul(formats, a, b, tile);
    assert!(!scheduled(&source).pipelines().tensor_memory().is_empty(), "{source}");
    check_on(ON, &source, &[], &arguments_of_product(formats, a, b, extents), 0.0);
}

#[test]
fn factors_of_either_direction() {
    for a in ["mk", "km"] {
        for b in ["kn", "nk"] {
            product(HALF, a, b, [128, 64, 64], [136, 136, 200]);
        }
    }
}

/// Warpgroups load the halves of the columns, or the rows of 128 each.
#[test]
fn tiles_of_many_extents() {
    product(HALF, "mk", "kn", [128, 256, 64], [128, 264, 136]);
    product(HALF, "mk", "nk", [256, 128, 64], [264, 64, 136]);
    product(HALF, "km", "kn", [256, 256, 32], [256, 256, 96]);
    product([DType::F16, DType::F32], "mk", "nk", [128, 16, 16], [128, 24, 80]);
    product([DType::F16, DType::F32], "mk", "kn", [128, 32, 32], [128, 40, 64]);
}

#[test]
fn factors_of_8_bits() {
    product([DType::I8, DType::I32], "mk", "nk", [128, 64, 64], [144, 80, 144]);
    product([DType::U8, DType::I32], "mk", "nk", [128, 128, 128], [128, 128, 256]);
    product([DType::F8E4M3FN, DType::F32], "mk", "nk", [128, 64, 64], [144, 80, 144]);
    product([DType::F8E5M2, DType::F32], "mk", "nk", [256, 64, 128], [256, 64, 128]);
}

#[test]
fn no_turns_at_all() {
    product(HALF, "mk", "kn", [128, 64, 64], [136, 72, 0]);
}

#[test]
fn tiles_of_one_block_share_stages() {
    let source = persistent([128, 64, 64]);
    assert_eq!(stages(&source), [2]);
    check_on(ON, &source, &[], &arguments_of_product(HALF, "mk", "kn", [264, 200, 328]), 0.0);
}

#[test]
fn a_residual_is_added() {
    check_on(ON, &with_residual(), &[], &arguments_with_residual(), 0.0);
}

/// Sums are rounded and stored through a panel of 128 rows.
#[test]
fn narrow_sums_are_stored_by_copies() {
    for (columns, extents) in [(128, [136, 192, 64]), (128, [256, 72, 16]), (256, [136, 264, 72])] {
        narrow_sums_are_stored(ON, columns, extents);
    }
}

/// The sums of two loops, and of two products of one.
#[test]
fn several_sums_lie_beside_each_other() {
    let source = matmul(HALF, "mk", "kn", [128, 64, 64]);
    let (before, rest) = source.split_once("  %sum = for").unwrap();
    let (body, after) = rest.split_once("  store_masked").unwrap();
    let renamed = [("%p", "%q"), ("%qad", "%pad"), ("%acc", "%more"), ("%l", "%m"), ("%next", "%then")];
    let again = renamed.iter().fold(body.to_owned(), |text, (from, to)| text.edit(from, to));
    let again = again.edit("[%q, %j]", "[%q, %i]");
    let both = format!(
        "{before}  %sum = for{body}  %other = for{again}  %twice = mul %other, %other : tile<128 x 64 x f32>
  %all = add %sum, %twice : tile<128 x 64 x f32>\n  store_masked{}",
        after.edit("%sum", "%all")
    );
    let ty = "tile<128 x 64 x f32>";
    let beside = source
        .edit("  %sum = for", "  %sum, %more = for")
        .edit(&format!("(%acc = %zero) : {ty}"), &format!("(%acc = %zero, %also = %zero) : {ty}, {ty}"))
        .edit(
            "    yield %next\n",
            &format!(
                "    %lm = load_masked %vb[%p, %i] pad %pad : tile<64 x 64 x bf16>
    %then = mma %la, %lm, %also : {ty}\n    yield %next, %then\n"
            ),
        )
        .edit(
            "  store_masked %vc, %sum",
            &format!("  %all = sub %sum, %more : {ty}\n  store_masked %vc, %all"),
        );
    for (source, loops) in [(both, 2), (beside, 1)] {
        assert_eq!(stages(&source).len(), loops, "{source}");
        check_on(ON, &source, &[], &arguments_of_product(HALF, "mk", "kn", [264, 136, 200]), 0.0);
    }
}

/// Consumers bring the weights to shared memory; the sums of these products stay in tensor memory.
#[test]
fn weights_are_brought_to_shared_memory() {
    assert_eq!(stages(ATTENTION), [2, 2]);
    check_on(ON, ATTENTION, &[], &arguments_of_heads(), 1e-2);
}

/// Sums are shrunk between turns: what is multiplied is added to them by threads.
#[test]
fn sums_that_threads_change_are_added_up_by_them() {
    for (keys, width) in [(64, 128), (128, 64), (32, 64), (128, 128)] {
        for source in [online_attention(128, keys, width), causal_attention(128, keys, width)] {
            assert_eq!(stages(&source), [2, 1], "{source}");
            for length in [0, keys, 3 * keys + 8] {
                check_on(ON, &source, &[], &arguments_of_attention([136, length, width]), 1e-2);
            }
        }
    }
}

/// What a turn first needs of the sums is narrowed as soon as it is computed.
#[test]
fn sums_that_are_rounded_in_every_turn() {
    let (rows, width) = (128, 64);
    let ty = |dtype: &str| format!("tile<{rows} x {width} x {dtype}>");
    let source = online_attention(rows, 64, width).edit(
        &format!("    %before = mul %acc, %shrinks : {}\n", ty("f32")),
        &format!(
            "    %wide = mul %acc, %shrinks : {}\n    %rounded = cast %wide : {}\n    %before = cast %rounded : {}\n",
            ty("f32"),
            ty("f16"),
            ty("f32")
        ),
    );
    assert!(source.contains("%rounded") && stages(&source) == [2, 1], "{source}");
    check_on(ON, &source, &[], &arguments_of_attention([136, 200, width]), 1e-2);
}

/// Sums that begin as something else, that are looked at in every turn, and integers.
#[test]
fn sums_that_are_looked_at_are_loaded_in_every_turn() {
    let begun = matmul(HALF, "mk", "kn", [128, 64, 64]).edit("%none = constant 0.0", "%none = constant 0.5");
    let bytes = matmul([DType::I8, DType::I32], "mk", "nk", [128, 64, 64]);
    let doubled = bytes.edit(
        "    yield %next\n",
        "    %twice = add %next, %next : tile<128 x 64 x i32>\n    yield %twice\n",
    );
    for (source, formats, b) in [(begun, HALF, "kn"), (doubled, [DType::I8, DType::I32], "nk")] {
        assert_eq!(stages(&source), [1], "{source}");
        check_on(ON, &source, &[], &arguments_of_product(formats, "mk", b, [144, 80, 272]), 0.0);
    }
}

/// Sums of 128 words a thread, beside those that they are added to: on Hopper they would be multiplied half by half.
#[test]
fn wide_sums_that_are_looked_at_are_loaded_in_every_turn() {
    for tile in [[128, 256, 64], [256, 128, 64]] {
        let source = matmul(HALF, "mk", "kn", tile).edit("%none = constant 0.0", "%none = constant 0.5");
        assert_eq!(stages(&source), [1], "{source}");
        let extents = [tile[0] + 16, tile[1] + 8, 136];
        check_on(ON, &source, &[], &arguments_of_product(HALF, "mk", "kn", extents), 0.0);
    }
    check_on(ON, &online_attention(128, 32, 256), &[], &arguments_of_attention([136, 72, 256]), 1e-2);
}

/// A loop that nothing is copied in: both factors of its product are loaded before it, or the left one is computed in it.
#[test]
fn factors_of_all_turns() {
    let source = matmul(HALF, "mk", "kn", [128, 64, 64]);
    let la = "    %la = load_masked %va[%i, %p] pad %pad : tile<128 x 64 x bf16>\n";
    let lb = "    %lb = load_masked %vb[%p, %j] pad %pad : tile<64 x 64 x bf16>\n";
    let before = |load: &str| load[2..].replace("%p]", "%0]").replace("[%p", "[%0");
    let begin = "  %sum = for";
    let copied = source.edit(la, "").edit(lb, "").edit(begin, &(before(la) + &before(lb) + begin));
    let computed = source
        .edit(lb, "")
        .edit(begin, &(before(lb) + begin))
        .edit("mma %la", "mma %made")
        .edit("    %next = mma", "    %made = neg %la : tile<128 x 64 x bf16>\n    %next = mma");
    for source in [copied, computed] {
        for depth in [0, 136] {
            check_on(ON, &source, &[], &arguments_of_product(HALF, "mk", "kn", [136, 72, depth]), 0.0);
        }
    }
}

/// Scores are multiplied a turn ahead, and a product before them, whose sums are kept, reads their keys in its own turn.
#[test]
fn a_tile_that_is_read_ahead_is_left_by_who_reads_it_later() {
    let ty = "tile<128 x 64 x f32>";
    let source = ATTENTION
        .edit(
            &format!("%sum = for %p = %0 to %end carry (%acc = %none) : {ty} {{"),
            &format!("%sum, %more = for %p = %0 to %end carry (%acc = %none, %also = %none) : {ty}, {ty} {{"),
        )
        .edit(
            "    %start = splat",
            &format!("    %then = mma %query, %turned, %also : {ty}\n    %start = splat"),
        )
        .edit("    yield %next\n", "    yield %next, %then\n")
        .edit(
            "  %out = reshape %sum",
            &format!("  %every = add %sum, %more : {ty}\n  %out = reshape %every"),
        );
    assert_eq!(stages(&source), [2, 2]);
    check_on(ON, &source, &[], &arguments_of_heads(), 1e-2);
}

/// A left factor that threads compute: of one warpgroup's threads it is too deep, and two share it.
#[test]
fn a_deep_left_factor_that_is_computed_is_brought_by_two_warpgroups() {
    let matmul = matmul(HALF, "mk", "nk", [128, 16, 512]);
    let source = matmul
        .edit("%a: tensor<m x k x bf16>", "%a: tensor<m x k x i8>")
        .edit("partition<m x k x bf16, [128, 512]>", "partition<m x k x i8, [128, 512]>")
        .edit("  %none = constant", "  %nought = constant 0 : i8\n  %none = constant")
        .edit(
            "    %la = load_masked %va[%i, %p] pad %pad : tile<128 x 512 x bf16>\n",
            "    %li = load_masked %va[%i, %p] pad %nought : tile<128 x 512 x i8>
    %la = cast %li : tile<128 x 512 x bf16>\n",
        );
    assert!(scheduled(&source.replacen(" {\n", " threads 128 {\n", 1)).pipelines().is_empty());
    let [m, n, k] = [136, 24, 528];
    let arguments =
        [sample(DType::I8, &[m, k], 1), sample(DType::BF16, &[n, k], 2), sample(DType::F32, &[m, n], 3)];
    check_on(ON, &source, &[], &arguments, 0.0);
}
