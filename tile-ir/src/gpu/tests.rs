//! Schedules as a person reads them, and what holds of every one.

use super::*;
use crate::kernel::OpId;
use crate::ops::Op;
use tile_test_edit::Edit;

fn scheduled(source: &str, numbers: &[(&str, usize)], target: &str) -> Scheduled {
    let instance = Instance::parse(source, numbers).unwrap_or_else(|error| panic!("{error}"));
    let instance = crate::passes::optimize(instance);
    schedule(instance, TargetDesc::named(target).unwrap(), None)
}

#[test]
fn a_softmax_keeps_its_rows_in_registers() {
    let source = "\
kernel @softmax<B>(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) where \"n % 4 == 0\": rem(n, 4) eq 0 {
  %vx = partition %x [4, B] : partition<m x n x f32, [4, B]>
  %vy = partition %y [4, B] : mut partition<m x n x f32, [4, B]>
  %i, %j = block_index %vy : index, index
  %pad = constant -inf : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<4 x B x f32>
  %m = reduce max %t axis 1 : tile<4 x 1 x f32>
  %mb = broadcast %m : tile<4 x B x f32>
  %d = sub %t, %mb : tile<4 x B x f32>
  %e = exp %d : tile<4 x B x f32>
  %s = reduce sum %e axis 1 : tile<4 x 1 x f32>
  %sb = broadcast %s : tile<4 x B x f32>
  %r = div %e, %sb : tile<4 x B x f32>
  store_masked %vy, %r
}
";
    insta::assert_snapshot!(print(&scheduled(source, &[("B", 1024)], "sm_90a")));
}

#[test]
fn a_row_that_no_block_holds_is_shared_by_a_cluster() {
    let source = "\
kernel @softmax(%x: tensor<m x 131072 x bf16>, %y: mut tensor<m x 131072 x bf16>) {
  %vx = partition %x [1, 131072] : partition<m x 131072 x bf16, [1, 131072]>
  %vy = partition %y [1, 131072] : mut partition<m x 131072 x bf16, [1, 131072]>
  %i, %j = block_index %vy : index, index
  %t = load %vx[%i, %j] : tile<1 x 131072 x bf16>
  %f = cast %t : tile<1 x 131072 x f32>
  %m = reduce max %f axis 1 : tile<1 x 1 x f32>
  %mb = broadcast %m : tile<1 x 131072 x f32>
  %d = sub %f, %mb : tile<1 x 131072 x f32>
  %e = exp %d : tile<1 x 131072 x f32>
  %s = reduce sum %e axis 1 : tile<1 x 1 x f32>
  %sb = broadcast %s : tile<1 x 131072 x f32>
  %r = div %e, %sb : tile<1 x 131072 x f32>
  %z = cast %r : tile<1 x 131072 x bf16>
  store %vy, %z
}
";
    insta::assert_snapshot!(print(&scheduled(source, &[], "sm_90a")));
    // Without clusters there is one block, which nothing can be compiled for.
    assert_eq!(scheduled(source, &[], "sm_80").blocks_per_tile(), 1);
}

#[test]
fn a_transposed_tile_changes_threads_before_it_is_stored() {
    let source = "\
kernel @transpose(%x: tensor<64 x 64 x f32>, %y: mut tensor<64 x 64 x f32>) {
  %vx = partition %x [64, 64] : partition<64 x 64 x f32, [64, 64]>
  %vy = partition %y [64, 64] : mut partition<64 x 64 x f32, [64, 64]>
  %i, %j = block_index %vy : index, index
  %t = load %vx[%j, %i] : tile<64 x 64 x f32>
  %r = permute %t [1, 0] : tile<64 x 64 x f32>
  store %vy, %r
}
";
    insta::assert_snapshot!(print(&scheduled(source, &[], "sm_90a")));
}

