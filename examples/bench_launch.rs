//! Prints what a launch costs the thread that makes it: `cargo xtask bench launch`.
//!
//! Figures only; nothing is asserted, because a shared machine's times are no test. The least of the rounds is what the
//! code takes; the median of all launches is what the machine gave.

use std::sync::Barrier;
use std::time::{Duration, Instant};
use tile::prelude::*;
use tile::{Result, cpu};

#[tile_kernel(instances(B = 64 | 1024))]
fn scale_add<const B: usize>(x: &Tensor<f32, n>, w: &Tensor<f32, n>, factor: f32, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let w = w.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let i = y.index();
    y.store_masked(x.load_masked(i) + w.load_masked(i) * factor);
}

const ROUNDS: usize = 15;

/// Medians of the rounds.
struct Times(Vec<Duration>);

impl Times {
    fn least(&self) -> Duration {
        self.0[0]
    }

    fn median(&self) -> Duration {
        self.0[self.0.len() / 2]
    }
}

/// The median of so many launches, each after a pause, in each of several rounds; sorted.
fn rounds(count: usize, pause: Duration, launch: &mut dyn FnMut() -> Result<()>) -> Result<Times> {
    for _ in 0..count.min(100) {
        launch()?;
    }
    let mut medians = Vec::new();
    for _ in 0..ROUNDS {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let before = Instant::now();
            while before.elapsed() < pause {
                std::hint::spin_loop();
            }
            let start = Instant::now();
            launch()?;
            times.push(start.elapsed());
        }
        times.sort();
        medians.push(times[count / 2]);
    }
    medians.sort();
    Ok(Times(medians))
}

/// Tensors of one thread.
struct Given {
    x: Tensor<f32>,
    w: Tensor<f32>,
    y: Tensor<f32>,
    vectors: [Vec<f32>; 3],
}

impl Given {
    fn new(device: &Device, n: usize) -> Result<Given> {
        let [x, w] = [1.0, 2.0].map(|value| Tensor::full(device, [n], value));
        let vectors = [1.0, 2.0, 0.0].map(|value| vec![value; n]);
        Ok(Given { x: x?, w: w?, y: Tensor::zeros(device, [n])?, vectors })
    }

    fn named(&mut self) -> Result<()> {
        scale_add::<64>(&self.x, &self.w, 3.0, &mut self.y).launch()
    }

    fn chosen(&mut self) -> Result<()> {
        scale_add::best(&self.x, &self.w, 3.0, &mut self.y).launch()
    }

    /// The same work without a launch, on vectors.
    fn plain(&mut self) -> Result<()> {
        let [x, w, y] = &mut self.vectors;
        for ((y, x), w) in y.iter_mut().zip(x).zip(w) {
            *y = *x + *w * 3.0;
        }
        std::hint::black_box(y);
        Ok(())
    }
}

/// What to measure, with how many elements, in how many launches a round.
struct Row {
    name: &'static str,
    elements: usize,
    launches: usize,
    /// What the thread does before each launch.
    pause: Duration,
    launch: fn(&mut Given) -> Result<()>,
}

const NONE: Duration = Duration::ZERO;

/// Long enough for the threads of the device to have gone to sleep.
const LONG: Duration = Duration::from_micros(200);

const ROWS: &[Row] = &[
    Row { name: "one block", elements: 64, launches: 2001, pause: NONE, launch: Given::named },
    Row { name: "one block, chosen", elements: 64, launches: 2001, pause: NONE, launch: Given::chosen },
    Row { name: "4 small blocks", elements: 256, launches: 2001, pause: NONE, launch: Given::named },
    Row { name: "32 small blocks", elements: 2048, launches: 2001, pause: NONE, launch: Given::named },
    Row {
        name: "32 small blocks after 0.2 ms",
        elements: 2048,
        launches: 501,
        pause: LONG,
        launch: Given::named,
    },
    Row {
        name: "512 blocks after 0.2 ms",
        elements: 1 << 15,
        launches: 501,
        pause: LONG,
        launch: Given::named,
    },
    Row { name: "16384 blocks", elements: 1 << 20, launches: 51, pause: NONE, launch: Given::named },
    Row {
        name: "a plain loop over as much",
        elements: 1 << 20,
        launches: 51,
        pause: NONE,
        launch: Given::plain,
    },
];

/// On a GPU the work of a launch goes on after it: the pause keeps its queue short.
const ENQUEUED: Row = Row {
    name: "one block",
    elements: 64,
    launches: 2001,
    pause: Duration::from_micros(20),
    launch: Given::named,
};

/// A row from several threads at once, each with tensors of its own: the times of the first one.
fn at_once(device: &Device, row: &Row, threads: usize) -> Result<Times> {
    let begin = Barrier::new(threads);
    let measure = || {
        let mut given = Given::new(device, row.elements)?;
        begin.wait();
        rounds(row.launches, row.pause, &mut || (row.launch)(&mut given))
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(measure)).collect();
        let own = measure();
        others.into_iter().for_each(|other| drop(other.join()));
        own
    })
}

fn print(name: &str, times: &Times) {
    println!("  {name:48} {:>10.2?}  {:>10.2?}", times.least(), times.median());
}

fn main() -> Result<()> {
    let device = Device::cpu();
    println!("{device}");
    println!("  {:48} {:>10}  {:>10}", "", "least", "median");
    for threads in [1, 2] {
        for row in ROWS {
            let from = if threads == 1 { String::new() } else { format!(", from {threads} threads at once") };
            print(&format!("{}{from}", row.name), &at_once(&device, row, threads)?);
        }
    }
    let own = cpu::threads();
    cpu::set_threads(1);
    for row in ROWS.iter().filter(|row| row.launches < 100) {
        print(&format!("{}, one thread of the device", row.name), &at_once(&device, row, 1)?);
    }
    cpu::set_threads(own);
    let reference = Device::reference();
    println!("{reference}");
    print(ROWS[0].name, &at_once(&reference, &ROWS[0], 1)?);
    if let Ok(gpu) = Device::cuda(0) {
        println!("{gpu}, until the launch is enqueued");
        print(ENQUEUED.name, &at_once(&gpu, &ENQUEUED, 1)?);
    }
    Ok(())
}
