//! A kernel for every reason, and the words in which a user reads it: a reason that no kernel has is none.

use super::super::Pipelines;
use super::super::tests::MATMUL;
use super::Obstacle;
use crate::gpu::rewrites::stacks;
use crate::gpu::room::Room;
use crate::gpu::schedule;
use crate::types::{PartitionType, TensorType, Type};
use crate::view::TensorMovement;
use crate::{DType, Dim, Instance, TargetDesc, passes};
use std::collections::BTreeSet;
use tile_test_edit::Edit;

/// A product of 64×64, 64 deep, with extents in place of parameters.
fn matmul() -> String {
    let text = MATMUL.edit("<M, N, K>", "").edit("ceil_div(k, K)", "ceil_div(k, 64)");
    let text = ["[M, N]", "[M, K]", "[K, N]"].iter().fold(text, |text, tile| text.edit(tile, "[64, 64]"));
    ["M x N", "M x K", "K x N"].iter().fold(text, |text, shape| text.edit(shape, "64 x 64"))
}

const LOAD_B: &str = "    %tb = load_masked %vb[%p, %j] pad %pad : tile<64 x 64 x bf16>\n";
const CUT_B: &str = "  %vb = partition %b [64, 64] : partition<k x n x bf16, [64, 64]>\n";
const PRODUCT: &str = "    %next = mma %ta, %tb, %acc : tile<64 x 64 x f32>\n";

/// With ops between the load of the right factor and the product, which give it.
fn made_of_b(ops: &str) -> String {
    matmul().edit(PRODUCT, &format!("{ops}    %next = mma %ta, %made, %acc : tile<64 x 64 x f32>\n"))
}

/// With a left factor that is computed, so that the kernel has no tile for a producer to copy, beside which consumers would bring
/// the right one.
fn with_left_computed(text: &str) -> String {
    text.edit("mma %ta,", "mma %mine,")
        .edit("    %next = mma %mine,", "    %mine = abs %ta : tile<64 x 64 x bf16>\n    %next = mma %mine,")
}

/// With the right factor cut from what movements make of a tensor of these extents; `select` is at `%two`.
fn moved(extents: &[&str], movements: &[TensorMovement]) -> String {
    let size = |extent: &&str| extent.parse::<i64>().map_or_else(|_| Dim::size(*extent), Dim::from);
    let mut tensor = TensorType::dense(extents.iter().map(size).collect(), DType::BF16, false);
    let (mut views, mut name) = ("  %two = constant 2 : index\n".to_owned(), "b".to_owned());
    for (i, movement) in movements.iter().enumerate() {
        (tensor, _) = movement.apply(&tensor).unwrap();
        let at = if matches!(movement, TensorMovement::Select { .. }) { " at %two" } else { "" };
        views += &format!("  %m{i} = view %{name} {movement}{at} : {}\n", Type::Tensor(tensor.clone()));
        name = format!("m{i}");
    }
    let tile = vec![Dim::from(64); 2];
    let cut = PartitionType { tensor, tile: tile.clone(), steps: tile, spanned: Vec::new() };
    let cut = format!("{views}  %vb = partition %{name} [64, 64] : {}\n", Type::Partition(cut));
    matmul()
        .edit(CUT_B, &cut)
        .edit("tensor<k x n x bf16>", &format!("tensor<{} x bf16>", extents.join(" x ")))
}

/// With a right factor whose view has other axes: the tensor's extents, the tile's, and the index of that.
fn cut(extents: &str, tile: &str, index: &str) -> String {
    let loaded = tile.edit(", ", " x ");
    let load = format!(
        "    %lb = load_masked %vb[{index}] pad %pad : tile<{loaded} x bf16>\n    %tb = reshape %lb : tile<64 x 64 x bf16>\n"
    );
    matmul()
        .edit("tensor<k x n x bf16>", &format!("tensor<{extents} x bf16>"))
        .edit(CUT_B, &format!("  %vb = partition %b [{tile}] : partition<{extents} x bf16, [{tile}]>\n"))
        .edit(LOAD_B, &load)
}

/// With tiles of other extents.
fn tiles([rows, columns, depth]: [usize; 3]) -> String {
    let text = MATMUL.edit("<M, N, K>", "");
    [("M", rows), ("N", columns), ("K", depth)].iter().fold(text, |text, (name, extent)| {
        let ends = [("[", ","), (" ", "]"), ("<", " x"), ("x ", " x"), (" ", ")")];
        ends.iter().fold(text, |text, (before, after)| {
            text.replace(&format!("{before}{name}{after}"), &format!("{before}{extent}{after}"))
        })
    })
}

