//! Products in loops, as the CPU target packs and multiplies them: every instruction set against the evaluator.

use crate::support::{Memory, all_cpus, close, cpus_of, instance, is_emulated, run_here, run_native, sample};
use tile_codegen::{Cpu, Options, compile, jit};
use tile_ir::ops::Literal;
use tile_ir::target::CpuLevel;
use tile_ir::{Array, DType, Instance, TargetDesc, interp};
use tile_test_edit::Edit;

/// What stands around an `mma` in a loop along K.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    /// Formats of the factors and of the sums.
    pub(crate) formats: [DType; 3],
    /// Whether each tensor has its matrix transposed.
    pub(crate) is_transposed: [bool; 2],
    /// Ops between the loads `%ta` and `%tb`, as they are multiplied, and the factors `%fa` and `%fb`.
    pub(crate) between: [&'static str; 2],
    /// What loads have beyond the tensors.
    pub(crate) pad: i32,
    /// What the sums begin with.
    pub(crate) first: &'static str,
    /// Ops between the loop's `%sum` and what is stored, `%out`.
    pub(crate) after: &'static str,
    pub(crate) tolerance: f64,
}

pub(crate) const PLAIN: Case = Case {
    formats: [DType::F32; 3],
    is_transposed: [false; 2],
    between: [""; 2],
    pad: 0,
    first: "load_masked %vc pad %zero",
    after: "",
    tolerance: 0.0,
};

/// Sizes with tiles that divide them and others, of one register block and of several, less and more than one deep.
const SIZES: [([usize; 3], [usize; 3]); 6] = [
    ([64, 64, 128], [32, 64, 16]),
    ([33, 50, 70], [16, 32, 16]),
    ([20, 37, 41], [24, 33, 10]),
    ([9, 5, 7], [5, 7, 3]),
    ([40, 70, 300], [40, 80, 64]),
    ([20, 40, 600], [10, 16, 64]),
];

pub(crate) fn literal(value: i32, dtype: DType) -> String {
    if dtype.is_float() { format!("{value}.0") } else { value.to_string() }
}

impl Case {
    /// One factor: its tensor, view, load and the ops behind it, for a tile of rows by columns.
    fn factor(&self, i: usize) -> [String; 3] {
        let (name, dtype) = (["a", "b"][i], self.formats[i]);
        let ([rows, columns], [r, c]) = ([["m", "k"], ["k", "n"]][i], [["BM", "BK"], ["BK", "BN"]][i]);
        let [first, second] = [["%i", "%p"], ["%p", "%j"]][i];
        let swap = |[x, y]: [&str; 2]| {
            if self.is_transposed[i] { [y.to_owned(), x.to_owned()] } else { [x.to_owned(), y.to_owned()] }
        };
        let ([e0, e1], [t0, t1], [i0, i1]) = (swap([rows, columns]), swap([r, c]), swap([first, second]));
        let view = format!(
            "  %v{name} = partition %{name} [{t0}, {t1}] : partition<{e0} x {e1} x {dtype}, [{t0}, {t1}]>\n"
        );
        let tile = format!("tile<{r} x {c} x {dtype}>");
        let loaded = if self.is_transposed[i] { "l" } else { "t" };
        let mut load = format!(
            "    %{loaded}{name} = load_masked %v{name}[{i0}, {i1}] pad %pad_{name} : tile<{t0} x {t1} x {dtype}>\n"
        );
        if self.is_transposed[i] {
            load += &format!("    %t{name} = permute %l{name} [1, 0] : {tile}\n");
        }
        load += &self.between[i].replace("TILE", &tile);
        [format!("%{name}: tensor<{e0} x {e1} x {dtype}>"), view, load]
    }

