//! Atomic operations of compiled code against the evaluator, and what GPU code says of orders and scopes.

use crate::gpu;
use crate::support::{close, instance, run_native, run_simt, sample};
use tile_codegen::{Code, Options, compile};
use tile_ir::{Array, DType, TargetDesc, interp};

/// A kernel whose blocks all operate on the elements of `c`: lanes 0, 3, 6, 1, …, of which one is outside.
fn kernel(ty: DType, op: &str) -> String {
    let result = if op.starts_with("store") { "" } else { "%old = " };
    let ty_of = if result.is_empty() { String::new() } else { format!(" : tile<8 x {ty}>") };
    let kept = if result.is_empty() { "%v" } else { "%old" };
    format!(
        "kernel @k(%c: mut tensor<n x {ty}>, %x: tensor<m x {ty}>, %y: mut tensor<m x {ty}>) {{
  %vx = partition %x [8] : partition<m x {ty}, [8]>
  %vy = partition %y [8] : mut partition<m x {ty}, [8]>
  %b = block_id axis 0 : index
  %i = iota 0 : tile<8 x i32>
  %3 = constant 3 : i32
  %threes = splat %3 : tile<8 x i32>
  %8 = constant 8 : i32
  %eights = splat %8 : tile<8 x i32>
  %tripled = mul %i, %threes : tile<8 x i32>
  %at = rem %tripled, %eights : tile<8 x i32>
  %mask = ne %i, %threes : tile<8 x bool>
  %v = load %vx[%b] : tile<8 x {ty}>
  %w = add %v, %v : tile<8 x {ty}>
  {result}atomic {op}{ty_of}
  store %vy, {kept}
}}
"
    )
}

const TAKES_ANY: [&str; 9] = [
    "add relaxed device %c[%at], %v",
    "min release block %c[%at], %v",
    "max acquire system %c[%at], %v mask %mask",
    "swap acq_rel device %c[%at], %v",
    "compare_exchange acq_rel device %c[%at], %v, %w",
    "compare_exchange relaxed system %c[%at], %v, %w mask %mask",
    "load acquire device %c[%at]",
    "store release device %c[%at], %v",
    "store relaxed system %c[%at], %v mask %mask",
];

const TAKES_INTEGERS: [&str; 4] = [
    "sub relaxed device %c[%at], %v",
    "and relaxed system %c[%at], %v",
    "or acq_rel block %c[%at], %v mask %mask",
    "xor relaxed device %c[%at], %v",
];

const TAKES_NUMBERS: [&str; 6] = [
    "load relaxed device %c[%at]",
    "load acquire system %c[%at] mask %mask",
    "store relaxed block %c[%at], %v",
    "store relaxed device %c[%at], %v",
    "store release device %c[%at], %v",
    "store relaxed system %c[%at], %v mask %mask",
];

const TAKES_HALVES: [&str; 3] = [
    "add relaxed block %c[%at], %v",
    "add acq_rel device %c[%at], %v mask %mask",
    "add relaxed system %c[%at], %v",
];

fn cases() -> Vec<String> {
    let integers = [DType::I32, DType::U32, DType::I64, DType::U64];
    let floats = [DType::F32, DType::F64];
    let all = integers.into_iter().chain(floats).flat_map(|ty| TAKES_ANY.map(|op| kernel(ty, op)));
    let narrow = [DType::I8, DType::U8, DType::I16, DType::U16, DType::F8E4M3FN, DType::F8E5M2];
    let halves = [DType::F16, DType::BF16];
    let numbers = narrow.into_iter().chain(halves).flat_map(|ty| TAKES_NUMBERS.map(|op| kernel(ty, op)));
    all.chain(integers.into_iter().flat_map(|ty| TAKES_INTEGERS.map(|op| kernel(ty, op))))
        .chain(numbers)
        .chain(halves.into_iter().flat_map(|ty| TAKES_HALVES.map(|op| kernel(ty, op))))
        .collect()
}

#[test]
fn every_operation_agrees_with_the_evaluator() {
    for source in cases() {
        let instance = instance(&source, &[]);
        let dtype = instance.ty(instance.params()[0]).elem().known().unwrap();
        let arguments: Vec<Array> =
            [7, 40, 40].into_iter().enumerate().map(|(seed, n)| sample(dtype, &[n], seed)).collect();
        let mut expected = arguments.clone();
        interp::run(&instance, &mut expected).unwrap();
        // Blocks share the elements, so a GPU's needs the scope of the device where one is said for a block.
        let on_gpu = crate::support::instance(&source.replace(" block %c", " device %c"), &[]);
        let simt = |threads| run_simt(&on_gpu, &arguments, threads);
        for found in [run_native(&instance, &arguments, &Options::default()), simt(None), simt(Some(4))] {
            for (found, expected) in found.iter().zip(&expected) {
                close(found, expected, 0.0, &source);
            }
        }
    }
}

#[test]
fn every_operation_compiles_for_every_gpu() {
    for source in cases() {
        gpu::check(&instance(&source, &[]));
    }
}

fn ptx(op: &str) -> String {
    let instance = instance(&kernel(DType::U32, op), &[]);
    let artifact = compile(&instance, TargetDesc::named("sm_90a").unwrap(), &Options::default()).unwrap();
    match artifact.code {
        Code::Ptx(text) => text,
        _ => panic!("PTX was asked for"),
    }
}

#[test]
fn orders_are_fences_and_scopes_are_kept() {
    let relaxed = ptx("add relaxed device %c[%at], %v");
    assert!(relaxed.contains("atom.") && !relaxed.contains("fence"), "{relaxed}");
    let both = ptx("add acq_rel device %c[%at], %v");
    let place = |what: &str, text: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in {text}"));
    let (first, last) = (place("fence.", &both), both.rfind("fence.").unwrap());
    let atom = place("atom.", &both);
    assert!(first < atom && atom < last, "{both}");
    assert!(both.contains(".gpu;"), "{both}");
    // An addition in one instruction has the scope of the GPU, so the system's is a comparison with exchange.
    let system = ptx("add relaxed system %c[%at], %v");
    assert!(system.contains(".sys.") && system.contains(".cas."), "{system}");
}

#[test]
fn unused_results_keep_the_operation() {
    let source =
        kernel(DType::I32, "add relaxed device %c[%at], %v").replace("store %vy, %old", "store %vy, %v");
    let instance = instance(&source, &[]);
    let optimized = tile_ir::passes::optimize(instance.clone());
    assert!(optimized.to_string().contains("atomic add"), "{optimized:?}");
}
