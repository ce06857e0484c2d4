//! Gathers of rows: native code and GPU code on the host against the evaluator, and that whole vectors are loaded.

use crate::support::{
    Memory, Native, agree_in_turn, close, compile_simt, cpus_in_turn, instance, sample, taken,
};
use tile_codegen::{Code, Options, compile};
use tile_ir::array::{Elements, wrap_int};
use tile_ir::ops::Literal;
use tile_ir::{Array, DType, Instance, TargetDesc, Variant, interp};
use tile_test_edit::Edit;

/// A tile of `rows x columns` of the rows of `x` that `ids` name, from a multiple of `columns` on.
struct Lookup {
    rows: usize,
    columns: usize,
    /// The format of what is looked up, and of the indices.
    elem: DType,
    index: DType,
    /// What `%x` is, and lines that make `%m` of it, with two axes.
    tensor: String,
    moved: String,
    /// Lines that make `%r`, what is stored, of the gathered tile `%t`.
    through: String,
    /// Extents of the tile that is stored.
    stored: [usize; 2],
}

impl Lookup {
    fn of(elem: DType, index: DType, [rows, columns]: [usize; 2]) -> Lookup {
        Lookup {
            rows,
            columns,
            elem,
            index,
            tensor: format!("tensor<v x d x {elem}>"),
            moved: format!("  %m = view %x permute [0, 1] : tensor<v x d x {elem}>\n"),
            through: format!("  %r = add %t, %t : tile<{rows} x {columns} x {elem}>\n"),
            stored: [rows, columns],
        }
    }

    fn through(self, text: &str, stored: [usize; 2]) -> Lookup {
        Lookup { through: text.to_owned(), stored, ..self }
    }

    fn moved(self, tensor: &str, text: &str) -> Lookup {
        Lookup { tensor: tensor.to_owned(), moved: text.to_owned(), ..self }
    }

    fn source(&self) -> String {
        let Lookup { rows, columns, elem, index, tensor, moved, through, stored: [p, q] } = self;
        let (tile, pad) = (format!("tile<{rows} x {columns}"), if elem.is_float() { "-7.0" } else { "7" });
        let none = if index.is_signed() { "-1" } else { "100" };
        format!(
            "kernel @lookup(%x: {tensor}, %ids: tensor<k x {index}>, %s: index, %y: mut tensor<p x q x {elem}>) {{
{moved}  %vi = partition %ids [{rows}] : partition<k x {index}, [{rows}]>
  %vy = partition %y [{p}, {q}] : mut partition<p x q x {elem}, [{p}, {q}]>
  %i, %j = block_index %vy : index, index
  %none = constant {none} : {index}
  %pad = constant {pad} : {elem}
  %ids_of = load_masked %vi[%i] pad %none : tile<{rows} x {index}>
  %column = reshape %ids_of : tile<{rows} x 1 x {index}>
  %which = broadcast %column : {tile} x {index}>
  %width = constant {columns} : index
  %start = mul %j, %width : index
  %from = cast %start : {index}
  %starts = splat %from : {tile} x {index}>
  %counted = iota 1 : {tile} x {index}>
  %at = add %starts, %counted : {tile} x {index}>
  %t = gather_load %m[%which, %at] pad %pad : {tile} x {elem}>
{through}  store_masked %vy, %r
}}
"
        )
    }

    fn instance(&self) -> Instance {
        instance(&self.source(), &[])
    }

    /// Runs it with a tensor of this shape, and so many columns of the output.
    fn check(&self, shape: &[usize], columns: usize) {
        let ids = [0, 3, -1, 1, 99, 5, 2, -128, 4, 0, 6, 2, 1];
        let elements = ids.map(|id| wrap_int(self.index, id)).to_vec();
        let arguments = [
            sample(self.elem, shape, 3),
            Array::new(self.index, vec![ids.len()], Elements::Int(elements)),
            Array::scalar(DType::Index, Literal::Int(1)),
            sample(self.elem, &[ids.len().div_ceil(self.rows) * self.stored[0], columns], 5),
        ];
        agree(&self.instance(), &arguments);
    }
}

