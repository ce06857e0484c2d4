//! Factors of products on the CPU: transposed, computed, rounded, stored, used again, and read where they lie.

use crate::products::{Case, PLAIN, literal};
use crate::support::{Memory, close, cpus_of, instance, run_here, run_native, sample};
use half::bf16;
use tile_codegen::{Options, jit};
use tile_ir::ops::Literal;
use tile_ir::{Array, DType, interp};
use tile_test_edit::Edit;

/// More multiplications than those whose factors are kept from block to block.
#[test]
fn that_are_too_deep_to_keep() {
    PLAIN.check([270, 8, 1900], [256, 4, 256]);
}

#[test]
fn that_are_transposed() {
    for (i, dtype) in [DType::F32, DType::BF16].into_iter().enumerate() {
        for (j, is_transposed) in [[true, false], [false, true], [true, true]].into_iter().enumerate() {
            Case { formats: [dtype, dtype, DType::F32], is_transposed, ..PLAIN }.check_third(i + j);
        }
    }
    let bytes = [DType::I8, DType::I8, DType::I32];
    Case { formats: bytes, is_transposed: [true, true], ..PLAIN }.check_all();
}

#[test]
fn that_are_computed() {
    let halves = "    %fa = add %ta, %ta : TILE\n";
    let twice = "    %fb = add %tb, %tb : TILE\n";
    let formats =
        [[DType::F32; 3], [DType::BF16, DType::BF16, DType::F32], [DType::I8, DType::I8, DType::I32]];
    for (i, formats) in formats.into_iter().enumerate() {
        for (j, between) in [[halves, ""], ["", twice], [halves, twice]].into_iter().enumerate() {
            for (k, is_transposed) in [[false; 2], [true; 2]].into_iter().enumerate() {
                Case { formats, between, is_transposed, ..PLAIN }.check_third(i + j + k);
            }
        }
    }
}

/// Factors of f32 that are rounded to bf16 on their way, each beside the matrix that leaves it as it is: numbers of every size
/// of which none is subnormal, and those in the middle of two of the format.
#[test]
fn that_are_rounded() {
    let source = |is_left: bool| {
        let [left, right] = if is_left { ["f32", "bf16"] } else { ["bf16", "f32"] };
        let [fa, fb] = if is_left { ["r", "tb"] } else { ["ta", "r"] };
        let from = if is_left { "a" } else { "b" };
        format!(
            "kernel @k<B>(%a: tensor<m x k x {left}>, %b: tensor<k x n x {right}>, %c: mut tensor<m x n x f32>) {{
  %va = partition %a [B, B] : partition<m x k x {left}, [B, B]>
  %vb = partition %b [B, B] : partition<k x n x {right}, [B, B]>
  %vc = partition %c [B, B] : mut partition<m x n x f32, [B, B]>
  %i, %j = block_index %vc : index, index
  %pad_a = constant 0.0 : {left}
  %pad_b = constant 0.0 : {right}
  %none = constant 0.0 : f32
  %zero = splat %none : tile<B x B x f32>
  %0 = constant 0 : index
  %1 = extent ceil_div(k, B) : index
  %sum = for %p = %0 to %1 carry (%acc = %zero) : tile<B x B x f32> {{
    %ta = load_masked %va[%i, %p] pad %pad_a : tile<B x B x {left}>
    %tb = load_masked %vb[%p, %j] pad %pad_b : tile<B x B x {right}>
    %r = cast %t{from} : tile<B x B x bf16>
    %next = mma %{fa}, %{fb}, %acc : tile<B x B x f32>
    yield %next
  }}
  store_masked %vc, %sum
}}
"
        )
    };
    let n = 48;
    let numbers: Vec<f32> = (0..n * n)
        .map(|i| {
            let word = (i as u32).wrapping_mul(2_654_435_761);
            let exponent = (64 + word % 127) << 23;
            let fraction = if i % 3 == 0 { word & 0x007f_0000 | 0x8000 } else { word & 0x007f_ffff };
            f32::from_bits(word & 0x8000_0000 | exponent | fraction)
        })
        .collect();
    let numbers: Vec<u8> = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
    let numbers = Array::from_bytes(DType::F32, &[n, n], &numbers);
    let identity = (0..n * n).map(|i| if i % (n + 1) == 0 { bf16::ONE } else { bf16::ZERO });
    let identity: Vec<u8> = identity.flat_map(bf16::to_le_bytes).collect();
    let identity = Array::from_bytes(DType::BF16, &[n, n], &identity);
    for is_left in [true, false] {
        let source = source(is_left);
        let instance = instance(&source, &[("B", 32)]);
        let sums = Array::full(DType::F32, &[n, n], Literal::Float(0.0));
        let arguments = match is_left {
            true => [numbers.clone(), identity.clone(), sums],
            false => [identity.clone(), numbers.clone(), sums],
        };
        let mut expected = arguments.to_vec();
        interp::run(&instance, &mut expected).unwrap();
        for cpu in cpus_of(&instance) {
            let found = run_native(&instance, &arguments, &Options { cpu, ..Options::default() });
            close(&found[2], &expected[2], 0.0, &format!("{cpu:?}, of\n{source}"));
        }
    }
}

