//! Tensors' memory: what is kept, for whom, and what happens when there is no more.
//!
//! Tensors of many bytes have elements of eight: Miri goes through elements one by one.

use super::*;
use crate::tensor::Tensor;
use crate::{Error, MemoryLimits};

/// Numbers that look random.
#[cfg(not(miri))]
fn numbers() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(0x9E37_79B9_u64), |&x| {
        let x = x ^ (x << 13);
        let x = x ^ (x >> 7);
        Some(x ^ (x << 17))
    })
    .map(|x| (x >> 11) as usize)
}

#[test]
fn a_new_tensor_is_zero_and_an_old_one_is_not_seen_in_it() {
    for pools in [false, true] {
        let (device, driver) = device(1 << 20, pools);
        for round in 0..4 {
            let x = Tensor::<u64>::zeros(&device, [125]).unwrap();
            assert_eq!(x.to_vec().unwrap(), [0; 125], "round {round}");
            let y = Tensor::full(&device, [125], 7_u64).unwrap();
            assert_eq!(y.to_vec().unwrap(), [7; 125]);
        }
        context(&device).trim().unwrap();
        assert_eq!(live(&driver), Live::default());
    }
}

/// What is there but for events, which are kept for the next ones.
fn live(driver: &StandIn) -> Live {
    Live { events: 0, ..driver.live() }
}

/// It counts; under Miri it would take hours, and the other tests make the same accesses.
#[cfg(not(miri))]
#[test]
fn memory_does_not_grow_with_the_number_of_allocations() {
    const ALLOCATIONS: u64 = 10_000;
    for pools in [false, true] {
        let (device, driver) = device(1 << 30, pools);
        let mut numbers = numbers();
        let mut kept: Vec<Tensor<u8>> = Vec::new();
        let mut most = 0;
        for i in 0..ALLOCATIONS {
            let bytes = numbers.next().unwrap() % 10_000;
            if kept.len() == 20 {
                let place = numbers.next().unwrap() % kept.len();
                drop(kept.swap_remove(place));
            }
            kept.push(Tensor::zeros(&device, [bytes]).unwrap());
            let (free, total) = driver.memory().unwrap();
            if i == ALLOCATIONS / 5 {
                most = total - free;
            }
            assert!(
                i <= ALLOCATIONS / 5 || total - free <= most + most / 2,
                "{i}: {} of {most}",
                total - free
            );
        }
        let usage = device.memory().unwrap();
        assert_eq!(usage.allocations, ALLOCATIONS);
        assert!(usage.in_use <= usage.peak && usage.peak < 20 * 12_000, "{usage:?}");
        assert_eq!(usage.reused.is_some(), !pools);
        if let Some(reused) = usage.reused {
            assert!(reused > ALLOCATIONS / 2 && usage.cached <= usage.peak, "{usage:?}");
        }
        drop(kept);
        device.trim().unwrap();
        let usage = device.memory().unwrap();
        assert_eq!((usage.in_use, usage.cached), (0, 0));
        assert_eq!(driver.live(), Live::default());
    }
}

#[test]
fn without_memory_there_is_an_error_and_the_device_still_works() {
    for pools in [false, true] {
        let (device, driver) = device(10_000, pools);
        let x = Tensor::full(&device, [500], 3_u64).unwrap();
        let error = Tensor::<u8>::zeros(&device, [8_000]).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { bytes: 8_000, .. }), "{error}");
        assert_eq!(error.to_string(), format!("{:?} has no 8000 bytes of memory left", context(&device)));
        assert_eq!(x.to_vec().unwrap(), [3; 500]);
        drop(x);
        // What is kept of `x` is given up for a tensor that needs it.
        let y = Tensor::full(&device, [1_000], 4_u64).unwrap();
        assert_eq!(y.to_vec().unwrap(), [4; 1_000]);
        drop(y);
        device.trim().unwrap();
        assert_eq!(live(&driver), Live::default());
    }
}

#[test]
fn what_is_in_use_is_counted() {
    let (device, _driver) = device(1 << 20, false);
    let x = Tensor::<f32>::zeros(&device, [256]).unwrap();
    drop(Tensor::<f32>::zeros(&device, [512]).unwrap());
    let usage = device.memory().unwrap();
    assert_eq!((usage.in_use, usage.cached, usage.peak), (1024, 2048, 3072));
    let y = Tensor::<f32>::zeros(&device, [512]).unwrap();
    let usage = device.memory().unwrap();
    assert_eq!((usage.allocations, usage.reused, usage.cached), (3, Some(1), 0));
    drop((x, y));
}

#[test]
fn a_context_gives_everything_back_when_it_goes() {
    for pools in [false, true] {
        let (device, driver) = device(1 << 20, pools);
        let x = Tensor::full(&device, [100], 1_i32).unwrap();
        drop(device);
        assert_eq!(x.to_vec().unwrap(), [1; 100]);
        drop(x);
        assert_eq!(driver.live(), Live::default());
        assert_eq!(driver.memory().unwrap(), (1 << 20, 1 << 20));
    }
}

#[test]
fn a_copy_on_the_device_is_enqueued_and_keeps_its_order() {
    for &pools in if cfg!(miri) { &[false][..] } else { &[false, true] } {
        let (device, driver) = device(1 << 20, pools);
        let x = Tensor::from_vec(&device, (0..100).collect::<Vec<i32>>(), [100]).unwrap();
        let y = x.to_dense().unwrap();
        assert!(driver.pending() > 0, "nobody has waited");
        drop(x);
        let mut other = Tensor::full(&device, [100], -1).unwrap();
        assert_eq!(y.to_vec().unwrap(), (0..100).collect::<Vec<i32>>());
        other.slice_mut(50..).unwrap().copy_from(&y.slice(..50).unwrap()).unwrap();
        other.slice_mut(..50).unwrap().copy_from(&y.slice((50..,)).unwrap().slice(..).unwrap()).unwrap();
        assert_eq!(other.to_vec().unwrap()[48..52], [98, 99, 0, 1]);
        let turned = other.reshape([10, 10]).unwrap().t().unwrap().to_dense().unwrap();
        assert_eq!(turned.to_vec().unwrap()[..3], [50, 60, 70]);
    }
}

