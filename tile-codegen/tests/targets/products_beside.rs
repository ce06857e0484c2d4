//! Products whose next `b` the CPU target packs while it multiplies: where it does, and that a wrong guess of what comes
//! next changes nothing.

use crate::support::{Memory, close, cpus_of, instance, is_emulated, run_here, run_native, sample};
use tile_codegen::{Options, jit};
use tile_ir::array::Elements;
use tile_ir::ops::Literal;
use tile_ir::{Array, DType, interp};

/// A product in tiles of 192×32×64 whose loads have these indices, where the ops before the loop give some of them.
struct Case {
    formats: [DType; 3],
    before: &'static str,
    index: [&'static str; 2],
    load: &'static str,
    range: [&'static str; 2],
    /// Whether `b` lies column by column: the kernel reads it as a permuted view.
    by_columns: bool,
}

const PLAIN: Case = Case {
    formats: [DType::F32; 3],
    before: "",
    index: ["%i, %p", "%p, %j"],
    load: "load_masked V pad P",
    range: ["%0", "%end"],
    by_columns: false,
};

impl Case {
    fn source(&self) -> String {
        let Case { formats: [left, right, sum], before, index: [a, b], range: [from, to], .. } = self;
        let load = |name: &str, index: &str| {
            self.load.replace('V', &format!("%v{name}[{index}]")).replace('P', &format!("%pad_{name}"))
        };
        let zero = |dtype: &DType| if dtype.is_float() { "0.0" } else { "0" };
        let (b_extents, read_b) = match self.by_columns {
            true => (
                "n x k",
                format!("  %rows_of_b = view %b permute [1, 0] : tensor<k x n x {right}, strided [1, k]>\n"),
            ),
            false => ("k x n", String::new()),
        };
        let (b_rows, lies) = if self.by_columns { ("%rows_of_b", ", strided [1, k]") } else { ("%b", "") };
        format!(
            "kernel @k(%a: tensor<m x k x {left}>, %b: tensor<{b_extents} x {right}>, %c: mut tensor<m x n x {sum}>) {{
  %va = partition %a [192, 64] : partition<m x k x {left}, [192, 64]>
{read_b}  %vb = partition {b_rows} [64, 32] : partition<k x n x {right}{lies}, [64, 32]>
  %vc = partition %c [192, 32] : mut partition<m x n x {sum}, [192, 32]>
  %i, %j = block_index %vc : index, index
  %pad_a = constant {} : {left}
  %pad_b = constant {} : {right}
  %zero = constant {} : {sum}
  %first = splat %zero : tile<192 x 32 x {sum}>
  %0 = constant 0 : index
  %one = constant 1 : index
  %end = extent ceil_div(k, 64) : index
  %columns = extent ceil_div(n, 32) : index
{before}  %sum = for %p = {from} to {to} carry (%acc = %first) : tile<192 x 32 x {sum}> {{
    %ta = {} : tile<192 x 64 x {left}>
    %tb = {} : tile<64 x 32 x {right}>
    %next = mma %ta, %tb, %acc : tile<192 x 32 x {sum}>
    yield %next
  }}
  store_masked %vc, %sum
}}
",
            zero(left),
            zero(right),
            zero(sum),
            load("a", a),
            load("b", b),
        )
    }

    fn check(&self, [m, n, k]: [usize; 3]) {
        let instance = instance(&self.source(), &[]);
        let [left, right, sum] = self.formats;
        let extents_of_b = if self.by_columns { [n, k] } else { [k, n] };
        let arguments = [sample(left, &[m, k], 1), sample(right, &extents_of_b, 2), sample(sum, &[m, n], 3)];
        let mut expected = arguments.to_vec();
        interp::run(&instance, &mut expected).unwrap();
        for cpu in cpus_of(&instance) {
            let found = run_native(&instance, &arguments, &Options { cpu, ..Options::default() });
            close(&found[2], &expected[2], 0.0, &format!("{cpu:?}, {m}x{n}x{k} of\n{}", self.source()));
        }
    }

