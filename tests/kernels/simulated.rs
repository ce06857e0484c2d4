//! GPUs that this machine simulates, as devices of a program: what a launch says of a kernel that does what no GPU allows,
//! and that messages, streams and choices are as on any device. The kernels of the other tests run on them, too.

#![cfg(feature = "jit")]
#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use super::numbers;
use std::process::Command;
use tile::prelude::*;
use tile::{Error, SimulatedBlock, Stream};

/// The tile behind the block's own, for which nobody can vouch.
#[tile_kernel]
fn beyond(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([64]);
    let mut y = y.partition_view_mut([64]);
    let [i] = y.index();
    // SAFETY: there is nothing to vouch for it, which is what the launch has to say.
    y.store(unsafe { x.load_unchecked([i + 1]) });
}

#[test]
fn a_read_outside_is_an_error_with_its_line() {
    for target in ["sm_80", "sm_90a", "gfx942", "gfx1100"] {
        let device = Device::simulated(target).unwrap();
        let x = Tensor::from_slice(&device, &[1.0; 128], [128]).unwrap();
        let mut y = Tensor::zeros(&device, [128]).unwrap();
        let error = beyond(&x, &mut y).launch().unwrap_err();
        let line = line!() - 10;
        assert_eq!(
            error.reason().to_string(),
            format!(
                "fault in block [1] of kernel `beyond` on simulated:{target}, at \
                 tests/kernels/simulated.rs:{line}:22: thread 0: accesses 4 bytes at byte 512 of `x`, which has 512"
            )
        );
    }
}

/// The row behind the block's own, of rows that the blocks of a cluster share where there are clusters.
#[tile_kernel]
fn below(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([1, 65536]);
    let mut y = y.partition_view_mut([1, 65536]);
    let [i, j] = y.index();
    // SAFETY: as above.
    y.store(unsafe { x.load_unchecked([i + 1, j]) } * 2.0);
}

#[test]
fn blocks_that_share_a_tile_have_its_index() {
    let device = Device::simulated("sm_90a").unwrap();
    let x = Tensor::ones(&device, [2, 65536]).unwrap();
    let mut y = Tensor::zeros(&device, [2, 65536]).unwrap();
    let error = below(&x, &mut y).launch().unwrap_err();
    let Error::Simulation { block, .. } = error.reason() else { panic!("{error}") };
    // Four blocks have the first row.
    assert_eq!(*block, SimulatedBlock::Index(vec![1, 0]));
    assert!(
        error.to_string().starts_with("fault in block [1, 0] of kernel `below` on simulated:sm_90a, at ")
    );
}

/// The rows of A behind those of the block's tile.
#[tile_kernel]
fn product_below(a: &Tensor<bf16, m, k>, b: &Tensor<bf16, k, n>, c: &mut Tensor<f32, m, n>) {
    let a = a.partition_view([16, 16]);
    let b = b.partition_view([16, 16]);
    let mut c = c.partition_view_mut([16, 16]);
    let [i, j] = c.index();
    let mut sum = Tile::zeros([16, 16]);
    for p in 0..a.tiles(1) {
        // SAFETY: as above.
        sum = mma(unsafe { a.load_unchecked([i + 1, p]) }, b.load_masked([p, j]), sum);
    }
    c.store_masked(sum);
}

/// As [`product_below`], of blocks that go from tile to tile.
#[tile_kernel]
fn persistent_below(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([64]);
    let mut y = y.partition_view_mut([64]);
    for mut tile in y.tiles_persistent(RowMajor) {
        let [i] = tile.index();
        // SAFETY: as above.
        tile.store(unsafe { x.load_unchecked([i + 1]) });
    }
}