    pub(crate) fn source(&self) -> String {
        let ([a, va, ta], [b, vb, tb]) = (self.factor(0), self.factor(1));
        let [fa, fb] = [0, 1].map(|i| if self.between[i].is_empty() { "t" } else { "f" });
        let [left, right, sum] = self.formats;
        let tile = format!("tile<BM x BN x {sum}>");
        format!(
            "kernel @k<BM, BN, BK>({a}, {b}, %c: mut tensor<m x n x {sum}>) {{
{va}{vb}  %vc = partition %c [BM, BN] : mut partition<m x n x {sum}, [BM, BN]>
  %i, %j = block_index %vc : index, index
  %pad_a = constant {pad_a} : {left}
  %pad_b = constant {pad_b} : {right}
  %zero = constant {zero} : {sum}
  %first = {first} : {tile}
  %0 = constant 0 : index
  %1 = extent ceil_div(k, BK) : index
  %sum = for %p = %0 to %1 carry (%acc = %first) : {tile} {{
{ta}{tb}    %next = mma %{fa}a, %{fb}b, %acc : {tile}
    yield %next
  }}
{after}  store_masked %vc, {out}
}}
",
            pad_a = literal(self.pad, left),
            pad_b = literal(self.pad, right),
            zero = literal(0, sum),
            first = self.first,
            after = self.after.replace("TILE", &tile),
            out = if self.after.is_empty() { "%sum" } else { "%out" },
        )
    }

    pub(crate) fn check(&self, sizes: [usize; 3], tiles: [usize; 3]) {
        let instance = self.instance(tiles);
        self.check_on(&cpus_of(&instance), &instance, sizes);
    }

    fn instance(&self, [bm, bn, bk]: [usize; 3]) -> Instance {
        instance(&self.source(), &[("BM", bm), ("BN", bn), ("BK", bk)])
    }

    fn check_on(&self, cpus: &[Cpu], instance: &Instance, [m, n, k]: [usize; 3]) {
        let shape =
            |i: usize, shape: [usize; 2]| if self.is_transposed[i] { [shape[1], shape[0]] } else { shape };
        let [left, right, sum] = self.formats;
        let arguments: [Array; 3] = [
            sample(left, &shape(0, [m, k]), 1),
            sample(right, &shape(1, [k, n]), 2),
            sample(sum, &[m, n], 3),
        ];
        let mut expected = arguments.to_vec();
        interp::run(instance, &mut expected).unwrap();
        for &cpu in cpus {
            let found = run_native(instance, &arguments, &Options { cpu, ..Options::default() });
            let constants = instance.bindings();
            let what = format!("{cpu:?}, {m}x{n}x{k} with {constants:?} of\n{}", self.source());
            close(&found[2], &expected[2], self.tolerance, &what);
        }
    }

    /// In tiles of every kind.
    pub(crate) fn check_all(&self) {
        SIZES.iter().for_each(|&(sizes, tiles)| self.check(sizes, tiles));
    }

    /// A third of these, another for every number: of many cases each kind meets all of them.
    pub(crate) fn check_third(&self, number: usize) {
        SIZES.iter().skip(number % 3).step_by(3).for_each(|&(sizes, tiles)| self.check(sizes, tiles));
    }
}

/// What multiplies neighbours together makes another code of products of bf16 and of bytes, and of no others.
#[test]
fn neighbours_are_multiplied_together_where_the_level_has_it() {
    let differs = |names: [&str; 2], formats: [DType; 3]| {
        let constants = [("BM", 16), ("BN", 32), ("BK", 16)];
        let instance = instance(&Case { formats, ..PLAIN }.source(), &constants);
        let [with, without] = names.map(|name| {
            let cpu = Cpu::Level(CpuLevel::named(name).unwrap());
            let options = Options { cpu, ..Options::default() };
            compile(&instance, TargetDesc::cpu(), &options).unwrap().code.bytes().to_vec()
        });
        with != without
    };
    use DType::{BF16, F16, F32, I8, I32, U8};
    let [pairs, bytes, v4, matrix, dots, neon] =
        ["x86-64-v4-pairs", "x86-64-v4-bytes", "x86-64-v4", "armv8.6-a", "armv8.2-a", "armv8-a"];
    for levels in [[pairs, v4], [matrix, dots]] {
        assert!(differs(levels, [BF16, BF16, F32]));
        assert!(differs(levels, [I8, U8, I32]));
        assert!(!differs(levels, [F32; 3]) && !differs(levels, [F16, F16, F32]));
    }
    assert!(differs([bytes, v4], [I8, U8, I32]) && !differs([pairs, bytes], [I8, U8, I32]));
    assert!(!differs([bytes, v4], [BF16, BF16, F32]) && differs([pairs, bytes], [BF16, BF16, F32]));
    assert!(differs(["x86-64-v4-tiles", "x86-64-v4-rows"], [BF16, BF16, F32]));
    assert!(differs(["x86-64-v4-tiles", "x86-64-v4-rows"], [U8, I8, I32]));
    assert!(!differs(["x86-64-v4-tiles", "x86-64-v4-rows"], [F32; 3]));
    assert!(differs([dots, neon], [I8, I8, I32]) && !differs([matrix, dots], [U8, U8, I32]));
    assert!(!differs([dots, neon], [BF16, BF16, F32]) && !differs([dots, neon], [I8, U8, I32]));
}

