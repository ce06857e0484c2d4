//! What the runtime makes of a driver, on one that runs its work late.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

mod copies;
mod errors;
mod launches;
mod lost;
mod memory;
mod order;
mod peers;
mod rows;
mod streams;

use super::context::Context;
use super::driver::{Driver, StreamHandle};
use super::stand_in::{Live, StandIn};
use crate::device::{Device, Kind};
use std::sync::Arc;

/// A device whose driver can be looked at.
fn device(bytes: u64, pools: bool) -> (Device, StandIn) {
    let driver = StandIn::new(bytes, pools);
    (device_of(&driver), driver)
}

fn device_of(driver: &StandIn) -> Device {
    let context = Context::new(Box::new(driver.clone())).expect("the stand-in is there");
    Device(Kind::Gpu(Arc::new(context)))
}

fn context(device: &Device) -> &Arc<Context> {
    match &device.0 {
        Kind::Gpu(context) => context,
        _ => unreachable!("the device has a driver"),
    }
}
