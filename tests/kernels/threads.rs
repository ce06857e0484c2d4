//! Threads of the CPU. Grids are long enough that several run them at once: what blocks share is updated by atomic
//! instructions, locks keep them apart, and waits end. The program is run again where the environment says how many they are.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use super::programs;
use super::sequences::{look_back, prefix_sums};
use std::sync::{Mutex, PoisonError};
use tile::prelude::*;

/// Blocks of a grid that takes milliseconds.
const BLOCKS: usize = 1 << 18;

/// Launches, in some of which threads run at the same time, however much else a machine does.
const LAUNCHES: usize = 8;

/// More than the processors of small machines: threads are interrupted anywhere, also where they have a lock.
const THREADS: usize = 4;

/// Does something while so many threads run grids. Other tests of this process launch with as many meanwhile.
fn on_threads(run: impl FnOnce(&Device)) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let before = tile::cpu::threads();
    tile::cpu::set_threads(THREADS);
    run(&Device::cpu());
    tile::cpu::set_threads(before);
}

/// Every block draws a number, adds to one of many halves that lie side by side, and to numbers behind a lock. The first one
/// begins when another thread has drawn; where none comes for long, it goes on alone.
#[tile_kernel]
fn together(
    counter: &mut Tensor<u64, 1>,
    halves: &mut Tensor<f16, 256>,
    lock: &mut Tensor<i32, 1>,
    sums: &mut Tensor<f32, 96>,
    drawn: &mut Tensor<u64, n>,
) {
    let (counter, halves) = (counter.atomic_view(), halves.atomic_view());
    let (lock, sums) = (lock.atomic_view(), sums.atomic_view());
    let mut drawn = drawn.partition_view_mut([1]);
    let [i] = drawn.index();
    let mut turns = 0;
    while i == 0 && turns < 100_000_000 && counter.load([0], Relaxed, DeviceScope) == 0 {
        turns += 1;
    }
    drawn.store(counter.fetch_add([0], Tile::ones([1]), Relaxed, DeviceScope));
    halves.fetch_add([i % 256], Tile::ones([1]), Relaxed, DeviceScope);
    let all = Tile::<i32, 1>::iota([96], 0);
    while lock.compare_exchange([0], 0, 1, Acquire, DeviceScope) != 0 {}
    let sum = sums.load([all], Relaxed, DeviceScope) + 1.0;
    sums.store([all], sum, Relaxed, DeviceScope);
    lock.store([0], 0, Release, DeviceScope);
}

#[test]
fn nothing_is_lost_where_threads_update_at_once() {
    on_threads(|device| {
        for _ in 0..LAUNCHES {
            let mut counter = Tensor::zeros(device, [1]).unwrap();
            let mut halves = Tensor::zeros(device, [256]).unwrap();
            let mut lock = Tensor::zeros(device, [1]).unwrap();
            let mut sums = Tensor::zeros(device, [96]).unwrap();
            let mut drawn = Tensor::zeros(device, [BLOCKS]).unwrap();
            together(&mut counter, &mut halves, &mut lock, &mut sums, &mut drawn).launch().unwrap();
            assert_eq!(counter.to_vec().unwrap(), [BLOCKS as u64]);
            let mut is_drawn = vec![false; BLOCKS];
            drawn.to_vec().unwrap().into_iter().for_each(|number| is_drawn[number as usize] = true);
            assert!(!is_drawn.contains(&false), "each number is drawn once");
            assert_eq!(halves.to_vec().unwrap(), [f16::from_f32((BLOCKS / 256) as f32); 256]);
            assert_eq!(sums.to_vec().unwrap(), [BLOCKS as f32; 96]);
        }
    });
}

