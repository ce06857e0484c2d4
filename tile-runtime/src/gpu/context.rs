//! A GPU: its driver, its stream, its memory and the code that it has loaded.
//!
//! Everything that the vendors have in common stands here and in its neighbours, once. Work is enqueued on one stream per
//! device, in order; reads of results wait for it. What a driver refuses becomes an error with the device, what was tried
//! and the driver's words; after a failure that leaves the device unusable, every call gives that error again.

use super::architecture::Rank;
use super::driver::{Description, Driver, Failure, FailureKind, StreamHandle};
use super::functions::Functions;
use super::limits::MemoryLimits;
use super::pinned::PinnedPool;
use super::pool::{Block, MemoryUse, Pool};
use super::streams::{GpuStream, Spare};
use super::tensor_maps::Encoded;
use super::work::{Enqueued, Enqueuing};
use crate::error::{Error, Result};
use crate::stream::waiting;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tile_ir::target::{Family, TARGETS};
use tile_ir::{TargetDesc, Variant};

/// A GPU and what is known of it.
pub(crate) struct Context {
    number: usize,
    name: String,
    pub(super) driver: Box<dyn Driver>,
    description: Description,
    pub(super) stream: StreamHandle,
    /// Whether other libraries may have the handle of that stream, and enqueue what isn't counted here.
    pub(super) is_stream_shared: AtomicBool,
    pool: Pool,
    pub(super) pinned: PinnedPool,
    pub(super) functions: Functions,
    pub(super) tensor_maps: Mutex<Encoded>,
    pub(super) spare: Mutex<Spare>,
    /// The work of the context's own stream.
    pub(super) work: Enqueued,
    /// What the driver said when it lost the device.
    lost: OnceLock<String>,
}

/// Device memory, which is freed behind the work that was enqueued while it was there.
pub(crate) struct Buffer {
    context: Arc<Context>,
    block: Block,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.description.name)
    }
}

impl Context {
    /// The GPU of a driver, of whose memory so much is used and kept.
    pub(crate) fn new(driver: Box<dyn Driver>, limits: MemoryLimits) -> Result<Context, Failure> {
        /// The reference device and the processor have the numbers before.
        static NUMBER: AtomicUsize = AtomicUsize::new(2);
        let description = driver.describe()?;
        let pool = Pool::new(description.pools);
        // Without limits, too: a driver's pool that isn't told to hold anything gives everything back at every wait.
        pool.limit(&*driver, limits)?;
        Ok(Context {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            name: format!("{}:{}", driver.api(), driver.ordinal()),
            pool,
            pinned: PinnedPool::default(),
            description,
            driver,
            stream: StreamHandle::DEFAULT,
            is_stream_shared: AtomicBool::new(false),
            functions: Functions::default(),
            tensor_maps: Mutex::default(),
            spare: Mutex::default(),
            work: Enqueued::new(),
            lost: OnceLock::new(),
        })
    }

    /// A number that no other device of the process has.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// The device's name: `cuda:0`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its number among those of its vendor.
    #[cfg(feature = "dlpack")]
    pub(crate) fn ordinal(&self) -> usize {
        self.driver.ordinal()
    }

    /// What the device is.
    pub(crate) fn description(&self) -> &Description {
        &self.description
    }

    /// How many blocks run at once, at least.
    pub(crate) fn multiprocessors(&self) -> usize {
        self.description.multiprocessors as usize
    }

    /// The family of the targets whose code runs here.
    pub(crate) fn family(&self) -> Family {
        self.description.architecture.family()
    }

    /// Why no target's code runs here, if none does.
    pub(super) fn unsupported(&self) -> Option<String> {
        self.description.architecture.unsupported(self.description.shared_bytes)
    }

