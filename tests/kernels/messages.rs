//! `tile_println!` and `tile_assert!`: what a user reads, on every device.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use tile::ir::{Binding, VerifiedKernel, interp, log, specialize};
use tile::prelude::*;

/// Every kind of argument: scalars, sizes, tiles, comparisons, names in the text; in loops and branches.
#[tile_kernel]
fn talk<const B: usize>(x: &Tensor<f32, n>, scale: f16, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let t = x.load_masked([i]);
    tile_println!("{i} of {n}: {t}, {:?} {0:.2} {} {{{s}}}", scale, t < 0.0, s = B + 1);
    for k in 0..2 {
        if i == 1 {
            tile_println!("{i}, turn {k}: {:+6.1}", t.sum(0));
        }
    }
    y.store_masked(t + t);
}

const NUMBERS: [f32; 3] = [1.0, -0.5, 2.25];

/// The lines, sorted: blocks may run at once.
fn lines(device: &Device, bytes: Option<usize>) -> Vec<String> {
    let x = Tensor::from_slice(device, &NUMBERS, [3]).unwrap();
    let mut y = Tensor::zeros(device, [3]).unwrap();
    let mut lines = Vec::new();
    let launch = talk::<2>(&x, f16::from_f32(1.5), &mut y).on_print(|line| lines.push(line.to_owned()));
    match bytes {
        Some(bytes) => launch.log_bytes(bytes).launch().unwrap(),
        None => launch.launch().unwrap(),
    }
    assert_eq!(y.to_vec().unwrap(), [2.0, -1.0, 4.5]);
    lines.sort();
    lines
}

/// What the evaluator of the IR says, as text.
fn evaluated(
    ir: &VerifiedKernel,
    bindings: &[(String, Binding)],
    arguments: &mut [tile::ir::Array],
) -> Vec<String> {
    let instance = specialize(ir, bindings).unwrap();
    let sites = log::sites(&instance);
    let events = interp::run_logged(&instance, arguments).unwrap();
    let site = |event: &log::Event| sites.iter().find(|site| site.number == event.site).unwrap();
    events.iter().map(|event| site(event).text(event)).collect()
}

#[test]
fn lines_are_the_same_everywhere() {
    let expected = [
        "0 of 3: [ 1.0, -0.5], 1.5 1.50 [false,  true] {3}",
        "1 of 3: [2.25,  0.0], 1.5 1.50 [false, false] {3}",
        "1, turn 0: [  +2.2]",
        "1, turn 1: [  +2.2]",
    ];
    for (device, label) in super::devices() {
        assert_eq!(lines(&device, None), expected, "{label}");
    }
    let scale = tile::ir::Array::scalar(tile::ir::DType::F16, tile::ir::ops::Literal::Float(1.5));
    let mut arguments = [super::array(&NUMBERS, &[3]), scale, super::array(&[0.0f32; 3], &[3])];
    assert_eq!(evaluated(&talk::ir(), &[("B".to_owned(), Binding::Const(2))], &mut arguments), expected);
}

#[cfg(feature = "jit")]
#[test]
fn what_does_not_fit_the_log_is_left_out() {
    // A record of the first line is site, block, i, n, t, scale, the comparison and s: 2 + 1 + 1 + 2 + 1 + 2 + 1.
    assert_eq!(lines(&Device::cpu(), Some(80)).len(), 1);
    assert_eq!(lines(&Device::cpu(), Some(79)), [""; 0]);
}

/// A program of its own for the test below.
#[cfg(feature = "jit")]
#[test]
fn a_program_talks() {
    let device = Device::cpu();
    let x = Tensor::from_slice(&device, &NUMBERS, [3]).unwrap();
    let mut y = Tensor::zeros(&device, [3]).unwrap();
    // The test harness may not have ended its line.
    println!();
    talk::<2>(&x, f16::from_f32(1.5), &mut y).launch().unwrap();
}

#[cfg(feature = "jit")]
#[test]
fn a_log_is_as_large_as_the_environment_says() {
    let loss = "tile: kernel `talk` said more than its log of 80 bytes holds: 160 bytes are lost; make room with \
                `.log_bytes(…)` or TILE_LOG_BYTES";
    let unknown = "tile: TILE_LOG_BYTES is `much`, which isn't a number of bytes such as 64K or 4M; it counts as not set";
    // How many of its four lines it says, and what else it tells.
    let cases = [("80", 1, vec![loss]), ("1K", 4, vec![]), ("much", 4, vec![unknown])];
    for (bytes, lines, told) in cases {
        let variables = [("TILE_LOG_BYTES", bytes), ("TILE_THREADS", "1")];
        let ran = super::programs::run("messages::a_program_talks", &variables);
        let said =
            ran.said.lines().filter(|line| line.starts_with("0 of 3") || line.starts_with('1')).count();
        assert_eq!((said, ran.told_of("TILE_LOG_BYTES")), (lines, told), "{bytes}: {ran:?}");
    }
}

/// Messages of each form; the place is that of the assertion.
#[tile_kernel]
fn checked<const B: usize>(x: &Tensor<f32, m, n>, limit: f32, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([2, B]);
    let mut y = y.partition_view_mut([2, B]);
    let [i, j] = y.index();
    let t = x.load_masked([i, j]);
    tile_assert!(limit > 0.0);
    tile_assert!(t <= limit, "row {i}: {t:.1} exceeds {}", limit);
    for k in 0..2 {
        let least = t.min([0, 1]).item();
        tile_assert!(least > -2.0 * (k + 1) as f32 && !(limit == 7.0));
    }
    y.store_masked(t);
}

