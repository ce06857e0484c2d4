//! Atomic operations of compiled code against the evaluator, and what GPU code says of orders and scopes.

use crate::gpu;
use crate::support::{close, cpus_of, identical, instance, run_everywhere, run_native, run_simt, sample};
use tile_codegen::{Code, Options, compile};
use tile_ir::array::Elements;
use tile_ir::{Array, DType, Instance, TargetDesc, interp};
use tile_test_edit::Edit;

/// A kernel whose blocks all operate on the elements of `c`, another one for every operation: lanes 0, 3, 6, 1, …, of
/// which one is outside. What operation `i` gives goes to `y_i`.
fn kernel(ty: DType, ops: &[&str]) -> String {
    let (mut parameters, mut body) = (format!("%x: tensor<m x {ty}>"), String::new());
    for (i, op) in ops.iter().enumerate() {
        parameters += &format!(", %c{i}: mut tensor<n x {ty}>, %y{i}: mut tensor<m x {ty}>");
        let op = op.edit("%c[", &format!("%c{i}["));
        body += &format!("  %vy{i} = partition %y{i} [8] : mut partition<m x {ty}, [8]>\n");
        body += &match op.starts_with("store") {
            true => format!("  atomic {op}\n  store %vy{i}, %v\n"),
            false => format!("  %old{i} = atomic {op} : tile<8 x {ty}>\n  store %vy{i}, %old{i}\n"),
        };
    }
    // What is loaded and stored alone needs no arithmetic.
    let uses_sum = ops.iter().any(|op| op.contains("%w"));
    let sum = if uses_sum { format!("  %w = add %v, %v : tile<8 x {ty}>\n") } else { String::new() };
    format!(
        "kernel @k({parameters}) {{
  %vx = partition %x [8] : partition<m x {ty}, [8]>
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
{sum}{body}}}
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

const TAKES_ALL: [&str; 6] = [
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

/// Every format with the operations that it takes.
fn cases() -> Vec<(DType, Vec<&'static str>)> {
    let integers = [DType::I32, DType::U32, DType::I64, DType::U64];
    let floats = [DType::F32, DType::F64];
    let narrow = [
        DType::Bool,
        DType::I8,
        DType::U8,
        DType::I16,
        DType::U16,
        DType::F8E4M3FN,
        DType::F8E5M2,
        DType::F8E8M0FNU,
    ];
    let halves = [DType::F16, DType::BF16];
    let formats = |formats: &[DType], ops: &[&[&'static str]]| {
        formats.iter().map(|&ty| (ty, ops.concat())).collect::<Vec<_>>()
    };
    [
        formats(&integers, &[&TAKES_ANY, &TAKES_INTEGERS]),
        formats(&floats, &[&TAKES_ANY]),
        formats(&narrow, &[&TAKES_ALL]),
        formats(&halves, &[&TAKES_ALL, &TAKES_HALVES]),
    ]
    .concat()
}

#[test]
fn every_operation_agrees_with_the_evaluator() {
    for (dtype, ops) in cases() {
        // What is ordered within a block alone is for one block.
        let (one, many) = ops.into_iter().partition::<Vec<_>, _>(|op| op.contains(" block %c"));
        for (ops, elements) in [(one, 8), (many, 40)].iter().filter(|(ops, _)| !ops.is_empty()) {
            let instance = instance(&kernel(dtype, ops), &[]);
            let operand = sample(dtype, &[*elements], 1);
            let results = ops.iter().flat_map(|_| [sample(dtype, &[7], 0), sample(dtype, &[*elements], 2)]);
            let arguments: Vec<Array> = [operand].into_iter().chain(results).collect();
            let mut expected = arguments.clone();
            interp::run(&instance, &mut expected).unwrap();
            let simt = |threads| run_simt(&instance, &arguments, threads);
            let native = run_native(&instance, &arguments, &Options::default());
            for found in [native, simt(None), simt(Some(4))] {
                for (i, (found, expected)) in found.iter().zip(&expected).enumerate().skip(1) {
                    close(found, expected, 0.0, &format!("`{}` of {dtype}", ops[(i - 1) / 2]));
                }
            }
        }
    }
}

#[test]
fn every_operation_compiles_for_every_gpu() {
    for (dtype, ops) in cases() {
        gpu::check(&instance(&kernel(dtype, &ops), &[]));
    }
}

fn ptx(op: &str) -> String {
    let instance = instance(&kernel(DType::U32, &[op]), &[]);
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
    let source = kernel(DType::I32, &["add relaxed device %c[%at], %v"]);
    let source = source.edit("store %vy0, %old0", "store %vy0, %v");
    let instance = instance(&source, &[]);
    let optimized = tile_ir::passes::optimize(instance.clone());
    assert!(optimized.to_string().contains("atomic add"), "{optimized:?}");
}

/// Updates of one kind whose results nobody uses, by more lanes than there are elements: a thread may do them in memory of its
/// own first, or, where it is alone, as loads and stores.
fn only_updated(ty: DType, op: &str) -> Instance {
    let source = format!(
        "kernel @k(%x: tensor<m x {ty}>, %y: mut tensor<m x {ty}>, %c: mut tensor<n x {ty}>) {{
  %vx = partition %x [8] : partition<m x {ty}, [8]>
  %vy = partition %y [8] : mut partition<m x {ty}, [8]>
  %b = block_index %vy : index
  %lane = iota 0 : tile<8 x i32>
  %v = load %vx[%b] : tile<8 x {ty}>
  %old = atomic {op} relaxed device %c[%lane], %v : tile<8 x {ty}>
  store %vy, %v
}}
"
    );
    instance(&source, &[])
}