/// The loop's lines moved elsewhere: what stands before it, its body, and what comes after it.
fn in_parts() -> [String; 3] {
    let text = matmul();
    let (before, rest) = text.split_once("  %sum = for").unwrap();
    let (body, after) = rest.split_once("    yield %next\n  }\n").unwrap();
    let (_, body) = body.split_once("{\n").unwrap();
    [before, body, after].map(str::to_owned)
}

fn alone() -> String {
    let [before, body, after] = in_parts();
    let body = body.edit("%p,", "%1,").edit("%p]", "%1]").edit("%acc", "%zero").edit("    ", "  ");
    format!("{before}{body}{}", after.edit("%sum", "%next"))
}

fn in_branch() -> String {
    let branch = "    %some = lt %p, %i : bool
    %next = if %some : tile<64 x 64 x f32> {
      %inner = mma %ta, %tb, %acc : tile<64 x 64 x f32>
      yield %inner
    } else {
      yield %acc
    }
";
    matmul().edit(PRODUCT, branch)
}

/// The product's loop itself is one that nobody can count.
fn in_while() -> String {
    let [before, body, after] = in_parts();
    let turns = "  %first = lt %1, %2 : bool
  %sum, %last = while %first carry (%acc = %zero, %p = %1) : tile<64 x 64 x f32>, index {\n";
    let end = "    %one = constant 1 : index
    %after = add %p, %one : index
    %again = lt %after, %2 : bool
    yield %again, %next, %after
  }\n";
    format!("{before}{turns}{body}{end}{after}")
}

/// A loop that nobody can count, behind the one over products.
fn with_while() -> String {
    let turns = "  %some = lt %i, %j : bool
  %last = while %some carry (%at = %i) : index {
    %one = constant 1 : index
    %more = add %at, %one : index
    %again = lt %more, %j : bool
    yield %again, %more
  }
  print 0 \"{0}\" %last
  store_masked %vc";
    matmul().edit("  store_masked %vc", turns)
}

fn stack() -> String {
    let text = matmul().edit("64 x 64 x", "2 x 64 x 64 x").edit("[64, 64]", "[2, 64, 64]");
    let text = text
        .edit("<m x", "<e x m x")
        .edit("<k x n", "<e x k x n")
        .edit("%i, %j = block", "%h, %i, %j = block");
    let text = text.edit(": index, index\n", ": index, index, index\n");
    text.edit("%va[", "%va[%h, ").edit("%vb[", "%vb[%h, ")
}

fn carried() -> String {
    matmul()
        .edit("  %sum = for", "  %old = splat %pad : tile<64 x 64 x bf16>\n  %sum, %last = for")
        .edit(
            "(%acc = %zero) : tile<64 x 64 x f32>",
            "(%acc = %zero, %before = %old) : tile<64 x 64 x f32>, tile<64 x 64 x bf16>",
        )
        .edit("mma %ta, %tb,", "mma %ta, %before,")
        .edit("yield %next", "yield %next, %tb")
}

/// A right factor that is computed once for all turns.
fn computed_before() -> String {
    let before = format!("{}    %made = neg %tb : tile<64 x 64 x bf16>\n", LOAD_B.edit("[%p,", "[%1,"));
    matmul()
        .edit(LOAD_B, "")
        .edit("  %sum = for", &format!("{}  %sum = for", before.edit("    %", "  %")))
        .edit("mma %ta, %tb,", "mma %ta, %made,")
}

/// Two tiles of 128 KiB that all turns read.
fn loaded_before() -> String {
    let load = "    %tb = load_masked %vb[%p, %j] pad %pad : tile<256 x 256 x bf16>\n";
    let first = load.trim_start().edit("[%p,", "[%1,");
    let second = first.edit("%tb", "%ub").edit("[%1,", "[%i,");
    let product = "    %next = mma %ta, %tb, %acc : tile<64 x 256 x f32>\n";
    tiles([64, 256, 256])
        .edit(load, "")
        .edit("  %sum = for", &format!("  {first}  {second}  %sum = for"))
        .edit(
            product,
            &format!(
                "{}    %next = mma %ta, %ub, %half : tile<64 x 256 x f32>\n",
                product.edit("%next", "%half")
            ),
        )
}

