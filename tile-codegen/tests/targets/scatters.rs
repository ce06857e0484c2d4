//! Rows that indices name, which atomic operations write or add to: native code and GPU code on the host against the
//! evaluator, and the instructions that GPUs have for several elements.

use crate::gathers::agree;
use crate::support::{instance, sample};
use tile_codegen::{Code, Options, compile};
use tile_ir::array::{Elements, wrap_int};
use tile_ir::{Array, DType, Instance, TargetDesc, Variant};
use tile_test_edit::Edit;

/// Rows of `x`, in tiles, go to those of `%m`, made of `y`, that `ids` name. Every id of a store is there once, so that the
/// result doesn't depend on an order.
struct Rows {
    tile: [usize; 2],
    elem: DType,
    index: DType,
    /// What `%y` is, and lines that make `%m` of it, with two axes.
    tensor: &'static str,
    moved: &'static str,
    /// The first column, and the mask behind the values.
    start: i64,
    mask: &'static str,
    /// What makes `%t`, of which twice is stored.
    value: &'static str,
    /// What is done to the elements of `%m`, and the rows of them that the ids name.
    operation: &'static str,
    ids: [i128; 10],
}

const PLAIN: Rows = Rows {
    tile: [4, 64],
    elem: DType::F32,
    index: DType::I32,
    tensor: "v x d",
    moved: "  %m = view %y permute [0, 1] : mut tensor<v x d x ELEM>\n",
    start: 0,
    mask: "",
    value: "load_masked %vx[%i, %j] pad %zero",
    operation: "atomic store relaxed device",
    ids: [5, 3, -1, 1, 99, 6, 2, -128, 4, 0],
};

const ADDED: Rows = Rows { operation: "%old = atomic add relaxed device", ..PLAIN };

impl Rows {
    fn instance(&self) -> Instance {
        let Rows { tile: [rows, columns], elem, index, tensor, moved, start, mask, value, operation, .. } =
            self;
        let moved = moved.edit("ELEM", elem.name());
        let tile = format!("tile<{rows} x {columns}");
        let source = format!(
            "kernel @store_rows(%x: tensor<k x c x {elem}>, %ids: tensor<k x {index}>, %grid: mut tensor<k x c x {elem}>, %y: mut tensor<{tensor} x {elem}>) {{
{moved}  %vx = partition %x [{rows}, {columns}] : partition<k x c x {elem}, [{rows}, {columns}]>
  %vi = partition %ids [{rows}] : partition<k x {index}, [{rows}]>
  %vg = partition %grid [{rows}, {columns}] : mut partition<k x c x {elem}, [{rows}, {columns}]>
  %i, %j = block_index %vg : index, index
  %none = constant {none} : {index}
  %zero = constant {zero} : {elem}
  %ids_of = load_masked %vi[%i] pad %none : tile<{rows} x {index}>
  %column = reshape %ids_of : tile<{rows} x 1 x {index}>
  %which = broadcast %column : {tile} x {index}>
  %width = constant {columns} : index
  %begin = mul %j, %width : index
  %from = cast %begin : {index}
  %start = constant {start} : {index}
  %first = add %from, %start : {index}
  %starts = splat %first : {tile} x {index}>
  %counted = iota 1 : {tile} x {index}>
  %at = add %starts, %counted : {tile} x {index}>
  %three = constant 3 : {index}
  %threes = splat %three : {tile} x {index}>
  %by_row = ne %which, %threes : {tile} x bool>
  %by_column = ne %counted, %threes : {tile} x bool>
  %t = {value} : {tile} x {elem}>
  %v = add %t, %t : {tile} x {elem}>
  {operation} %m[%which, %at], %v{mask}{result}
}}
",
            result = if operation.contains('=') { format!(" : {tile} x {elem}>") } else { String::new() },
            none = if index.is_signed() { "-1" } else { "100" },
            zero = if elem.is_float() { "0.0" } else { "0" },
        );
        instance(&source, &[])
    }

    /// Runs it with so many columns, and a tensor of this shape.
    fn check(&self, columns: usize, shape: &[usize]) {
        let ids = self.ids;
        let elements = ids.map(|id| wrap_int(self.index, id)).to_vec();
        let arguments = [
            sample(self.elem, &[ids.len(), columns], 3),
            Array::new(self.index, vec![ids.len()], Elements::Int(elements)),
            sample(self.elem, &[ids.len(), columns], 4),
            sample(self.elem, shape, 5),
        ];
        agree(&self.instance(), &arguments);
    }
}

#[test]
fn rows_of_every_format() {
    for elem in [DType::BF16, DType::F32, DType::I8, DType::F64, DType::F16, DType::U32] {
        let rows = Rows { elem, ..PLAIN };
        rows.check(128, &[7, 128]);
        rows.check(77, &[7, 77]);
    }
}

/// Rows that exist in part: what is outside goes nowhere, the rest is stored.
#[test]
fn rows_that_end_within_a_tile() {
    PLAIN.check(128, &[7, 100]);
    Rows { start: 5, ..PLAIN }.check(64, &[7, 64]);
    Rows { start: -5, ..PLAIN }.check(64, &[7, 64]);
    Rows { tile: [3, 100], ..PLAIN }.check(100, &[9, 101]);
}

