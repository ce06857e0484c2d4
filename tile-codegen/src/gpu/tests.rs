//! The instructions that kernels become, in LLVM's text: mostly on AMD's GPUs.

use super::targets::rounding;
use super::{Module, Places, tell_code_generator};
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::targets::FileType;
use std::collections::HashMap;
use tile_ir::target::Family;
use tile_ir::{Instance, TargetDesc, passes};
use tile_test_edit::Edit;

/// The lines of the code of a kernel.
fn code(source: &str, constants: &[(&str, usize)], target: &str) -> String {
    let instance = passes::optimize(Instance::parse(source, constants).unwrap());
    let (context, target) = (Context::create(), TargetDesc::named(target).unwrap());
    let module = Module::of(&context, &instance, target, "kernel", None, Places::Unknown).unwrap();
    rounding::expand(&module.ir);
    module.machine.optimize("kernel", &module.ir.module).unwrap();
    if target.family == Family::Amdgpu {
        tell_code_generator(&module.ir);
    }
    let text = module.machine.emit("kernel", &module.ir.module, FileType::Assembly).unwrap();
    String::from_utf8(text).unwrap()
}

/// How often each instruction stands in the code of a kernel.
struct Instructions(HashMap<String, usize>);

impl Instructions {
    fn of(source: &str, constants: &[(&str, usize)], target: &str) -> Instructions {
        let mut counts = HashMap::new();
        for line in code(source, constants, target).lines() {
            let Some(instruction) = line.strip_prefix('\t').filter(|line| !line.starts_with(['.', ';']))
            else {
                continue;
            };
            let name = instruction.split_whitespace().next().unwrap_or_default();
            *counts.entry(name.to_owned()).or_insert(0) += 1;
        }
        Instructions(counts)
    }

    /// How many instructions end with one of these.
    fn ending(&self, ends: &[&str]) -> usize {
        let matches = |name: &str| ends.iter().any(|end| name.ends_with(end));
        self.0.iter().filter(|(name, _)| matches(name)).map(|(_, count)| count).sum()
    }

    /// How many instructions begin with one of these.
    fn count(&self, starts: &[&str]) -> usize {
        let begins = |name: &str| starts.iter().any(|start| name.starts_with(start));
        self.0.iter().filter(|(name, _)| begins(name)).map(|(_, count)| count).sum()
    }
}

/// `c = a·b` in tiles that are whole.
fn matmul(format: &str) -> String {
    format!(
        "kernel @matmul<BM, BN, BK>(%a: tensor<m x k x {format}>, %b: tensor<k x n x {format}>, %c: mut tensor<m x n x f32>) where \"whole\": rem(m, BM) eq 0, \"whole\": rem(n, BN) eq 0, \"whole\": rem(k, BK) eq 0 {{
  %va = partition %a [BM, BK] : partition<m x k x {format}, [BM, BK]>
  %vb = partition %b [BK, BN] : partition<k x n x {format}, [BK, BN]>
  %vc = partition %c [BM, BN] : mut partition<m x n x f32, [BM, BN]>
  %i, %j = block_index %vc : index, index
  %z = constant 0.0 : f32
  %zo = constant 0.0 : {format}
  %zero = splat %z : tile<BM x BN x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, BK) : index
  %sum = for %p = %1 to %2 carry (%acc = %zero) : tile<BM x BN x f32> {{
    %ta = load_masked %va[%i, %p] pad %zo : tile<BM x BK x {format}>
    %tb = load_masked %vb[%p, %j] pad %zo : tile<BK x BN x {format}>
    %next = mma %ta, %tb, %acc : tile<BM x BN x f32>
    yield %next
  }}
  store_masked %vc, %sum
}}
"
    )
}

const SQUARE: [(&str, usize); 3] = [("BM", 128), ("BN", 128), ("BK", 64)];

