//! The loader and the driver on a library that a test builds. What AMD's own library does with these calls it can't show.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use super::super::context::Context;
use super::*;
use crate::device::{Device, Kind};
use crate::embedded::{Embedded, EmbeddedCode, Variant, launch};
use crate::launch::KernelDef;
use crate::tensor::Tensor;
use crate::{Error, Launch as KernelLaunch};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use tile_ir::specialize::Binding;

/// The library without one of its functions, or with all of them.
fn built(lacks: Option<&str>) -> PathBuf {
    let name = format!("libamdhip64-{}-{}.so", std::process::id(), lacks.unwrap_or("whole"));
    let library = std::env::temp_dir().join(name);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hip/libamdhip64.rs");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "amdhip64", "-Awarnings"]);
    rustc.args(lacks.map(|name| format!("--cfg={name}"))).arg("-o").arg(&library).arg(source);
    let output = rustc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

fn loaded(lacks: Option<&str>) -> Result<Functions, String> {
    let library = built(lacks);
    let functions = Functions::load(&["libnowhere.so", library.to_str().unwrap()]);
    // It stays mapped as long as it is used.
    std::fs::remove_file(library).unwrap();
    functions
}

/// The driver on the whole library.
fn hip() -> Hip {
    gpu(0)
}

fn gpu(ordinal: usize) -> Hip {
    static WHOLE: OnceLock<Functions> = OnceLock::new();
    Hip::of(WHOLE.get_or_init(|| loaded(None).unwrap()), ordinal).unwrap()
}

#[test]
fn a_missing_library_is_named() {
    let message = Functions::load(&["libnowhere.so", "libnowhere.so.6"]).err().unwrap();
    assert!(message.starts_with("no HIP runtime is installed (libnowhere.so: "), "{message}");
}

#[test]
fn a_missing_function_is_named() {
    let message = loaded(Some("hipEventQuery")).err().unwrap();
    assert!(message.contains("-hipEventQuery.so` isn't a HIP runtime of ROCm 6.0 or later"), "{message}");
    assert!(message.contains("it lacks `hipEventQuery` ("), "{message}");
}

#[test]
fn the_device_is_described() {
    let hip = hip();
    assert_eq!(count_of(hip.hip), Ok(2));
    let description = hip.describe().unwrap();
    assert_eq!(description.name, "AMD Instinct MI300X");
    assert_eq!(description.architecture, Architecture::Amd("gfx942".to_owned()));
    assert_eq!((description.multiprocessors, description.warp), (304, 64));
    assert_eq!((description.shared_bytes, description.l2_bytes), (65536, 4 << 20));
    assert_eq!((description.clock, description.memory_rate), (Some(2.1e9), Some(2.6624e12)));
    assert_eq!(description.driver, "HIP 6.3");
    assert!(description.pools && !description.clusters);
}

#[test]
fn errors_have_the_librarys_words() {
    let hip = hip();
    let failure = hip.allocate(usize::MAX / 2).unwrap_err();
    let message = "out of memory (hipErrorOutOfMemory)".to_owned();
    assert_eq!(failure, Failure { kind: FailureKind::OutOfMemory, message });
    let third = Hip { ordinal: 2, hip: hip.hip, images: Mutex::default(), peers: Peers::default() };
    let failure = third.memory().unwrap_err();
    assert_eq!(failure, Failure::refused("invalid device ordinal (hipErrorInvalidDevice)"));
}

#[test]
fn queries_and_times_are_read() {
    let hip = hip();
    let event = hip.create_event(true).unwrap();
    // SAFETY: the event was made above. The library's event of this name is never done.
    unsafe {
        assert!(!hip.is_done(EventHandle(0)).unwrap());
        assert!(hip.is_done(event).unwrap());
        assert_eq!(hip.elapsed(event, event).unwrap(), 2.5e-3);
    }
}

#[test]
fn patterns_of_every_width_are_written() {
    let hip = hip();
    let address = hip.allocate(32).unwrap();
    let mut read = [0_u8; 32];
    // SAFETY: the memory has as many bytes on both sides, and the library does at once what it is asked to.
    unsafe {
        hip.fill(address, Pattern::Byte(7), 32, StreamHandle::DEFAULT).unwrap();
        hip.fill(address + 8, Pattern::Half(0x0201), 4, StreamHandle::DEFAULT).unwrap();
        hip.fill(address + 16, Pattern::Word(0xF403_0201), 2, StreamHandle::DEFAULT).unwrap();
        hip.download(read.as_mut_ptr(), address, 32, StreamHandle::DEFAULT).unwrap();
        hip.free(address).unwrap();
    }
    let expected = [[7; 8], [1, 2, 1, 2, 1, 2, 1, 2], [1, 2, 3, 0xF4, 1, 2, 3, 0xF4], [7; 8]];
    assert_eq!(read, *expected.as_flattened());
}

#[test]
fn rows_are_copied_and_filled() {
    let hip = hip();
    let (address, stream) = (hip.allocate(48).unwrap(), StreamHandle::DEFAULT);
    let rows = |first, pitch| Rows { first: address + first, pitch };
    let size = RowSize { width: 2, height: 3 };
    let mut read = [0_u8; 48];
    // SAFETY: as above.
    unsafe {
        hip.fill(address, Pattern::Byte(0), 48, stream).unwrap();
        assert!(hip.fill_rows(rows(1, 8), Pattern::Byte(7), size, stream).unwrap());
        assert!(!hip.fill_rows(rows(0, 8), Pattern::Half(0x0201), size, stream).unwrap());
        hip.copy_rows(rows(24, 4), rows(2, 8), size, stream).unwrap();
        hip.download(read.as_mut_ptr(), address, 48, stream).unwrap();
        hip.free(address).unwrap();
    }
    let (filled, mut expected) = ([0, 7, 7, 0, 0, 0, 0, 0], [0; 48]);
    expected[..24].copy_from_slice([filled; 3].as_flattened());
    expected[24..36].copy_from_slice([[7, 0, 0, 0]; 3].as_flattened());
    assert_eq!(read, expected);
}

#[test]
fn another_gpus_memory_is_copied_on_the_way_that_is_opened_first() {
    let [to, from] = [0, 1].map(gpu);
    let device = |hip| Device(Kind::Gpu(Arc::new(Context::new(Box::new(hip)).unwrap())));
    let [to, from] = [to, from].map(device);
    let x = Tensor::from_vec(&from, (0..100).collect::<Vec<i32>>(), [100]).unwrap();
    for _ in 0..2 {
        let y = x.slice(10..30).unwrap().copy_to(&to).unwrap();
        assert_eq!(y.to_vec().unwrap(), (10..30).collect::<Vec<i32>>());
    }
}

#[test]
fn every_thread_launches_a_code_object() {
    const DOUBLE: &str = "\
kernel @double<B>(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [B] : partition<n x f32, [B]>
  %vy = partition %y [B] : mut partition<n x f32, [B]>
  %i = block_index %vy : index
  %t = load %vx[%i] : tile<B x f32>
  %d = add %t, %t : tile<B x f32>
  store %vy, %d
}
";
    static EMBEDDED: [Embedded; 1] = [Embedded {
        target: "gfx942",
        bindings: &[("B", Binding::Const(4))],
        variant: Variant::General,
        code: EmbeddedCode::Hsaco(b"double"),
        symbol: "double",
        launch: launch(64, 0, 0, false, 1),
        tensor_maps: &[],
    }];
    static KERNEL: KernelDef = KernelDef::new("double", DOUBLE, &EMBEDDED);
    let device = Device(Kind::Gpu(Arc::new(Context::new(Box::new(hip())).unwrap())));
    assert_eq!(device.to_string(), "hip:0 (AMD Instinct MI300X)");
    std::thread::scope(|scope| {
        for n in [4, 8, 64] {
            let device = &device;
            scope.spawn(move || {
                let x = Tensor::from_vec(device, (0..n).map(|i| i as f32).collect(), [n]).unwrap();
                let mut y = Tensor::<f32>::zeros(device, [n]).unwrap();
                let launch = KernelLaunch::new(&KERNEL).constant("B", 4);
                launch.tensor("x", &x).tensor_mut("y", &mut y).launch().unwrap();
                assert_eq!(y.to_vec().unwrap(), (0..n).map(|i| 2.0 * i as f32).collect::<Vec<_>>());
            });
        }
    });
    let error = Tensor::<u8>::zeros(&device, [2 << 30]).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
}
