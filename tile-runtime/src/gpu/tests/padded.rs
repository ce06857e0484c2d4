//! Launches whose tensors are copied to aligned rows, which NVIDIA's code reads faster.

use super::*;
use crate::embedded::{Embedded, EmbeddedCode, Variant, launch};
use crate::launch::{KernelDef, Launch};
use crate::stream::{Graph, Stream};
use crate::tensor::Tensor;
use half::bf16;
use std::sync::atomic::{AtomicUsize, Ordering};
use tile_ir::target::Family;

const PRODUCT: &str = "\
kernel @product(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x f32>) {
  %va = partition %a [8, 16] : partition<m x k x bf16, [8, 16]>
  %vb = partition %b [16, 8] : partition<k x n x bf16, [16, 8]>
  %vc = partition %c [8, 8] : mut partition<m x n x f32, [8, 8]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<8 x 8 x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(k, 16) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<8 x 8 x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<8 x 16 x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<16 x 8 x bf16>
    %next = mma %ta, %tb, %acc : tile<8 x 8 x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

const fn code(target: &'static str, variant: Variant, code: EmbeddedCode, symbol: &'static str) -> Embedded {
    Embedded {
        target,
        bindings: &[],
        variant,
        code,
        symbol,
        launch: launch(64, 0, 0, false, 1, 1),
        tensor_maps: &[],
    }
}

const fn nvidia(variant: Variant, text: &'static str, symbol: &'static str) -> Embedded {
    code("sm_80", variant, EmbeddedCode::Ptx { text, cubin: None }, symbol)
}

static EMBEDDED: [Embedded; 3] = [
    code("gfx942", Variant::General, EmbeddedCode::Hsaco(image!("ragged", 6).as_bytes()), "ragged"),
    nvidia(Variant::General, image!("ragged", 6), "ragged"),
    nvidia(Variant::Aligned, image!("aligned", 6), "aligned"),
];
static KERNEL: KernelDef = KernelDef::new("product", PRODUCT, &EMBEDDED);

/// How often code for aligned rows has run.
static ALIGNED: AtomicUsize = AtomicUsize::new(0);

/// The product by plain loops; the slots are three addresses, the rows, the depth and the columns.
fn ragged(_: Grid, slots: &[u64]) {
    let &[a, b, c, m, k, n] = slots else { panic!("{} slots", slots.len()) };
    let (m, k, n) = (m as usize, k as usize, n as usize);
    for (i, j) in (0..m * n).map(|at| (at / n, at % n)) {
        // SAFETY: at the addresses are as many elements as the sizes say.
        let term = |p: usize| unsafe {
            (a as *const bf16).add(i * k + p).read().to_f32()
                * (b as *const bf16).add(p * n + j).read().to_f32()
        };
        let sum = (0..k).map(term).sum::<f32>();
        // SAFETY: likewise.
        unsafe { (c as *mut f32).add(i * n + j).write(sum) };
    }
}

fn aligned(grid: Grid, slots: &[u64]) {
    assert!(slots[4].is_multiple_of(8) && slots[5].is_multiple_of(8), "{slots:?}");
    ALIGNED.fetch_add(1, Ordering::Relaxed);
    ragged(grid, slots);
}

/// A GPU of NVIDIA's, whatever the process is for.
fn device_of_nvidia() -> (Device, StandIn) {
    let driver = match StandIn::new(1 << 20, true) {
        driver if driver.surface().family() == Family::Nvptx => driver,
        _ => StandIn::of_another_vendor(1 << 20, true),
    };
    (device_of(&driver), driver)
}

/// Small numbers, whose products' sums are exact.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + seed * 31 + i / 13) % 9) as f32 - 4.0).collect()
}

