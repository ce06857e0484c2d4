//! Prints how fast the CPU target compiles and how fast its code runs, on one thread:
//! `cargo run --release -p tile-codegen --example cpu_speed`.
//!
//! Figures only; nothing is asserted, because a shared machine's times are no test.

use std::time::{Duration, Instant};
use tile_codegen::jit::{CpuKernel, compile_cpu};
use tile_codegen::{Error, Options};
use tile_ir::Instance;
use tile_ir::abi::KernelAbi;

const MATMUL: &str = "\
kernel @matmul<BM, BN, BK>(%a: tensor<m x k x f32>, %b: tensor<k x n x f32>, %c: mut tensor<m x n x f32>) {
  %va = partition %a [BM, BK] : partition<m x k x f32, [BM, BK]>
  %vb = partition %b [BK, BN] : partition<k x n x f32, [BK, BN]>
  %vc = partition %c [BM, BN] : mut partition<m x n x f32, [BM, BN]>
  %i, %j = block_index %vc : index, index
  %0 = constant 0.0 : f32
  %zero = splat %0 : tile<BM x BN x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, BK) : index
  %sum = for %p = %1 to %2 carry (%acc = %zero) : tile<BM x BN x f32> {
    %ta = load_masked %va[%i, %p] pad %0 : tile<BM x BK x f32>
    %tb = load_masked %vb[%p, %j] pad %0 : tile<BK x BN x f32>
    %next = mma %ta, %tb, %acc : tile<BM x BN x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

/// What makes the masks of the matmul needless.
const WHOLE: &str = " where \"m\": rem(m, BM) eq 0, \"n\": rem(n, BN) eq 0, \"k\": rem(k, BK) eq 0";

const SCALE_ADD: &str = "\
kernel @scale_add<B>(%x: tensor<n x f32>, %w: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [B] : partition<n x f32, [B]>
  %vw = partition %w [B] : partition<n x f32, [B]>
  %vy = partition %y [B] : mut partition<n x f32, [B]>
  %i = block_index %vy : index
  %pad = constant 0.0 : f32
  %a = load_masked %vx[%i] pad %pad : tile<B x f32>
  %b = load_masked %vw[%i] pad %pad : tile<B x f32>
  %three = constant 3.0 : f32
  %s = splat %three : tile<B x f32>
  %t = mul %b, %s : tile<B x f32>
  %r = add %a, %t : tile<B x f32>
  store_masked %vy, %r
}
";

const SOFTMAX: &str = "\
kernel @softmax<B, W>(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [B, W] : partition<m x n x f32, [B, W]>
  %vy = partition %y [B, W] : mut partition<m x n x f32, [B, W]>
  %i, %j = block_index %vy : index, index
  %pad = constant -inf : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<B x W x f32>
  %m = reduce max %t axis 1 : tile<B x 1 x f32>
  %mb = broadcast %m : tile<B x W x f32>
  %d = sub %t, %mb : tile<B x W x f32>
  %e = exp %d : tile<B x W x f32>
  %s = reduce sum %e axis 1 : tile<B x 1 x f32>
  %sb = broadcast %s : tile<B x W x f32>
  %r = div %e, %sb : tile<B x W x f32>
  store_masked %vy, %r
}
";

/// Sums of rows, in tiles of one row, or of columns, in tiles of 16 rows, whose view has a hint.
fn sums(columns: bool, hint: &str) -> String {
    let (axis, index, end) = if columns { (0, "%p, %j", "m, R") } else { (1, "%i, %p", "n, C") };
    let output = if columns { ["1", "C"] } else { ["R", "1"] };
    let (shape, extents) = (output.join(" x "), output.join(", "));
    format!(
        "kernel @sums<R, C>(%x: tensor<m x n x f32>, %y: mut tensor<a x b x f32>) {{
  %vx = partition %x [R, C]{hint} : partition<m x n x f32, [R, C]>
  %vy = partition %y [{extents}] : mut partition<a x b x f32, [{extents}]>
  %i, %j = block_index %vy : index, index
  %0 = constant 0.0 : f32
  %zero = splat %0 : tile<{shape} x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div({end}) : index
  %sum = for %p = %1 to %2 carry (%a = %zero) : tile<{shape} x f32> {{
    %t = load_masked %vx[{index}] pad %0 : tile<R x C x f32>
    %s = reduce sum %t axis {axis} : tile<{shape} x f32>
    %next = add %a, %s : tile<{shape} x f32>
    yield %next
  }}
  store_masked %vy, %sum
}}
"
    )
}