/// One of two results is wanted where a product of elements lies, the other nowhere.
#[test]
fn results_of_one_fold_lie_alike() {
    let source = "\
kernel @fold(%x: tensor<m x n x i32>, %y: mut tensor<n x m x i32>) {
  %vx = partition %x [4, 16] : partition<m x n x i32, [4, 16]>
  %vy = partition %y [16, 4] : mut partition<n x m x i32, [16, 4]>
  %i, %j = block_index %vy : index, index
  %3 = constant 3 : i32
  %t = load_masked %vx[%j, %i] pad %3 : tile<4 x 16 x i32>
  %turned = permute %t [1, 0] : tile<16 x 4 x i32>
  %a, %b = reduce_with %turned, %turned from %3, %3 axis 1 with (%p, %q, %r, %s) : tile<16 x 1 x i32>, tile<16 x 1 x i32> {
    yield %3, %s
  }
  %wide = broadcast %b : tile<16 x 4 x i32>
  store_masked %vy, %wide
}
";
    insta::assert_snapshot!(print(&scheduled(source, &[], "gfx942")));
}

/// A product of matrices in square tiles.
pub(super) const MATMUL: &str = "\
kernel @matmul<B>(%a: tensor<m x k x f32>, %b: tensor<k x n x f32>, %c: mut tensor<m x n x f32>) {
  %va = partition %a [B, B] : partition<m x k x f32, [B, B]>
  %vb = partition %b [B, B] : partition<k x n x f32, [B, B]>
  %vc = partition %c [B, B] : mut partition<m x n x f32, [B, B]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : f32
  %zero = splat %pad : tile<B x B x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, B) : index
  %sum = for %p = %1 to %2 carry (%acc = %zero) : tile<B x B x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<B x B x f32>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<B x B x f32>
    %next = mma %ta, %tb, %acc : tile<B x B x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

#[test]
fn what_a_loop_carries_lies_as_its_body_wants_it() {
    insta::assert_snapshot!(print(&scheduled(MATMUL, &[("B", 64)], "gfx942")));
}

/// The largest of rows so far begins as a load has it, and is compared with what is left of rows.
#[test]
fn a_few_elements_are_brought_to_where_a_loop_wants_them() {
    let source = "\
kernel @largest(%x: tensor<m x n x f32>, %s: tensor<m x f32>, %y: mut tensor<m x f32>) {
  %vx = partition %x [16, 64] : partition<m x n x f32, [16, 64]>
  %vs = partition %s [16] : partition<m x f32, [16]>
  %vy = partition %y [16] : mut partition<m x f32, [16]>
  %i = block_index %vy : index
  %pad = constant -inf : f32
  %0 = constant 0 : index
  %end = extent ceil_div(n, 64) : index
  %row = load_masked %vs[%i] pad %pad : tile<16 x f32>
  %first = reshape %row : tile<16 x 1 x f32>
  %last = for %p = %0 to %end carry (%most = %first) : tile<16 x 1 x f32> {
    %t = load_masked %vx[%i, %p] pad %pad : tile<16 x 64 x f32>
    %m = reduce max %t axis 1 : tile<16 x 1 x f32>
    %next = max %most, %m : tile<16 x 1 x f32>
    yield %next
  }
  %flat = reshape %last : tile<16 x f32>
  store_masked %vy, %flat
}
";
    for target in ["sm_90a", "gfx942", "gfx1201"] {
        let text = print(&scheduled(source, &[], target));
        let (_, turn) = text.split_once(" for ").expect("there is a loop");
        let (turn, _) = turn.split_once("yield").expect("the loop carries something");
        assert!(!turn.contains("convert_layout"), "{target}: {text}");
    }
}