/// Successive blocks of a device of several parts don't have successive places of the grid, and those of a persistent kernel
/// have many.
#[test]
fn blocks_without_a_place_in_the_order_of_the_grid_are_told_by_number() {
    let device = Device::simulated("gfx942").unwrap();
    let [a, b] = [0; 2].map(|_| Tensor::<bf16>::ones(&device, [64, 64]).unwrap());
    let mut c = Tensor::zeros(&device, [64, 64]).unwrap();
    // Each of 8 parts has two of 16 places, which go down the columns. That of the last row, which faults, and the first
    // column is the fourth: the second of the second part, whose blocks are 1 and 9.
    let in_parts = product_below(&a, &b, &mut c).launch().unwrap_err();
    let x = Tensor::ones(&device, [256]).unwrap();
    let mut y = Tensor::zeros(&device, [256]).unwrap();
    let of_many = persistent_below(&x, &mut y).blocks(2).launch().unwrap_err();
    for (error, name, expected) in [(in_parts, "product_below", 9), (of_many, "persistent_below", 1)] {
        let Error::Simulation { block, .. } = error.reason() else { panic!("{error}") };
        assert_eq!(*block, SimulatedBlock::Number(expected), "{error}");
        let message =
            format!("fault in block {expected} of the launch of kernel `{name}` on simulated:gfx942, at ");
        assert!(error.to_string().starts_with(&message), "{error}");
    }
}

/// Says what it is about to do, and does what no GPU allows.
#[tile_kernel]
fn announced(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([64]);
    let mut y = y.partition_view_mut([64]);
    let [i] = y.index();
    tile_println!("block {i} reads tile {}", i + 1);
    // SAFETY: as above.
    y.store(unsafe { x.load_unchecked([i + 1]) });
}

#[test]
fn what_was_printed_before_a_fault_is_told() {
    for target in ["sm_90a", "gfx942"] {
        let device = Device::simulated(target).unwrap();
        let x = Tensor::from_slice(&device, &[1.0; 128], [128]).unwrap();
        let mut y = Tensor::zeros(&device, [128]).unwrap();
        let mut said = Vec::new();
        let launch = announced(&x, &mut y).on_print(|line| said.push(line.to_owned()));
        let error = launch.launch().unwrap_err();
        assert!(matches!(error.reason(), Error::Simulation { .. }), "{error}");
        assert_eq!(said, ["block 0 reads tile 1", "block 1 reads tile 2"], "{target}");
    }
}

#[tile_kernel(instances(BM = 16 | 64, BN = 16 | 64, BK = 16))]
fn product<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<bf16, m, k>,
    b: &Tensor<bf16, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut sum = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        sum = mma(a.load_masked([i, p]), b.load_masked([p, j]), sum);
    }
    tile_assert!(sum.abs() <= k as f32, "|sum| > {k}");
    if i == 0 && j == 0 {
        tile_println!("first {:.3}", sum.extract([0, 0], [1, 1]).item());
    }
    c.store_masked(sum);
}

/// Tensor cores, copies, messages and a stream: on every target the best instance gives what plain loops do.
#[test]
fn products_on_a_stream_of_every_target() {
    let [m, n, k] = [70, 40, 48];
    let (a, b) = (numbers::<bf16>(m * k, 1), numbers::<bf16>(k * n, 2));
    let element = |i: usize, j: usize| (0..k).map(|p| a[i * k + p].to_f32() * b[p * n + j].to_f32()).sum();
    let expected: Vec<f32> = (0..m * n).map(|at| element(at / n, at % n)).collect();
    let gpus = tile::ir::target::TARGETS.iter().filter(|target| target.name.starts_with(['s', 'g']));
    for target in gpus {
        let device = Device::simulated(target.name).unwrap();
        let stream = Stream::new(&device).unwrap();
        let a = Tensor::from_slice(&device, &a, [m, k]).unwrap();
        let b = Tensor::from_slice(&device, &b, [k, n]).unwrap();
        let mut c = Tensor::zeros(&device, [m, n]).unwrap();
        let mut said = Vec::new();
        product::best(&a, &b, &mut c).on_print(|line| said.push(line.to_owned())).launch().unwrap();
        assert_eq!(said, [format!("first {:.3}", expected[0])], "{}", target.name);
        assert_eq!(c.to_vec().unwrap(), expected, "{}", target.name);
        c.fill(0.0).unwrap();
        product::<16, 16, 16>(&a, &b, &mut c).on(&stream).unwrap().wait().unwrap();
        assert_eq!(c.to_vec().unwrap(), expected, "{}", target.name);
    }
}

#[test]
fn a_product_of_few_rows() {
    let device = Device::simulated("sm_90a").unwrap();
    let [a, b] =
        [1, 2].map(|seed| Tensor::from_slice(&device, &numbers::<bf16>(256, seed), [16, 16]).unwrap());
    let mut c = Tensor::zeros(&device, [16, 16]).unwrap();
    product::<16, 16, 16>(&a, &b, &mut c).on_print(|_| ()).launch().unwrap();
}