/// A factor that is made before a loop, left and right, as it is and turned, and multiplied in each of its turns, of which
/// there are several, one and none; another block has another one.
#[test]
fn that_last_for_a_loop() {
    let source = |factor: DType, sum: DType| {
        format!(
            "kernel @k<B>(%a: tensor<m x d x {factor}>, %w: tensor<d x e x {factor}>, %c: mut tensor<m x B x {sum}>) {{
  %va = partition %a [B, B] : partition<m x d x {factor}, [B, B]>
  %vw = partition %w [B, B] : partition<d x e x {factor}, [B, B]>
  %vc = partition %c [B, B] : mut partition<m x B x {sum}, [B, B]>
  %i, %j = block_index %vc : index, index
  %0 = constant 0 : index
  %pad = constant {pad} : {factor}
  %none = constant {none} : {sum}
  %zero = splat %none : TILE
  %last = load_masked %va[%i, %0] pad %pad : tile<B x B x {factor}>
  %turned = permute %last [1, 0] : tile<B x B x {factor}>
  %1 = extent ceil_div(e, B) : index
  %sum = for %p = %0 to %1 carry (%acc = %zero) : TILE {{
    %t = load_masked %vw[%0, %p] pad %pad : tile<B x B x {factor}>
    %a_as_is = mma %last, %t, %zero : TILE
    %a_turned = mma %turned, %t, %zero : TILE
    %b_as_is = mma %t, %last, %zero : TILE
    %b_turned = mma %t, %turned, %zero : TILE
    %a_larger = max %a_as_is, %a_turned : TILE
    %b_larger = max %b_as_is, %b_turned : TILE
    %both = add %a_larger, %b_larger : TILE
    %next = add %acc, %both : TILE
    yield %next
  }}
  store_masked %vc, %sum
}}
",
            pad = literal(0, factor),
            none = literal(0, sum),
        )
        .edit("TILE", &format!("tile<B x B x {sum}>"))
    };
    use DType::{BF16, F16, F32, I8, I32};
    for (factor, sum) in [(F32, F32), (BF16, F32), (F16, F32), (I8, I32)] {
        for (b, [m, d, e]) in [(32, [64, 32, 96]), (32, [50, 20, 70]), (20, [40, 20, 20]), (16, [20, 10, 0])]
        {
            let source = source(factor, sum);
            let instance = instance(&source, &[("B", b)]);
            let arguments = [sample(factor, &[m, d], 1), sample(factor, &[d, e], 2), sample(sum, &[m, b], 3)];
            let mut expected = arguments.to_vec();
            interp::run(&instance, &mut expected).unwrap();
            for cpu in cpus_of(&instance) {
                let found = run_native(&instance, &arguments, &Options { cpu, ..Options::default() });
                close(&found[2], &expected[2], 0.0, &format!("{cpu:?}, {m}x{d}x{e}, of\n{source}"));
            }
        }
    }
}

/// A factor that lies in scratch memory, beside a product that is one turn deep and others.
#[test]
fn that_are_stored() {
    let between = ["    %fa = scan sum %ta axis 1 : TILE\n", ""];
    for formats in [[DType::U8, DType::U8, DType::I32], [DType::I8, DType::U8, DType::I32], [DType::I32; 3]] {
        let case = Case { formats, between, ..PLAIN };
        case.check([33, 50, 260], [16, 32, 256]);
        case.check([33, 50, 70], [16, 32, 16]);
    }
}