/// Elements to which no update comes stay as they are, negative zeros and NaN among them.
#[test]
fn updates_of_a_threads_own_elements_agree_with_the_evaluator() {
    let floats = [DType::F16, DType::F32, DType::F64].map(|ty| (ty, &["add"] as &[&str]));
    let extremes = [DType::F32, DType::F64].map(|ty| (ty, &["min", "max"] as &[&str]));
    let integers = [DType::I32, DType::U64].map(|ty| {
        let ops: &[&str] = &["add", "sub", "min", "max", "and", "or", "xor"];
        (ty, ops)
    });
    for (dtype, ops) in floats.into_iter().chain(extremes).chain(integers) {
        for op in ops {
            let instance = only_updated(dtype, op);
            let updated = match dtype.is_float() {
                true => {
                    Elements::Float(vec![-0.0, f64::NAN, 0.0, 5.0, -5.0, 0.5, f64::INFINITY, -0.0, f64::NAN])
                }
                false => Elements::Int(vec![0, 5, 77, 1, 3, 96, 2, 11, 9]),
            };
            let arguments =
                [sample(dtype, &[160], 1), sample(dtype, &[160], 0), Array::new(dtype, vec![9], updated)];
            let mut expected = arguments.to_vec();
            interp::run(&instance, &mut expected).unwrap();
            for cpu in cpus_of(&instance) {
                let options = Options { cpu, ..Options::default() };
                let found = run_native(&instance, &arguments, &options);
                identical(&found[2], &expected[2], &format!("`{op}` of {dtype} on {cpu:?}"));
            }
        }
    }
}

/// What numbers alone become: a tile of one element, whose old value decides what all threads of a block do.
const ONE_ELEMENT: &str = "\
kernel @k(%c: mut tensor<n x i32>, %y: mut tensor<m x i32>) {
  %vy = partition %y [64] : mut partition<m x i32, [64]>
  %0 = constant 0 : i64
  %at = splat %0 : tile<1 x i64>
  %1 = constant 1 : i32
  %v = splat %1 : tile<1 x i32>
  %old = atomic add relaxed device %c[%at], %v : tile<1 x i32>
  %drawn = item %old : i32
  %3 = constant 3 : i32
  %late = ge %drawn, %3 : bool
  if %late {
    %again = atomic add relaxed device %c[%at], %v : tile<1 x i32>
    yield
  } else {
    yield
  }
  %tile = splat %drawn : tile<64 x i32>
  store %vy, %tile
}
";

#[test]
fn an_old_value_is_that_of_all_threads() {
    let instance = instance(ONE_ELEMENT, &[]);
    let zeros = |count| Array::new(DType::I32, vec![count], Elements::Int(vec![0; count]));
    let arguments = vec![zeros(1), zeros(64 * 6)];
    let native = run_native(&instance, &arguments, &Options::default());
    for found in [native, run_simt(&instance, &arguments, None), run_simt(&instance, &arguments, Some(64))] {
        let numbers = |array: &Array| match array.elements() {
            Elements::Int(numbers) => numbers.clone(),
            Elements::Float(_) => panic!("these are integers"),
        };
        let tiles = numbers(&found[1]);
        assert!(tiles.chunks(64).all(|tile| tile.iter().all(|&drawn| drawn == tile[0])), "{tiles:?}");
        let mut drawn: Vec<i128> = tiles.iter().step_by(64).copied().collect();
        drawn.sort_unstable();
        // From 3 on a block takes two.
        let late = drawn.iter().filter(|&&drawn| drawn >= 3).count() as i128;
        assert_eq!((drawn[0], numbers(&found[0])[0]), (0, 6 + late), "{drawn:?}");
        drawn.dedup();
        assert_eq!(drawn.len(), 6, "{drawn:?}");
    }
}