/// Four queries share a head of 128 elements, as a kernel that decodes has them.
fn few_queries(rows: usize) -> String {
    let shape = format!("[{rows}, 128]");
    format!(
        "kernel @decode(%q: tensor<s x 128 x bf16>, %k: tensor<t x 128 x bf16>, %v: tensor<t x 128 x bf16>, %o: mut tensor<s x 128 x f32>) {{
  %vq = partition %q {shape} : partition<s x 128 x bf16, {shape}>
  %vk = partition %k [64, 128] : partition<t x 128 x bf16, [64, 128]>
  %vv = partition %v [64, 128] : partition<t x 128 x bf16, [64, 128]>
  %vo = partition %o {shape} : mut partition<s x 128 x f32, {shape}>
  %i, %j = block_index %vo : index, index
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %0 = constant 0 : index
  %query = load_masked %vq[%i, %0] pad %pad : tile<{rows} x 128 x bf16>
  %none = splat %zero : tile<{rows} x 128 x f32>
  %end = extent ceil_div(t, 64) : index
  %sum = for %p = %0 to %end carry (%acc = %none) : tile<{rows} x 128 x f32> {{
    %key = load_masked %vk[%p, %0] pad %pad : tile<64 x 128 x bf16>
    %value = load_masked %vv[%p, %0] pad %pad : tile<64 x 128 x bf16>
    %turned = permute %key [1, 0] : tile<128 x 64 x bf16>
    %start = splat %zero : tile<{rows} x 64 x f32>
    %scores = mma %query, %turned, %start : tile<{rows} x 64 x f32>
    %most = reduce max %scores axis 1 : tile<{rows} x 1 x f32>
    %all = broadcast %most : tile<{rows} x 64 x f32>
    %less = sub %scores, %all : tile<{rows} x 64 x f32>
    %weights = exp2 %less : tile<{rows} x 64 x f32>
    %narrow = cast %weights : tile<{rows} x 64 x bf16>
    %next = mma %narrow, %value, %acc : tile<{rows} x 128 x f32>
    yield %next
  }}
  store_masked %vo, %sum
}}
"
    )
}

/// Instructions have eight columns, or sixteen; one row is one of NVIDIA's columns that shares a register.
#[test]
fn products_of_few_rows_have_matrix_instructions() {
    for target in ["sm_80", "sm_90a", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"] {
        for rows in [1, 2, 4, 8] {
            let scheduled = scheduled(&few_queries(rows), &[], target);
            let products = scheduled.walk().into_iter().filter(|&op| scheduled.op(op).op == Op::Mma);
            let found = products.filter(|&op| scheduled.product(op).is_some()).count();
            let is_one_of_nvidia = rows == 1 && target.starts_with("sm_");
            assert_eq!(found, if is_one_of_nvidia { 0 } else { 2 }, "{rows} rows on {target}");
            // One warp would have all of the rows, and 128 words of the keys.
            assert!(is_one_of_nvidia || scheduled.threads().warps >= 2, "{rows} rows on {target}");
        }
    }
}

const ATTENTION: &str = "\
kernel @attention(%q: tensor<s x 64 x bf16>, %k: tensor<t x 64 x bf16>, %v: tensor<t x 64 x bf16>, %o: mut tensor<s x 64 x f32>) {
  %vq = partition %q [64, 64] : partition<s x 64 x bf16, [64, 64]>
  %vk = partition %k [32, 64] : partition<t x 64 x bf16, [32, 64]>
  %vv = partition %v [32, 64] : partition<t x 64 x bf16, [32, 64]>
  %vo = partition %o [64, 64] : mut partition<s x 64 x f32, [64, 64]>
  %i, %j = block_index %vo : index, index
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %0 = constant 0 : index
  %query = load_masked %vq[%i, %0] pad %pad : tile<64 x 64 x bf16>
  %none = splat %zero : tile<64 x 64 x f32>
  %end = extent ceil_div(t, 32) : index
  %sum = for %p = %0 to %end carry (%acc = %none) : tile<64 x 64 x f32> {
    %key = load_masked %vk[%p, %0] pad %pad : tile<32 x 64 x bf16>
    %value = load_masked %vv[%p, %0] pad %pad : tile<32 x 64 x bf16>
    %turned = permute %key [1, 0] : tile<64 x 32 x bf16>
    %start = splat %zero : tile<64 x 32 x f32>
    %scores = mma %query, %turned, %start : tile<64 x 32 x f32>
    %most = reduce max %scores axis 1 : tile<64 x 1 x f32>
    %all = broadcast %most : tile<64 x 32 x f32>
    %less = sub %scores, %all : tile<64 x 32 x f32>
    %weights = exp2 %less : tile<64 x 32 x f32>
    %narrow = cast %weights : tile<64 x 32 x bf16>
    %next = mma %narrow, %value, %acc : tile<64 x 64 x f32>
    yield %next
  }
  store_masked %vo, %sum
}
";