/// A lane has four neighbours along the rows of a product, on gfx12 eight.
#[test]
fn sums_are_stored_in_vectors() {
    for target in ["gfx90a", "gfx942", "gfx950", "gfx1201"] {
        let code = Instructions::of(&matmul("bf16"), &SQUARE, target);
        let wide = code.count(&["global_store_dwordx4", "global_store_b128"]);
        assert_eq!((wide, code.count(&["global_store"])), (16, 16), "{target}");
    }
}

/// The right factor has its neighbours along rows, a lane's elements are neighbours along columns: no element goes to
/// shared memory or comes from there alone.
#[test]
fn transposed_factors_are_read_in_vectors() {
    for target in ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"] {
        let code = Instructions::of(&matmul("bf16"), &SQUARE, target);
        let alone = ["ds_read_u16", "ds_load_u16", "ds_write_b16", "ds_store_b16"];
        assert_eq!(code.count(&alone), 0, "{target}");
        assert_eq!(code.count(&["ds_write", "ds_store"]), 12, "{target}");
    }
}

/// A tile of f32 cast to another format.
fn narrow(format: &str) -> String {
    format!(
        "kernel @narrow<B>(%x: tensor<n x B x f32>, %y: mut tensor<n x B x {format}>) {{
  %vx = partition %x [1, B] : partition<n x B x f32, [1, B]>
  %vy = partition %y [1, B] : mut partition<n x B x {format}, [1, B]>
  %i, %j = block_index %vy : index, index
  %a = load %vx[%i, %j] : tile<1 x B x f32>
  %r = cast %a : tile<1 x B x {format}>
  store %vy, %r
}}
"
    )
}

/// Eight elements a thread.
#[test]
fn pairs_are_rounded_together() {
    for (format, instruction) in [("bf16", "v_cvt_pk_bf16_f32"), ("f16", "v_cvt_pk_f16_f32")] {
        let code = Instructions::of(&narrow(format), &[("B", 1024)], "gfx950");
        assert_eq!(code.count(&[instruction]), 4, "{format}");
        assert_eq!(code.count(&["v_perm", "v_pack", "v_or"]), 0, "{format}: pairs are words as they are");
    }
}

/// The sum of every row, of which a block has one.
const ROWS: &str = "\
kernel @rows<B>(%x: tensor<m x B x f32>, %y: mut tensor<m x 1 x f32>) {
  %vx = partition %x [1, B] : partition<m x B x f32, [1, B]>
  %vy = partition %y [1, 1] : mut partition<m x 1 x f32, [1, 1]>
  %i, %j = block_index %vy : index, index
  %t = load %vx[%i, %j] : tile<1 x B x f32>
  %s = reduce sum %t axis 1 : tile<1 x 1 x f32>
  store %vy, %s
}
";

/// Rows of 16 lanes add by operands of the addition; what lies further apart comes by one instruction.
#[test]
fn lanes_add_what_other_lanes_have() {
    for (target, added, others) in [
        ("gfx90a", 5, ["ds_swizzle", "ds_bpermute"]),
        ("gfx942", 5, ["ds_swizzle", "ds_bpermute"]),
        ("gfx1100", 4, ["v_permlanex16", "ds_bpermute"]),
        ("gfx1201", 4, ["v_permlanex16", "ds_bpermute"]),
    ] {
        let code = Instructions::of(ROWS, &[("B", 1024)], target);
        let within_rows = code.ending(&["_dpp"]);
        assert_eq!(within_rows, added, "{target}");
        let further = others.map(|name| code.count(&[name]));
        assert_eq!(further, if target.starts_with("gfx9") { [1, 1] } else { [1, 0] }, "{target}");
    }
}