    /// Whether the second block's `b`, so many columns of it, is packed beside the first block's product: the second block
    /// multiplies nothing.
    fn packs_for_the_next_block(&self, columns: usize) -> bool {
        let (m, depth, first) = (192, 256, 32);
        let before = "  %other = sub %one, %j : index\n  %turns = mul %end, %other : index\n";
        let case = Case { before, range: ["%0", "%turns"], ..*self };
        let instance = instance(&case.source(), &[]);
        let width = first + columns;
        let b = (0..depth * width).map(|at| if at % width < first { 7.0 } else { 9.0 });
        let b = Array::new(DType::F32, vec![depth, width], Elements::Float(b.collect()));
        let all = |shape: [usize; 2], value| Array::full(DType::F32, &shape, Literal::Float(value));
        let arguments = [all([m, depth], 1.0), b, all([m, width], 0.0)];
        let memory = Memory::of(&instance, &arguments);
        let kernel = jit::compile_cpu(&instance, &Options::default()).unwrap();
        // SAFETY: the slots are as the instance's ABI says, and point to memory of this test.
        let scratch = unsafe { run_here(&kernel, &memory.slots, 0..2, 0) };
        let floats = scratch.as_flattened().iter().flat_map(|&word| [word as u32, (word >> 32) as u32]);
        let of_second = floats.map(f32::from_bits).filter(|&float| float == 9.0).count();
        // A tile that all turns read is loaded before the loop.
        assert!([0, 64 * columns, depth * columns].contains(&of_second), "{of_second} elements");
        of_second == depth * columns
    }
}

/// Whole tiles and others, one multiplication and several, with blocks of fewer rows at the end.
const SIZES: [[usize; 3]; 5] =
    [[384, 64, 64], [200, 96, 300], [230, 70, 257], [192, 64, 512], [100, 33, 320]];

#[test]
fn of_every_size() {
    use DType::{BF16, F16, F32, F64, I8, I16, I32, U8};
    for formats in [
        [F32; 3],
        [F64; 3],
        [BF16, BF16, F32],
        [F16, F16, F32],
        [I8, I8, I32],
        [U8, I8, I32],
        [I16, I16, I32],
        [I32; 3],
    ] {
        for by_columns in [false, true] {
            SIZES.iter().for_each(|&sizes| Case { formats, by_columns, ..PLAIN }.check(sizes));
        }
    }
}

/// A loop may go on beyond the factors, where tiles are zeros and memory isn't theirs.
#[test]
fn of_turns_beyond_the_end() {
    for before in [
        "  %more = add %end, %one : index\n",
        "  %2 = add %one, %one : index\n  %more = add %end, %2 : index\n",
    ] {
        for by_columns in [false, true] {
            let case = Case { before, range: ["%0", "%more"], by_columns, ..PLAIN };
            [[384, 64, 64], [384, 64, 128], [4, 64, 168], [200, 96, 300]]
                .iter()
                .for_each(|&sizes| case.check(sizes));
        }
    }
}

/// The next block's tile is another one than its index says, or none.
#[test]
fn whose_next_factor_is_not_that_of_the_next_block() {
    let reversed = "  %last = sub %columns, %one : index\n  %q = sub %last, %j : index\n";
    for case in [
        Case { before: reversed, index: ["%i, %p", "%p, %q"], ..PLAIN },
        Case { index: ["%i, %p", "%0, %j"], ..PLAIN },
        Case { index: ["%i, %p", "%p, %0"], ..PLAIN },
        Case { index: ["%i, %p", "%j, %p"], ..PLAIN },
        Case { index: ["%i, %p", "%i, %j"], ..PLAIN },
        Case { range: ["%j", "%end"], ..PLAIN },
        Case { range: ["%0", "%j"], ..PLAIN },
        Case { range: ["%i", "%j"], ..PLAIN },
    ] {
        SIZES.iter().for_each(|&sizes| case.check(sizes));
    }
}

/// A load without a mask isn't reached where its tile doesn't exist: the guess of one that is must be checked all the same.
#[test]
fn whose_loads_have_no_masks() {
    let case = Case { load: "load V", ..PLAIN };
    [[384, 64, 64], [192, 96, 640]].into_iter().for_each(|sizes| case.check(sizes));
    let short = Case { range: ["%i", "%end"], ..case };
    [[192, 96, 640]].into_iter().for_each(|sizes| short.check(sizes));
}

#[test]
fn what_comes_next_is_packed_where_its_tile_is_whole() {
    if is_emulated() {
        return;
    }
    assert!(PLAIN.packs_for_the_next_block(32));
    assert!(!PLAIN.packs_for_the_next_block(31), "a column doesn't exist");
    assert!(
        !Case { index: ["%i, %p", "%0, %j"], ..PLAIN }.packs_for_the_next_block(32),
        "turns read the same"
    );
}