#[test]
fn no_more_is_in_use_than_the_limit_and_the_message_says_so() {
    for pools in [false, true] {
        let (device, driver) = device(1 << 20, pools);
        device.limit_memory(MemoryLimits { in_use: 8192, ..MemoryLimits::default() }).unwrap();
        let x = Tensor::full(&device, [512], 3_u64).unwrap();
        let y = Tensor::<u64>::zeros(&device, [512]).unwrap();
        let error = Tensor::<u8>::zeros(&device, [1]).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { bytes: 1, limit: Some(8192), .. }), "{error}");
        assert_eq!(
            error.to_string(),
            format!(
                "{:?} has no 1 bytes of memory left of the 8192 that `TILE_MEMORY_IN_USE` or `Device::limit_memory` lets it \
                 have; drop tensors, or allow more",
                context(&device)
            )
        );
        assert_eq!(x.to_vec().unwrap(), [3; 512]);
        drop(y);
        let z = Tensor::full(&device, [256], 4_u64).unwrap();
        // What is in use stays under a limit that it exceeds.
        device.limit_memory(MemoryLimits { in_use: 100, ..MemoryLimits::default() }).unwrap();
        assert!(Tensor::<u8>::zeros(&device, [1]).is_err());
        assert_eq!((x.to_vec().unwrap(), z.to_vec().unwrap()), (vec![3; 512], vec![4; 256]));
        device.limit_memory(MemoryLimits::default()).unwrap();
        let all = Tensor::<u64>::zeros(&device, [2_500]).unwrap();
        drop((x, z, all));
        device.trim().unwrap();
        assert_eq!(live(&driver), Live::default());
    }
}

#[test]
fn no_more_is_held_than_the_limit_after_a_wait() {
    for pools in [false, true] {
        let (device, driver) = device(1 << 20, pools);
        let taken = || driver.memory().map(|(free, total)| total - free).unwrap();
        let use_and_drop = || {
            let tensors = [0_u64; 4].map(|number| Tensor::full(&device, [1024], number).unwrap());
            drop(tensors);
            context(&device).synchronize().unwrap();
        };
        use_and_drop();
        assert_eq!((taken(), device.memory().unwrap().cached), (4 * 8192, 4 * 8192), "all is kept");
        device.limit_memory(MemoryLimits { held: 20_000, ..MemoryLimits::default() }).unwrap();
        let x = Tensor::full(&device, [1024], 7_u64).unwrap();
        use_and_drop();
        assert_eq!((taken(), device.memory().unwrap().cached), (2 * 8192, 8192), "pools: {pools}");
        assert_eq!(x.to_vec().unwrap(), [7; 1024]);
        device.limit_memory(MemoryLimits { held: 0, ..MemoryLimits::default() }).unwrap();
        drop(x);
        use_and_drop();
        assert_eq!((taken(), device.memory().unwrap().cached), (0, 0), "pools: {pools}");
    }
}

#[test]
fn the_host_has_no_limits_of_ours() {
    let error = Device::cpu().limit_memory(MemoryLimits::default()).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }));
    assert_eq!(
        error.to_string(),
        "limiting the memory isn't possible on cpu: it is the host's, of which the system lets a process have so much; \
         limit it there, by a container or `ulimit -v`"
    );
}

/// The environment is read by a process of its own.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn the_environment_limits_every_gpu() {
    const NAME: &str = "gpu::tests::memory::the_environment_limits_every_gpu";
    if std::env::var_os("TILE_MEMORY_IN_USE").is_some() {
        let (device, driver) = device(1 << 20, true);
        let x = Tensor::<u8>::zeros(&device, [2048]).unwrap();
        let error = Tensor::<u8>::zeros(&device, [1]).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { limit: Some(2048), .. }), "{error}");
        drop(x);
        context(&device).synchronize().unwrap();
        assert_eq!(driver.memory().unwrap(), (1 << 20, 1 << 20), "nothing is held");
        return;
    }
    let mut test = std::process::Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", NAME, "--nocapture"])
        .envs([("TILE_MEMORY_IN_USE", "2K"), ("TILE_MEMORY_HELD", "0")]);
    let output = test.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Who has got a tensor uses it on streams of its own, and gives it back without a wait for them.
#[test]
#[cfg(feature = "dlpack")]
fn what_was_handed_over_is_freed_behind_the_streams_of_who_had_it() {
    for pools in [false, true] {
        let (device, driver) = device(1 << 20, pools);
        let x = Tensor::full(&device, [125], 7_u64).unwrap();
        let mut theirs = Tensor::full(&device, [125], 0_u64).unwrap();
        let (source, target) = (x.address(), theirs.device_address_mut().unwrap());
        let handed = x.into_dlpack().unwrap();
        context(&device).synchronize().unwrap();
        let stream = driver.create_stream().unwrap();
        // SAFETY: both are there until the copy is done.
        unsafe { driver.copy(target, source, 1000, stream) }.unwrap();
        drop(handed);
        let other = Tensor::full(&device, [125], 9_u64).unwrap();
        assert_eq!(other.to_vec().unwrap(), [9; 125]);
        // SAFETY: the stream is there.
        unsafe { driver.synchronize(stream) }.unwrap();
        assert_eq!(theirs.to_vec().unwrap(), [7; 125], "pools: {pools}");
    }
}