/// Native code with and without masks, and simulated threads: of the variant that a launch takes and of the one that relies
/// on nothing.
pub(crate) fn agree(instance: &Instance, arguments: &[Array]) {
    let mut expected = arguments.to_vec();
    interp::run(instance, &mut expected).unwrap_or_else(|error| panic!("{error}"));
    let compare = |what: &str, found: &[Array]| {
        let last = arguments.len() - 1;
        let what = format!("{what} of\n{}", tile_ir::text::print(instance));
        close(&found[last], &expected[last], 0.0, &what);
    };
    for cpu in cpus_in_turn(instance) {
        let memory = Memory::of(instance, arguments);
        Native::of(instance, &Options { cpu, ..Options::default() }).run(&memory);
        compare(&format!("{cpu:?}"), &memory.arrays(arguments));
    }
    for (name, threads) in [("sm_90a", None), ("sm_80", Some(32)), ("gfx942", Some(64))] {
        let target = TargetDesc::named(name).unwrap();
        let bound = Memory::of(instance, arguments).bound;
        for variant in [taken(instance, target, &bound), instance.clone()] {
            let memory = Memory::of(instance, arguments);
            let kernel = compile_simt(&variant, target, threads);
            // SAFETY: the slots are as the instance's ABI says, and tensors are as large as their shapes.
            let result = unsafe { kernel.run(&memory.slots, memory.blocks) };
            result.unwrap_or_else(|error| panic!("{error} on {name} in\n{}", tile_ir::text::print(instance)));
            compare(name, &memory.arrays(arguments));
        }
    }
}

#[test]
fn rows_of_every_format() {
    for elem in [DType::BF16, DType::F32, DType::I8, DType::F64, DType::F16, DType::U32] {
        let lookup = Lookup::of(elem, DType::I32, [4, 64]);
        for d in [64, 128, 77] {
            lookup.check(&[7, d], d);
        }
        // More columns than the tensor has, and fewer.
        lookup.check(&[7, 80], 100);
        lookup.check(&[7, 80], 33);
    }
}

#[test]
fn tiles_of_every_extent() {
    for tile in [[1, 64], [16, 16], [4, 24], [3, 100], [13, 1]] {
        let lookup = Lookup::of(DType::F32, DType::I64, tile);
        lookup.check(&[6, 128], 128);
        lookup.check(&[6, 50], 50);
    }
}

/// Of 8 bits, the columns' numbers wrap within a tile and between tiles: 128 comes before -128, 255 before 0.
#[test]
fn columns_whose_numbers_wrap() {
    for (index, columns) in
        [(DType::I8, 64), (DType::U8, 96), (DType::I8, 160), (DType::U8, 512), (DType::I16, 64)]
    {
        let lookup = Lookup::of(DType::F32, index, [2, columns]);
        lookup.check(&[6, 320], 640);
        lookup.check(&[6, 300], 300);
    }
}

/// From 128 on, what a byte counts is below 0, and far above the bound where it becomes unsigned: one element many times, also
/// at the place of its number, where a run is looked for that goes on from the middle.
#[test]
fn columns_that_jump_to_a_bound() {
    let source = "\
kernel @k(%x: tensor<n x f32>, %y: mut tensor<m x f32>) {
  %v = partition %y [240] : mut partition<m x f32, [240]>
  %c = iota 0 : tile<240 x i8>
  %w = cast %c : tile<240 x u32>
  %l = constant 180 : u32
  %last = splat %l : tile<240 x u32>
  %at = min %w, %last : tile<240 x u32>
  %pad = constant 77.0 : f32
  %t = gather_load %x[%at] pad %pad : tile<240 x f32>
  store_masked %v, %t
}
";
    let arguments = [Array::iota(DType::F32, &[300], 0), Array::iota(DType::F32, &[240], 0)];
    crate::support::agree(source, &[], &arguments, 0.0);
}

