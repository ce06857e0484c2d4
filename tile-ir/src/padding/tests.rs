//! Which sizes may grow, what is copied then, and that the evaluator finds the same elements.

use super::*;
use crate::array::Elements;
use crate::{Array, DType, interp};
use tile_test_edit::Edit;

/// A product of `a`, in tiles of 8 × 16, and `b`; `edit` changes its text.
fn product(edit: &[(&str, &str)]) -> Instance {
    let mut text = "\
kernel @product(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x f32>) {
  %va = partition %a [8, 16] : partition<m x k x bf16, [8, 16]>
  %vb = partition %b [16, 8] : partition<k x n x bf16, [16, 8]>
  %vc = partition %c [8, 8] : mut partition<m x n x f32, [8, 8]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<8 x 8 x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(k, 16) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<8 x 8 x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<8 x 16 x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<16 x 8 x bf16>
    %next = mma %ta, %tb, %acc : tile<8 x 8 x f32>
    yield %next
  }
  store_masked %vc, %sum
}
"
    .to_owned();
    for (from, to) in edit {
        assert!(text.contains(from), "{from}");
        text = text.edit(from, to);
    }
    Instance::parse(&text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn padded(instance: &Instance, [m, n, k]: [usize; 3]) -> Option<Padded> {
    let abi = KernelAbi::of(instance);
    let bound = abi.bind(&[&[m, k], &[k, n], &[m, n]]).unwrap();
    Padding::of(instance, &abi).of_launch(&abi, &bound)
}

#[test]
fn the_depth_of_a_product_grows_to_aligned_rows() {
    let found = padded(&product(&[]), [96, 128, 37]).unwrap();
    let abi = KernelAbi::of(&product(&[]));
    assert_eq!(found.bound, abi.bind(&[&[96, 40], &[40, 128], &[96, 128]]).unwrap());
    let copied =
        |argument, rows, row_bytes, padded_bytes| PaddedTensor { argument, rows, row_bytes, padded_bytes };
    assert_eq!(found.tensors, [copied(0, 96, 2 * 37, 2 * 40), copied(1, 1, 2 * 37 * 128, 2 * 40 * 128)]);
}

#[test]
fn nothing_grows_that_is_aligned_written_or_not_worth_while() {
    assert_eq!(padded(&product(&[]), [96, 128, 40]), None);
    // Rows of what is written aren't aligned either.
    assert_eq!(padded(&product(&[]), [96, 129, 37]), None);
    // 126 tiles; 4096, of which each element of `b` is read by one.
    assert_eq!(padded(&product(&[]), [72, 112, 37]), None);
    assert_eq!(padded(&product(&[]), [8, 32768, 37]), None);
    assert_eq!(padded(&product(&[]), [96, 128, 0]), None);
}

#[test]
fn what_a_kernel_can_tell_keeps_it_from_growing() {
    let fixed = |edit: &[(&str, &str)]| padded(&product(edit), [96, 128, 37]).is_none();
    assert!(!fixed(&[]));
    // Other elements outside, a number of the size, a condition, tiles that overlap or end before a multiple of 16 bytes.
    assert!(fixed(&[("%pad = constant 0.0 : bf16", "%pad = constant 1.0 : bf16")]));
    assert!(fixed(&[("%pad = constant 0.0 : bf16", "%pad = constant -0.0 : bf16")]));
    assert!(fixed(&[("%0 = constant 0 : index", "%0 = constant 0 : index\n  %k = extent k : index")]));
    assert!(fixed(&[("f32>) {", "f32>) where \"k < 99\": k lt 99 {")]));
    let twelve =
        [("16]", "12]"), ("[16,", "[12,"), ("k, 16)", "k, 12)"), ("8 x 16", "8 x 12"), ("16 x 8", "12 x 8")];
    assert!(fixed(&twelve));
    let no_product = [("mma %ta, %tb, %acc", "add %acc, %zero")];
    assert!(fixed(&no_product));
}

/// A gather sees what lies behind a row, and where a row that is turned begins.
#[test]
fn a_tensor_that_is_gathered_from_does_not_grow() {
    let gathers = |tensor: &str, view: &str| {
        let lines = format!(
            "%none = constant 0.0 : f32
{view}  %one = constant 1.0 : bf16
  %rows = iota 0 : tile<8 x 8 x i32>
  %lane = iota 1 : tile<8 x 8 x i32>
  %from = constant 36 : i32
  %froms = splat %from : tile<8 x 8 x i32>
  %columns = add %lane, %froms : tile<8 x 8 x i32>
  %beside = gather_load {tensor}[%rows, %columns] pad %one : tile<8 x 8 x bf16>
  %start = cast %beside : tile<8 x 8 x f32>"
        );
        let edit = [
            ("%none = constant 0.0 : f32", lines.as_str()),
            ("carry (%acc = %zero)", "carry (%acc = %start)"),
        ];
        padded(&product(&edit), [96, 128, 37])
    };
    assert_eq!(gathers("%a", ""), None);
    let turned = "  %turned = view %a flip [1] : tensor<m x k x bf16, strided [k, -1] offset k - 1>\n";
    assert_eq!(gathers("%turned", turned), None);
}

/// A view that moves elements by the size, of a tensor that hasn't the size as an extent.
#[test]
fn what_a_view_is_moved_by_does_not_grow() {
    let shifted = |by: &str, within: &str| {
        let tensor = format!("m x n x f32, strided [n, 1] offset -{by} within [[], [({by}, {within})]]");
        let views = format!(
            "f32>, %q: tensor<m x n x f32>) {{
  %qs = view %q shift 1 by {by} : tensor<{tensor}>
  %vq = partition %qs [8, 8] : partition<{tensor}, [8, 8]>"
        );
        let start = "%zero = load_masked %vq[%i, %j] pad %none : tile<8 x 8 x f32>";
        let instance = product(&[("f32>) {", &views), ("%zero = splat %none : tile<8 x 8 x f32>", start)]);
        let abi = KernelAbi::of(&instance);
        let (m, n, k) = (96, 128, 37);
        let bound = abi.bind(&[&[m, k], &[k, n], &[m, n], &[m, n]]).unwrap();
        Padding::of(&instance, &abi).of_launch(&abi, &bound)
    };
    assert!(shifted("1", "n + 1").is_some());
    assert_eq!(shifted("k", "k + n"), None);
}

/// A column that is selected at run time may be one of those behind a row.
#[test]
fn a_tensor_of_which_a_column_is_selected_does_not_grow() {
    let selected = "%i, %j = block_index %vc : index, index
  %row = view %a select 1 at %i : tensor<m x bf16, strided [k]>
  %vrow = partition %row [8] : partition<m x bf16, strided [k], [8]>";
    let edit = [("%i, %j = block_index %vc : index, index", selected)];
    assert_eq!(padded(&product(&edit), [96, 128, 37]), None);
}

/// What the evaluator computes of tensors with zeros behind is bit by bit what it computes of those without.
#[test]
fn a_launch_that_grows_computes_the_same() {
    let (instance, [m, n, k]) = (product(&[]), [96, 120, 37]);
    let padded = padded(&instance, [m, n, k]).unwrap();
    let number = |i: usize| ((i * 7919 + i / 13) % 33) as f64 / 8.0 - 2.0;
    let array = |dtype, shape: &[usize]| {
        let elements = Elements::Float((0..shape.iter().product()).map(number).collect());
        Array::new(dtype, shape.to_vec(), elements)
    };
    let none = Array::new(DType::F32, vec![m, n], Elements::Float(vec![f64::NAN; m * n]));
    let mut plain = [array(DType::BF16, &[m, k]), array(DType::BF16, &[k, n]), none.clone()];
    let grown = |array: &Array, tensor: &PaddedTensor, shape: &[usize]| {
        let bytes = array.to_bytes();
        let rows = bytes.chunks(tensor.row_bytes).flat_map(|row| {
            let mut row = row.to_vec();
            row.resize(tensor.padded_bytes, 0);
            row
        });
        Array::from_bytes(DType::BF16, shape, &rows.collect::<Vec<u8>>())
    };
    let mut larger = [
        grown(&plain[0], &padded.tensors[0], &[m, 40]),
        grown(&plain[1], &padded.tensors[1], &[40, n]),
        none,
    ];
    interp::run(&instance, &mut plain).unwrap();
    interp::run(&instance, &mut larger).unwrap();
    assert_eq!(plain[2].to_bytes(), larger[2].to_bytes());
}
