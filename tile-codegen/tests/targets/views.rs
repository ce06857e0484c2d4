//! Views of views, strided partitions, loads and stores without masks, and gathers: native code, GPU code on the
//! host and the GPU targets' compilers, against the evaluator.

use crate::gpu;
use crate::support::{close, instance, run_native, run_simt, sample};
use tile_codegen::Options;
use tile_ir::array::Elements;
use tile_ir::ops::Literal;
use tile_ir::types::TensorType;
use tile_ir::view::requirement::Rule;
use tile_ir::view::{Requirement, TensorMovement};
use tile_ir::{Array, DType, Dim, Instance, interp};
use tile_test_edit::Edit;

fn agree(instance: &Instance, arguments: &[Array]) {
    let mut expected = arguments.to_vec();
    interp::run(instance, &mut expected).unwrap_or_else(|error| panic!("{error}"));
    let runs = [
        ("cpu", run_native(instance, arguments, &Options::default())),
        ("simt", run_simt(instance, arguments, None)),
        ("simt of 4 threads", run_simt(instance, arguments, Some(4))),
    ];
    for (target, actual) in runs {
        for (which, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
            close(
                actual,
                expected,
                0.0,
                &format!("argument {which} on {target} of\n{}", tile_ir::text::print(instance)),
            );
        }
    }
}

fn dims(extents: &[i64]) -> Vec<Dim> {
    extents.iter().map(|&extent| Dim::from(extent)).collect()
}

fn pairs(pairs: &[(i64, i64)]) -> Vec<(Dim, Dim)> {
    pairs.iter().map(|&(a, b)| (Dim::from(a), Dim::from(b))).collect()
}

/// The lines that move `%x`, and the type and extents of what they give for `m = 6, n = 8`.
fn moved(mutable: bool, movements: &[TensorMovement]) -> (String, TensorType, Vec<usize>) {
    let mut tensor = TensorType::dense(vec![Dim::size("m"), Dim::size("n")], DType::F32, mutable);
    let (mut lines, mut name) = (String::new(), String::from("x"));
    for (i, movement) in movements.iter().enumerate() {
        tensor = movement.apply(&tensor).unwrap_or_else(|error| panic!("{error}")).0;
        let at = if matches!(movement, TensorMovement::Select { .. }) { " at %s" } else { "" };
        lines += &format!("  %x{i} = view %{name} {movement}{at} : {tensor}\n");
        name = format!("x{i}");
    }
    lines += &format!("  %moved = view %{name} unsqueeze 0 : ");
    let (last, _) = TensorMovement::Unsqueeze(0).apply(&tensor).unwrap();
    lines += &format!("{last}\n");
    let size = |name: &str| Some(if name == "m" { 6 } else { 8 });
    let extents = last.extents.iter().map(|extent| extent.evaluate(&size).unwrap()).collect();
    (lines, last, extents)
}

fn chains() -> Vec<Vec<TensorMovement>> {
    let shift = |axis, by: i64| TensorMovement::Shift { axis, by: Dim::from(by) };
    let step = |axis, by: i64| TensorMovement::Step { axis, step: Dim::from(by) };
    vec![
        vec![],
        vec![TensorMovement::Permute(vec![1, 0])],
        vec![TensorMovement::Flip(vec![0, 1])],
        vec![TensorMovement::Flip(vec![1]), TensorMovement::Permute(vec![1, 0])],
        vec![TensorMovement::Shrink(pairs(&[(1, 5), (2, 8)]))],
        vec![TensorMovement::Pad(pairs(&[(1, 2), (3, 1)]))],
        vec![TensorMovement::Pad(pairs(&[(0, 0), (5, 9)])), TensorMovement::Flip(vec![1]), step(1, 3)],
        vec![shift(1, 3), shift(0, -2)],
        vec![shift(1, 100)],
        vec![step(0, 2), step(1, 3)],
        vec![TensorMovement::Unflatten {
            axis: 1,
            extents: vec![Dim::size("n").floor_div(&Dim::from(4)), Dim::from(4)],
        }],
        vec![
            TensorMovement::Flatten { start: 0, end: 1 },
            TensorMovement::Unflatten { axis: 0, extents: dims(&[3, 16]) },
        ],
        vec![TensorMovement::Select { axis: 0 }],
        vec![TensorMovement::Shrink(pairs(&[(2, 3), (0, 8)])), TensorMovement::Squeeze(0)],
        vec![shift(0, 1), TensorMovement::Select { axis: 0 }, TensorMovement::Flip(vec![0])],
    ]
}

