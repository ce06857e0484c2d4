//! Kernels whose ops are many and need each other: results that are used twice again and again, of which there are more ways
//! through the ops than could be gone, and chains of more ops than a thread's stack has room for a frame of each.

use crate::support::{agree_on, all_cpus, instance, sample};
use std::fmt::Write;
use tile_codegen::{Cpu, Options, compile};
use tile_ir::array::Elements;
use tile_ir::{Array, DType, Instance, TargetDesc};

/// Lines that square `%t0` so often, and give the last square the name `%power`: there are 2 to this power ways to it.
fn squares(ty: &str, count: usize) -> String {
    let mut lines = String::new();
    for i in 0..count {
        let result = if i + 1 == count { "power".to_owned() } else { format!("t{}", i + 1) };
        writeln!(lines, "  %{result} = mul %t{i}, %t{i} : {ty}").unwrap();
    }
    lines
}

/// Compares with the evaluator on every processor, and compiles for a GPU of each vendor.
fn check(instance: &Instance, shapes: &[(DType, &[usize])]) {
    let arguments: Vec<_> =
        (1..).zip(shapes).map(|(seed, &(dtype, shape))| sample(dtype, shape, seed)).collect();
    agree_on(&all_cpus(), instance, &arguments, 0.0);
    for target in ["sm_90a", "gfx942"] {
        let target = TargetDesc::named(target).unwrap_or_else(|error| panic!("{error}"));
        compile(instance, target, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A kernel that stores `%r`, which these lines make of the elements `%t0` and of `%halves`.
fn of_elements(ty: &str, tile: usize, lines: &str) -> Instance {
    let source = format!(
        "kernel @elements(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {{
  %vx = partition %x [{tile}] : partition<n x f32, [{tile}]>
  %vy = partition %y [{tile}] : mut partition<n x f32, [{tile}]>
  %i = block_index %vy : index
  %zero = constant 0.0 : f32
  %half = constant 0.5 : f32
  %halves = splat %half : {ty}
  %t0 = load_masked %vx[%i] pad %zero : {ty}
{lines}  store_masked %vy, %r
}}"
    );
    instance(&source, &[])
}

#[test]
fn powers_of_gathered_elements() {
    let source = format!(
        "kernel @gathered_power(%x: tensor<n x f32>, %at: tensor<m x i32>, %y: mut tensor<m x f32>) {{
  %va = partition %at [256] : partition<m x i32, [256]>
  %vy = partition %y [256] : mut partition<m x f32, [256]>
  %i = block_index %vy : index
  %none = constant 0 : i32
  %zero = constant 0.0 : f32
  %a = load_masked %va[%i] pad %none : tile<256 x i32>
  %t0 = gather_load %x[%a] pad %zero : tile<256 x f32>
{}  store_masked %vy, %power
}}",
        squares("tile<256 x f32>", 40)
    );
    check(&instance(&source, &[]), &[(DType::F32, &[100]), (DType::I32, &[100]), (DType::F32, &[100])]);
}

#[test]
fn powers_of_a_product() {
    let source = format!(
        "kernel @power_of_product(%a: tensor<m x k x f32>, %b: tensor<k x n x f32>, %c: mut tensor<m x n x f32>) {{
  %va = partition %a [16, 16] : partition<m x k x f32, [16, 16]>
  %vb = partition %b [16, 16] : partition<k x n x f32, [16, 16]>
  %vc = partition %c [16, 16] : mut partition<m x n x f32, [16, 16]>
  %i, %j = block_index %vc : index, index
  %zero = constant 0.0 : f32
  %zeros = splat %zero : tile<16 x 16 x f32>
  %first = constant 0 : index
  %tiles = extent ceil_div(k, 16) : index
  %t0 = for %p = %first to %tiles carry (%acc = %zeros) : tile<16 x 16 x f32> {{
    %x = load_masked %va[%i, %p] pad %zero : tile<16 x 16 x f32>
    %w = load_masked %vb[%p, %j] pad %zero : tile<16 x 16 x f32>
    %next = mma %x, %w, %acc : tile<16 x 16 x f32>
    yield %next
  }}
{}  store_masked %vc, %power
}}",
        squares("tile<16 x 16 x f32>", 30)
    );
    check(
        &instance(&source, &[]),
        &[(DType::F32, &[20, 20]), (DType::F32, &[20, 20]), (DType::F32, &[20, 20])],
    );
}

#[test]
fn larger_ones_of_powers() {
    let ty = "tile<256 x f32>";
    let lines = format!(
        "{}  %zeros = splat %zero : {ty}
  %less = sub %power, %halves : {ty}
  %r = max %less, %zeros : {ty}
",
        squares(ty, 40)
    );
    check(&of_elements(ty, 256, &lines), &[(DType::F32, &[300]), (DType::F32, &[300])]);
}

#[test]
fn indices_that_are_put_right_again_and_again() {
    let mut lines = String::new();
    for i in 0..30 {
        let next = i + 1;
        writeln!(lines, "  %o{next} = lt %t{i}, %zeros : tile<256 x bool>").unwrap();
        writeln!(lines, "  %u{next} = add %t{i}, %sizes : tile<256 x i32>").unwrap();
        writeln!(lines, "  %t{next} = select %o{next}, %u{next}, %t{i} : tile<256 x i32>").unwrap();
    }
    let source = format!(
        "kernel @wrapped(%x: tensor<n x f32>, %by: i32, %y: mut tensor<m x f32>) {{
  %vy = partition %y [256] : mut partition<m x f32, [256]>
  %none = constant 0.0 : f32
  %zero = constant 0 : i32
  %zeros = splat %zero : tile<256 x i32>
  %sizes = splat %by : tile<256 x i32>
  %columns = iota 0 : tile<256 x i32>
  %t0 = sub %columns, %sizes : tile<256 x i32>
{lines}  %r = gather_load %x[%t30] pad %none : tile<256 x f32>
  store_masked %vy, %r
}}"
    );
    let instance = instance(&source, &[]);
    let by = Array::new(DType::I32, vec![], Elements::Int(vec![100]));
    agree_on(
        &all_cpus(),
        &instance,
        &[sample(DType::F32, &[256], 1), by, sample(DType::F32, &[256], 2)],
        0.0,
    );
}

/// Each step is one op behind the last, and all of them one loop.
#[test]
fn a_chain_of_many_ops() {
    const STEPS: usize = 1500;
    let ty = "tile<64 x f32>";
    let mut lines = String::new();
    for i in 0..STEPS {
        let result = if i + 1 == STEPS { "r".to_owned() } else { format!("t{}", i + 1) };
        writeln!(lines, "  %p{i} = mul %t{i}, %halves : {ty}").unwrap();
        writeln!(lines, "  %{result} = add %p{i}, %t0 : {ty}").unwrap();
    }
    let arguments = [sample(DType::F32, &[100], 1), sample(DType::F32, &[100], 2)];
    agree_on(&[Cpu::Host], &of_elements(ty, 64, &lines), &arguments, 0.0);
}
