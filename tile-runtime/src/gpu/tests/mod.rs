//! What the runtime makes of a driver, on one that runs its work late: in this process on the stand-in's own trait, and in
//! two others on the functions of CUDA's library and of HIP's (`stand_in/vendors.rs`).

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

/// An image of code with one kernel, of so many parameters of eight bytes. Where the machine is AMD's, it only looks whether
/// the symbol is there.
macro_rules! image {
    ($symbol:literal, 1) => {
        image!(@ $symbol, ".param .u64 a")
    };
    ($symbol:literal, 3) => {
        image!(@ $symbol, ".param .u64 a, .param .u64 b, .param .u64 c")
    };
    ($symbol:literal, 6) => {
        image!(@ $symbol, ".param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 e, .param .u64 f")
    };
    (@ $symbol:literal, $parameters:literal) => {
        concat!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry ", $symbol, "(", $parameters, ") { ret; }\n"
        )
    };
}

mod copies;
mod errors;
mod launches;
mod lost;
mod memory;
#[cfg(all(target_os = "linux", not(miri)))]
pub(super) mod often;
mod order;
mod padded;
mod peers;
mod rows;
mod streams;
mod tasks;

use super::context::Context;
use super::driver::StreamHandle;
use super::limits::MemoryLimits;
use super::stand_in::machine::Code;
use super::stand_in::{Grid, Live, StandIn};
use crate::device::{Device, Kind};
use std::sync::Arc;

/// A device whose driver can be looked at.
fn device(bytes: u64, pools: bool) -> (Device, StandIn) {
    let driver = StandIn::new(bytes, pools);
    (device_of(&driver), driver)
}

fn device_of(driver: &StandIn) -> Device {
    let context =
        Context::new(driver.driver(), MemoryLimits::of_environment()).expect("the stand-in is there");
    Device(Kind::Gpu(Arc::new(context)))
}

fn context(device: &Device) -> &Arc<Context> {
    match &device.0 {
        Kind::Gpu(context) => context,
        _ => unreachable!("the device has a driver"),
    }
}
