//! GPUs: what the vendors have in common, once, over a trait that says what the runtime needs of a driver.
//!
//! `driver.rs` is that trait; `cuda.rs` and `hip.rs` have the vendors' calls and nothing else. `context.rs` is a device
//! with its stream and its memory, which `pool.rs` keeps within `limits.rs`, as `pinned.rs` keeps the host's that copies
//! use; `transfer.rs` copies and fills. `functions.rs` loads and launches code, `tensor_maps.rs` keeps what NVIDIA's
//! drivers encode. `streams.rs` has streams and events, `work.rs` how far one has followed another. `stand_in` is what
//! tests have instead of a GPU.

mod architecture;
mod context;
mod cuda;
mod driver;
mod functions;
mod hip;
mod identity;
mod image;
mod limits;
mod pinned;
mod pool;
mod shelf;
#[cfg(test)]
mod stand_in;
mod streams;
mod tensor_maps;
#[cfg(test)]
mod tests;
mod transfer;
mod work;

pub(crate) use context::{Buffer, Context};
pub(crate) use driver::{EventKind, MOST_PITCH, RowSize, Rows};
pub(crate) use functions::{Captured, GpuCode, Parameters, Ready, RowCopy};
pub use limits::MemoryLimits;
pub(crate) use pinned::PinnedBuffer;
pub use pool::MemoryUse;
pub(crate) use streams::{GpuEvent, GpuStream};

use crate::error::{Error, Result};
use driver::{Driver, Failure};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A vendor's GPUs.
pub(crate) struct Vendor {
    /// What the names of its devices begin with: `cuda`.
    pub(crate) api: &'static str,
    /// The vendor's name.
    name: &'static str,
    /// How many there are; the reason why none can be used.
    count: fn() -> Result<usize, String>,
    open: fn(usize) -> Result<Box<dyn Driver>, Failure>,
}

/// The vendors, in the order in which a program that doesn't say which device it wants looks for one.
pub(crate) const VENDORS: [Vendor; 2] = [
    Vendor {
        api: "cuda",
        name: "NVIDIA",
        count: cuda::count,
        open: |ordinal| Ok(Box::new(cuda::Cuda::open(ordinal)?)),
    },
    Vendor {
        api: "hip",
        name: "AMD",
        count: hip::count,
        open: |ordinal| Ok(Box::new(hip::Hip::open(ordinal)?)),
    },
];

impl Vendor {
    /// The GPU with this number. There is one context for each, as long as the process: code is loaded once, and memory
    /// kept for all who use the device.
    pub(crate) fn device(&self, ordinal: usize) -> Result<Arc<Context>> {
        static CONTEXTS: Mutex<BTreeMap<(&str, usize), Arc<Context>>> = Mutex::new(BTreeMap::new());
        let no = |reason| Error::NoDevice { device: format!("{}:{ordinal}", self.api), reason };
        let contexts = || CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (self.api, ordinal);
        if let Some(context) = contexts().get(&place) {
            return Ok(Arc::clone(context));
        }
        // Outside of the lock: who is told that a limit makes no sense may ask for a device.
        let limits = MemoryLimits::of_environment();
        let mut contexts = contexts();
        if let Some(context) = contexts.get(&place) {
            return Ok(Arc::clone(context));
        }
        let count = (self.count)().map_err(no)?;
        if ordinal >= count {
            return Err(no(format!("this machine has {count} {} GPUs", self.name)));
        }
        let failed = |failure: Failure| no(format!("the {} driver reports {}", self.name, failure.message));
        let context = (self.open)(ordinal).and_then(|driver| Context::new(driver, limits));
        let context = Arc::new(context.map_err(failed)?);
        if let Some(reason) = context.unsupported() {
            return Err(no(format!("{}: {reason}", context.description().name)));
        }
        contexts.insert(place, Arc::clone(&context));
        Ok(context)
    }

    /// All GPUs that can be used.
    pub(crate) fn devices(&self) -> impl Iterator<Item = Arc<Context>> {
        let count = (self.count)().unwrap_or(0);
        (0..count).filter_map(|ordinal| self.device(ordinal).ok())
    }
}