#[test]
fn what_follows_a_product_by_rows_stays_in_its_threads() {
    insta::assert_snapshot!(print(&scheduled(ATTENTION, &[], "sm_80")));
}

#[test]
fn a_target_without_a_matching_instruction_multiplies_and_adds() {
    let text = print(&scheduled(ATTENTION, &[], "gfx942"));
    assert!(text.contains("m32n32k8"), "{text}");
    let kernel = ATTENTION.edit("bf16", "f64").edit("f32", "f64").edit(
        "%narrow = cast %weights : tile<64 x 32 x f64>",
        "%narrow = neg %weights : tile<64 x 32 x f64>",
    );
    let without = |target| {
        let scheduled = scheduled(&kernel, &[], target);
        scheduled.remarks()[0].told()
    };
    assert!(!print(&scheduled(&kernel, &[], "sm_80")).contains("m16n8k"));
    assert_eq!(
        without("sm_80"),
        "a product is computed without matrix instructions: there are none for f64 summed in f64; there are for f16, \
          bf16, f32 of `mma_tf32` summed in f32; i8, u8 summed in i32"
    );
    // Instructions of several shapes multiply the same formats.
    assert_eq!(
        without("gfx950").split("; ").collect::<Vec<_>>()[1..],
        [
            "there are for f16, bf16, f32, f8e4m3fn, f8e5m2, f8e4m3fn with f8e5m2, f8e5m2 with f8e4m3fn summed in f32",
            "i8 summed in i32"
        ]
    );
}

/// `wgmma` transposes elements of 16 bits alone.
#[test]
fn factors_of_bytes_lie_along_the_depth() {
    let columns = ALIGNED_MATMUL.edit("bf16", "f8e4m3fn").edit("% 8", "% 16").edit(", 8)", ", 16)");
    let rows = columns.edit("k x n x", "n x k x").edit("%b [64, 128]", "%b [128, 64]").edit(
        "%tb = load_masked %vb[%p, %j] pad %pad : tile<64 x 128 x f8e4m3fn>",
        "%lb = load_masked %vb[%j, %p] pad %pad : tile<128 x 64 x f8e4m3fn>
    %tb = permute %lb [1, 0] : tile<64 x 128 x f8e4m3fn>",
    );
    let rows = rows.edit("[64, 128]>", "[128, 64]>");
    let messages = |source: &str| -> Vec<String> {
        scheduled(source, &[], "sm_90a").remarks().iter().map(|remark| remark.message.clone()).collect()
    };
    assert!(messages(&rows).is_empty());
    assert_eq!(
        messages(&columns),
        [
            "a product isn't done by warpgroups (`wgmma`) but by `mma.sync` m16n8k32, with tiles of the left factor alone \
             copied ahead by all threads: they take factors of f8e4m3fn along the depth of the product, and `b` has \
             them across it; pass that transposed"
        ]
    );
    let unaligned =
        rows.edit(" where \"k % 16 == 0\": rem(k, 16) eq 0, \"n % 16 == 0\": rem(n, 16) eq 0", "");
    // What tensor maps can't bring, warps multiply.
    assert!(messages(&unaligned).is_empty());
    assert!(print(&scheduled(&unaligned, &[], "sm_90a")).contains("m16n8k32"));
}