/// Between two products that multiply one after the other, no wait is for all reads: those of the next step are under
/// way. The first and the last steps aside, which have nothing to do meanwhile.
#[test]
fn reads_are_a_step_ahead_of_products() {
    for target in ["gfx90a", "gfx942", "gfx950"] {
        let text = code(&matmul("bf16"), &SQUARE, target);
        let (mut waits, mut products) = (Vec::new(), 0);
        for line in text.lines().map(str::trim) {
            if line.starts_with("v_mfma") {
                products += 1;
            } else if line.starts_with("s_waitcnt lgkmcnt(0)") {
                waits.push(products);
            }
        }
        let (first, last) = (products / 8, products - products / 8);
        let between = waits.iter().filter(|&&before| (first..last).contains(&before));
        assert_eq!(between.count(), 0, "{target}: {waits:?} of {products}\n{text}");
    }
}

/// Rows of any length: whole tiles are moved in vectors wherever they begin.
#[test]
fn whole_tiles_are_moved_in_vectors() {
    let source = matmul("bf16").edit(
        " where \"whole\": rem(m, BM) eq 0, \"whole\": rem(n, BN) eq 0, \"whole\": rem(k, BK) eq 0",
        "",
    );
    for target in ["gfx90a", "gfx942", "gfx950", "gfx1201"] {
        let code = Instructions::of(&source, &SQUARE, target);
        let wide = ["load", "store"].map(|access| {
            code.count(&[&format!("global_{access}_dwordx4"), &format!("global_{access}_b128")])
        });
        assert_eq!(wide, [16, 16], "{target}");
    }
}

/// Rows of `x` that exist, each of whose elements is moved on its own or with neighbours, to `y`.
const COPY: &str = "\
kernel @copy(%x: tensor<m x 48 x f32>, %y: mut tensor<m x 48 x f32>) {
  %vx = partition %x [8, 32] : partition<m x 48 x f32, [8, 32]>
  %vy = partition %y [8, 32] : mut partition<m x 48 x f32, [8, 32]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<8 x 32 x f32>
  store_masked %vy, %t
}
";

#[test]
fn masked_tiles_are_bounded_without_branches() {
    for target in ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"] {
        let copy = Instructions::of(COPY, &[], target);
        assert_eq!(copy.count(&["buffer_load", "buffer_store"]), 2, "{target}");
        assert_eq!(copy.count(&["global_", "flat_", "s_cbranch"]), 0, "{target}");
        assert_eq!(
            copy.count(&["v_readfirstlane"]),
            0,
            "{target}: what a resource is made of is alike in all lanes"
        );
    }
}

/// A masked tile of 8-bit floats that goes through a branch and a loop.
fn carried(format: &str) -> String {
    format!(
        "kernel @carried(%x: tensor<m x k x {format}>, %y: mut tensor<m x k x {format}>) {{
  %vx = partition %x [32, 128] : partition<m x k x {format}, [32, 128]>
  %vy = partition %y [32, 128] : mut partition<m x k x {format}, [32, 128]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : {format}
  %0 = constant 0 : index
  %n = extent ceil_div(k, 128) : index
  %first = load_masked %vx[%i, %0] pad %pad : tile<32 x 128 x {format}>
  %last = for %p = %0 to %n carry (%t = %first) : tile<32 x 128 x {format}> {{
    %next = load_masked %vx[%i, %p] pad %pad : tile<32 x 128 x {format}>
    yield %next
  }}
  store_masked %vy, %last
}}
"
    )
}

/// Where some elements don't exist, zeros are chosen among words: no element is computed.
#[test]
fn masked_elements_of_8_bits_are_moved_as_they_are() {
    for (target, format) in
        ["sm_80", "sm_90a", "gfx942"].iter().flat_map(|it| ["f8e4m3fn", "f8e5m2"].map(|f| (it, f)))
    {
        let code = Instructions::of(&carried(format), &[], target);
        let floats = [".f32", "_f32"].map(|end| code.ending(&[end]));
        assert_eq!(floats, [0, 0], "{format} on {target}");
    }
}