#[test]
fn of_every_kind_of_contraction() {
    use DType::{BF16, F16, F32, F64, I8, I16, I32, U8};
    for (left, right, sum) in [
        (F32, F32, F32),
        (F64, F64, F64),
        (BF16, BF16, F32),
        (F16, F16, F32),
        (I8, I8, I32),
        (U8, I8, I32),
        (U8, U8, I32),
        (I16, I16, I32),
        (I32, I32, I32),
    ] {
        Case { formats: [left, right, sum], ..PLAIN }.check_all();
    }
}

/// The processors whose registers hold tiles, of those that code can be run on: at most one.
fn with_tiles() -> Vec<Cpu> {
    let has = |cpu: &Cpu| matches!(cpu, Cpu::Level(level) if level.features.contains(&"amx-tile"));
    all_cpus().into_iter().filter(has).collect()
}

/// Of factors that end inside of registers' tiles along every axis, in blocks of tiles next to each other, below each other and
/// in squares, in so many turns that what is packed stays, and doesn't.
#[test]
fn of_tiles_in_registers() {
    use DType::{BF16, F32, I8, I32, U8};
    let sizes = [
        ([130, 150, 200], [64, 96, 64]),
        ([95, 70, 330], [48, 40, 20]),
        ([40, 200, 70], [12, 80, 36]),
        ([150, 30, 96], [80, 12, 32]),
        ([64, 256, 4200], [32, 64, 256]),
    ];
    let formats = [[BF16, BF16, F32], [I8, I8, I32], [I8, U8, I32], [U8, I8, I32], [U8, U8, I32]];
    for (i, formats) in formats.into_iter().enumerate() {
        for (j, (sizes, tiles)) in sizes.into_iter().enumerate() {
            let transposed = [[false; 2], [true, false], [false, true], [true; 2]];
            let case = Case { formats, is_transposed: transposed[(i + j) % 4], ..PLAIN };
            case.check_on(&with_tiles(), &case.instance(tiles), sizes);
            let stored = Case { formats, first: "splat %zero", pad: (j % 2) as i32, ..PLAIN };
            stored.check_on(&with_tiles(), &stored.instance(tiles), sizes);
        }
    }
}

/// The largest and the smallest bytes of both signs, as deep as sums are farthest from zero.
#[test]
fn of_bytes_at_the_ends_of_their_range() {
    use DType::{I8, U8};
    let (m, n, k) = (33, 40, 200);
    for (left, right) in [(I8, I8), (I8, U8), (U8, I8), (U8, U8)] {
        let ends = |dtype: DType| if dtype == I8 { [-128, 127] } else { [0, 255] };
        let case = Case { formats: [left, right, DType::I32], first: "splat %zero", ..PLAIN };
        let instance = instance(&case.source(), &[("BM", 32), ("BN", 48), ("BK", 64)]);
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(i, j)| (ends(left)[i], ends(right)[j])) {
            let all =
                |dtype, shape: [usize; 2], value: i32| Array::full(dtype, &shape, Literal::Int(value.into()));
            let arguments = [all(left, [m, k], a), all(right, [k, n], b), all(DType::I32, [m, n], 7)];
            let expected = all(DType::I32, [m, n], a * b * k as i32);
            for cpu in cpus_of(&instance) {
                let found = run_native(&instance, &arguments, &Options { cpu, ..Options::default() });
                close(&found[2], &expected, 0.0, &format!("{left} {a} times {right} {b}, {cpu:?}"));
            }
        }
    }
}

/// Sums that are only stored, which the last multiplication does, where there is one.
#[test]
fn that_go_from_registers_to_the_tensor() {
    for formats in
        [[DType::F32; 3], [DType::BF16, DType::BF16, DType::F32], [DType::I8, DType::I8, DType::I32]]
    {
        let case = Case { formats, first: "splat %zero", ..PLAIN };
        case.check_all();
        case.check([33, 50, 0], [16, 32, 16]);
    }
}