/// A target that has no instruction for 8-bit floats multiplies them as bf16, which every one of them is.
#[test]
fn factors_that_a_target_has_no_instruction_for_are_widened() {
    let kernel = ALIGNED_MATMUL.edit("bf16", "f8e5m2");
    for (target, instruction) in
        [("sm_80", "m16n8k16"), ("gfx90a", "m32n32k8"), ("gfx942", "m32n32k8"), ("gfx1100", "m16n16k16")]
    {
        let scheduled = scheduled(&kernel, &[], target);
        let text = print(&scheduled);
        assert!(text.contains(instruction), "{target}: {text}");
        assert_eq!(text.matches("= cast ").count(), 2, "{target}: {text}");
        assert_eq!(scheduled.remarks(), []);
    }
    for target in ["sm_90a", "sm_100a", "gfx950", "gfx1201"] {
        let text = print(&scheduled(&kernel, &[], target));
        assert!(text.contains("= mma ") && !text.contains("= cast "), "{target}: {text}");
    }
    // Shallower than any of its own.
    let shallow = kernel.edit("[128, 64]", "[128, 16]").edit("[64, 128]", "[16, 128]");
    let shallow = shallow.edit("128 x 64 x", "128 x 16 x").edit("64 x 128 x", "16 x 128 x");
    let text = print(&scheduled(&shallow.edit("ceil_div(k, 64)", "ceil_div(k, 16)"), &[], "sm_100a"));
    assert!(text.contains("m16n8k16") && text.contains("= cast "), "{text}");
}

#[test]
fn a_product_of_odd_extents_is_remarked_upon() {
    let kernel = ATTENTION.edit("t x 64", "t x 24").edit("64 x 64", "64 x 24").edit("s x 64", "s x 24");
    let kernel = kernel.edit("[32, 64]", "[32, 24]").edit("[64, 64]", "[64, 24]").edit("32 x 64", "32 x 24");
    let kernel = kernel.edit("tile<64 x 32 x bf16>\n    %start", "tile<24 x 32 x bf16>\n    %start");
    let remarks = scheduled(&kernel, &[], "gfx942").remarks().to_vec();
    assert_eq!(
        remarks[0].message,
        "a product is computed without matrix instructions: 64 rows, 24 columns and a depth of 32 aren't multiples of \
         any of their extents; choose extents that are multiples of m32n32k8 or m16n16k16"
    );
}

/// C = A·B in tiles of 128 by 128 elements, 64 deep; every row begins at a multiple of 16 bytes.
const ALIGNED_MATMUL: &str = "\
kernel @matmul(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x f32>) where \"k % 8 == 0\": rem(k, 8) eq 0, \"n % 8 == 0\": rem(n, 8) eq 0 {
  %va = partition %a [128, 64] : partition<m x k x bf16, [128, 64]>
  %vb = partition %b [64, 128] : partition<k x n x bf16, [64, 128]>
  %vc = partition %c [128, 128] : mut partition<m x n x f32, [128, 128]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<128 x 128 x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, 64) : index
  %sum = for %p = %1 to %2 carry (%acc = %zero) : tile<128 x 128 x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<128 x 64 x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<64 x 128 x bf16>
    %next = mma %ta, %tb, %acc : tile<128 x 128 x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

#[test]
fn tiles_of_a_product_are_copied_by_all_threads() {
    insta::assert_snapshot!(print(&scheduled(ALIGNED_MATMUL, &[], "sm_80")));
}

/// Rows of B may begin anywhere: its tiles are loaded a turn ahead.
#[test]
fn tiles_of_single_elements_are_not_copied() {
    let kernel = ALIGNED_MATMUL.edit(", \"n % 8 == 0\": rem(n, 8) eq 0", "");
    insta::assert_snapshot!(print(&scheduled(&kernel, &[], "sm_80")));
}

/// How often a kernel's tiles change threads.
fn conversions(scheduled: &Scheduled) -> usize {
    scheduled.walk().into_iter().filter(|&op| scheduled.op(op).op == Op::ConvertLayout).count()
}

/// D = A·B + C, C in a format of its own.
fn matmul_beside(residual: &str) -> String {
    let view = format!(
        "  %vd = partition %d [128, 128] : partition<m x n x {residual}, [128, 128]>\n  %i, %j = block_index"
    );
    let sum = format!(
        "  %none_d = constant 0.0 : {residual}
  %td = load_masked %vd[%i, %j] pad %none_d : tile<128 x 128 x {residual}>
  %wide = cast %td : tile<128 x 128 x f32>
  %whole = add %wide, %sum : tile<128 x 128 x f32>
  store_masked %vc, %whole"
    );
    ALIGNED_MATMUL
        .edit("%c: mut", &format!("%d: tensor<m x n x {residual}>, %c: mut"))
        .edit("  %i, %j = block_index", &view)
        .edit("  store_masked %vc, %sum", &sum)
}