fn read_only_chains() -> Vec<Vec<TensorMovement>> {
    vec![
        vec![TensorMovement::Unfold { axis: 1, size: Dim::from(3), step: Dim::from(2) }],
        vec![TensorMovement::Shrink(pairs(&[(2, 3), (0, 8)])), TensorMovement::Expand(dims(&[4, 8]))],
        vec![TensorMovement::Select { axis: 1 }, TensorMovement::Expand(vec![Dim::from(3), Dim::size("m")])],
        vec![TensorMovement::Step { axis: 1, step: Dim::from(2) }, TensorMovement::Require(vec![fits(5)])],
    ]
}

/// That so many rows, at least, are there.
fn fits(rows: i64) -> Requirement {
    Requirement { axis: 0, rule: Rule::Window, left: Dim::from(rows), right: Dim::size("m") }
}

/// Names, extents and partition arguments for a rank.
fn ranked(rank: usize, tile: &[usize]) -> (Vec<String>, String) {
    let names: Vec<String> = (0..rank).map(|axis| format!("p{axis}")).collect();
    let mut extents = vec![1; rank];
    for (extent, &tile) in extents.iter_mut().rev().zip(tile.iter().rev()) {
        *extent = tile;
    }
    let tile: Vec<String> = extents.iter().map(usize::to_string).collect();
    (names, tile.join(", "))
}

fn reading(movements: &[TensorMovement], tile: &[usize], steps: Option<&[usize]>) -> (String, Vec<usize>) {
    let (lines, tensor, extents) = moved(false, movements);
    let rank = tensor.extents.len();
    let (names, tile) = ranked(rank, tile);
    let (_, steps) = steps.map_or((Vec::new(), tile.clone()), |steps| ranked(rank, steps));
    let dense = format!("mut tensor<{} x f32>", names.join(" x "));
    let cut = |tensor: String, steps: &str| {
        let inner = tensor.replacen("tensor<", "partition<", 1);
        let step = if steps == tile { String::new() } else { format!(" step [{steps}]") };
        format!("[{tile}]{step} : {}, [{tile}]{step}>", inner.trim_end_matches('>'))
    };
    let index: Vec<String> = (0..rank).map(|axis| format!("%i{axis}")).collect();
    let index = index.join(", ");
    let source = format!(
        "kernel @moved(%x: tensor<m x n x f32>, %s: index, %y: {dense}) {{
{lines}  %vx = partition %moved {read}
  %vy = partition %y {write}
  {index} = block_index %vy : {types}
  %pad = constant -7.0 : f32
  %t = load_masked %vx[{index}] pad %pad : tile<{shape} x f32>
  %two = splat %pad : tile<{shape} x f32>
  %u = mul %t, %two : tile<{shape} x f32>
  store_masked %vy, %u
}}
",
        read = cut(tensor.to_string(), &steps),
        write = cut(dense.clone(), &tile),
        types = vec!["index"; rank].join(", "),
        shape = tile.edit(", ", " x "),
    );
    (source, extents)
}

fn scalar(value: i128) -> Array {
    Array::scalar(DType::Index, Literal::Int(value))
}

fn x() -> Array {
    sample(DType::F32, &[6, 8], 3)
}

#[test]
fn tensors_are_read_through_every_movement() {
    let chains: Vec<Vec<TensorMovement>> = chains().into_iter().chain(read_only_chains()).collect();
    let texts: Vec<String> = chains.iter().flatten().map(TensorMovement::to_string).collect();
    for name in TensorMovement::KINDS.iter().map(|kind| kind.name) {
        // What `moved` ends every chain with.
        let is_there = name == "unsqueeze" || texts.iter().any(|text| text.split(' ').next() == Some(name));
        assert!(is_there, "no chain has `{name}`");
    }
    for movements in chains {
        for tile in [[2, 4], [3, 3], [8, 16]] {
            let (source, extents) = reading(&movements, &tile, None);
            let instance = instance(&source, &[]);
            for selected in [0, 2, 7] {
                agree(&instance, &[x(), scalar(selected), sample(DType::F32, &extents, 1)]);
            }
        }
    }
}