/// The tile is the left factor of a product with a right one of other extents than consumers bring.
fn read_by_another() -> String {
    let other = "    %made = splat %pad : tile<64 x 24 x bf16>
    %next = mma %ta, %tb, %acc : tile<64 x 64 x f32>
    %start = splat %none : tile<64 x 24 x f32>
    %thin = mma %tb, %made, %start : tile<64 x 24 x f32>
    %sums = reduce sum %thin axis 1 : tile<64 x 1 x f32>
    %all = broadcast %sums : tile<64 x 64 x f32>
    %more = add %next, %all : tile<64 x 64 x f32>
";
    matmul().edit(PRODUCT, other).edit("yield %next", "yield %more")
}

/// Bytes, whose right factor lies across the depth.
fn across() -> String {
    let text = matmul().edit("bf16", "i8").edit("f32", "i32").edit("0.0", "0");
    text.edit("n % 8 == 0\": rem(n, 8)", "n % 16 == 0\": rem(n, 16)")
}

fn summed() -> String {
    let besides = "    %rows = reduce sum %tb axis 0 : tile<1 x 64 x bf16>
    %wide = cast %rows : tile<1 x 64 x f32>
    %all = broadcast %wide : tile<64 x 64 x f32>
    %more = add %next, %all : tile<64 x 64 x f32>
    yield %more
";
    matmul().edit("    yield %next\n", besides)
}

fn written() -> String {
    matmul()
        .edit("%b: tensor<k x n x bf16>", "%b: mut tensor<m x n x bf16>")
        .edit(CUT_B, &CUT_B.edit(": partition<k x n", ": mut partition<m x n"))
        .edit("%vb[%p, %j]", "%vb")
}

/// The number of the matrix is the largest of four.
fn unknown() -> String {
    let number = "  %vw = partition %w [4] : partition<r x i32, [4]>
  %first = constant 0 : i32
  %four = load_masked %vw[%i] pad %first : tile<4 x i32>
  %most = reduce max %four axis 0 : tile<1 x i32>
  %number = item %most : i32
  %at = cast %number : index
  %m = view %b select 0 at %at : tensor<k x n x bf16>
";
    let index = "  %i, %j = block_index %vc : index, index\n";
    matmul()
        .edit(CUT_B, "")
        .edit(index, &format!("{index}{number}{}", CUT_B.edit("%b", "%m")))
        .edit("%b: tensor<k x n x bf16>", "%b: tensor<e x k x n x bf16>, %w: tensor<r x i32>")
}