/// Sums of outputs so large that they go past the caches: of tiles whose rows are whole lines of memory, from registers.
#[test]
fn that_go_past_the_caches() {
    let case = Case { first: "splat %zero", ..PLAIN };
    let ones = |shape: [usize; 2]| Array::full(DType::F32, &shape, Literal::Float(1.0));
    let (m, k) = (2100, 3);
    let instance = case.instance([100, 64, 4]);
    let cpus = cpus_of(&instance).into_iter().filter(|_| !is_emulated());
    let compiled = |cpu| (cpu, jit::compile_cpu(&instance, &Options { cpu, ..Options::default() }).unwrap());
    let kernels: Vec<_> = cpus.map(compiled).collect();
    for (columns, displaced) in [(4096, 0), (4096, 1), (4104, 0), (4097, 0)] {
        let b = sample(DType::F32, &[k, columns], 2);
        let sums = (0..columns).map(|j| (0..k).map(|p| b.get_f64(p * columns + j) as f32).sum::<f32>());
        let sums: Vec<f32> = sums.collect();
        for (cpu, kernel) in &kernels {
            let (mut memory, line) =
                (Memory::of(&instance, &[ones([m, k]), b.clone(), ones([m, columns])]), 16);
            let mut output = vec![f32::NAN; m * columns + 2 * line];
            let first = output.as_ptr().align_offset(64) + displaced;
            memory.slots[2] = output[first..].as_mut_ptr() as u64;
            // SAFETY: the slots are as the instance's ABI says, and point to memory of this test.
            unsafe { run_here(kernel, &memory.slots, 0..memory.blocks, 0) };
            let (inside, behind) = output[first..].split_at(m * columns);
            let what = format!("{columns} columns, {displaced}, {cpu:?}");
            assert!(inside.chunks(columns).all(|row| row == sums), "{what}");
            assert!(output[..first].iter().chain(behind).all(|float| float.is_nan()), "{what}");
        }
    }
}

/// Of one row and of a few, in every format, from the first element of the sums on and not.
#[test]
fn of_few_rows() {
    use DType::{BF16, F16, F32, F64, I8, I32, U8};
    for (left, right, sum) in [(F32, F32, F32), (F64, F64, F64), (BF16, BF16, F32), (F16, F16, F32)]
        .into_iter()
        .chain([(I8, I8, I32), (U8, I8, I32)])
    {
        let case = Case { formats: [left, right, sum], ..PLAIN };
        case.check([1, 256, 330], [1, 128, 16]);
        case.check([5, 96, 600], [3, 32, 64]);
        Case { first: "splat %zero", pad: 1, ..case }.check([2, 80, 70], [2, 64, 32]);
        let columns = Case { is_transposed: [false, true], ..case };
        columns.check([1, 256, 330], [1, 128, 64]);
        Case { first: "splat %zero", pad: 1, ..columns }.check([2, 80, 256], [1, 64, 128]);
        columns.check([7, 128, 330], [4, 64, 64]);
        Case { is_transposed: [true; 2], ..case }.check([1, 64, 128], [1, 32, 64]);
    }
}