#[test]
fn strided_partitions_overlap_and_leave_gaps() {
    for movements in
        [vec![], vec![TensorMovement::Pad(pairs(&[(1, 2), (3, 1)])), TensorMovement::Flip(vec![1])]]
    {
        for (tile, steps) in [([2, 4], [1, 3]), ([2, 4], [3, 5]), ([4, 4], [2, 4])] {
            let (source, extents) = reading(&movements, &tile, Some(&steps));
            agree(&instance(&source, &[]), &[x(), scalar(0), sample(DType::F32, &extents, 1)]);
        }
    }
}

#[test]
fn tensors_are_written_through_every_injective_movement() {
    for movements in chains() {
        let (lines, tensor, extents) = moved(true, &movements);
        let rank = tensor.extents.len();
        let (names, tile) = ranked(rank, &[2, 4]);
        let dense = format!("tensor<{} x f32>", names.join(" x "));
        let cut = |tensor: String| {
            let inner = tensor.replacen("tensor<", "partition<", 1);
            format!("[{tile}] : {}, [{tile}]>", inner.trim_end_matches('>'))
        };
        let index: Vec<String> = (0..rank).map(|axis| format!("%i{axis}")).collect();
        let source = format!(
            "kernel @moved(%w: {dense}, %s: index, %x: mut tensor<m x n x f32>) {{
{lines}  %vx = partition %moved {}
  %vw = partition %w {}
  {index} = block_index %vx : {}
  %pad = constant -7.0 : f32
  %t = load_masked %vw[{index}] pad %pad : tile<{shape} x f32>
  %own = load_masked %vx pad %pad : tile<{shape} x f32>
  %u = add %t, %own : tile<{shape} x f32>
  store_masked %vx, %u
}}
",
            cut(tensor.to_string()),
            cut(dense.clone()),
            vec!["index"; rank].join(", "),
            index = index.join(", "),
            shape = tile.edit(", ", " x "),
        );
        let instance = instance(&source, &[]);
        for selected in [0, 3, 9] {
            agree(&instance, &[sample(DType::F32, &extents, 1), scalar(selected), x()]);
        }
    }
}

/// Rows of two tensors, each selected by a number of its own, of which one may exist and the other not.
#[test]
fn selected_rows_are_written_each_where_it_exists() {
    let source = "kernel @k<W>(%x: tensor<n x f32>, %p: index, %q: index, %y: mut tensor<a x n x f32>, %z: mut tensor<b x n x f32>) {
  %my = view %y select 0 at %p : mut tensor<n x f32>
  %mz = view %z select 0 at %q : mut tensor<n x f32>
  %vx = partition %x [W] : partition<n x f32, [W]>
  %vy = partition %my [W] : mut partition<n x f32, [W]>
  %vz = partition %mz [W] : mut partition<n x f32, [W]>
  %i = block_index %vy : index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i] pad %pad : tile<W x f32>
  %s = mul %t, %t : tile<W x f32>
  %u = add %s, %t : tile<W x f32>
  store_masked %vy, %s
  store_masked %vz, %u
}
";
    for (n, width) in [(64, 64), (50, 32), (5, 8)] {
        let instance = instance(source, &[("W", width)]);
        for (p, q) in [(1, 0), (0, 2), (2, 1), (3, 1), (-1, 0), (0, -1)] {
            let [y, z] = [3, 2].map(|rows| sample(DType::F32, &[rows, n], rows));
            agree(&instance, &[sample(DType::F32, &[n], 1), scalar(p), scalar(q), y, z]);
        }
    }
}