const FIRST_LINE: u32 = line!() - 9;

fn failure(device: &Device, numbers: [f32; 8], limit: f32) -> String {
    let x = Tensor::from_slice(device, &numbers, [4, 2]).unwrap();
    let mut y = Tensor::zeros(device, [4, 2]).unwrap();
    match checked::<2>(&x, limit, &mut y).launch() {
        Ok(()) => "passed".to_owned(),
        Err(error) => error.reason().to_string(),
    }
}

#[test]
fn assertions_name_block_place_and_values() {
    let at = |line: u32| format!("tests/kernels/messages.rs:{}", FIRST_LINE + line);
    let fine = [0.5; 8];
    let mut large = fine;
    large[6] = 3.0;
    let mut low = fine;
    low[1] = -2.5;
    let expected = [
        (fine, 1.0, "passed".to_owned()),
        (
            fine,
            -1.0,
            format!("assertion failed in block [0, 0] of kernel `checked`, at {}:5: limit > 0.0", at(0)),
        ),
        (
            large,
            2.0,
            format!(
                "assertion failed in block [1, 0] of kernel `checked`, at {}:5: row 1: [[0.5, 0.5],\n [3.0, 0.5]] \
                 exceeds 2 (false at element [1, 0] of the condition)",
                at(1)
            ),
        ),
        (
            low,
            1.0,
            format!(
                "assertion failed in block [0, 0] of kernel `checked`, at {}:9: least > -2.0 * (k + 1) as f32 && \
                 !(limit == 7.0)",
                at(4)
            ),
        ),
    ];
    for (device, label) in super::devices() {
        for (numbers, limit, text) in &expected {
            assert_eq!(failure(&device, *numbers, *limit), *text, "{label}");
        }
    }
}

#[cfg(feature = "jit")]
#[test]
fn an_assertion_without_room_is_an_error_all_the_same() {
    let device = Device::cpu();
    let x = Tensor::from_slice(&device, &[9.0; 8], [4, 2]).unwrap();
    let mut y = Tensor::zeros(&device, [4, 2]).unwrap();
    let error = checked::<2>(&x, 1.0, &mut y).log_bytes(0).launch().unwrap_err();
    assert_eq!(
        error.reason().to_string(),
        "kernel `checked`: 2 assertions failed, but what was printed before left no room to say which; launch it \
         with a larger `.log_bytes(…)`"
    );
}

#[cfg(feature = "jit")]
#[test]
fn a_log_that_memory_cannot_hold_is_an_error() {
    let device = Device::cpu();
    let x = Tensor::from_slice(&device, &[0.5; 8], [4, 2]).unwrap();
    let mut y = Tensor::zeros(&device, [4, 2]).unwrap();
    for bytes in [usize::MAX, 1 << 62] {
        let error = checked::<2>(&x, 1.0, &mut y).log_bytes(bytes).launch().unwrap_err();
        assert!(matches!(error.reason(), tile::Error::OutOfMemory { .. }), "{error}");
    }
}

/// A generic scalar and tile; a condition that is known; a message in a loop that may end.
#[tile_kernel]
fn generic<T: Number, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    tile_assert!(true, "always");
    let mut count = 0;
    loop {
        count += 1;
        if count > 2 {
            break;
        }
        tile_println!("{count}: {:4}", t);
    }
    y.store_masked(t);
}

#[test]
fn generic_kernels_speak_too() {
    for (device, label) in super::devices() {
        let x = Tensor::from_slice(&device, &[3i8, -20], [2]).unwrap();
        let mut y = Tensor::zeros(&device, [2]).unwrap();
        let mut lines = Vec::new();
        let launch = generic::<i8, 2>(&x, &mut y).on_print(|line| lines.push(line.to_owned()));
        launch.launch().unwrap();
        assert_eq!(lines, ["1: [   3,  -20]", "2: [   3,  -20]"], "{label}");
    }
}

/// What stands in the index of an assignment is computed once, as in Rust.
#[tile_kernel]
fn told_once(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([2]);
    let mut y = y.partition_view_mut([2]);
    let t = x.load_masked(y.index());
    let mut parts = [[t, t], [t * 3, t]];
    let mut counts = [0, 1];
    parts[{
        tile_println!("tile");
        1
    }][{
        tile_println!("of tile");
        0
    }] += t;
    counts[{
        tile_println!("count");
        1
    }] += t.max(0).item();
    y.store_masked(parts[1][0] + added(counts[1]));
}

#[tile_fn]
fn added(count: i32) -> i32 {
    let mut counts = [count, count];
    counts[{
        tile_println!("of function");
        0
    }] += 1;
    counts[0]
}

#[test]
fn an_index_of_an_assignment_is_computed_once() {
    for (device, label) in super::devices() {
        let x = Tensor::from_slice(&device, &[1, 2], [2]).unwrap();
        let mut y = Tensor::zeros(&device, [2]).unwrap();
        let mut lines = Vec::new();
        told_once(&x, &mut y).on_print(|line| lines.push(line.to_owned())).launch().unwrap();
        assert_eq!(lines, ["tile", "of tile", "count", "of function"], "{label}");
        assert_eq!(y.to_vec().unwrap(), [4 + 4, 8 + 4], "{label}");
    }
}