/// A sum that is carried, and so added to in place, of neighbours each of which lacks another part of a row; where a corner
/// lacks two, no place of the row has all.
#[test]
fn parts_of_rows_that_have_no_place_in_common() {
    let corner = "\
kernel @corner(%x: tensor<c x m x 512 x f32>, %y: mut tensor<m x 512 x f32>) {
  %vy = partition %y [4, 512] : mut partition<m x 512 x f32, [4, 512]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %four = constant 4 : index
  %b = mul %i, %four : index
  %from = cast %b : i32
  %begin = splat %from : tile<4 x 512 x i32>
  %r = iota 0 : tile<4 x 512 x i32>
  %rows = add %r, %begin : tile<4 x 512 x i32>
  %cols = iota 1 : tile<4 x 512 x i32>
  %1 = constant 1 : i32
  %one = splat %1 : tile<4 x 512 x i32>
  %left = sub %cols, %one : tile<4 x 512 x i32>
  %above = sub %rows, %one : tile<4 x 512 x i32>
  %0 = constant 0 : index
  %end = extent c : index
  %start = splat %pad : tile<4 x 512 x f32>
  %sum = for %p = %0 to %end carry (%acc = %start) : tile<4 x 512 x f32> {
    %q = cast %p : i32
    %channel = splat %q : tile<4 x 512 x i32>
    %mid = gather_load %x[%channel, %rows, %cols] pad %pad : tile<4 x 512 x f32>
    %l = gather_load %x[%channel, %rows, %left] pad %pad : tile<4 x 512 x f32>
    %a = gather_load %x[%channel, %above, %cols] pad %pad : tile<4 x 512 x f32>
    %s1 = add %acc, %mid : tile<4 x 512 x f32>
    %s2 = add %s1, %l : tile<4 x 512 x f32>
    %next = add %s2, %a : tile<4 x 512 x f32>
    yield %next
  }
  store_masked %vy, %sum
}
";
    let output = |shape: &[usize]| Array::iota(DType::F32, shape, 0);
    let arguments = [Array::full(DType::F32, &[3, 8, 512], Literal::Float(1.0)), output(&[8, 512])];
    crate::support::agree(corner, &[], &arguments, 0.0);

    let apart = "\
kernel @apart(%x: tensor<n x f32>, %y: mut tensor<m x f32>) {
  %v = partition %y [256] : mut partition<m x f32, [256]>
  %at = iota 0 : tile<256 x i32>
  %far = constant 200 : i32
  %distance = splat %far : tile<256 x i32>
  %back = sub %at, %distance : tile<256 x i32>
  %pad = constant 0.0 : f32
  %0 = constant 0 : index
  %3 = constant 3 : index
  %start = splat %pad : tile<256 x f32>
  %sum = for %p = %0 to %3 carry (%acc = %start) : tile<256 x f32> {
    %a = gather_load %x[%at] pad %pad : tile<256 x f32>
    %b = gather_load %x[%back] pad %pad : tile<256 x f32>
    %s = add %acc, %a : tile<256 x f32>
    %next = add %s, %b : tile<256 x f32>
    yield %next
  }
  store_masked %v, %sum
}
";
    let arguments = [Array::full(DType::F32, &[150], Literal::Float(1.0)), output(&[256])];
    crate::support::agree(apart, &[], &arguments, 0.0);
}

#[test]
fn an_empty_tensor_has_no_rows() {
    let lookup = Lookup::of(DType::F32, DType::I32, [4, 64]);
    for shape in [[0, 64], [6, 0], [0, 0]] {
        lookup.check(&shape, 64);
    }
}