/// Rows of a table, of 16 bytes times a number, that indices name.
const LOOKUP: &str = "\
kernel @lookup(%x: tensor<v x 512 x bf16>, %ids: tensor<k x i32>, %y: mut tensor<k x 512 x bf16>) {
  %vi = partition %ids [8] : partition<k x i32, [8]>
  %vy = partition %y [8, 512] : mut partition<k x 512 x bf16, [8, 512]>
  %i, %j = block_index %vy : index, index
  %none = constant -1 : i32
  %pad = constant 0.0 : bf16
  %ids_of = load_masked %vi[%i] pad %none : tile<8 x i32>
  %column = reshape %ids_of : tile<8 x 1 x i32>
  %which = broadcast %column : tile<8 x 512 x i32>
  %at = iota 1 : tile<8 x 512 x i32>
  %t = gather_load %x[%which, %at] pad %pad : tile<8 x 512 x bf16>
  store_masked %vy, %t
}
";

/// 256 threads have 16 elements each, and an index.
#[test]
fn gathered_rows_are_loaded_in_vectors() {
    for target in ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"] {
        let code = Instructions::of(LOOKUP, &[], target);
        let wide = code.count(&["global_load_dwordx4", "global_load_b128"]);
        let all = code.count(&["global_load", "flat_load"]);
        assert_eq!((wide, all - wide), (2, 0), "{target}");
    }
}

/// Rows of the left factor are named: they are loaded before the loop, and in it for the next turn, and nothing waits for
/// them where they are asked for.
#[test]
fn rows_of_the_next_turn_are_not_waited_for() {
    let source = matmul("bf16")
        .edit("%c: mut tensor", "%ids: tensor<m x i32>, %c: mut tensor")
        .edit(
            "  %1 = constant",
            "  %vi = partition %ids [BM] : partition<m x i32, [BM]>
  %named = load %vi[%i] : tile<BM x i32>
  %column = reshape %named : tile<BM x 1 x i32>
  %rows = broadcast %column : tile<BM x BK x i32>
  %width = extent BK : index
  %1 = constant",
        )
        .edit(
            "    %ta = load_masked %va[%i, %p]",
            "    %from = mul %p, %width : index
    %first = cast %from : i32
    %firsts = splat %first : tile<BM x BK x i32>
    %counted = iota 1 : tile<BM x BK x i32>
    %columns = add %firsts, %counted : tile<BM x BK x i32>
    %ta = gather_load %a[%rows, %columns]",
        );
    for target in ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"] {
        let text = code(&source, &SQUARE, target);
        let (mut loads, mut asked) = (0, false);
        for line in text.lines().map(str::trim) {
            let begins_block =
                [".LBB", "; %bb", "s_cbranch", "s_branch"].iter().any(|it| line.starts_with(it));
            let waits = line.starts_with("s_wait_loadcnt") || line.contains("vmcnt(");
            assert!(!(asked && waits), "{target} waits where it asks:\n{text}");
            let loads_row = ["global_load_dwordx4", "global_load_b128"].iter().any(|it| line.starts_with(it));
            (loads, asked) = (loads + usize::from(loads_row), (asked || loads_row) && !begins_block);
        }
        // Four of each factor.
        assert_eq!(loads, 2 * 8, "{target}:\n{text}");
    }
}

/// Whether a barrier stands behind a wait for loads, with nothing between that writes what was loaded to shared memory.
fn waits_for_loads_at_a_barrier(text: &str) -> bool {
    let mut waited = false;
    text.lines().map(str::trim).any(|line| {
        if line.contains("vmcnt(") || line.starts_with("s_wait_loadcnt") || line.starts_with("s_wait_idle") {
            waited = true;
        } else if line.starts_with("ds_write") || line.starts_with("ds_store") {
            waited = false;
        }
        waited && (line == "s_barrier" || line.starts_with("s_barrier_signal"))
    })
}

const INVALIDATES: [&str; 3] = ["buffer_gl0_inv", "global_inv", "buffer_inv"];

