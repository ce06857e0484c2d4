//! The loader and the driver on a library that a test builds. What AMD's own library does with these calls it can't show.
//! What the runtime makes of a driver is tested on the same library by `gpu/tests`.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use super::super::stand_in::vendors::{self, Folder, Vendor};
use super::*;

/// In a process that has the library, the tests of the calls alone.
#[test]
fn the_suite_passes_on_the_functions_of_hip() {
    vendors::suite(
        Vendor::Hip,
        "gpu::hip::tests::",
        &[
            ("the_device_is_described", the_device_is_described),
            ("errors_have_the_librarys_words", errors_have_the_librarys_words),
        ],
    );
}

#[test]
fn a_missing_library_is_named() {
    let message = Functions::load(&["libnowhere.so", "libnowhere.so.6"]).err().unwrap();
    assert!(message.starts_with("no HIP runtime is installed (libnowhere.so: "), "{message}");
}

#[test]
fn a_missing_function_is_named() {
    let folder = Folder::new("lacks");
    let library = Vendor::Hip.build(folder.path(), Some("hipEventQuery"));
    let message = Functions::load(&["libnowhere.so", library.to_str().unwrap()]).err().unwrap();
    assert!(message.contains("libamdhip64.so` isn't a HIP runtime of ROCm 6.0 or later"), "{message}");
    assert!(message.contains("it lacks `hipEventQuery` ("), "{message}");
}

fn the_device_is_described() {
    assert_eq!(count(), Ok(2));
    let hip = Hip::open(0).unwrap();
    let description = hip.describe().unwrap();
    assert_eq!(description.name, "AMD Instinct MI300X");
    assert_eq!(description.uuid.as_deref(), Some("b7da1a2c8e5f0913"));
    assert_eq!(description.pci_bus.as_deref(), Some("0000:83:00.0"));
    assert_eq!(description.architecture, Architecture::Amd("gfx942".to_owned()));
    assert_eq!((description.multiprocessors, description.warp), (304, 64));
    assert_eq!((description.shared_bytes, description.l2_bytes), (65536, 4 << 20));
    assert_eq!((description.clock, description.memory_rate), (Some(2.1e9), Some(2.6624e12)));
    assert_eq!(description.driver, "HIP 6.3");
    assert!(description.pools && !description.clusters);
}

fn errors_have_the_librarys_words() {
    let hip = Hip::open(0).unwrap();
    let failure = hip.allocate(usize::MAX / 2).unwrap_err();
    let message = "out of memory (hipErrorOutOfMemory)".to_owned();
    assert_eq!(failure, Failure { kind: FailureKind::OutOfMemory, message });
    let nowhere = Hip::open(10_000).unwrap();
    let failure = nowhere.memory().unwrap_err();
    assert_eq!(failure, Failure::refused("invalid device ordinal (hipErrorInvalidDevice)"));
}
