//! Prints, for kernels and sizes, what the cost model chooses on this machine's processor and how long each instance
//! takes: `cargo xtask bench choices`.
//!
//! Figures only; nothing is asserted, because a shared machine's times are no test.

use std::time::{Duration, Instant};
use tile::prelude::*;
use tile::{Choice, Choices, Launch, Result};

#[tile_kernel(instances(BM = 16 | 64 | 128 | 256, BN = 32 | 64 | 128 | 256, BK = 32 | 128 | 256))]
fn matmul<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<f32, m, k>,
    b: &Tensor<f32, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    }
    c.store_masked(acc);
}

#[tile_kernel(where(n <= COLUMNS), instances(ROWS = 1 | 4 | 16, COLUMNS = 1024 | 4096))]
fn softmax<const ROWS: usize, const COLUMNS: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([ROWS, COLUMNS]);
    let mut y = y.partition_view_mut([ROWS, COLUMNS]);
    let row = x.load_masked_or(f32::NEG_INFINITY, y.index());
    let scaled = exp(row - row.max(1));
    y.store_masked(scaled / scaled.sum(1));
}

#[tile_kernel(instances(B = 64 | 512 | 4096 | 32768))]
fn scale_add<const B: usize>(x: &Tensor<f32, n>, w: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let w = w.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let i = y.index();
    y.store_masked(x.load_masked(i) + w.load_masked(i) * 3.0);
}

/// Rounds in which every instance has its turn, so that a busy moment of a shared machine isn't one instance's alone.
const ROUNDS: usize = 25;

/// Of instances that take long, as many rounds as this has time for, and three at least.
const LONGEST: Duration = Duration::from_secs(20);

/// The shortest of several launches, of at least 4 ms.
fn time(mut launch: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let (start, mut least) = (Instant::now(), launch()?);
    while start.elapsed() < Duration::from_millis(4) {
        least = least.min(launch()?);
    }
    Ok(least)
}

/// The numbers of `BM = 128, BN = 64`.
fn numbers(choice: &Choice) -> Vec<usize> {
    let values = choice.instance.split(", ").filter_map(|binding| binding.split_once(" = "));
    values.filter_map(|(_, value)| value.parse().ok()).collect()
}

/// Measures every instance, and says how much longer than the fastest one the chosen one takes.
fn compare(
    title: &str,
    choices: &Choices,
    mut launch: impl FnMut(&[usize]) -> Result<Duration>,
) -> Result<()> {
    let mut rows = Vec::new();
    for choice in choices.rows() {
        let Ok(prediction) = &choice.prediction else { continue };
        launch(&numbers(choice))?;
        rows.push((choice, prediction, f64::INFINITY));
    }
    let start = Instant::now();
    for round in 0..ROUNDS {
        if round >= 3 && start.elapsed() > LONGEST {
            break;
        }
        for (choice, _, least) in &mut rows {
            let values = numbers(choice);
            *least = least.min(time(|| launch(&values))?.as_secs_f64());
        }
    }
    let least = rows.iter().map(|row| row.2).fold(f64::INFINITY, f64::min);
    println!("{title}: the chosen instance takes {:.2} times as long as the fastest", rows[0].2 / least);
    for (Choice { instance, .. }, prediction, seconds) in rows {
        let (predicted, ratio) = (prediction.seconds * 1e6, seconds / least);
        let limit = prediction.limit;
        println!(
            "  {instance:30} predicted {predicted:>9.1} µs ({limit:14}) measured {:>9.1} µs  {ratio:>5.2}",
            seconds * 1e6
        );
    }
    Ok(())
}

fn ramp(device: &Device, shape: &[usize]) -> Result<Tensor<f32>> {
    let count = shape.iter().product();
    Tensor::from_vec(device, (0..count).map(|i| (i % 17) as f32 / 17.0).collect(), shape)
}

fn products(device: &Device, [m, n, k]: [usize; 3]) -> Result<()> {
    let (a, b, mut c) = (ramp(device, &[m, k])?, ramp(device, &[k, n])?, ramp(device, &[m, n])?);
    let choices = matmul::best(&a, &b, &mut c).choices()?;
    compare(&format!("matmul f32 {m} x {n} x {k}"), &choices, |values| {
        let launch = Launch::new(matmul::__tile_definition());
        let launch = launch.constant("BM", values[0]).constant("BN", values[1]).constant("BK", values[2]);
        launch.tensor("a", &a).tensor("b", &b).tensor_mut("c", &mut c).launch_timed()
    })
}

fn rows(device: &Device, shape: [usize; 2]) -> Result<()> {
    let (x, mut y) = (ramp(device, &shape)?, ramp(device, &shape)?);
    let choices = softmax::best(&x, &mut y).choices()?;
    compare(&format!("softmax f32 {} x {}", shape[0], shape[1]), &choices, |values| {
        let launch = Launch::new(softmax::__tile_definition());
        let launch = launch.constant("ROWS", values[0]).constant("COLUMNS", values[1]);
        launch.tensor("x", &x).tensor_mut("y", &mut y).launch_timed()
    })
}

fn vectors(device: &Device, n: usize) -> Result<()> {
    let (x, w, mut y) = (ramp(device, &[n])?, ramp(device, &[n])?, ramp(device, &[n])?);
    let choices = scale_add::best(&x, &w, &mut y).choices()?;
    compare(&format!("x + 3w, {n} elements of f32"), &choices, |values| {
        let launch = Launch::new(scale_add::__tile_definition()).constant("B", values[0]);
        launch.tensor("x", &x).tensor("w", &w).tensor_mut("y", &mut y).launch_timed()
    })
}

/// How long a launch takes that chooses, where the same was chosen before, and one that doesn't choose.
fn launches(device: &Device) -> Result<()> {
    let (x, w, mut y) = (ramp(device, &[64])?, ramp(device, &[64])?, ramp(device, &[64])?);
    let median = |launch: &mut dyn FnMut() -> Result<()>| -> Result<Duration> {
        let mut times = Vec::new();
        for _ in 0..2001 {
            let start = Instant::now();
            launch()?;
            times.push(start.elapsed());
        }
        times.sort();
        Ok(times[1000])
    };
    let chosen = median(&mut || scale_add::best(&x, &w, &mut y).launch())?;
    let named = median(&mut || scale_add::<64>(&x, &w, &mut y).launch())?;
    println!("a launch of one block: {chosen:.2?} where it chooses, {named:.2?} where it doesn't");
    Ok(())
}

fn main() -> Result<()> {
    let device = Device::cpu();
    println!("{device}");
    for side in [64, 256, 500, 512, 1024, 2048] {
        products(&device, [side; 3])?;
    }
    for sizes in [[1000, 1003, 997], [4096, 64, 4096], [16, 1024, 1024], [2048, 48, 256], [100, 300, 700]] {
        products(&device, sizes)?;
    }
    for shape in [[1024, 1000], [64, 4000], [16, 1024]] {
        rows(&device, shape)?;
    }
    for n in [1 << 12, 1 << 18, 1 << 24] {
        vectors(&device, n)?;
    }
    launches(&device)
}