    /// The target that makes most of the device; `None` where no target's code runs.
    pub(crate) fn target(&self) -> Option<&'static TargetDesc> {
        self.best_of(TARGETS.iter(), |target| target.name)
    }

    /// How much code for a target such as `sm_80` or `gfx942` makes of the device; `None` where it doesn't run.
    pub(crate) fn rank(&self, target: &str) -> Option<Rank> {
        let target = TargetDesc::named(target).ok()?;
        self.description.architecture.rank(target, self.description.shared_bytes)
    }

    /// Of what is for targets, each by its name, that which makes most of the device; `None` where nothing runs.
    pub(crate) fn best_of<T>(
        &self,
        candidates: impl Iterator<Item = T>,
        target: impl Fn(&T) -> &'static str,
    ) -> Option<T> {
        let Description { architecture, shared_bytes, .. } = &self.description;
        architecture.best_of(*shared_bytes, candidates, |candidate| TargetDesc::named(target(candidate)).ok())
    }

    /// Whether code of a variant runs here that runs elsewhere on such GPUs.
    pub(crate) fn takes(&self, variant: Variant) -> bool {
        self.description.clusters || variant != Variant::Paired
    }

    /// Has the driver do something, unless the device is lost.
    pub(super) fn ask<T>(
        &self,
        action: impl Fn() -> String,
        call: impl FnOnce(&dyn Driver) -> Result<T, Failure>,
    ) -> Result<T> {
        match self.lost.get() {
            Some(message) => Err(self.lost_error(action(), message.clone())),
            None => call(&*self.driver).map_err(|failure| self.error(action(), failure)),
        }
    }

    pub(super) fn error(&self, action: String, failure: Failure) -> Error {
        let Failure { kind, message } = failure;
        match kind {
            FailureKind::Lost => {
                let first = self.lost.get_or_init(|| message);
                waiting::lost(self.number);
                self.lost_error(action, first.clone())
            }
            FailureKind::Refused | FailureKind::OutOfMemory => {
                Error::Driver { device: format!("{self:?}"), action, message }
            }
        }
    }

    fn lost_error(&self, action: String, message: String) -> Error {
        Error::DeviceLost { device: format!("{self:?}"), action, message }
    }

    /// Zeroed device memory. An empty tensor has an address, too.
    pub(crate) fn zeroed(self: &Arc<Self>, bytes: usize) -> Result<Buffer> {
        let buffer = self.allocated(bytes)?;
        self.fill(buffer.address(), &[0], bytes)?;
        Ok(buffer)
    }

    /// Device memory with anything in it. What is kept for later allocations is given up where memory runs out.
    pub(crate) fn allocated(self: &Arc<Self>, bytes: usize) -> Result<Buffer> {
        let _work = self.work.begin();
        // SAFETY: the stream is the context's own, and the only one that blocks are released on.
        let allocate = || unsafe { self.pool.allocate(&*self.driver, bytes, self.stream) };
        let action = || format!("allocating {bytes} bytes");
        let mut block = self.ask(action, |_| Ok(allocate()))?;
        if matches!(&block, Err(failure) if failure.kind == FailureKind::OutOfMemory) {
            self.trim()?;
            block = allocate();
        }
        match block {
            Ok(block) => Ok(Buffer { context: Arc::clone(self), block }),
            Err(Failure { kind: FailureKind::OutOfMemory, .. }) => Err(Error::OutOfMemory {
                device: format!("{self:?}"),
                bytes,
                limit: self.pool.limit_before(bytes),
            }),
            Err(failure) => Err(self.error(action(), failure)),
        }
    }

    /// Gives back the memory that is kept for later allocations, the device's and the host's, after all work enqueued
    /// before.
    pub(crate) fn trim(&self) -> Result<()> {
        self.synchronize()?;
        self.unpin_kept();
        self.ask(|| "giving memory back".to_owned(), |driver| self.pool.trim(driver))
    }

    /// Limits how much memory is in use, and how much is held.
    pub(crate) fn limit_memory(&self, limits: MemoryLimits) -> Result<()> {
        self.ask(|| "limiting the memory".to_owned(), |driver| self.pool.limit(driver, limits))
    }

    /// How memory is used.
    pub(crate) fn memory(&self) -> Result<MemoryUse> {
        let usage = self.ask(|| "looking at the memory".to_owned(), |driver| self.pool.usage(driver))?;
        Ok(MemoryUse { pinned: self.pinned.bytes(), ..usage })
    }

    /// Bytes of memory that are free, for other processes too, and all of them.
    pub(crate) fn memory_bytes(&self) -> Result<(u64, u64)> {
        self.ask(|| "looking at the memory".to_owned(), |driver| driver.memory())
    }

    /// Waits for everything that was enqueued on the context's own stream.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.synchronize_handle(self.stream)
    }

    /// Waits for everything that the device has to do, whoever has enqueued it.
    #[cfg(feature = "dlpack")]
    pub(crate) fn synchronize_device(&self) -> Result<()> {
        self.ask(|| "waiting for the device".to_owned(), |driver| driver.synchronize_device())
    }

    /// Waits for everything that was enqueued on a stream.
    pub(super) fn synchronize_handle(&self, stream: StreamHandle) -> Result<()> {
        // SAFETY: the stream is the context's own, or one whose giver vouches for it.
        let wait = |driver: &dyn Driver| unsafe { driver.synchronize(stream) };
        self.ask(|| "waiting for the device".to_owned(), wait)
    }

    /// A stream's handle, or that of the context's own, with what counts the work that this one is given, by whatever name.
    pub(super) fn handle(&self, stream: Option<&GpuStream>) -> (StreamHandle, Option<Enqueuing<'_>>) {
        match stream {
            Some(stream) if stream.handle() != self.stream => (stream.handle(), None),
            _ => (self.stream, Some(self.work.begin())),
        }
    }
}

impl Drop for Context {
    /// Waits for what is enqueued, and gives everything back. Of a device that fails nothing can be given back, and nobody
    /// is there to be told.
    fn drop(&mut self) {
        if self.trim().is_ok() {
            self.destroy_spare();
            let _ = self.functions.unload(&*self.driver);
        }
    }
}

impl Buffer {
    /// The address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.block.address
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Context { driver, pool, stream, .. } = &*self.context;
        // SAFETY: the block came from this pool, and its owner is gone; what still uses it is enqueued on the stream.
        let released = unsafe { pool.release(&**driver, self.block, *stream) };
        if let Err(failure) = released {
            // The next call says that the device is lost; nobody can be told of anything else.
            let _ = self.context.error("freeing memory".to_owned(), failure);
        }
    }
}