/// The next turn's tiles are under way while a turn multiplies: barriers order what threads exchange through shared memory.
#[test]
fn barriers_wait_for_no_loads() {
    for target in ["gfx1100", "gfx1201"] {
        let text = code(&matmul("bf16"), &SQUARE, target);
        assert!(text.contains("s_barrier") && !waits_for_loads_at_a_barrier(&text), "{target}:\n{text}");
        assert!(!INVALIDATES.iter().any(|it| text.contains(it)), "{target}:\n{text}");
    }
}

/// The sums begin with a tile that is stored in the end. Threads that load and threads that store an element may differ, so
/// what stands between orders the tensor. Where the tile is added in the end, the loop stands before both.
#[test]
fn barriers_between_a_load_and_a_store_of_a_tensor_wait_for_it() {
    let load = "  %old = load_masked %vc pad %z : tile<BM x BN x f32>\n";
    let at_first =
        matmul("bf16").edit("  %1 = constant 0 : index\n", &format!("{load}  %1 = constant 0 : index\n"));
    let at_first = at_first.edit("(%acc = %zero)", "(%acc = %old)");
    let at_last = matmul("bf16").edit(
        "  store_masked %vc, %sum\n",
        &format!("{load}  %all = add %old, %sum : tile<BM x BN x f32>\n  store_masked %vc, %all\n"),
    );
    for target in ["gfx1100", "gfx1201"] {
        let [at_first, at_last] = [&at_first, &at_last].map(|source| code(source, &SQUARE, target));
        assert!(INVALIDATES.iter().any(|it| at_first.contains(it)), "{target}:\n{at_first}");
        assert!(!INVALIDATES.iter().any(|it| at_last.contains(it)), "{target}:\n{at_last}");
    }
}

/// An op of a tile and a number, both integers of a format.
fn of_integers(dtype: &str, body: &str) -> String {
    format!(
        "kernel @k<B>(%x: tensor<n x {dtype}>, %s: {dtype}, %y: mut tensor<n x {dtype}>) {{
  %vx = partition %x [B] : partition<n x {dtype}, [B]>
  %vy = partition %y [B] : mut partition<n x {dtype}, [B]>
  %i = block_index %vy : index
  %zero = constant 0 : {dtype}
  %known = constant 5 : {dtype}
  %a = load_masked %vx[%i] pad %zero : tile<B x {dtype}>
  %b = splat %s : tile<B x {dtype}>
  %c = splat %known : tile<B x {dtype}>
{body}
  store_masked %vy, %r
}}
"
    )
}

/// How many instructions with these names an op of integers of so many bits takes, beside those of a kernel without it.
fn taken<const N: usize>(body: &str, width: u32, target: &str, names: [&str; N]) -> [usize; N] {
    let of = |body: &str| {
        let body = format!("  %r = {body} : tile<B x u{width}>");
        Instructions::of(&of_integers(&format!("u{width}"), &body), &[("B", 32)], target)
    };
    let (found, others) = (of(body), of("add %a, %b"));
    names.map(|name| found.count(&[name]) - others.count(&[name]))
}

/// Of words an instruction each, of narrow integers one of a word of copies, of two words two.
#[test]
fn bits_move_by_instructions() {
    for (target, names) in [
        ("sm_90a", ["shf.", "shr.u16", "shr.u64"]),
        ("gfx942", ["v_alignbit_b32", "v_lshrrev_b16", "v_lshrrev_b64"]),
        ("gfx1201", ["v_alignbit_b32", "v_lshrrev_b16", "v_lshrrev_b64"]),
    ] {
        for (width, rotated) in [(8, 1), (16, 1), (32, 1), (64, 2)] {
            for op in ["rotate_left", "rotate_right"] {
                let known = taken(&format!("{op} %a, %c"), width, target, names);
                // Of copies a shift to the right is enough, where no bit comes from beyond the word.
                let is_shift = width < 32 && known == [0, 0, 0];
                assert!(is_shift || known == [rotated, 0, 0], "{op} of u{width} by 5 on {target}: {known:?}");
                let unknown = taken(&format!("{op} %a, %b"), width, target, names);
                let expected = if width == 64 && target != "sm_90a" { [0, 0, 1] } else { [rotated, 0, 0] };
                assert_eq!(unknown, expected, "{op} of u{width} on {target}");
            }
        }
    }
}

