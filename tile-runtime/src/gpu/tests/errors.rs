//! What a user reads when a driver refuses something, and when a device is lost.

use super::*;
use crate::error::Error;
use crate::tensor::Tensor;

#[test]
fn a_refused_call_is_an_error_and_the_next_one_works() {
    let (device, driver) = device(1 << 16, true);
    let x = Tensor::full(&device, [10], 2_u8).unwrap();
    driver.refuse_after(0, Code::NOT_SUPPORTED);
    let error = x.to_vec().unwrap_err();
    let words = driver.failure(Code::NOT_SUPPORTED).message;
    let expected = format!("pinning 4096 bytes failed on {:?}: {words}", context(&device));
    assert_eq!(error.to_string(), expected);
    assert_eq!(x.to_vec().unwrap(), [2; 10]);
}

#[test]
fn every_call_that_may_be_refused_leaves_nothing_behind() {
    for pools in [false, true] {
        for calls in (0..16).step_by(if cfg!(miri) { 3 } else { 1 }) {
            let (device, driver) = device(1 << 16, pools);
            driver.refuse_after(calls, Code::INVALID_VALUE);
            let read = Tensor::from_vec(&device, vec![2_u8; 10], [10]).and_then(|x| x.to_vec());
            if let Ok(bytes) = read {
                assert_eq!(bytes, [2; 10]);
            }
            driver.refuse_nothing();
            drop(device);
            let Live { events, modules, streams, .. } = driver.live();
            assert_eq!((events, modules, streams), (0, 0, 0), "{calls}");
        }
    }
}

#[test]
fn a_lost_device_says_so_again_and_again() {
    let (device, driver) = device(1 << 16, true);
    let x = Tensor::full(&device, [10], 2_u8).unwrap();
    let _enqueued = Tensor::<u8>::zeros(&device, [10]).unwrap();
    driver.lose_at_next_work(Code::ILLEGAL_ADDRESS);
    let first = x.to_vec().unwrap_err();
    let place = format!("{:?}", context(&device));
    assert!(matches!(&first, Error::DeviceLost { device, .. } if *device == place), "{first}");
    assert_eq!(
        first.to_string(),
        format!(
            "waiting for the device failed on {place}: {}. The cause may be any launch before; the device takes no more work from this \
             process, so start it again",
            driver.failure(Code::ILLEGAL_ADDRESS).message
        )
    );
    // Every later call says the same of itself, and asks the driver nothing.
    let later = [
        x.to_vec().map(drop),
        Tensor::<u8>::zeros(&device, [1]).map(drop),
        device.memory().map(drop),
        device.trim(),
    ];
    for error in later.map(Result::unwrap_err) {
        assert!(error.to_string().contains("an illegal memory access was encountered"), "{error}");
        assert!(matches!(error, Error::DeviceLost { .. }));
    }
}

#[test]
fn a_device_that_is_lost_while_memory_is_freed_is_known_to_be() {
    let (device, driver) = device(1 << 16, true);
    let x = Tensor::<u8>::zeros(&device, [10]).unwrap();
    driver.refuse_after(0, Code::LAUNCH_FAILED);
    drop(x);
    let error = device.memory().unwrap_err();
    assert!(matches!(error, Error::DeviceLost { .. }), "{error}");
}
