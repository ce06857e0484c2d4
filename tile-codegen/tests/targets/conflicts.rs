//! What accesses cost, counted of whole kernels on simulated threads: shared memory without bank conflicts, and global
//! memory in whole sectors, 16 bytes per thread, every element once.

use crate::budgets::{instance, instance_in};
use crate::support::{Memory, compile_simt, sample, taken};
use tile_codegen::simt::{AccessCount, Counters, Mode};
use tile_ir::{Array, DType, Instance, TargetDesc};

const TARGETS: [&str; 6] = ["sm_80", "sm_90a", "gfx942", "gfx950", "gfx1100", "gfx1201"];

/// The unit of global memory in counters.
const SECTOR_BYTES: u64 = 32;

const OTHERS: &str = "
#[tile_kernel(where(m % B == 0, n % B == 0), instances(T = f32, B = 64))]
fn transpose<T: Number, const B: usize>(x: &Tensor<T, m, n>, y: &mut Tensor<T, n, m>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    let [i, j] = y.index();
    y.store_masked(x.load_masked([j, i]).t());
}

#[tile_kernel(instances(W = 4096))]
fn layernorm<const W: usize>(
    x: &Tensor<bf16, m, W>,
    weight: &Tensor<bf16, 1, W>,
    bias: &Tensor<bf16, 1, W>,
    y: &mut Tensor<bf16, m, W>,
) {
    let x = x.partition_view([1, W]);
    let weight = weight.partition_view([1, W]);
    let bias = bias.partition_view([1, W]);
    let mut y = y.partition_view_mut([1, W]);
    let row = x.load_masked(y.index()).cast::<f32>();
    let less = row - row.mean(1);
    let normed = less * rsqrt((less * less).mean(1) + 1e-5);
    let scaled = normed * weight.load_masked([0, 0]).cast::<f32>() + bias.load_masked([0, 0]).cast::<f32>();
    y.store_masked(scaled.cast::<bf16>());
}

#[tile_kernel(where(n % B == 0), instances(T = f32, B = 1024))]
fn copy<T: Number, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store_masked(x.load_masked([i]));
}
";

/// What a run on simulated threads costs, per op.
fn counters(target: &str, instance: &Instance, arguments: &[Array]) -> Counters {
    let bound = Memory::of(instance, arguments).bound;
    let target = TargetDesc::named(target).unwrap();
    let kernel = compile_simt(&taken(instance, target, &bound), target, None);
    let mode = Mode { counted: true, ..Mode::default() };
    let outcome = kernel.run_on(&mut arguments.to_vec(), mode);
    let outcome = outcome.unwrap_or_else(|error| panic!("{error} in {} on {target}", instance.name));
    outcome.trace.counters.expect("counters were asked for").per_op()
}

/// A kernel with arguments.
struct Case {
    name: String,
    instance: Instance,
    arguments: Vec<Array>,
}

impl Case {
    fn new(name: String, instance: Instance, tensors: &[(DType, &[usize])]) -> Case {
        let arguments = tensors.iter().enumerate();
        let arguments = arguments.map(|(seed, &(dtype, shape))| sample(dtype, shape, seed)).collect();
        Case { name, instance, arguments }
    }

    fn bytes(&self, argument: usize) -> u64 {
        (self.arguments[argument].len() * self.arguments[argument].dtype().bytes()) as u64
    }

    /// Bytes that its blocks need of the inputs, each of which is used once, but for weights: every row's block needs all.
    fn needed(&self) -> u64 {
        let weights: u64 = (1..self.arguments.len() - 1).map(|weight| self.bytes(weight)).sum();
        self.bytes(0) + ROWS as u64 * weights
    }
}

/// Rows of the kernels of rows.
const ROWS: usize = 2;

fn numbers() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|dtype| dtype.is_element() && dtype.is_number())
}

fn transposes() -> Vec<Case> {
    let case = |dtype| {
        let kernel = instance_in(OTHERS, "transpose", Some(dtype), &[("B", 64)]);
        Case::new(format!("transpose of {dtype}"), kernel, &[(dtype, &[64, 128]), (dtype, &[128, 64])])
    };
    numbers().map(case).collect()
}

fn copies() -> Vec<Case> {
    let case = |dtype| {
        let kernel = instance_in(OTHERS, "copy", Some(dtype), &[("B", 4096)]);
        Case::new(format!("copy of {dtype}"), kernel, &[(dtype, &[8192]), (dtype, &[8192])])
    };
    numbers().map(case).collect()
}

fn kernels_of_rows() -> Vec<Case> {
    let of_width = |width| {
        let (constants, row) = ([("W", width)], [ROWS, width]);
        let (whole, weight) = ((DType::BF16, &row[..]), (DType::BF16, &[1, width][..]));
        let softmax = instance("softmax_row", None, &constants);
        let rmsnorm = instance("rmsnorm_row", None, &constants);
        let layernorm = instance_in(OTHERS, "layernorm", None, &constants);
        [
            Case::new(format!("softmax of {width}"), softmax, &[(DType::F32, &row), (DType::F32, &row)]),
            Case::new(format!("rmsnorm of {width}"), rmsnorm, &[whole, weight, whole]),
            Case::new(format!("layernorm of {width}"), layernorm, &[whole, weight, weight, whole]),
        ]
    };
    [2048, 4096].into_iter().flat_map(of_width).collect()
}