/// A rotation that is spelled as shifts is one all the same.
#[test]
fn shifts_that_rotate_are_a_rotation() {
    let body = "  %w = constant 32 : u32
  %ws = splat %w : tile<B x u32>
  %rest = sub %ws, %b : tile<B x u32>
  %up = shl %a, %b : tile<B x u32>
  %down = shr %a, %rest : tile<B x u32>
  %r = or %up, %down : tile<B x u32>";
    for (target, rotation) in [("sm_90a", "shf.l.wrap.b32"), ("gfx942", "v_alignbit_b32")] {
        let instructions = Instructions::of(&of_integers("u32", body), &[("B", 32)], target);
        assert_eq!(instructions.count(&[rotation]), 1, "{target}: {:?}", instructions.0);
    }
}

#[test]
fn bytes_and_bits_are_reversed_by_instructions() {
    for width in [8, 16, 32, 64] {
        let words = (width as usize).div_ceil(32);
        for (target, swap, reverse) in
            [("sm_90a", "prmt.b32", "brev.b"), ("gfx942", "v_perm_b32", "v_bfrev_b32")]
        {
            let [swaps] = taken("swap_bytes %a", width, target, [swap]);
            assert_eq!(swaps, if width == 8 { 0 } else { words }, "u{width} on {target}");
            let [reversals] = taken("reverse_bits %a", width, target, [reverse]);
            assert_eq!(reversals, if target == "sm_90a" { 1 } else { words }, "u{width} on {target}");
        }
    }
}

/// A tile is added to the elements that another one names, in a scope, and what was there is stored.
fn additions(format: &str, scope: &str) -> String {
    format!(
        "kernel @additions(%x: tensor<m x {format}>, %at: tensor<m x i32>, %y: mut tensor<n x {format}>, %z: mut tensor<m x {format}>) {{
  %vx = partition %x [256] : partition<m x {format}, [256]>
  %va = partition %at [256] : partition<m x i32, [256]>
  %vz = partition %z [256] : mut partition<m x {format}, [256]>
  %i = block_index %vz : index
  %v = load %vx[%i] : tile<256 x {format}>
  %places = load %va[%i] : tile<256 x i32>
  %old = atomic add relaxed {scope} %y[%places], %v : tile<256 x {format}>
  store %vz, %old
}}
"
    )
}

#[test]
fn floats_are_added_to_tensors_by_instructions() {
    for target in ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"] {
        // RDNA has none for f64.
        for format in
            ["f32", "f64"].into_iter().filter(|format| *format == "f32" || target.starts_with("gfx9"))
        {
            let code = Instructions::of(&additions(format, "device"), &[], target);
            let loops = code.count(&["global_atomic_cmp"]);
            assert_eq!((loops, code.count(&["global_atomic_add"]) > 0), (0, true), "{target}, {format}");
        }
    }
    // What the host shares may lie where there are no additions.
    let code = Instructions::of(&additions("f32", "system"), &[], "gfx90a");
    assert_eq!((code.count(&["global_atomic_cmp"]) > 0, code.count(&["global_atomic_add"])), (true, 0));
}

/// A block stores a tile for others, and one of its threads says so.
const TOLD: &str = "\
kernel @told(%x: tensor<n x 1024 x f32>, %z: mut tensor<n x 1024 x f32>, %y: mut tensor<n x 1024 x f32>, %flags: mut tensor<n x i32>) {
  %vx = partition %x [1, 1024] : partition<n x 1024 x f32, [1, 1024]>
  %vz = partition %z [1, 1024] : mut partition<n x 1024 x f32, [1, 1024]>
  %i, %j = block_index %vz : index, index
  %t = load %vx[%i, %j] : tile<1 x 1024 x f32>
  %row = cast %i : i64
  %rows = splat %row : tile<1 x 1024 x i64>
  %columns = iota 1 : tile<1 x 1024 x i64>
  atomic store relaxed device %y[%rows, %columns], %t
  store %vz, %t
  %number = cast %i : i64
  %at = splat %number : tile<1 x i64>
  %one = constant 1 : i32
  %v = splat %one : tile<1 x i32>
  atomic store release device %flags[%at], %v
}
";

