//! `while` and `item` on every target: natively and thread by thread against the evaluator and plain loops,
//! and through every GPU back end.

use crate::support::{close, instance, run_native, run_simt, sample};
use tile_codegen::Options;
use tile_ir::array::Elements;
use tile_ir::{Array, DType, VerifiedKernel, interp};

/// Halves a tile until its largest element is below 1, and counts; a second tile changes places with it.
const HALVE: &str = "\
kernel @halve<B>(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [B] : partition<n x f32, [B]>
  %vy = partition %y [B] : mut partition<n x f32, [B]>
  %i = block_index %vy : index
  %zero = constant 0.0 : f32
  %one = constant 1.0 : f32
  %half = constant 0.5 : f32
  %start = load_masked %vx[%i] pad %zero : tile<B x f32>
  %top = reduce max %start axis 0 : tile<1 x f32>
  %first = item %top : f32
  %go = ge %first, %one : bool
  %t, %u, %count = while %go carry (%a = %start, %b = %start, %c = %zero) : tile<B x f32>, tile<B x f32>, f32 {
    %halves = splat %half : tile<B x f32>
    %next = mul %a, %halves : tile<B x f32>
    %d = add %c, %one : f32
    %most = reduce max %next axis 0 : tile<1 x f32>
    %largest = item %most : f32
    %again = ge %largest, %one : bool
    yield %again, %next, %a, %d
  }
  %counts = splat %count : tile<B x f32>
  %both = add %t, %u : tile<B x f32>
  %sum = add %both, %counts : tile<B x f32>
  store_masked %vy, %sum
}
";

fn halved(block: &[f64]) -> Vec<f64> {
    let (mut a, mut b, mut count) = (block.to_vec(), block.to_vec(), 0.0);
    while a.iter().copied().fold(0.0, f64::max) >= 1.0 {
        b = a.clone();
        a.iter_mut().for_each(|a| *a *= 0.5);
        count += 1.0;
    }
    a.iter().zip(&b).map(|(a, b)| a + b + count).collect()
}

#[test]
fn a_tile_decides_how_long_a_loop_runs() {
    // Tiles of one slot, of several in registers, and of more, which live in arrays; blocks that differ.
    for (b, threads) in [(8, None), (256, None), (1024, Some(4))] {
        let n = 3 * b - 1;
        let numbers: Vec<f64> =
            (0..n).map(|i| ((i * 37 % 101) as f64 / 8.0) * [0.01, 1.0, 9.0][i / b]).collect();
        let numbers: Vec<f64> = numbers.iter().map(|&x| f64::from(x as f32)).collect();
        let x = Array::new(DType::F32, vec![n], Elements::Float(numbers.clone()));
        let arguments = [x, sample(DType::F32, &[n], 2)];
        let expected: Vec<f64> = numbers.chunks(b).flat_map(halved).collect();
        let expected = Array::new(DType::F32, vec![n], Elements::Float(expected));
        let instance = instance(HALVE, &[("B", b)]);
        let mut evaluated = arguments.to_vec();
        interp::run(&instance, &mut evaluated).unwrap();
        close(&evaluated[1], &expected, 1e-6, "the evaluator");
        close(&run_native(&instance, &arguments, &Options::default())[1], &expected, 1e-6, "native code");
        close(&run_simt(&instance, &arguments, threads)[1], &expected, 1e-6, "threads");
    }
}

#[test]
fn gpus_compile_loops_that_a_tile_decides() {
    for b in [16, 1024] {
        crate::gpu::check(&instance(HALVE, &[("B", b)]));
    }
}

/// The element of a tile that a load gives, of any format, in every thread.
fn item(dtype: DType) -> String {
    let pad = match dtype {
        DType::Bool => "false",
        dtype if dtype.is_float() => "0.0",
        _ => "0",
    };
    format!(
        "kernel @item(%x: tensor<n x 1 x {dtype}>, %y: mut tensor<n x 70 x {dtype}>) {{
  %vx = partition %x [1, 1] : partition<n x 1 x {dtype}, [1, 1]>
  %vy = partition %y [1, 70] : mut partition<n x 70 x {dtype}, [1, 70]>
  %i, %j = block_index %vy : index, index
  %pad = constant {pad} : {dtype}
  %t = load_masked %vx[%i, %j] pad %pad : tile<1 x 1 x {dtype}>
  %s = item %t : {dtype}
  %u = splat %s : tile<1 x 70 x {dtype}>
  store_masked %vy, %u
}}
"
    )
}

#[test]
fn an_item_is_the_same_everywhere() {
    for &dtype in DType::ALL.iter().filter(|dtype| dtype.is_element()) {
        let instance = instance(&item(dtype), &[]);
        let x = sample(dtype, &[3, 1], 1);
        let arguments = [x.clone(), sample(dtype, &[3, 70], 2)];
        let expected = x.broadcast(&[3, 70]);
        close(&run_native(&instance, &arguments, &Options::default())[1], &expected, 0.0, dtype.name());
        for threads in [None, Some(4)] {
            close(&run_simt(&instance, &arguments, threads)[1], &expected, 0.0, dtype.name());
        }
        crate::gpu::check(&instance);
    }
}

#[test]
fn an_item_of_a_larger_tile_is_refused_when_the_kernel_is_specialised() {
    let source = "\
kernel @k<B>(%y: mut tensor<n x f32>) {
  %vy = partition %y [B] : mut partition<n x f32, [B]>
  %pad = constant 0.0 : f32
  %t = load_masked %vy pad %pad : tile<B x f32>
  %s = item %t : f32
  %u = splat %s : tile<B x f32>
  store_masked %vy, %u
}
";
    let kernel = VerifiedKernel::parse(source).unwrap();
    let bound = |b| tile_ir::specialize(&kernel, &[("B".to_owned(), tile_ir::Binding::Const(b))]);
    assert!(bound(1).is_ok());
    assert_eq!(
        bound(4).unwrap_err().to_string(),
        "kernel `k` can't be made with these parameters: `item` needs a tile of one element, not of shape [4]"
    );
}