/// What a build script warns of is told of code that is made at run time, where somebody listens.
#[test]
fn slow_products_are_told_of_where_they_are_compiled_at_run_time() {
    let (_, module) = module_path!().split_once("::").unwrap();
    let said = |level: &str| {
        let mut program = Command::new(std::env::current_exe().unwrap());
        let test = format!("{module}::a_product_of_few_rows");
        let output = program.args(["--exact", &test]).env("TILE_LOG", level).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let log = said("info");
    let is_remark = |line: &str| {
        line.contains("kernel=product instance=BM = 16, BN = 16, BK = 16")
            && line.contains("a product isn't done by warpgroups (`wgmma`) but by `mma.sync` m16n8k16")
    };
    assert!(log.lines().any(is_remark), "{log}");
    assert!(!said("warn").contains("a product"));
}

#[test]
fn a_device_of_no_target_is_refused() {
    let error = Device::named("simulated:sm_35").unwrap_err();
    assert!(matches!(&error, Error::NoDevice { .. }));
    assert!(error.to_string().starts_with(
        "device `simulated:sm_35` isn't available: the targets that can be simulated are sm_80, "
    ));
    let device = Device::named("simulated:gfx942").unwrap();
    assert_eq!((device.name(), device.to_string()), ("simulated:gfx942".into(), "simulated:gfx942".into()));
    assert!(device == Device::simulated("gfx942").unwrap() && device != Device::simulated("sm_80").unwrap());
}

#[tile_kernel]
fn copied(a: &Tensor<bf16, m, k>, b: &Tensor<bf16, k, n>, c: &mut Tensor<f32, m, n>) {
    let a = a.partition_view([64, 64]);
    let b = b.partition_view([64, 64]);
    let mut c = c.partition_view_mut([64, 64]);
    let [i, j] = c.index();
    let mut sum = Tile::zeros([64, 64]);
    for p in 0..a.tiles(1) {
        sum = mma(a.load_masked([i, p]), b.load_masked([p, j]), sum);
    }
    c.store_masked(sum);
}

/// A part that begins two bytes behind a multiple of 16 is described to the code as on a GPU: no tensor map begins there.
#[test]
fn parts_that_begin_anywhere_are_multiplied_on_every_target() {
    let [m, n, k] = [40, 48, 64];
    let (a, b) = (numbers::<bf16>(m * (k + 8), 1), numbers::<bf16>(k * n, 2));
    let element =
        |i: usize, j: usize| (0..k).map(|p| a[i * (k + 8) + p + 1].to_f32() * b[p * n + j].to_f32()).sum();
    let expected: Vec<f32> = (0..m * n).map(|at| element(at / n, at % n)).collect();
    for target in ["sm_80", "sm_90a", "gfx942"] {
        let device = Device::simulated(target).unwrap();
        let a = Tensor::from_slice(&device, &a, [m, k + 8]).unwrap();
        let b = Tensor::from_slice(&device, &b, [k, n]).unwrap();
        let mut c = Tensor::zeros(&device, [m, n]).unwrap();
        copied(&a.slice((.., 1..k + 1)).unwrap(), &b, &mut c).launch().unwrap();
        assert_eq!(c.to_vec().unwrap(), expected, "{target}");
    }
}

/// More elements along an axis than a driver's tensor maps can count.
#[test]
fn a_tensor_that_no_tensor_map_is_of_is_an_error() {
    let (device, k) = (Device::simulated("sm_90a").unwrap(), 1 << 33);
    // SAFETY: there are no such elements, but the launch is refused before anything is read.
    let huge = |shape: [usize; 2]| unsafe { Tensor::<bf16>::from_raw(&device, 1 << 20, shape) }.unwrap();
    let (a, b) = (huge([64, k]), huge([k, 64]));
    let mut c = Tensor::zeros(&device, [64, 64]).unwrap();
    let error = copied(&a, &b, &mut c).launch().unwrap_err();
    assert!(matches!(error.reason(), Error::TensorMap(_)), "{error}");
    assert!(
        error.to_string().starts_with(
            "kernel `copied` can't copy boxes of `a`: its axis 0 (from the innermost) has 8589934592 elements, where 1 to \
             2³¹ − 1 are possible; launch it on parts\n  --> tests/kernels/simulated.rs:"
        ),
        "{error}"
    );
}