#[test]
fn what_all_waves_have_stored_is_there_before_one_says_so() {
    for target in ["gfx90a", "gfx942", "gfx950"] {
        let text = code(TOLD, &[], target);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let barrier = lines.iter().position(|line| *line == "s_barrier").unwrap();
        let stores = lines[..barrier].iter().rposition(|line| line.starts_with("global_store"));
        let store = stores.unwrap_or_else(|| panic!("{target}:\n{text}"));
        let between = &lines[store..barrier];
        assert!(between.iter().any(|line| line.contains("vmcnt(0)")), "{target}:\n{text}");
        let is_written_back = between.iter().any(|line| line.starts_with("buffer_wbl2"));
        assert_eq!(is_written_back, target != "gfx90a", "{target}:\n{text}");
    }
}

/// 10 rows of tiles, so that the last band has fewer.
#[test]
fn places_in_a_grid_of_known_extents_are_scalars() {
    let source = matmul("bf16");
    let (head, rest) = source.split_once(" where ").unwrap();
    let (_, body) = rest.split_once(" {").unwrap();
    let mut source = format!("{head} {{{body}");
    for (runtime, known) in [
        ("m x k x", "1280 x 512 x"),
        ("k x n x", "512 x 1664 x"),
        ("m x n x", "1280 x 1664 x"),
        ("ceil_div(k, BK)", "ceil_div(512, BK)"),
    ] {
        source = source.replace(runtime, known);
    }
    for target in ["gfx942", "gfx950"] {
        assert!(code(&source, &SQUARE, target).contains("v_mfma"), "{target}");
    }
}

/// An element that all threads hold is stored by one of them and loaded by all, behind a barrier.
const STORED_AND_LOADED: &str = "\
kernel @summed(%x: tensor<m x 64 x f32>, %y: mut tensor<m x f32>, %z: mut tensor<m x f32>) {
  %vx = partition %x [1, 64] : partition<m x 64 x f32, [1, 64]>
  %vy = partition %y [1] : mut partition<m x f32, [1]>
  %vz = partition %z [1] : mut partition<m x f32, [1]>
  %i = block_index %vy : index
  %0 = constant 0 : index
  %f = constant 1.0 : f32
  %one = splat %f : tile<1 x f32>
  store %vy, %one
  %t = load %vy : tile<1 x f32>
  %r = load %vx[%i, %0] : tile<1 x 64 x f32>
  %w = reshape %t : tile<1 x 1 x f32>
  %b = broadcast %w : tile<1 x 64 x f32>
  %p = mul %r, %b : tile<1 x 64 x f32>
  %s = reduce sum %p axis 1 : tile<1 x 1 x f32>
  %n = reshape %s : tile<1 x f32>
  store %vz, %n
}
";

#[test]
fn memory_that_threads_hand_over_may_be_reached_by_others() {
    let context = Context::create();
    let instance = passes::optimize(Instance::parse(STORED_AND_LOADED, &[]).unwrap());
    for target in ["sm_80", "gfx942"] {
        let target = TargetDesc::named(target).unwrap();
        let module = Module::of(&context, &instance, target, "kernel", None, Places::Unknown).unwrap();
        let kernel = module.ir.module.get_function("kernel").unwrap();
        let noalias = Attribute::get_named_enum_kind_id("noalias");
        let is_alone = |i| kernel.get_enum_attribute(AttributeLoc::Param(i), noalias).is_some();
        assert_eq!([0, 1, 2].map(is_alone), [true, false, true], "{target}");
    }
}