#[test]
fn threads_wait_for_what_others_publish() {
    const TILE: usize = 2;
    let x: Vec<i32> = (0..(BLOCKS * TILE) as i32).map(|i| i * 37 % 1000).collect();
    let sums = prefix_sums(&x);
    on_threads(|device| {
        let x = Tensor::from_slice(device, &x, [x.len()]).unwrap();
        for _ in 0..LAUNCHES {
            let mut state = Tensor::zeros(device, [BLOCKS + 1]).unwrap();
            let mut y = Tensor::zeros(device, [sums.len()]).unwrap();
            look_back::<TILE>(&x, &mut state, &mut y).launch().unwrap();
            assert!(y.to_vec().unwrap() == sums);
        }
    });
}

/// A program of its own for the tests below: it says how many threads run its grids, and where those of the pool may run.
#[test]
fn a_program_tells_of_its_threads() {
    // The test harness may not have ended its line.
    println!("\n{} threads", tile::cpu::threads());
    #[cfg(target_os = "linux")]
    for (name, processors) in workers() {
        println!("{name} on {processors:?}");
    }
}

/// The threads of the pool and the processors on which each may run, when all have begun and, if they are to be bound, are.
#[cfg(target_os = "linux")]
fn workers() -> Vec<(String, Vec<usize>)> {
    use std::fs;
    let is_pinned = std::env::var("TILE_PIN").is_ok_and(|text| text == "on");
    let read = |task: &std::path::Path| {
        let name = fs::read_to_string(task.join("comm")).ok()?.trim().to_owned();
        let status = fs::read_to_string(task.join("status")).ok()?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim();
        let ends = |range: &str| -> Option<_> {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
        };
        let processors = list.split(',').filter_map(ends).flatten().collect();
        name.starts_with("tile-").then_some((name, processors))
    };
    for _ in 0..1000 {
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let mut workers: Vec<(String, Vec<usize>)> =
            tasks.filter_map(|task| read(&task.ok()?.path())).collect();
        workers.sort();
        let have_begun = workers.len() + 1 == tile::cpu::threads();
        if have_begun && (!is_pinned || workers.iter().all(|(_, processors)| processors.len() == 1)) {
            return workers;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("after ten seconds no threads are as they are asked for")
}

/// What a program says of its threads, and what it warns of.
fn told(variables: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let ran = programs::run("threads::a_program_tells_of_its_threads", variables);
    let is_own = |line: &&str| line.ends_with(" threads") || line.starts_with("tile-");
    let warnings = ran.told.lines().filter(|line| line.starts_with("tile: "));
    (ran.said.lines().filter(is_own).map(str::to_owned).collect(), warnings.map(str::to_owned).collect())
}

#[test]
fn the_environment_says_how_many_threads_there_are() {
    let count = |threads| {
        let (said, warnings) = told(&[("TILE_THREADS", threads), ("TILE_PIN", "off")]);
        (said[0].clone(), warnings)
    };
    assert_eq!(count("5"), ("5 threads".to_owned(), vec![]));
    let all = std::thread::available_parallelism().unwrap();
    let warning =
        "tile: TILE_THREADS is `0`, which isn't a number of threads from 1 on; it counts as not set";
    assert_eq!(count("0"), (format!("{all} threads"), vec![warning.to_owned()]));
}

#[cfg(target_os = "linux")]
#[test]
fn the_environment_binds_threads() {
    let with = |pin| told(&[("TILE_THREADS", "2"), ("TILE_PIN", pin)]);
    let (free, warnings) = with("off");
    let [_, worker] = &free[..] else { panic!("one thread beside the one that launches: {free:?}") };
    assert_eq!(warnings, [""; 0]);
    let (bound, warnings) = with("on");
    let processors = worker.strip_prefix("tile-1 on [").unwrap().trim_end_matches(']').split(", ");
    let mut on_one = processors.map(|processor| format!("tile-1 on [{processor}]"));
    assert!(on_one.any(|worker| worker == bound[1]), "{bound:?} of {worker}");
    assert_eq!(warnings, [""; 0]);
    let warning = "tile: TILE_PIN is `yes`, which isn't `on` or `off`; it counts as not set";
    assert_eq!(with("yes"), (free, vec![warning.to_owned()]));
}