#[test]
fn rows_behind_masks() {
    let columns = [64, 80];
    for mask in [" mask %by_row", " mask %by_column"] {
        columns.iter().for_each(|&columns| Rows { mask, ..PLAIN }.check(columns, &[7, 80]));
    }
}

/// Numbers that wrap on the way aren't neighbours in memory.
#[test]
fn rows_whose_columns_wrap() {
    let rows = Rows { index: DType::I8, start: 120, ..PLAIN };
    rows.check(64, &[7, 200]);
    Rows { index: DType::U8, start: 250, ..rows }.check(64, &[7, 300]);
}

/// Rows go from one tensor to another, neither of which a tile of the grid is of.
#[test]
fn rows_that_are_gathered() {
    let rows = Rows { value: "gather_load %x[%which, %at] pad %zero", ..PLAIN };
    rows.check(128, &[7, 128]);
    rows.check(70, &[7, 80]);
}

#[test]
fn rows_of_views() {
    let turned = "  %m = view %y permute [1, 0] : mut tensor<d x v x ELEM, strided [1, d]>\n";
    Rows { moved: turned, ..PLAIN }.check(64, &[70, 9]);
    let part = "  %m = view %y shrink [(1, v), (4, d)] : mut tensor<v - 1 x d - 4 x ELEM, strided [d, 1] offset d + 4>\n";
    Rows { moved: part, ..PLAIN }.check(64, &[9, 68]);
    Rows { moved: part, start: 4, ..PLAIN }.check(64, &[7, 64]);
}

#[test]
fn rows_are_added_to() {
    for elem in [DType::BF16, DType::F32, DType::F64, DType::F16, DType::I32] {
        let rows = Rows { elem, ..ADDED };
        rows.check(128, &[7, 128]);
        rows.check(77, &[7, 77]);
    }
    ADDED.check(128, &[7, 100]);
    Rows { start: 5, ..ADDED }.check(64, &[7, 64]);
    for mask in [" mask %by_row", " mask %by_column"] {
        Rows { mask, elem: DType::BF16, ..ADDED }.check(64, &[7, 80]);
    }
}

/// Neighbours that a processor exchanges together: rows that begin within such a word, have other rows between their elements,
/// or end within a tile, and operations without an instruction.
#[test]
fn rows_that_are_exchanged() {
    let part = "  %m = view %y shrink [(1, v), (1, d)] : mut tensor<v - 1 x d - 1 x ELEM, strided [d, 1] offset d + 1>\n";
    let turned = "  %m = view %y permute [1, 0] : mut tensor<d x v x ELEM, strided [1, d]>\n";
    for elem in [DType::F32, DType::BF16, DType::F64] {
        Rows { elem, moved: part, ..ADDED }.check(64, &[9, 65]);
        Rows { elem, moved: part, start: 3, ..ADDED }.check(64, &[9, 72]);
        Rows { elem, moved: turned, ..ADDED }.check(64, &[70, 9]);
    }
    for operation in ["%old = atomic min relaxed device", "%old = atomic max relaxed device"] {
        for elem in [DType::F32, DType::I32, DType::U64] {
            Rows { elem, operation, ids: [5, 3, 5, 5, 99, 3, 2, -1, 5, 2], ..PLAIN }.check(128, &[7, 128]);
        }
    }
}

/// Rows that several blocks add to at once.
#[test]
fn rows_that_are_named_again() {
    for elem in [DType::F32, DType::I32] {
        Rows { elem, ids: [5, 3, 5, 5, 99, 3, 2, -1, 5, 2], ..ADDED }.check(128, &[7, 128]);
    }
}

/// What an instruction does for aligned rows: as many elements as the target has one for, 16 bytes at most.
#[test]
fn instructions_do_several_elements() {
    for (name, rows, elem, instruction) in [
        ("sm_90a", ADDED, DType::F32, "red.relaxed.gpu.global.add.v4.f32"),
        ("sm_90a", ADDED, DType::BF16, "red.relaxed.gpu.global.add.noftz.v4.bf16x2"),
        ("sm_90a", ADDED, DType::F16, "red.relaxed.gpu.global.add.noftz.v4.f16x2"),
        ("sm_80", ADDED, DType::F16, "red.relaxed.gpu.global.add.noftz.f16x2"),
        ("sm_90a", PLAIN, DType::BF16, "st.relaxed.gpu.global.v4.b32"),
        ("sm_90a", PLAIN, DType::F64, "st.relaxed.gpu.global.v2.b64"),
        ("sm_80", PLAIN, DType::F32, "st.relaxed.gpu.global.v4.b32"),
    ] {
        let target = TargetDesc::named(name).unwrap();
        let instance = Rows { elem, tile: [8, 512], ..rows }.instance();
        let (_, aligned) = Variant::first_of(Variant::of_target(target).iter().copied(), &instance);
        let artifact = compile(&aligned, target, &Options::default()).unwrap();
        let Code::Ptx(code) = artifact.code else { panic!("{name} has PTX") };
        assert!(code.contains(instruction), "{elem} on {name} without {instruction}:\n{code}");
    }
}