/// Rows of a matrix of a batch, of the inside of one, of one with a border; columns of a matrix, and its rows backwards.
#[test]
fn rows_of_views() {
    let of = |tensor: &str, moved: &str| Lookup::of(DType::F32, DType::I32, [4, 32]).moved(tensor, moved);
    let selected = of("tensor<e x v x d x f32>", "  %m = view %x select 0 at %s : tensor<v x d x f32>\n");
    selected.check(&[3, 7, 64], 64);
    selected.check(&[2, 7, 61], 61);
    selected.check(&[1, 7, 64], 64);
    for (movement, ty) in [
        ("shrink [(1, v), (4, d)]", "tensor<v - 1 x d - 4 x f32, strided [d, 1] offset d + 4>"),
        ("shrink [(0, v), (3, d)]", "tensor<v x d - 3 x f32, strided [d, 1] offset 3>"),
        (
            "pad [(2, 0), (0, 0)]",
            "tensor<v + 2 x d x f32, strided [d, 1] offset -2*d within [[(2, v + 2)], []]>",
        ),
        (
            "pad [(0, 0), (8, 0)]",
            "tensor<v x d + 8 x f32, strided [d, 1] offset -8 within [[], [(8, d + 8)]]>",
        ),
        ("permute [1, 0]", "tensor<d x v x f32, strided [1, d]>"),
        ("flip [1]", "tensor<v x d x f32, strided [d, -1] offset d - 1>"),
    ] {
        let lookup = of("tensor<v x d x f32>", &format!("  %m = view %x {movement} : {ty}\n"));
        lookup.check(&[9, 64], 64);
        lookup.check(&[40, 45], 45);
        if !movement.starts_with("shrink") {
            lookup.check(&[0, 32], 64);
        }
    }
}

/// Sums of gathered rows, and of the rows themselves; a tile that is read twice; one that is turned; factors of a product.
#[test]
fn what_becomes_of_rows() {
    let of = || Lookup::of(DType::F32, DType::I32, [4, 64]);
    let sum = "  %r = reduce sum %t axis 0 : tile<1 x 64 x f32>\n";
    let along = "  %r = reduce max %t axis 1 : tile<4 x 1 x f32>\n";
    let twice = "  %a = reduce sum %t axis 1 : tile<4 x 1 x f32>
  %b = broadcast %a : tile<4 x 64 x f32>
  %r = add %b, %t : tile<4 x 64 x f32>
";
    let turned = "  %r = permute %t [1, 0] : tile<64 x 4 x f32>\n";
    let factor = "  %b = iota 1 : tile<64 x 8 x f32>
  %zero = splat %pad : tile<4 x 8 x f32>
  %r = mma %t, %b, %zero : tile<4 x 8 x f32>
";
    let other = factor.edit("%r = mma %t", "%u = neg %t : tile<4 x 64 x f32>\n  %r = mma %u");
    for (through, stored) in [
        (sum, [1, 64]),
        (along, [4, 1]),
        (twice, [4, 64]),
        (turned, [64, 4]),
        (factor, [4, 8]),
        (&other, [4, 8]),
    ] {
        let lookup = of().through(through, stored);
        let columns = if stored[1] == 64 { 130 } else { stored[1] };
        lookup.check(&[7, 130], columns);
        lookup.check(&[7, 64], columns);
        lookup.check(&[7, 256], columns);
    }
}

/// Rows, and parts of rows, of which another op takes some in another order, and whose result is stored on the way: what it
/// reads isn't where it writes.
#[test]
fn rows_that_are_moved_are_read_where_they_were() {
    let plain = "  %at = add %counted, %starts : tile<4 x 32 x i32>\n";
    let bounded = "  %from = add %counted, %starts : tile<4 x 32 x i32>
  %end = constant 36 : i32
  %ends = splat %end : tile<4 x 32 x i32>
  %at = min %from, %ends : tile<4 x 32 x i32>\n";
    let moved = [
        ("flip %t axis 0", [4, 32]),
        ("flip %t axis 1", [4, 32]),
        ("extract %t [2, 0]", [2, 32]),
        ("extract %t [0, 16]", [4, 16]),
        ("permute %t [1, 0]", [32, 4]),
    ];
    for (columns, start) in [(plain, 5), (plain, 9), (bounded, 9), (bounded, -3)] {
        for (moving, [rows, width]) in moved {
            let tile = format!("tile<{rows} x {width} x f32>");
            let source = format!(
                "kernel @k(%x: tensor<v x d x f32>, %y: mut tensor<p x q x f32>) {{
  %vy = partition %y [{rows}, {width}] : mut partition<p x q x f32, [{rows}, {width}]>
  %i, %j = block_index %vy : index, index
  %pad = constant -7.0 : f32
  %which = iota 0 : tile<4 x 32 x i32>
  %counted = iota 1 : tile<4 x 32 x i32>
  %start = constant {start} : i32
  %starts = splat %start : tile<4 x 32 x i32>
{columns}  %t = gather_load %x[%which, %at] pad %pad : tile<4 x 32 x f32>
  %m = {moving} : {tile}
  %r = mul %m, %m : {tile}
  %s = add %r, %m : {tile}
  store_masked %vy, %s
}}
"
            );
            let arguments = [sample(DType::F32, &[4, 37], 1), sample(DType::F32, &[rows, width], 2)];
            agree_in_turn(&source, &[], &arguments, 0.0);
        }
    }
}