/// A launch, by a function, of factors of this depth; the product, and what plain loops make of the numbers.
fn run(device: &Device, k: usize, by: impl FnOnce(Launch<'_>)) -> (Vec<f32>, Vec<f32>) {
    let (m, n) = (96, 128);
    let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
    let narrow = |numbers: &[f32]| numbers.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<bf16>>();
    let x = Tensor::from_vec(device, narrow(&a), [m, k]).unwrap();
    let y = Tensor::from_vec(device, narrow(&b), [k, n]).unwrap();
    let mut z = Tensor::full(device, [m, n], f32::NAN).unwrap();
    by(Launch::new(&KERNEL).tensor("a", &x).tensor("b", &y).tensor_mut("c", &mut z));
    let element = |at: usize| (0..k).map(|p| a[at / n * k + p] * b[p * n + at % n]).sum();
    (z.to_vec().unwrap(), (0..m * n).map(element).collect())
}

/// One test, because it counts what runs.
#[test]
#[cfg_attr(miri, ignore = "products of some size")]
fn rows_that_are_not_aligned_are_copied_to_where_they_are() {
    let (device, driver) = device(1 << 20, true);
    let is_nvidia = context(&device).family() == Family::Nvptx;
    driver.add("ragged", 6, ragged);
    driver.add("aligned", 6, aligned);
    let ran_aligned = |k: usize, by: &dyn Fn(Launch<'_>)| {
        let before = ALIGNED.load(Ordering::Relaxed);
        let (found, expected) = run(&device, k, by);
        assert_eq!(found, expected, "depth {k}");
        ALIGNED.load(Ordering::Relaxed) - before == 1
    };
    let stream = Stream::new(&device).unwrap();
    assert_eq!(ran_aligned(37, &|launch| launch.launch().unwrap()), is_nvidia);
    assert_eq!(ran_aligned(37, &|launch| launch.launch_timed().map(|_| ()).unwrap()), is_nvidia);
    assert_eq!(ran_aligned(37, &|launch| launch.on(&stream).unwrap().wait().unwrap()), is_nvidia);
    assert_eq!(ran_aligned(37, &|launch| launch.on(&stream).unwrap().detach()), is_nvidia);
    // Nothing has to be copied, or copies would read more than they save.
    assert_eq!(ran_aligned(40, &|launch| launch.launch().unwrap()), is_nvidia);
    // A graph's launches run again and again: its tensors are as its user gave them.
    let in_graph = |launch: Launch<'_>| {
        let mut graph = Graph::new(&device);
        graph.run(|graph| graph.launch(launch)).unwrap();
    };
    assert!(!ran_aligned(37, &in_graph));
    stream.synchronize().unwrap();
    drop(stream);
    // What was copied is given back.
    assert_eq!(device.memory().unwrap().in_use, 0);
    drop(device);
    assert_eq!(driver.live(), Live::default());
}

/// What runs on copies, and what runs where none are made.
#[test]
#[cfg_attr(miri, ignore = "products of some size")]
fn a_launch_that_is_warmed_loads_no_code_later() {
    let (device, driver) = device_of_nvidia();
    driver.add("ragged", 6, ragged);
    driver.add("aligned", 6, ragged);
    let mut loaded = Vec::new();
    run(&device, 37, |launch| {
        launch.warm().unwrap();
        loaded.push(driver.live().modules);
        launch.launch().unwrap();
        loaded.push(driver.live().modules);
    });
    run(&device, 37, |launch| {
        Graph::new(&device).run(|graph| graph.launch(launch)).unwrap();
    });
    loaded.push(driver.live().modules);
    assert_eq!(loaded, [2; 3]);
}

/// There is room for the tensors, and for nothing else.
#[test]
#[cfg_attr(miri, ignore = "products of some size")]
fn without_memory_for_copies_the_launch_runs_all_the_same() {
    let (device, driver) = device(66_000, true);
    driver.add("ragged", 6, ragged);
    driver.add("aligned", 6, |_, _| panic!("there is no memory for aligned rows"));
    let (found, expected) = run(&device, 37, |launch| launch.launch().unwrap());
    assert_eq!(found, expected);
}

/// The launch itself is the one call whose refusal is its failure.
#[test]
#[cfg_attr(miri, ignore = "products of some size")]
fn refused_copies_leave_the_launch_to_its_tensors() {
    let (device, driver) = device_of_nvidia();
    driver.add("ragged", 6, ragged);
    driver.add("aligned", 6, ragged);
    // Code is loaded before.
    run(&device, 37, |launch| launch.launch().unwrap());
    run(&device, 37, |launch| {
        Graph::new(&device).run(|graph| graph.launch(launch)).unwrap();
    });
    let mut failed = Vec::new();
    for calls in 0..8 {
        let mut launched = Ok(());
        let (found, expected) = run(&device, 37, |launch| {
            driver.refuse_after(calls, Code::INVALID_VALUE);
            launched = launch.launch();
            driver.refuse_nothing();
        });
        match launched {
            Ok(()) => assert_eq!(found, expected, "{calls}"),
            Err(error) => failed.push(format!("{calls}: {error}")),
        }
    }
    assert_eq!(failed.len(), 1, "{failed:#?}");
}