#[test]
fn a_residual_is_loaded_to_where_the_sums_lie() {
    for (target, residual) in [("sm_90a", "bf16"), ("sm_90a", "f16"), ("sm_80", "bf16"), ("gfx942", "bf16")] {
        let [with, without] = [matmul_beside(residual), ALIGNED_MATMUL.to_owned()]
            .map(|source| scheduled(&source, &[], target));
        assert_eq!(conversions(&with), conversions(&without), "{target} {residual}");
        assert_eq!(with.copied_bytes(), without.copied_bytes(), "{target} {residual}");
    }
}

#[test]
fn sums_that_a_loop_begins_with_are_loaded_to_where_they_are_added_to() {
    let view = "  %vd = partition %d [128, 128] : partition<m x n x f32, [128, 128]>\n  %i, %j = block_index";
    let source = ALIGNED_MATMUL
        .edit("%c: mut", "%d: tensor<m x n x f32>, %c: mut")
        .edit("  %i, %j = block_index", view)
        .edit("%zero = splat %none :", "%zero = load_masked %vd[%i, %j] pad %none :");
    for target in ["sm_90a", "sm_80", "gfx942"] {
        let [with, without] = [&source, ALIGNED_MATMUL].map(|source| scheduled(source, &[], target));
        assert_eq!(conversions(&with), conversions(&without), "{target}");
    }
}

/// The sum of a tile and one that is loaded otherwise is no product's: neighbours in memory stay neighbours.
#[test]
fn a_load_of_what_is_used_elsewhere_stays_coalesced() {
    let again = "  %whole = add %wide, %sum : tile<128 x 128 x f32>
  %most = reduce max %wide axis 1 : tile<128 x 1 x f32>
  %all = broadcast %most : tile<128 x 128 x f32>
  %more = add %whole, %all : tile<128 x 128 x f32>
  store_masked %vc, %more";
    let source = matmul_beside("bf16")
        .edit("  %whole = add %wide, %sum : tile<128 x 128 x f32>\n  store_masked %vc, %whole", again);
    let scheduled = scheduled(&source, &[], "sm_80");
    let load = scheduled.walk().into_iter().rfind(|&op| scheduled.op(op).op.is_load()).unwrap();
    assert_eq!(scheduled.distribution(scheduled.op(load).results[0]).neighbours(1), 8);
}

/// What is added to, each thread must meet where it wrote it: 128 KiB change threads, more than rings leave.
#[test]
fn a_large_conversion_goes_in_rounds_before_fewer_tiles_are_copied_ahead() {
    let wide = ALIGNED_MATMUL
        .edit("[64, 128]", "[64, 256]")
        .edit("[128, 128]", "[128, 256]")
        .edit("tile<64 x 128", "tile<64 x 256")
        .edit("tile<128 x 128", "tile<128 x 256");
    let added = "  %old = load_masked %vc pad %none : tile<128 x 256 x f32>
  %new = add %old, %sum : tile<128 x 256 x f32>\n  store_masked %vc, %new";
    let added = wide.edit("  store_masked %vc, %sum", added);
    let [straight, added] = [wide, added].map(|source| scheduled(&source, &[], "sm_90a"));
    let stages = |scheduled: &Scheduled| scheduled.pipelines().all().next().map(|(_, ring)| ring.stages);
    assert_eq!(stages(&added), stages(&straight));
    let rounds =
        |op: &OpId| added.op(*op).op == Op::ConvertLayout && matches!(added.way(*op), Way::InRounds { .. });
    assert!(added.walk().iter().any(rounds), "{}", print(&added));
}

