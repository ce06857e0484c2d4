//! Caches filled with something else.

use crate::device::{Device, Kind};
use crate::error::Result;
use crate::machine;
use crate::tensor::Tensor;
use std::time::Duration;

/// What is written on a GPU: more than any has of L2 cache.
const GPU_BYTES: usize = 256 << 20;

/// Memory that is written to fill caches; none where they are left as they are.
pub(super) struct Cold(Option<Tensor<u8>>);

impl Cold {
    pub(super) fn warm() -> Cold {
        Cold(None)
    }

    /// Enough memory of a device to fill its caches.
    pub(super) fn of(device: &Device) -> Result<Cold> {
        let bytes = match &device.0 {
            Kind::Cpu | Kind::Reference | Kind::Simulated(_) => {
                2 * machine::last_level_cache_bytes() as usize
            }
            Kind::Gpu(_) => GPU_BYTES,
        };
        Tensor::zeros(device, [bytes]).map(|filled| Cold(Some(filled)))
    }

    /// Runs something after filling the caches.
    pub(super) fn then(&mut self, run: &mut dyn FnMut() -> Result<Duration>) -> Result<Duration> {
        if let Some(filled) = &mut self.0 {
            filled.fill(1)?;
        }
        run()
    }
}
