//! What a device reaches at most, measured: the rates that a kernel's are a part of.
//!
//! On the CPU plain loops are measured, on as many threads as launches use. On a GPU kernels are, which the feature `jit`
//! compiles.

mod cpu;
mod gpu;

use crate::device::{Device, Kind};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tile_ir::DType;

/// Something of which a device does so much a second and no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ceiling {
    /// Bytes read and written by a copy of more than caches hold.
    Copy,
    /// Floating-point operations of multiply-adds with numbers of this format, element by element.
    MultiplyAdd(DType),
    /// Floating-point operations of products of tiles with factors of this format.
    Product(DType),
}

/// How often something is tried; the best counts.
const TRIES: usize = 5;

/// A device's number, its threads and what is measured.
type Measured = (usize, usize, Ceiling);

impl Device {
    /// How much of something the device does a second, measured once in a process, in about a second.
    ///
    /// | device | what is measured | `None` |
    /// |---|---|---|
    /// | CPU | on as many threads as launches use, which all are busy meanwhile. A copy takes two buffers, together of as many bytes as twice what the last caches hold, 256 MiB at least and 2 GiB at most, but no more than an eighth of the memory that this process may use: what the system has left, and its control groups | copies where an eighth is less than twice what caches hold, or than 32 MiB; arithmetic of other formats than f32 and f64, or on other processors than x86-64 from x86-64-v3 on and AArch64 |
    /// | GPU | kernels, which the feature `jit` compiles; a copy takes 512 MiB of the device's memory | without `jit`; multiply-adds of other formats than f32 and f64, products of others than f16, bf16, f8e4m3fn and f8e5m2; where the device has no memory for it, or fails |
    /// | reference, simulated | | always |
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, bench::Ceiling};
    /// if let Some(rate) = Device::cpu().ceiling(Ceiling::Copy) {
    ///     assert!(rate > 1e8, "{rate} bytes per second");
    /// }
    /// assert_eq!(Device::reference().ceiling(Ceiling::Copy), None);
    /// ```
    pub fn ceiling(&self, ceiling: Ceiling) -> Option<f64> {
        let mut known = known();
        let place = known.entry((self.number(), self.threads(), ceiling));
        *place.or_insert_with(|| self.measure(ceiling).map(|rates| rates.into_iter().fold(0.0, f64::max)))
    }

    /// The rates of several tries, made now whatever was measured before; `None` where [`Device::ceiling`] is. The best is its
    /// rate; how far others fall short of it tells what somebody else takes of the machine at the moment.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::ir::DType;
    /// use tile::{Device, bench::Ceiling};
    /// let rates = Device::cpu().ceiling_tries(Ceiling::MultiplyAdd(DType::F32));
    /// assert!(rates.into_iter().flatten().all(|rate| rate > 1e7));
    /// ```
    pub fn ceiling_tries(&self, ceiling: Ceiling) -> Option<Vec<f64>> {
        let _alone = known();
        self.measure(ceiling)
    }

    fn measure(&self, ceiling: Ceiling) -> Option<Vec<f64>> {
        match &self.0 {
            Kind::Reference | Kind::Simulated(_) => None,
            Kind::Cpu => cpu::measure(ceiling, self.threads()),
            Kind::Gpu(_) => gpu::measure(self, ceiling),
        }
    }
}

/// What was measured. Held while something is, because two measurements at once would both be wrong.
fn known() -> MutexGuard<'static, HashMap<Measured, Option<f64>>> {
    static KNOWN: OnceLock<Mutex<HashMap<Measured, Option<f64>>>> = OnceLock::new();
    KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}