/// Every lane of every block comes to one of a few elements; one in eight is outside, and gets 0.
fn crowded(op: &str) -> Instance {
    let source = format!(
        "kernel @k(%c: mut tensor<n x u32>, %y: mut tensor<m x u32>) {{
  %vy = partition %y [96] : mut partition<m x u32, [96]>
  %b = block_index %vy : index
  %block = cast %b : u32
  %width = constant 96 : u32
  %first = mul %block, %width : u32
  %firsts = splat %first : tile<96 x u32>
  %lane = iota 0 : tile<96 x u32>
  %number = add %firsts, %lane : tile<96 x u32>
  %eight = constant 8 : u32
  %eights = splat %eight : tile<96 x u32>
  %at = rem %lane, %eights : tile<96 x u32>
  %one = constant 1 : u32
  %ones = splat %one : tile<96 x u32>
  %name = add %number, %ones : tile<96 x u32>
  %old = atomic {op} relaxed device %c[%at], %VALUE : tile<96 x u32>
  store_masked %vy, %old
}}
"
    );
    instance(&source.edit("%VALUE", if op == "swap" { "%name" } else { "%ones" }), &[])
}

/// What an update of an element gives is what another one left: no two of them the same, and none left out.
#[test]
fn old_values_are_each_left_by_another_update() {
    const BLOCKS: usize = 5;
    let unsigned = |values: Vec<i128>| Array::new(DType::U32, vec![values.len()], Elements::Int(values));
    let values = |array: &Array| (0..array.len()).map(|i| array.get_int(i)).collect::<Vec<i128>>();
    let lanes = 96 * BLOCKS;
    for op in ["add", "swap"] {
        let arguments = [unsigned(vec![0; 7]), unsigned(vec![77; lanes])];
        for (way, found) in run_everywhere(&crowded(op), &arguments) {
            let (left, old) = (values(&found[0]), values(&found[1]));
            for at in 0..8 {
                let of_element = (0..lanes).filter(|lane| lane % 8 == at);
                let mut seen: Vec<i128> = of_element.clone().map(|lane| old[lane]).collect();
                let Some(&last) = left.get(at) else {
                    assert!(seen.iter().all(|&old| old == 0), "{op} outside gives {seen:?} on {way}");
                    continue;
                };
                seen.push(last);
                seen.sort_unstable();
                // What was there at first, and what each update leaves.
                let complete: Vec<i128> = match op {
                    "add" => (0..=of_element.count() as i128).collect(),
                    _ => [0].into_iter().chain(of_element.map(|lane| lane as i128 + 1)).collect(),
                };
                assert_eq!(seen, complete, "{op} of element {at} on {way}");
            }
        }
    }
}

/// Of all that compare with what was there at first one finds it; the others find that one's name.
#[test]
fn one_of_many_exchanges_succeeds() {
    let source = "kernel @k(%c: mut tensor<n x u32>, %y: mut tensor<m x u32>) {
  %vy = partition %y [64] : mut partition<m x u32, [64]>
  %b = block_index %vy : index
  %block = cast %b : u32
  %width = constant 64 : u32
  %first = mul %block, %width : u32
  %firsts = splat %first : tile<64 x u32>
  %lane = iota 0 : tile<64 x u32>
  %number = add %firsts, %lane : tile<64 x u32>
  %one = constant 1 : u32
  %ones = splat %one : tile<64 x u32>
  %name = add %number, %ones : tile<64 x u32>
  %zero = constant 0 : u32
  %zeros = splat %zero : tile<64 x u32>
  %old = atomic compare_exchange acq_rel device %c[%zeros], %zeros, %name : tile<64 x u32>
  store_masked %vy, %old
}
";
    let zeros = |count| Array::new(DType::U32, vec![count], Elements::Int(vec![0; count]));
    for (way, found) in run_everywhere(&instance(source, &[]), &[zeros(1), zeros(4 * 64)]) {
        let winner = found[0].get_int(0);
        assert!((1..=256).contains(&winner), "{winner} on {way}");
        for lane in 0..256 {
            let expected = if lane as i128 + 1 == winner { 0 } else { winner };
            assert_eq!(found[1].get_int(lane), expected, "lane {lane} on {way}, where {winner} was first");
        }
    }
}