/// Whether scratch memory has elements of a factor after a product of tiles with so many rows, 32 columns and a depth of 16.
fn packs(factor: usize, case: &Case, sizes: [usize; 3], rows: usize) -> bool {
    packs_in_tiles(factor, case, sizes, [rows, 32, 16])
}

fn packs_in_tiles(
    factor: usize,
    case: &Case,
    [m, n, k]: [usize; 3],
    [rows, columns, depth]: [usize; 3],
) -> bool {
    const SEVEN: f64 = 7.0;
    let instance = instance(&case.source(), &[("BM", rows), ("BN", columns), ("BK", depth)]);
    let all = |shape: [usize; 2], value| Array::full(DType::F32, &shape, Literal::Float(value));
    let matrix = |i: usize, [r, c]: [usize; 2]| {
        let shape = if case.is_transposed[i] { [c, r] } else { [r, c] };
        all(shape, if i == factor { SEVEN } else { 1.0 })
    };
    let arguments = [matrix(0, [m, k]), matrix(1, [k, n]), all([m, n], 0.0)];
    let memory = Memory::of(&instance, &arguments);
    let kernel = jit::compile_cpu(&instance, &Options::default()).unwrap();
    // SAFETY: the slots are as the instance's ABI says, and point to memory of this test.
    let scratch = unsafe { run_here(&kernel, &memory.slots, 0..memory.blocks, 0) };
    let expected = all([m, n], SEVEN * k as f64);
    close(&memory.arrays(&arguments)[2], &expected, 0.0, "sums of sevens");
    let floats = scratch.as_flattened().iter().flat_map(|&word| [word as u32, (word >> 32) as u32]);
    floats.map(f32::from_bits).any(|float| float == SEVEN as f32)
}

/// Not where rows meet in the first cache and several blocks read them, where not all of a tile exists, and where turns
/// aren't side by side.
#[test]
fn that_are_read_in_their_tensor_on_the_left() {
    let case = Case { first: "splat %zero", ..PLAIN };
    let packs_a = |case: &Case, sizes| packs(0, case, sizes, 24);
    assert!(!packs_a(&case, [48, 64, 320]));
    assert!(!packs_a(&case, [48, 40, 1008]));
    assert!(packs_a(&case, [48, 64, 1024]), "rows are 4096 bytes apart");
    assert!(packs_a(&case, [48, 64, 1026]), "rows are 4104 bytes apart");
    assert!(!packs_a(&case, [48, 32, 1024]), "no other block reads them");
    assert!(packs_a(&case, [47, 64, 320]), "a row doesn't exist");
    assert!(packs_a(&case, [48, 64, 330]), "columns don't exist");
    assert!(packs_a(&Case { is_transposed: [true, false], ..case }, [48, 64, 320]));
}

/// Of one register block's rows, where all columns of a tile exist, and as many rows as the product is deep.
#[test]
fn that_are_read_where_they_are_on_the_right() {
    let case = Case { first: "splat %zero", ..PLAIN };
    let packs_b = |case: &Case, sizes, rows| packs(1, case, sizes, rows);
    assert!(!packs_b(&case, [1, 64, 320], 1));
    assert!(!packs_b(&case, [3, 96, 1008], 3));
    assert!(!packs_b(&case, [2, 64, 320], 3), "a row of the left factor doesn't exist");
    assert!(!packs_b(&case, [1, 64, 330], 1), "the last turn is less deep");
    assert!(packs_b(&case, [48, 64, 320], 24), "there are several register blocks");
    assert!(packs_b(&case, [1, 70, 320], 1), "columns don't exist");
    let columns = Case { is_transposed: [false, true], ..case };
    let packs_columns = |sizes, rows| packs_in_tiles(1, &columns, sizes, [rows, 32, 64]);
    assert!(!packs_columns([1, 64, 320], 1));
    assert!(packs_columns([1, 64, 321], 1), "the last turn is less deep than a vector");
    assert!(packs_columns([1, 70, 320], 1), "columns don't exist");
    assert!(!packs_columns([3, 64, 320], 4), "a row doesn't exist");
    assert!(packs_columns([5, 64, 320], 5), "there are five rows");
    let both = Case { is_transposed: [true; 2], ..case };
    assert!(packs_in_tiles(1, &both, [1, 64, 320], [1, 32, 64]), "the row isn't a line of memory");
}