/// A tensor of one axis, whose rows are named by where they begin.
#[test]
fn rows_of_a_line() {
    let source = "kernel @line(%x: tensor<n x f32>, %ids: tensor<k x i64>, %y: mut tensor<k x 48 x f32>) {
  %vi = partition %ids [8] : partition<k x i64, [8]>
  %vy = partition %y [8, 48] : mut partition<k x 48 x f32, [8, 48]>
  %i, %j = block_index %vy : index, index
  %none = constant 3 : i64
  %pad = constant 7.0 : f32
  %ids_of = load_masked %vi[%i] pad %none : tile<8 x i64>
  %length = constant 48 : i64
  %lengths = splat %length : tile<8 x i64>
  %begin = mul %ids_of, %lengths : tile<8 x i64>
  %column = reshape %begin : tile<8 x 1 x i64>
  %which = broadcast %column : tile<8 x 48 x i64>
  %counted = iota 1 : tile<8 x 48 x i64>
  %at = add %which, %counted : tile<8 x 48 x i64>
  %t = gather_load %x[%at] pad %pad : tile<8 x 48 x f32>
  store_masked %vy, %t
}
";
    let ids = vec![0, 2, -1, 5, 6, 4, i128::from(i64::MAX / 48), 1, 3, 3];
    for n in [48 * 6, 48 * 5 + 20, 48 * 5 + 19] {
        let y = sample(DType::F32, &[ids.len(), 48], 1);
        let ids = Array::new(DType::I64, vec![ids.len()], Elements::Int(ids.clone()));
        agree(&instance(source, &[]), &[sample(DType::F32, &[n], 2), ids, y]);
    }
}

/// Whether an instruction of PTX loads from global memory, and how wide: `ld.global.nc.v4.b32`.
fn loaded_bytes(line: &str) -> Option<u32> {
    let parts: Vec<&str> =
        line.trim().strip_prefix("ld.global.")?.split_whitespace().next()?.split('.').collect();
    let count =
        parts.iter().find_map(|part| part.strip_prefix('v')).map_or(1, |count| count.parse().unwrap());
    let bits: u32 = parts.last().and_then(|part| part[1..].parse().ok()).unwrap();
    Some(count * bits / 8)
}

#[test]
fn aligned_rows_are_loaded_by_16_bytes() {
    for (elem, columns) in [(DType::F32, 512), (DType::BF16, 1024), (DType::I8, 2048)] {
        let lookup = Lookup::of(elem, DType::I32, [4, columns]);
        let aligned = Variant::Aligned.of(&lookup.instance()).unwrap();
        let artifact = compile(&aligned, TargetDesc::named("sm_90a").unwrap(), &Options::default()).unwrap();
        let Code::Ptx(text) = artifact.code else { panic!("PTX for NVIDIA's GPUs") };
        let (wide, narrow): (Vec<u32>, Vec<u32>) =
            text.lines().filter_map(loaded_bytes).partition(|&bytes| bytes == 16);
        // 256 threads share 8 KiB; indices are loaded by a tile that is whole, or by one at the edge.
        assert_eq!((wide.len(), narrow), (2, vec![4; 2]), "{elem}:\n{text}");
        // Both are under way together.
        let lines: Vec<&str> = text.lines().collect();
        let wide: Vec<usize> = (0..lines.len()).filter(|&i| loaded_bytes(lines[i]) == Some(16)).collect();
        let between = &lines[wide[0]..wide[1]];
        let leaves = |line: &&str| line.contains("bra") || line.starts_with('$');
        assert!(!between.iter().any(leaves), "{elem}:\n{text}");
    }
}