/// A target, and the threads of its blocks if that isn't left open.
type On = (&'static str, Option<u32>);

/// By the reason's name: a kernel for a target that has tensor memory.
fn cases_of_tensor_memory() -> Vec<(&'static str, String)> {
    let matmul = tiles([128, 64, 64]);
    let bytes = matmul.edit("bf16", "i8").edit("f32", "i32").edit("0.0", "0");
    let turned = bytes
        .edit("k x n x i8", "n x k x i8")
        .edit("%tb = load_masked %vb[%p, %j]", "%tt = load_masked %vb[%j, %p]")
        .edit(
            "    %next = mma %ta",
            "    %tb = permute %tt [1, 0] : tile<64 x 64 x i8>\n    %next = mma %ta",
        );
    let held = turned
        .edit("    %next = mma %ta", "    %made = neg %ta : tile<128 x 64 x i8>\n    %next = mma %made");
    let held_of = |rows: usize, depth: usize| {
        let made = format!("    %made = neg %ta : tile<{rows} x {depth} x bf16>\n    %next = mma %made");
        tiles([rows, 64, depth]).edit("    %next = mma %ta", &made)
    };
    let after = "  %la = load_masked %va[%i, %1] pad %pad : tile<128 x 64 x bf16>
  %lb = load_masked %vb[%1, %j] pad %pad : tile<64 x 64 x bf16>
  %all = mma %la, %lb, %sum : tile<128 x 64 x f32>
  store_masked %vc, %all";
    let [la, lb] = [
        "    %ta = load_masked %va[%i, %p] pad %pad : tile<128 x 64 x bf16>\n",
        "    %tb = load_masked %vb[%p, %j] pad %pad : tile<64 x 64 x bf16>\n",
    ];
    let turns = "  %vw = partition %w [4] : partition<r x i32, [4]>
  %first = constant 0 : i32
  %four = load_masked %vw[%i] pad %first : tile<4 x i32>
  %most = reduce max %four axis 0 : tile<1 x i32>
  %number = item %most : i32
  %2 = cast %number : index
";
    let counted = matmul
        .edit("%b: tensor<k x n x bf16>", "%b: tensor<k x n x bf16>, %w: tensor<r x i32>")
        .edit("  %2 = extent ceil_div(k, 64) : index\n", turns)
        .edit(la, "")
        .edit(lb, "")
        .edit(
            "  %sum = for",
            &format!("{}{}  %sum = for", &la[2..], &lb[2..]).edit("%p]", "%1]").edit("[%p", "[%1"),
        );
    let sums = "tile<256 x 256 x f32>";
    let two = tiles([256, 256, 64])
        .edit("  %sum = for", "  %sum, %more = for")
        .edit(
            &format!("carry (%acc = %zero) : {sums}"),
            &format!("carry (%acc = %zero, %also = %zero) : {sums}, {sums}"),
        )
        .edit(
            "    yield %next\n",
            &format!("    %then = mma %ta, %tb, %also : {sums}\n    yield %next, %then\n"),
        )
        .edit(
            "  store_masked %vc, %sum",
            &format!("  %all = add %sum, %more : {sums}\n  store_masked %vc, %all"),
        );
    vec![
        ("Halves", tiles([128, 48, 64])),
        ("LeftHeld", held),
        ("LeftHeld", held_of(128, 48)),
        ("LeftHeld", held_of(512, 64)),
        ("LeftHeld", left_loaded_before()),
        ("Turns", counted),
        ("Beside", matmul.edit("  store_masked %vc, %sum", after)),
        ("TensorMemory", two),
    ]
}

/// A left factor of 128 KiB that all turns read, beside two stages of a right one of 64 KiB.
fn left_loaded_before() -> String {
    let load = "    %ta = load_masked %va[%i, %p] pad %pad : tile<256 x 512 x bf16>\n";
    let before = load.trim_start().edit("%p]", "%1]");
    let turned = "    %tt = load_masked %vb[%j, %p] pad %pad : tile<128 x 512 x bf16>
    %tb = permute %tt [1, 0] : tile<512 x 128 x bf16>\n";
    tiles([256, 128, 512])
        .edit(load, "")
        .edit("    %tb = load_masked %vb[%p, %j] pad %pad : tile<512 x 128 x bf16>\n", turned)
        .edit("k x n x bf16", "n x k x bf16")
        .edit("[512, 128]", "[128, 512]")
        .edit("  %sum = for", &format!("  {before}  %sum = for"))
        .edit("bf16", "i8")
        .edit("f32", "i32")
        .edit("0.0", "0")
}

/// One warpgroup's left factor, which it computes.
fn deep() -> String {
    let turned = "    %tt = load_masked %vb[%j, %p] pad %pad : tile<16 x 512 x bf16>
    %tb = permute %tt [1, 0] : tile<512 x 16 x bf16>\n";
    let made = "    %made = neg %ta : tile<128 x 512 x bf16>\n    %next = mma %made";
    tiles([128, 16, 512])
        .edit("k x n x bf16", "n x k x bf16")
        .edit("[512, 16]", "[16, 512]")
        .edit("    %tb = load_masked %vb[%p, %j] pad %pad : tile<512 x 16 x bf16>\n", turned)
        .edit("    %next = mma %ta", made)
}

/// By the reason's name: a kernel, and what it is scheduled for.
fn cases() -> Vec<(&'static str, String, On)> {
    let pad = TensorMovement::Pad(vec![(Dim::from(0), Dim::from(0)), (Dim::from(8), Dim::from(0))]);
    let step = TensorMovement::Step { axis: 1, step: Dim::from(2) };
    let select = TensorMovement::Select { axis: 0 };
    let repeated = TensorMovement::Expand(["k", "n"].map(Dim::size).to_vec());
    let rounded = made_of_b(
        "    %made = round_tf32 %tb : tile<64 x 64 x f32>\n    %round = round_tf32 %ta : tile<64 x 64 x f32>\n",
    );
    let joined = cut("k x n", "8, 512", "%p, %j");
    let open = [
        ("While", with_while()),
        ("While", in_while()),
        ("NoLoop", alone()),
        ("Branch", in_branch()),
        ("Stacked", stack()),
        ("Formats", rounded.edit("bf16", "f32").edit("mma %ta", "mma %round")),
        ("Sums", matmul().edit("bf16", "f16").edit("f32", "f16")),
        ("Extents", tiles([32, 64, 64])),
        ("Computed", with_left_computed(&made_of_b("    %made = neg %tb : tile<64 x 64 x bf16>\n"))),
        ("Computed", with_left_computed(&computed_before())),
        ("Reshaped", with_left_computed(&joined)),
        ("Carried", with_left_computed(&carried())),
        ("LoadedBefore", loaded_before()),
        ("Across", across()),
        ("UsedBesides", with_left_computed(&summed())),
        ("ReadByAnother", with_left_computed(&read_by_another())),
        ("Written", written()),
        ("Pad", matmul().edit("%pad = constant 0.0", "%pad = constant 1.0")),
        ("Selected", moved(&["e", "1", "n"], &[select, repeated])),
        ("RowBytes", tiles([64, 8, 64])),
        ("Rows", tiles([64, 64, 272])),
        ("Windows", moved(&["k", "n"], &[pad])),
        ("Apart", moved(&["k", "n"], &[step])),
        ("Repeated", moved(&["k", "n"], &[TensorMovement::Flip(vec![0])])),
        ("Unaligned", matmul().edit("k x n x", "k x 60 x")),
        ("ManyAxes", cut("e x e x e x e x k x n", "1, 1, 1, 1, 64, 64", "%1, %1, %1, %1, %p, %j")),
        ("Unknown", unknown()),
        ("Room", tiles([64, 256, 256])),
    ];
    let open = open.into_iter().map(|(name, source)| (name, source, ("sm_90a", None)));
    let later = cases_of_tensor_memory().into_iter().map(|(name, source)| (name, source, ("sm_100a", None)));
    let of_threads =
        [("Threads", matmul(), ("sm_90a", Some(256))), ("LeftHeld", deep(), ("sm_100a", Some(128)))];
    open.chain(of_threads).chain(later).collect()
}

/// The name of a row of the table.
fn name_of(obstacle: &Obstacle) -> String {
    let text = format!("{obstacle:?}");
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

/// The names of all rows, as the table's source has them.
fn names() -> BTreeSet<String> {
    let source = include_str!("../obstacle.rs");
    let (_, table) = source.split_once("enum Obstacle {\n").unwrap();
    let (table, _) = table.split_once("\n}\n").unwrap();
    let rows = table
        .lines()
        .filter(|line| line.starts_with("    ") && line.trim_start().starts_with(char::is_uppercase));
    rows.map(|row| row.trim().chars().take_while(|c| c.is_alphanumeric()).collect()).collect()
}

/// What is told of a kernel, each time with the name of the reason that is in it.
fn told(source: &str, (target, threads): On) -> Result<Vec<(String, String)>, String> {
    let instance = passes::optimize(Instance::parse(source, &[]).map_err(|error| error.to_string())?);
    let target = TargetDesc::named(target).unwrap();
    let scheduled = schedule(instance.clone(), target, threads);
    let given = threads.map(|_| scheduled.threads());
    let of_stacks = Pipelines::of(&stacks::all(&instance, target), target, given, Room::ALL);
    let known = scheduled.pipelines().obstacles.0.values().chain(of_stacks.obstacles.0.values());
    let known: Vec<&Obstacle> = known.collect();
    let named = |message: &str| {
        let of_message = |obstacle: &&&Obstacle| message.ends_with(&format!(": {obstacle}"));
        let found = known.iter().find(of_message).ok_or(format!("{message} is none of {known:?}"));
        found.map(|obstacle| (name_of(obstacle), message.to_owned()))
    };
    scheduled.remarks().iter().map(|remark| named(&remark.message)).collect()
}

#[test]
fn every_reason_has_a_kernel_and_its_words() {
    let (mut lines, mut found, mut problems) = (String::new(), BTreeSet::new(), Vec::new());
    for (name, source, on) in cases() {
        match told(&source, on) {
            Ok(told) if told.iter().any(|(reason, _)| reason == name) => {
                let own = told.into_iter().filter(|(reason, _)| reason == name);
                lines.extend(own.map(|(reason, message)| format!("{reason}: {message}\n")));
                found.insert(name.to_owned());
            }
            other => problems.push(format!("{name}: {other:?}\n{source}")),
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(found, names());
    insta::assert_snapshot!(lines);
}