/// Rows of a table that a tile of indices names, from a multiple of 256 columns on.
const LOOKUP: &str = "\
kernel @lookup(%x: tensor<v x d x bf16>, %ids: tensor<k x i32>, %y: mut tensor<k x d x bf16>) where \"d % 8 == 0\": rem(d, 8) eq 0 {
  %vi = partition %ids [16] : partition<k x i32, [16]>
  %vy = partition %y [16, 256] : mut partition<k x d x bf16, [16, 256]>
  %i, %j = block_index %vy : index, index
  %none = constant -1 : i32
  %pad = constant 0.0 : bf16
  %ids_of = load_masked %vi[%i] pad %none : tile<16 x i32>
  %column = reshape %ids_of : tile<16 x 1 x i32>
  %which = broadcast %column : tile<16 x 256 x i32>
  %width = constant 256 : index
  %start = mul %j, %width : index
  %from = cast %start : i32
  %starts = splat %from : tile<16 x 256 x i32>
  %counted = iota 1 : tile<16 x 256 x i32>
  %at = add %starts, %counted : tile<16 x 256 x i32>
  %t = gather_load %x[%which, %at] pad %pad : tile<16 x 256 x bf16>
  store_masked %vy, %t
}
";

/// Products of experts' tokens: the rows of the left factor are named once, the columns go on with the depth.
const GATHERED_FACTOR: &str = "\
kernel @experts(%x: tensor<t x k x bf16>, %token: tensor<r x i32>, %w: tensor<k x n x bf16>, %y: mut tensor<r x n x f32>) where \"k % 8 == 0\": rem(k, 8) eq 0, \"n % 8 == 0\": rem(n, 8) eq 0 {
  %vt = partition %token [128] : partition<r x i32, [128]>
  %vw = partition %w [64, 128] : partition<k x n x bf16, [64, 128]>
  %vy = partition %y [128, 128] : mut partition<r x n x f32, [128, 128]>
  %i, %j = block_index %vy : index, index
  %none = constant -1 : i32
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %ids = load_masked %vt[%i] pad %none : tile<128 x i32>
  %column = reshape %ids : tile<128 x 1 x i32>
  %rows = broadcast %column : tile<128 x 64 x i32>
  %width = constant 64 : index
  %0 = constant 0 : index
  %end = extent ceil_div(k, 64) : index
  %start = splat %zero : tile<128 x 128 x f32>
  %sum = for %p = %0 to %end carry (%acc = %start) : tile<128 x 128 x f32> {
    %from = mul %p, %width : index
    %first = cast %from : i32
    %firsts = splat %first : tile<1 x 64 x i32>
    %counted = iota 1 : tile<1 x 64 x i32>
    %at = add %firsts, %counted : tile<1 x 64 x i32>
    %columns = broadcast %at : tile<128 x 64 x i32>
    %a = gather_load %x[%rows, %columns] pad %pad : tile<128 x 64 x bf16>
    %b = load_masked %vw[%p, %j] pad %pad : tile<64 x 128 x bf16>
    %next = mma %a, %b, %acc : tile<128 x 128 x f32>
    yield %next
  }
  store_masked %vy, %sum
}
";

/// Its schedule.
pub(super) fn gathered_factor(target: &str) -> Scheduled {
    scheduled(GATHERED_FACTOR, &[], target)
}

#[test]
fn gathered_rows_of_a_product_are_copied_by_all_threads() {
    insta::assert_snapshot!(print(&gathered_factor("sm_80")));
}

#[test]
fn rows_of_the_next_turn_are_gathered_before_the_product() {
    insta::assert_snapshot!(print(&gathered_factor("gfx942")));
}

#[test]
fn rows_of_a_table_are_gathered_in_vectors() {
    insta::assert_snapshot!(print(&scheduled(LOOKUP, &[], "sm_90a")));
}