/// A kernel, its constants, the shapes of its tensors (the last is the output) and what a launch is worth.
struct Row {
    title: &'static str,
    source: String,
    /// What the kernel relies on.
    conditions: &'static str,
    constants: Vec<(&'static str, usize)>,
    shapes: Vec<Vec<usize>>,
    work: f64,
    unit: &'static str,
}

fn rows() -> Vec<Row> {
    let matmul = |n: usize, tiles: [usize; 3], title| Row {
        title,
        source: MATMUL.to_owned(),
        conditions: "",
        constants: vec![("BM", tiles[0]), ("BN", tiles[1]), ("BK", tiles[2])],
        shapes: vec![vec![n, n]; 3],
        work: 2.0 * (n as f64).powi(3),
        unit: "GFLOP/s",
    };
    let sums = |columns: bool, hint: &str, title| Row {
        title,
        source: sums(columns, hint),
        conditions: "",
        constants: if columns { vec![("R", 16), ("C", 16)] } else { vec![("R", 1), ("C", 1024)] },
        shapes: vec![vec![1 << 12; 2], if columns { vec![1, 1 << 12] } else { vec![1 << 12, 1] }],
        work: 4.0 * f64::from(1 << 24),
        unit: "GB/s",
    };
    vec![
        matmul(512, [64, 64, 64], "matmul f32 512, tiles 64x64x64"),
        Row { conditions: WHOLE, ..matmul(512, [64, 64, 64], "the same where sizes are whole tiles") },
        matmul(512, [128, 128, 128], "matmul f32 512, tiles 128x128x128"),
        matmul(500, [64, 64, 64], "matmul f32 500, tiles 64x64x64"),
        Row {
            title: "y = x + 3w, 2^12 elements in cache",
            source: SCALE_ADD.to_owned(),
            conditions: "",
            constants: vec![("B", 1024)],
            shapes: vec![vec![1 << 12]; 3],
            work: 12.0 * 4096.0,
            unit: "GB/s",
        },
        Row {
            title: "y = x + 3w, 2^24 elements",
            source: SCALE_ADD.to_owned(),
            conditions: "",
            constants: vec![("B", 1024)],
            shapes: vec![vec![1 << 24]; 3],
            work: 12.0 * f64::from(1 << 24),
            unit: "GB/s",
        },
        Row {
            title: "softmax f32 1024x1000, tiles 4x1024",
            source: SOFTMAX.to_owned(),
            conditions: "",
            constants: vec![("B", 4), ("W", 1024)],
            shapes: vec![vec![1024, 1000]; 2],
            work: 8.0 * 1024.0 * 1000.0,
            unit: "GB/s",
        },
        sums(false, "", "rows of 2^24, tiles 1x1024"),
        sums(false, " latency 2", "rows of 2^24, tiles 1x1024, latency 2"),
        sums(true, "", "columns of 2^24, tiles 16x16"),
        sums(true, " latency 2", "columns of 2^24, tiles 16x16, latency 2"),
        sums(true, " latency 8", "columns of 2^24, tiles 16x16, latency 8"),
    ]
}

fn instance(row: &Row) -> Instance {
    let source = row.source.replacen(" {", &format!("{} {{", row.conditions), 1);
    Instance::parse(&source, &row.constants).expect("the texts above are kernels")
}

/// The shortest of several launches of at least 20 ms.
fn time(mut launch: impl FnMut()) -> Duration {
    launch();
    let rounds = (0..7).map(|_| {
        let (start, mut count) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_millis(20) {
            launch();
            count += 1;
        }
        start.elapsed() / count
    });
    rounds.min().expect("there is a round")
}

fn run(row: &Row, instance: &Instance, kernel: &CpuKernel) -> Duration {
    let shapes: Vec<&[usize]> = row.shapes.iter().map(Vec::as_slice).collect();
    let bound = KernelAbi::of(instance).bind(&shapes).expect("the shapes above fit");
    let mut tensors: Vec<Vec<f32>> = row
        .shapes
        .iter()
        .map(|shape| (0..shape.iter().product::<usize>()).map(|i| (i % 17) as f32 / 17.0).collect())
        .collect();
    let mut slots: Vec<u64> = tensors.iter_mut().map(|tensor| tensor.as_mut_ptr() as u64).collect();
    slots.extend(bound.slots());
    let mut scratch = vec![[0u64; 8]; kernel.launch().scratch_bytes as usize / 64 + 2];
    let address = scratch.as_mut_ptr().cast::<u8>();
    let aligned = address.wrapping_add(address.align_offset(64));
    // SAFETY: the slots are as the instance's ABI says, tensors are as large as their shapes, and the scratch
    // memory has the size and alignment that the kernel asks for.
    time(|| unsafe { (kernel.entry())(slots.as_ptr(), 0, bound.blocks() as u64, aligned, false, true) })
}

fn main() -> Result<(), Error> {
    println!("{:<40} {:>12} {:>12} {:>12}  scratch", "one thread", "compile", "launch", "rate");
    for row in rows() {
        let instance = instance(&row);
        let mut compile = Duration::MAX;
        let mut kernel = compile_cpu(&instance, &Options::default())?;
        for _ in 0..5 {
            let start = Instant::now();
            kernel = compile_cpu(&instance, &Options::default())?;
            compile = compile.min(start.elapsed());
        }
        let launch = run(&row, &instance, &kernel);
        println!(
            "{:<40} {:>9.1} ms {:>9.1} µs {:>6.1} {:<7} {} KiB",
            row.title,
            compile.as_secs_f64() * 1e3,
            launch.as_secs_f64() * 1e6,
            row.work / launch.as_secs_f64() / 1e9,
            row.unit,
            kernel.launch().scratch_bytes / 1024,
        );
    }
    Ok(())
}
