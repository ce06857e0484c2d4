//! Native code writes nothing beside its tensors. Every test that runs native code looks for that; these run what once did.

use crate::support::{agree_on, all_cpus, instance, sample};
use tile_ir::DType;
use tile_test_edit::Edit;

/// Rows that are one element longer than vectors: a store with a mask of one lane writes the last one, narrowed.
#[test]
fn the_last_element_of_a_narrowed_row_ends_where_the_tensor_does() {
    let narrowed = [
        (DType::F64, DType::BF16, 9),
        (DType::F32, DType::F16, 17),
        (DType::I32, DType::I16, 9),
        (DType::I32, DType::I8, 9),
        (DType::I64, DType::I32, 9),
        (DType::I16, DType::I8, 17),
    ];
    for (wide, narrow, width) in narrowed {
        let zero = if wide.is_float() { "0.0" } else { "0" };
        let source = format!(
            "kernel @narrowed(%x: mut tensor<16 x COLUMNS x {wide}>, %y: mut tensor<16 x COLUMNS x {narrow}>) {{
  %vx = partition %x [8, WIDTH] : mut partition<16 x COLUMNS x {wide}, [8, WIDTH]>
  %vy = partition %y [8, WIDTH] : mut partition<16 x COLUMNS x {narrow}, [8, WIDTH]>
  %zero = constant {zero} : {wide}
  %t = load_masked %vx pad %zero : tile<8 x WIDTH x {wide}>
  %c = cast %t : tile<8 x WIDTH x {narrow}>
  %d = add %c, %c : tile<8 x WIDTH x {narrow}>
  store_masked %vy, %d
}}
"
        )
        .edit("COLUMNS", &(2 * width).to_string())
        .edit("WIDTH", &width.to_string());
        let arguments = [sample(wide, &[16, 2 * width], 1), sample(narrow, &[16, 2 * width], 2)];
        agree_on(&all_cpus(), &instance(&source, &[]), &arguments, 0.0);
    }
}