fn products() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [DType::BF16, DType::F16, DType::F32] {
        for [m, n, k] in [[64, 64, 32], [64, 128, 16]] {
            let kernel = instance("gemm", Some(dtype), &[("BM", m), ("BN", n), ("BK", k)]);
            let tensors: [(DType, &[usize]); 3] =
                [(dtype, &[m, 2 * k]), (dtype, &[2 * k, n]), (DType::F32, &[m, n])];
            cases.push(Case::new(format!("gemm of {dtype}, {m} x {n} x {k}"), kernel, &tensors));
        }
    }
    // Tiles as large as those of AMD's fastest products, whose factors have long rows.
    let kernel = instance("gemm", Some(DType::BF16), &[("BM", 128), ("BN", 128), ("BK", 64)]);
    let tensors: [(DType, &[usize]); 3] =
        [(DType::BF16, &[128, 128]), (DType::BF16, &[128, 128]), (DType::F32, &[128, 128])];
    cases.push(Case::new("gemm of bf16, 128 x 128 x 64".to_owned(), kernel, &tensors));
    let attention = instance("attention", None, &[("BM", 64), ("BN", 64)]);
    cases.push(Case::new("attention".to_owned(), attention, &[(DType::BF16, &[1, 128, 128][..]); 4]));
    cases
}

/// Accesses that take more turns than the least.
struct Conflict {
    /// What the kernel's name begins with.
    kernel: &'static str,
    target: &'static str,
    access: &'static str,
    /// How many times the least.
    times: u64,
    why: &'static str,
}

const CONFLICTS: &[Conflict] = &[Conflict {
    kernel: "gemm of ",
    target: "sm_90a",
    access: "store",
    times: 2,
    why: "sums of f32 that a tensor map stores: sixteen lanes write 8 bytes each to four lines of 128 bytes, and the \
          map's swizzle exchanges pieces of 16, so lines 2i and 2i + 1 have the same two pieces",
}];

#[test]
fn shared_memory_has_no_bank_conflicts() {
    let mut met = vec![false; CONFLICTS.len()];
    for case in transposes().into_iter().chain(kernels_of_rows()).chain(products()) {
        for target in TARGETS {
            let counters = counters(target, &case.instance, &case.arguments);
            assert!(counters.accesses.iter().any(|access| access.shared), "{} on {target}: none", case.name);
            for access in counters.accesses.iter().filter(|access| access.shared) {
                let known = CONFLICTS.iter().position(|known| {
                    let place = known.target == target && known.access == access.name;
                    place && case.name.starts_with(known.kernel) && access.parts == known.times * access.least
                });
                let why = known.map(|known| CONFLICTS[known].why);
                known.into_iter().for_each(|known| met[known] = true);
                let what = format!("{} on {target}: {access:?}", case.name);
                assert!(access.parts == access.least || why.is_some_and(|why| !why.is_empty()), "{what}");
            }
        }
    }
    assert!(met.iter().all(|&met| met), "a conflict that is recorded is gone: {met:?}");
}

/// A thread that loads and one that stores have neighbours in common, which change threads together.
#[test]
fn transposed_elements_change_threads_in_words() {
    for (dtype, extent, least) in [
        (DType::BF16, 64, 4),
        (DType::F16, 64, 4),
        (DType::BF16, 128, 16),
        (DType::U8, 128, 4),
        (DType::F32, 64, 16),
    ] {
        let kernel = instance_in(OTHERS, "transpose", Some(dtype), &[("B", extent)]);
        let tensors: [(DType, &[usize]); 2] =
            [(dtype, &[extent, 2 * extent]), (dtype, &[2 * extent, extent])];
        let case = Case::new(format!("transpose of {dtype}"), kernel, &tensors);
        for target in TARGETS {
            let counters = counters(target, &case.instance, &case.arguments);
            let shared: Vec<_> = counters.accesses.iter().filter(|access| access.shared).collect();
            assert_eq!(shared.len(), 2, "{} on {target}: a store and a load", case.name);
            for access in shared {
                let what = format!("{} on {target}: {access:?}", case.name);
                assert!(access.bytes >= least && access.parts == access.least, "{what}");
            }
        }
    }
}

#[test]
fn every_element_is_read_once_in_whole_sectors() {
    for case in transposes().into_iter().chain(copies()).chain(kernels_of_rows()) {
        for target in TARGETS {
            let counters = counters(target, &case.instance, &case.arguments);
            let accesses = counters.accesses.iter().filter(|access| !access.shared);
            let (stores, loads): (Vec<_>, Vec<_>) =
                accesses.partition(|access| access.name.contains("store"));
            for access in loads.iter().chain(&stores) {
                let what = format!("{} on {target}: {access:?}", case.name);
                assert!(access.bytes == 16 && access.parts == access.least, "{what}");
            }
            let bytes = |accesses: &[&AccessCount]| -> u64 {
                accesses.iter().map(|access| access.parts * SECTOR_BYTES).sum()
            };
            assert_eq!(bytes(&loads), case.needed(), "bytes that {} reads on {target}", case.name);
            let output = case.bytes(case.arguments.len() - 1);
            assert_eq!(bytes(&stores), output, "bytes that {} writes on {target}", case.name);
        }
    }
}