/// `y = xᵀ·2 + y`, all tiles whole.
const UNMASKED: &str = "\
kernel @unmasked<B, W>(%x: tensor<m x n x f32>, %y: mut tensor<n x m x f32>) {
  %t = view %x permute [1, 0] : tensor<n x m x f32, strided [1, n]>
  %vx = partition %t [B, W] : partition<n x m x f32, strided [1, n], [B, W]>
  %vy = partition %y [B, W] : mut partition<n x m x f32, [B, W]>
  %i, %j = block_index %vy : index, index
  %two = constant 2.0 : f32
  %a = load %vx[%i, %j] : tile<B x W x f32>
  %b = load_unchecked %vx[%i, %j] : tile<B x W x f32>
  %own = load %vy : tile<B x W x f32>
  %half = mul %a, %b : tile<B x W x f32>
  %twos = splat %two : tile<B x W x f32>
  %scaled = mul %half, %twos : tile<B x W x f32>
  %s = reduce sum %a axis 1 : tile<B x 1 x f32>
  %sb = broadcast %s : tile<B x W x f32>
  %u = add %scaled, %own : tile<B x W x f32>
  %v = add %u, %sb : tile<B x W x f32>
  store %vy, %v
}
";

#[test]
fn loads_and_stores_without_masks() {
    for (b, w) in [(2, 3), (4, 6), (8, 1)] {
        let instance = instance(UNMASKED, &[("B", b), ("W", w)]);
        agree(&instance, &[x(), sample(DType::F32, &[8, 6], 1)]);
    }
}

fn gather(index: &str) -> String {
    format!(
        "kernel @gather<B>(%x: tensor<m x n x f32>, %r: tensor<k x {index}>, %s: index, %y: mut tensor<k x 3 x f32>) {{
  %f = view %x flip [1] : tensor<m x n x f32, strided [n, -1] offset n - 1>
  %p = view %f pad [(2, 0), (0, 0)] : tensor<m + 2 x n x f32, strided [n, -1] offset -n - 1 within [[(2, m + 2)], []]>
  %row = view %x select 0 at %s : tensor<n x f32>
  %vr = partition %r [B] : partition<k x {index}, [B]>
  %vy = partition %y [B, 3] : mut partition<k x 3 x f32, [B, 3]>
  %i, %j = block_index %vy : index, index
  %zero = constant 0 : {index}
  %pad = constant -7.0 : f32
  %rows = load_masked %vr[%i] pad %zero : tile<B x {index}>
  %column = reshape %rows : tile<B x 1 x {index}>
  %wide = broadcast %column : tile<B x 3 x {index}>
  %c = iota 1 : tile<B x 3 x i64>
  %a = gather_load %p[%wide, %c] pad %pad : tile<B x 3 x f32>
  %b = gather_load %row[%wide] pad %pad : tile<B x 3 x f32>
  %same = splat %zero : tile<B x 3 x {index}>
  %d = gather_load %x[%same, %same] pad %pad : tile<B x 3 x f32>
  %e = add %a, %b : tile<B x 3 x f32>
  %g = mul %e, %d : tile<B x 3 x f32>
  store_masked %vy, %g
}}
"
    )
}

#[test]
fn gathers_of_every_integer() {
    let places = [0, 1, 3, 7, 8, 200, 5, -1, -128, 2, 6];
    for dtype in
        [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64]
    {
        let source = gather(dtype.name());
        let places = places.iter().map(|&place: &i128| tile_ir::array::wrap_int(dtype, place)).collect();
        let rows = Array::new(dtype, vec![11], Elements::Int(places));
        for block in [4, 16] {
            let instance = instance(&source, &[("B", block)]);
            for selected in [5, 6] {
                let y = sample(DType::F32, &[11, 3], 1);
                agree(&instance, &[x(), rows.clone(), scalar(selected), y]);
            }
        }
    }
}

#[test]
fn gathers_of_an_empty_tensor_read_nothing() {
    let instance = instance(&gather("i32"), &[("B", 4)]);
    let rows = Array::iota(DType::I32, &[5], 0);
    for shape in [[0, 8], [6, 0]] {
        let x = sample(DType::F32, &shape, 3);
        agree(&instance, &[x, rows.clone(), scalar(0), sample(DType::F32, &[5, 3], 1)]);
    }
}

#[test]
fn gpu_targets_compile_views_and_gathers() {
    let pad = [
        TensorMovement::Pad(pairs(&[(1, 2), (3, 1)])),
        TensorMovement::Flip(vec![1]),
        TensorMovement::Select { axis: 0 },
    ];
    let (source, _) = reading(&pad, &[4, 32], Some(&[2, 16]));
    gpu::check(&instance(&source, &[]));
    gpu::check(&instance(UNMASKED, &[("B", 16), ("W", 32)]));
    gpu::check(&instance(&gather("u8"), &[("B", 64)]));
}
