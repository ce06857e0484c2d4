//! Prints how fast the CPU target gathers rows, on one thread, beside a loop that copies them one after the other, and how
//! fast it multiplies gathered rows, beside rows that are loaded: `cargo run --release -p tile-codegen --example
//! gather_speed`. The contestants of a line take turns in one process, so that their ratios mean something on a shared
//! machine.
//!
//! Figures only; nothing is asserted but that all give the same.

use std::time::Instant;
use tile_codegen::Options;
use tile_codegen::jit::{CpuKernel, compile_cpu};
use tile_ir::Instance;
use tile_ir::abi::KernelAbi;

/// Turns of each contestant.
const ROUNDS: usize = 41;

/// What a kernel knows of the places along a row.
#[derive(Clone, Copy)]
enum Columns {
    /// They are consecutive.
    Counted,
    /// Nothing: so each element is asked for.
    Hidden,
}

impl Columns {
    /// Lines that make `%at` of `%counted`.
    fn lines(self, tile: &str) -> String {
        match self {
            Columns::Counted => format!("  %at = add %starts, %counted : tile<{tile} x i32>\n"),
            Columns::Hidden => format!(
                "  %places = add %starts, %counted : tile<{tile} x i32>
  %least = constant 0 : i32
  %leasts = splat %least : tile<{tile} x i32>
  %at = max %places, %leasts : tile<{tile} x i32>
"
            ),
        }
    }
}

/// Rows of `x` that `ids` name.
fn lookup(rows: usize, columns: usize, known: Columns) -> String {
    let tile = format!("{rows} x {columns}");
    format!(
        "kernel @lookup(%x: tensor<v x d x f32>, %ids: tensor<k x i32>, %y: mut tensor<k x d x f32>) {{
  %vi = partition %ids [{rows}] : partition<k x i32, [{rows}]>
  %vy = partition %y [{rows}, {columns}] : mut partition<k x d x f32, [{rows}, {columns}]>
  %i, %j = block_index %vy : index, index
  %none = constant -1 : i32
  %pad = constant 0.0 : f32
  %ids_of = load_masked %vi[%i] pad %none : tile<{rows} x i32>
  %column = reshape %ids_of : tile<{rows} x 1 x i32>
  %which = broadcast %column : tile<{tile} x i32>
  %width = constant {columns} : index
  %start = mul %j, %width : index
  %from = cast %start : i32
  %starts = splat %from : tile<{tile} x i32>
  %counted = iota 1 : tile<{tile} x i32>
{at}  %t = gather_load %x[%which, %at] pad %pad : tile<{tile} x f32>
  store_masked %vy, %t
}}
",
        at = known.lines(&tile)
    )
}

/// The product of rows of `x` that `ids` name, or, without columns, of `x` as it is, and `b`.
fn product(known: Option<Columns>) -> String {
    let at = known.map_or(String::new(), |known| known.lines("128 x 64"));
    let factor = match known {
        Some(_) => "gather_load %x[%which, %at] pad %0",
        None => "load_masked %va[%i, %p] pad %0",
    };
    format!(
        "kernel @product(%x: tensor<m x k x f32>, %ids: tensor<m x i32>, %b: tensor<k x n x f32>, %y: mut tensor<m x n x f32>) {{
  %vi = partition %ids [128] : partition<m x i32, [128]>
  %va = partition %x [128, 64] : partition<m x k x f32, [128, 64]>
  %vb = partition %b [64, 128] : partition<k x n x f32, [64, 128]>
  %vy = partition %y [128, 128] : mut partition<m x n x f32, [128, 128]>
  %i, %j = block_index %vy : index, index
  %0 = constant 0.0 : f32
  %none = constant -1 : i32
  %ids_of = load_masked %vi[%i] pad %none : tile<128 x i32>
  %column = reshape %ids_of : tile<128 x 1 x i32>
  %which = broadcast %column : tile<128 x 64 x i32>
  %zero = splat %0 : tile<128 x 128 x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, 64) : index
  %width = constant 64 : index
  %counted = iota 1 : tile<128 x 64 x i32>
  %sum = for %p = %1 to %2 carry (%acc = %zero) : tile<128 x 128 x f32> {{
  %start = mul %p, %width : index
  %from = cast %start : i32
  %starts = splat %from : tile<128 x 64 x i32>
{at}  %a = {factor} : tile<128 x 64 x f32>
  %c = load_masked %vb[%p, %j] pad %0 : tile<64 x 128 x f32>
  %next = mma %a, %c, %acc : tile<128 x 128 x f32>
  yield %next
  }}
  store_masked %vy, %sum
}}
"
    )
}

/// A compiled kernel.
struct Compiled {
    instance: Instance,
    kernel: CpuKernel,
}

impl Compiled {
    fn of(source: &str) -> Compiled {
        let instance = Instance::parse(source, &[]).expect("the texts above are kernels");
        let kernel = compile_cpu(&instance, &Options::default()).expect("the texts above compile");
        Compiled { instance, kernel }
    }