/// What keeps neighbours from being loaded together, or fewer of them.
#[test]
fn gathers_move_what_is_aligned() {
    let vector = |source: &str| {
        let scheduled = scheduled(source, &[], "sm_90a");
        let gather = scheduled.walk().into_iter().find(|&op| scheduled.op(op).op == Op::GatherLoad).unwrap();
        scheduled.gathered(gather).map(|access| access.vector)
    };
    assert_eq!(vector(LOOKUP), Some(8));
    assert_eq!(vector(&LOOKUP.edit("rem(d, 8)", "rem(d, 2)")), Some(2));
    assert_eq!(vector(&LOOKUP.edit("constant 256 : index", "constant 252 : index")), Some(4));
    assert_eq!(vector(&LOOKUP.edit("mul %j, %width", "add %j, %width")), Some(1));
    assert_eq!(vector(&LOOKUP.edit("add %starts, %counted", "sub %starts, %counted")), None);
    assert_eq!(vector(&LOOKUP.edit("%x[%which, %at]", "%x[%at, %which]")), None);
    let padded = |pad: &str, ty: &str| {
        let view = format!("  %p = view %x pad {pad} : tensor<{ty}>\n  %vi =");
        vector(&LOOKUP.edit("  %vi =", &view).edit("gather_load %x", "gather_load %p"))
    };
    let border = "v x d + 8 x bf16, strided [d, 1] offset -8 within [[], [(8, d + 8)]]";
    assert_eq!(padded("[(0, 0), (8, 0)]", border), Some(1));
    let rows = "v + 2 x d x bf16, strided [d, 1] offset -2*d within [[(2, v + 2)], []]";
    assert_eq!(padded("[(2, 0), (0, 0)]", rows), Some(8));
}

/// Rows that are written to a cache at places that a tensor says; the same, added to.
pub(super) fn cache(operation: &str) -> String {
    LOOKUP
        .edit("%ids: tensor<k x i32>", "%ids: tensor<k x i32>, %kept: mut tensor<v x d x bf16>")
        .edit("%t = gather_load %x[%which, %at] pad %pad", "%t = load_masked %vx[%i, %j] pad %pad")
        .edit("%x: tensor<v x d", "%x: tensor<k x d")
        .edit("  %vi =", "  %vx = partition %x [16, 256] : partition<k x d x bf16, [16, 256]>\n  %vi =")
        .edit("  store_masked %vy, %t", operation)
}

const STORED: &str = "  atomic store relaxed device %kept[%which, %at], %t";
pub(super) const ADDED: &str =
    "  %old = atomic add relaxed device %kept[%which, %at], %t : tile<16 x 256 x bf16>";

#[test]
fn rows_are_written_to_a_cache_in_vectors() {
    insta::assert_snapshot!(print(&scheduled(&cache(STORED), &[], "sm_90a")));
}

/// How many elements an instruction changes, by the operation and the target.
#[test]
fn scatters_change_what_instructions_do() {
    let together = |source: &str, target: &str| {
        let scheduled = scheduled(source, &[], target);
        let atomic =
            scheduled.walk().into_iter().find(|&op| matches!(scheduled.op(op).op, Op::Atomic(_))).unwrap();
        scheduled.scattered(atomic)
    };
    let (stored, added) = (cache(STORED), cache(ADDED));
    let all = |source: &str| ["sm_80", "sm_90a", "gfx90a", "gfx942"].map(|target| together(source, target));
    assert_eq!(all(&stored), [8, 8, 4, 4]);
    assert_eq!(all(&added), [1, 8, 1, 2]);
    assert_eq!(all(&added.edit("bf16", "f16")), [2, 8, 1, 2]);
    assert_eq!(all(&added.edit("bf16", "f32").edit("rem(d, 8)", "rem(d, 4)")), [1, 4, 1, 1]);
    assert_eq!(together(&stored.edit("rem(d, 8)", "rem(d, 2)"), "sm_90a"), 2);
    assert_eq!(together(&stored.edit("%kept[%which, %at]", "%kept[%at, %which]"), "sm_90a"), 1);
    // Others see one addition of the host's as a whole, and an old element is asked for one by one.
    assert_eq!(together(&added.edit("device", "system"), "sm_90a"), 1);
    let used = format!("{ADDED}\n  store_masked %vy, %old");
    assert_eq!(together(&cache(&used), "sm_90a"), 1);
    // A word and one of its elements would be operations of different sizes at one place.
    let twice = format!("{STORED}\n{ADDED}");
    assert_eq!(together(&cache(&twice), "sm_90a"), 1);
}