/// Turns of a loop whose left factor goes down instead of to the right, which register blocks can't read as one.
#[test]
fn of_turns_below_each_other() {
    let source = "\
kernel @below<B>(%a: tensor<m x k x f32>, %b: tensor<k x n x f32>, %c: mut tensor<k x n x f32>) {
  %va = partition %a [B, B] : partition<m x k x f32, [B, B]>
  %vb = partition %b [B, B] : partition<k x n x f32, [B, B]>
  %vc = partition %c [B, B] : mut partition<k x n x f32, [B, B]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : f32
  %zero = splat %pad : tile<B x B x f32>
  %0 = constant 0 : index
  %1 = extent ceil_div(m, B) : index
  %sum = for %p = %0 to %1 carry (%acc = %zero) : tile<B x B x f32> {
    %ta = load_masked %va[%p, %i] pad %pad : tile<B x B x f32>
    %tb = load_masked %vb[%i, %j] pad %pad : tile<B x B x f32>
    %next = mma %ta, %tb, %acc : tile<B x B x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";
    let instance = instance(source, &[("B", 16)]);
    let arguments = [
        sample(DType::F32, &[64, 48], 1),
        sample(DType::F32, &[48, 32], 2),
        sample(DType::F32, &[48, 32], 3),
    ];
    let mut expected = arguments.to_vec();
    interp::run(&instance, &mut expected).unwrap();
    let found = run_native(&instance, &arguments, &Options::default());
    close(&found[2], &expected[2], 0.0, "turns below each other");
}

/// What lies beyond the tensors counts where it isn't zero, and sums that no store writes count where they are reduced.
#[test]
fn what_lies_beyond_the_tensors_counts_where_it_is_seen() {
    Case { pad: 1, ..PLAIN }.check_all();
    Case { pad: 1, formats: [DType::I8, DType::I8, DType::I32], ..PLAIN }.check_all();
    let after = "  %total = reduce sum %sum axis 1 : tile<BM x 1 x f32>\n  %out = broadcast %total : TILE\n";
    Case { pad: 1, after, ..PLAIN }.check_all();
    // What is stored is computed from the sums, element by element.
    Case { after: "  %out = add %sum, %first : TILE\n", ..PLAIN }.check_all();
}

/// Every matrix of a stack is multiplied in every turn.
#[test]
fn of_stacks_of_matrices() {
    let source = "\
kernel @stacks<S, B>(%a: tensor<s x m x k x f32>, %b: tensor<s x k x n x f32>, %c: mut tensor<s x m x n x f32>) {
  %va = partition %a [S, B, B] : partition<s x m x k x f32, [S, B, B]>
  %vb = partition %b [S, B, B] : partition<s x k x n x f32, [S, B, B]>
  %vc = partition %c [S, B, B] : mut partition<s x m x n x f32, [S, B, B]>
  %h, %i, %j = block_index %vc : index, index, index
  %pad = constant 0.0 : f32
  %zero = splat %pad : tile<S x B x B x f32>
  %0 = constant 0 : index
  %1 = extent ceil_div(k, B) : index
  %sum = for %p = %0 to %1 carry (%acc = %zero) : tile<S x B x B x f32> {
    %ta = load_masked %va[%h, %i, %p] pad %pad : tile<S x B x B x f32>
    %tb = load_masked %vb[%h, %p, %j] pad %pad : tile<S x B x B x f32>
    %next = mma %ta, %tb, %acc : tile<S x B x B x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";
    for [stack, m, n, k] in [[4, 16, 16, 32], [5, 20, 9, 30], [1, 3, 40, 16]] {
        let instance = instance(source, &[("S", 2), ("B", 16)]);
        let arguments = [
            sample(DType::F32, &[stack, m, k], 1),
            sample(DType::F32, &[stack, k, n], 2),
            sample(DType::F32, &[stack, m, n], 3),
        ];
        let mut expected = arguments.to_vec();
        interp::run(&instance, &mut expected).unwrap();
        let found = run_native(&instance, &arguments, &Options::default());
        close(&found[2], &expected[2], 0.0, "a stack of matrices");
    }
}

/// One matrix of a stack in each block: what loads give is reshaped to it, and read in its tensor.
#[test]
fn of_one_matrix_of_a_stack() {
    let source = |turned: bool| {
        let (extents, index, axes) =
            if turned { ("n x k", "%j, %p", "N, K") } else { ("k x n", "%p, %j", "K, N") };
        let tile = axes.edit(", ", " x ");
        let turn = "    %fb = permute %rb [1, 0] : tile<K x N x f32>\n";
        format!(
            "kernel @one<M, N, K>(%a: tensor<s x m x k x f32>, %b: tensor<s x {extents} x f32>, %c: mut tensor<s x m x n x f32>) {{
  %va = partition %a [1, M, K] : partition<s x m x k x f32, [1, M, K]>
  %vb = partition %b [1, {axes}] : partition<s x {extents} x f32, [1, {axes}]>
  %vc = partition %c [1, M, N] : mut partition<s x m x n x f32, [1, M, N]>
  %h, %i, %j = block_index %vc : index, index, index
  %pad = constant 0.0 : f32
  %zero = splat %pad : tile<M x N x f32>
  %0 = constant 0 : index
  %1 = extent ceil_div(k, K) : index
  %sum = for %p = %0 to %1 carry (%acc = %zero) : tile<M x N x f32> {{
    %la = load_masked %va[%h, %i, %p] pad %pad : tile<1 x M x K x f32>
    %ta = reshape %la : tile<M x K x f32>
    %lb = load_masked %vb[%h, {index}] pad %pad : tile<1 x {tile} x f32>
    %{name} = reshape %lb : tile<{tile} x f32>
{turn}    %next = mma %ta, %fb, %acc : tile<M x N x f32>
    yield %next
  }}
  %out = reshape %sum : tile<1 x M x N x f32>
  store_masked %vc, %out
}}
",
            name = if turned { "rb" } else { "fb" },
            turn = if turned { turn } else { "" },
        )
    };
    for turned in [false, true] {
        for [stack, m, n, k] in [[2, 32, 64, 32], [3, 20, 40, 300], [1, 3, 33, 16]] {
            let instance = instance(&source(turned), &[("M", 16), ("N", 32), ("K", 16)]);
            let shape_of_b = if turned { [stack, n, k] } else { [stack, k, n] };
            let arguments = [
                sample(DType::F32, &[stack, m, k], 1),
                sample(DType::F32, &shape_of_b, 2),
                sample(DType::F32, &[stack, m, n], 3),
            ];
            let mut expected = arguments.to_vec();
            interp::run(&instance, &mut expected).unwrap();
            for cpu in cpus_of(&instance) {
                let found = run_native(&instance, &arguments, &Options { cpu, ..Options::default() });
                close(&found[2], &expected[2], 0.0, &format!("{cpu:?}, one of {stack} matrices, {turned}"));
            }
        }
    }
}