    /// Runs every block on tensors of these shapes at these addresses.
    ///
    /// # Safety
    /// They are the kernel's, and nobody else uses them.
    unsafe fn run(&self, shapes: &[&[usize]], addresses: &[u64]) {
        let bound = KernelAbi::of(&self.instance).bind(shapes).expect("the shapes fit");
        let slots: Vec<u64> = addresses.iter().copied().chain(bound.slots()).collect();
        let mut scratch = vec![[0u64; 8]; self.kernel.launch().scratch_bytes as usize / 64 + 2];
        let address = scratch.as_mut_ptr().cast::<u8>();
        let aligned = address.wrapping_add(address.align_offset(64));
        // SAFETY: the caller vouches for the tensors; the scratch memory has the size and alignment that the kernel asks for.
        unsafe { (self.kernel.entry())(slots.as_ptr(), 0, bound.blocks() as u64, aligned, false, true) };
    }
}

/// How fast each contestant is, as a part of the rate of the last, whose seconds come first: medians of turns.
fn contest(repeats: usize, contestants: &mut [&mut dyn FnMut()]) -> (f64, Vec<f64>) {
    let mut times = vec![Vec::new(); contestants.len()];
    for turn in 0..ROUNDS * contestants.len() {
        let which = (turn + turn / contestants.len()) % contestants.len();
        let start = Instant::now();
        (0..repeats).for_each(|_| contestants[which]());
        times[which].push(start.elapsed().as_secs_f64() / repeats as f64);
    }
    let last = times.last().expect("there are contestants").clone();
    let parts = |times: &Vec<f64>| median(last.iter().zip(times).map(|(last, time)| last / time).collect());
    (median(last.clone()), times.iter().map(parts).collect())
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Numbers below a bound in no order.
fn ids(count: usize, bound: usize) -> Vec<i32> {
    (0..count as u64).map(|i| ((i * 2_654_435_761) % bound as u64) as i32).collect()
}

fn lookups(table: usize, count: usize, width: usize, [rows, columns]: [usize; 2]) {
    let mut x: Vec<f32> = (0..table * width).map(|i| (i % 1013) as f32).collect();
    let mut ids = ids(count, table);
    let mut outputs = vec![vec![0f32; count * width]; 3];
    let [y, z, copies] = &mut outputs[..] else { unreachable!("there are three") };
    let shapes: [&[usize]; 3] = [&[table, width], &[count], &[count, width]];
    let inputs = [x.as_mut_ptr() as u64, ids.as_mut_ptr() as u64];
    let kernels =
        [Columns::Counted, Columns::Hidden].map(|known| Compiled::of(&lookup(rows, columns, known)));
    let addresses = [y.as_mut_ptr(), z.as_mut_ptr()].map(|output| [inputs[0], inputs[1], output as u64]);
    // SAFETY: the tensors have the shapes, live, and are written by nobody else.
    let mut runs = [0, 1]
        .map(|i| (&kernels[i], addresses[i]))
        .map(|(kernel, addresses)| move || unsafe { kernel.run(&shapes, &addresses) });
    let [known, hidden] = &mut runs;
    let mut copy = || {
        for (row, &id) in copies.chunks_exact_mut(width).zip(&ids) {
            row.copy_from_slice(&x[id as usize * width..][..width]);
        }
    };
    let repeats = 1 + (4 << 20) / (count * width);
    let (seconds, parts) = contest(repeats, &mut [known, hidden, &mut copy]);
    assert!(outputs.iter().all(|output| output == &outputs[0]), "all copy the same rows");
    println!(
        "{count} rows of {table} x {width}, tiles {rows} x {columns}: copies {:.1} GB/s; rows {:.2} of that, by element {:.2}",
        8.0 * (count * width) as f64 / seconds / 1e9,
        parts[0],
        parts[1]
    );
}

fn products(side: usize) {
    let mut tensors = [0; 3].map(|_| (0..side * side).map(|i| (i % 13) as f32).collect::<Vec<f32>>());
    let mut ids = ids(side, side);
    let [x, b, y] = tensors.each_mut().map(|tensor| tensor.as_mut_ptr() as u64);
    let addresses = [x, ids.as_mut_ptr() as u64, b, y];
    let square: &[usize] = &[side, side];
    let shapes = [square, &[side], square, square];
    let kernels =
        [Some(Columns::Counted), Some(Columns::Hidden), None].map(|known| Compiled::of(&product(known)));
    // SAFETY: the tensors have the shapes and live; one kernel runs at a time.
    let [mut known, mut hidden, mut loaded] =
        kernels.each_ref().map(|kernel| move || unsafe { kernel.run(&shapes, &addresses) });
    let (seconds, parts) = contest(6, &mut [&mut known, &mut hidden, &mut loaded]);
    println!(
        "product of {side}³ f32: rows as they are {:.0} GFLOP/s; gathered rows {:.2} of that, by element {:.2}",
        2.0 * (side as f64).powi(3) / seconds / 1e9,
        parts[0],
        parts[1]
    );
}

fn main() {
    for (table, count, width, tile) in [
        (2048, 1024, 512, [16, 512]),
        (2048, 1024, 512, [1, 512]),
        (200_000, 8192, 512, [16, 512]),
        (200_000, 8192, 512, [32, 128]),
        (200_000, 8192, 500, [16, 512]),
    ] {
        lookups(table, count, width, tile);
    }
    products(512);
}
