//! What the runtime needs of a vendor's driver, in the field's words: devices' properties, memory, streams, events,
//! code, launches and graphs. One implementation per vendor, and one on host memory for tests.
//!
//! Everything enqueued on a stream runs in its order; streams run beside each other. A driver knows nothing of tensors
//! and kernels' arguments, keeps no memory for later, and makes no messages: it gives the vendor's words.

use super::architecture::Architecture;
use std::ffi::{CStr, c_void};
use std::panic::RefUnwindSafe;
use tile_ir::abi::Launch;
use tile_ir::tensor_map::{BoundMap, TENSOR_MAP_BYTES};

/// Handles are what the driver says they are, pointers or numbers, and null where it has a default one.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) struct $name(pub(crate) usize);
    )*};
}

handles! {
    /// A queue of work.
    StreamHandle
    /// A place in a queue.
    EventHandle
    /// Loaded code.
    ModuleHandle
    /// A kernel of a module.
    FunctionHandle
    /// Captured work.
    GraphHandle
    /// Captured work that can be launched.
    ExecutableHandle
}

/// What an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// To be waited for.
    Plain,
    /// Also to say when it was reached.
    Timed,
}

impl StreamHandle {
    /// The stream that is there without being made. Work on it waits for that of other streams which were made to wait
    /// for it, and they for its own: those of other libraries, unless they are non-blocking ones.
    pub(crate) const DEFAULT: StreamHandle = StreamHandle(0);

    /// Another handle of that stream: `CU_STREAM_LEGACY`, and `hipStreamLegacy` where HIP knows it.
    const LEGACY: StreamHandle = StreamHandle(1);

    /// `CU_STREAM_PER_THREAD` and `hipStreamPerThread`: the default stream of whichever thread names it.
    const PER_THREAD: StreamHandle = StreamHandle(2);

    /// The stream of another library's, which has one handle here, by whichever it is known there; `None` for a handle that
    /// is another stream on each thread, where what one thread has the stream wait for says nothing of another's.
    pub(crate) fn of_raw(handle: *mut c_void) -> Option<StreamHandle> {
        match StreamHandle(handle as usize) {
            StreamHandle::LEGACY => Some(StreamHandle::DEFAULT),
            StreamHandle::PER_THREAD => None,
            handle => Some(handle),
        }
    }
}

/// Why a driver didn't do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// The driver's words.
    pub(crate) message: String,
}

/// What a failure means for what comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// There isn't as much memory.
    OutOfMemory,
    /// The device's state is corrupt: every later call fails, until the process ends.
    Lost,
    /// This call failed, and the next may not.
    Refused,
}

/// The error codes after which every later call fails, and out of memory. HIP has CUDA's numbers for the errors that both have; its
/// 911 is of textures, which nobody has here. CUDA Driver API, `CUresult`: those that leave the process "in an inconsistent state",
/// or after which the context "cannot be used anymore": uncorrectable ECC, NVLink and contained errors, illegal addresses,
/// time-outs, assertions, hardware exceptions (714 to 718), launch failures, leaks of tensor memory, clients that MPS ended, and
/// errors of external devices.
const LOST: [u32; 16] = [214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911];
const OUT_OF_MEMORY: u32 = 2;

impl FailureKind {
    /// What an error code of CUDA's or HIP's means.
    pub(crate) fn of_code(code: u32) -> FailureKind {
        match code {
            OUT_OF_MEMORY => FailureKind::OutOfMemory,
            code if LOST.contains(&code) => FailureKind::Lost,
            _ => FailureKind::Refused,
        }
    }
}

impl Failure {
    /// A call that the driver, or what we know of it, refuses.
    pub(crate) fn refused(message: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Refused, message: message.into() }
    }
}

/// What a device is.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    /// The marketing name.
    pub(crate) name: String,
    /// The UUID, as the vendor's tools write it behind `GPU-`, where the driver says it.
    pub(crate) uuid: Option<String>,
    /// The place on the PCI bus, `0000:3b:00.0`, where the driver says it.
    pub(crate) pci_bus: Option<String>,
    pub(crate) architecture: Architecture,
    /// Multiprocessors, or compute units.
    pub(crate) multiprocessors: u32,
    /// Threads of a warp, or wave.
    pub(crate) warp: u32,
    /// The highest clock, in hertz, where the driver says it.
    pub(crate) clock: Option<f64>,
    /// Bytes of memory per second, where the driver says what they follow from.
    pub(crate) memory_rate: Option<f64>,
    /// The most shared memory of a block, in bytes.
    pub(crate) shared_bytes: u64,
    /// Bytes of the L2 cache.
    pub(crate) l2_bytes: u64,
    /// `CUDA 12.8`.
    pub(crate) driver: String,
    /// Whether blocks can run together.
    pub(crate) clusters: bool,
    /// Whether memory is allocated and freed in the order of a stream, from a pool that the driver keeps.
    pub(crate) pools: bool,
    /// The most threads of a grid along its axis, where that is less than a block has times the most blocks.
    pub(crate) grid_threads: Option<u64>,
}

/// A grid of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) blocks: u32,
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Shared memory of a block that its code doesn't declare, in bytes.
    pub(crate) shared_bytes: u32,
}

/// Bytes of memory, on a device or in its pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolBytes {
    /// What the pool has of the device.
    pub(crate) reserved: u64,
    /// What of it is allocated.
    pub(crate) used: u64,
}

/// What memory is filled with, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Byte(u8),
    Half(u16),
    Word(u32),
}

impl Pattern {
    /// The shortest pattern that makes these bytes; `None` where they are more than a word and it isn't the same again.
    pub(crate) fn of(bytes: &[u8]) -> Option<Pattern> {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        match *bytes {
            [byte] => Some(Pattern::Byte(byte)),
            _ if first == second && !first.is_empty() => Pattern::of(first),
            [a, b] => Some(Pattern::Half(u16::from_ne_bytes([a, b]))),
            [a, b, c, d] => Some(Pattern::Word(u32::from_ne_bytes([a, b, c, d]))),
            _ => None,
        }
    }

    /// How many bytes it has.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Pattern::Byte(_) => 1,
            Pattern::Half(_) => 2,
            Pattern::Word(_) => 4,
        }
    }
}

/// Where rows of bytes begin: the first one, and a row every so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) first: u64,
    /// No less than a row has, and no more than [`MOST_PITCH`].
    pub(crate) pitch: usize,
}

/// How many bytes a row has, and how many rows there are. Neither is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowSize {
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// The most bytes from one row to the next: what NVIDIA's drivers say of every GPU (`CU_DEVICE_ATTRIBUTE_MAX_PITCH`).
pub(crate) const MOST_PITCH: usize = i32::MAX as usize;

/// A description of a tensor that copies of tiles take, in the driver's form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(64))]
pub(crate) struct EncodedMap(pub(crate) [u8; TENSOR_MAP_BYTES]);

/// A function of the host that a stream calls.
pub(crate) type HostFunction = unsafe extern "C" fn(data: *mut c_void);

/// One device of a vendor's. Every call works from every thread.
///
/// # Safety of the unsafe functions
/// Handles are ones that this driver gave and that weren't destroyed, or the default stream. Memory, of the device and of
/// the host, has as many bytes as are said, and is there until what is enqueued with it is done; nobody else writes what
/// is read then, and nobody else uses what is written. What a kernel takes is what its launch gives.
pub(crate) trait Driver: Send + Sync + RefUnwindSafe {
    /// What the names of the vendor's devices begin with: `cuda`.
    fn api(&self) -> &'static str;

    /// The device's number.
    fn ordinal(&self) -> usize;

    /// What the device is.
    fn describe(&self) -> Result<Description, Failure>;

    /// Bytes of memory that are free, and all of them.
    fn memory(&self) -> Result<(u64, u64), Failure>;

    /// Memory of at least one byte, which every stream may use. Waits for the device where the driver wants to.
    fn allocate(&self, bytes: usize) -> Result<u64, Failure>;

    /// Frees what [`Driver::allocate`] gave, after all work of the device.
    unsafe fn free(&self, address: u64) -> Result<(), Failure>;

    /// Memory of at least one byte from the driver's pool, for work that comes later on a stream.
    unsafe fn allocate_ordered(&self, bytes: usize, stream: StreamHandle) -> Result<u64, Failure>;

    /// Gives memory back to the driver's pool, after the work that a stream has.
    unsafe fn free_ordered(&self, address: u64, stream: StreamHandle) -> Result<(), Failure>;

    /// What the driver's pool has.
    fn pool_bytes(&self) -> Result<PoolBytes, Failure>;

    /// Has the driver's pool hold on to so many bytes, used ones among them, when somebody waits for the device.
    fn hold_in_pool(&self, bytes: u64) -> Result<(), Failure>;

    /// Gives the device what the driver's pool doesn't use.
    fn trim_pool(&self) -> Result<(), Failure>;

    /// Host memory that the device reads and writes while the host goes on.
    fn allocate_pinned(&self, bytes: usize) -> Result<*mut u8, Failure>;

    /// Frees what [`Driver::allocate_pinned`] gave.
    unsafe fn free_pinned(&self, first: *mut u8) -> Result<(), Failure>;

    /// Copies from the host.
    unsafe fn upload(
        &self,
        target: u64,
        source: *const u8,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<(), Failure>;

    /// Copies to the host.
    unsafe fn download(
        &self,
        target: *mut u8,
        source: u64,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<(), Failure>;

    /// Copies from one memory of the device to another.
    unsafe fn copy(
        &self,
        target: u64,
        source: u64,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<(), Failure>;

    /// Copies from memory of another device of this vendor's, which has the ordinal `peer`.
    unsafe fn copy_from_peer(
        &self,
        target: u64,
        peer: usize,
        source: u64,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<(), Failure>;

    /// Copies rows of bytes from one memory of the device to another, which share none.
    unsafe fn copy_rows(
        &self,
        target: Rows,
        source: Rows,
        size: RowSize,
        stream: StreamHandle,
    ) -> Result<(), Failure>;

    /// Writes a pattern so many times, one after the other, from a multiple of its size on.
    unsafe fn fill(
        &self,
        target: u64,
        pattern: Pattern,
        count: usize,
        stream: StreamHandle,
    ) -> Result<(), Failure>;

    /// Fills rows of bytes with a pattern, which begin at multiples of its size; `false` where the vendor has no such call.
    unsafe fn fill_rows(
        &self,
        target: Rows,
        pattern: Pattern,
        size: RowSize,
        stream: StreamHandle,
    ) -> Result<bool, Failure>;

    /// A stream that doesn't wait for the default one.
    fn create_stream(&self) -> Result<StreamHandle, Failure>;

    /// Destroys a stream; what is enqueued is done.
    unsafe fn destroy_stream(&self, stream: StreamHandle) -> Result<(), Failure>;

    /// Waits for all work of a stream.
    unsafe fn synchronize(&self, stream: StreamHandle) -> Result<(), Failure>;

    /// Waits for all work of the device, that of other libraries' streams too.
    fn synchronize_device(&self) -> Result<(), Failure>;

    /// An event.
    fn create_event(&self, kind: EventKind) -> Result<EventHandle, Failure>;

    /// Destroys an event. Who waits for it goes on waiting.
    unsafe fn destroy_event(&self, event: EventHandle) -> Result<(), Failure>;

    /// Puts an event behind the work of a stream, wherever it was before.
    unsafe fn record(&self, event: EventHandle, stream: StreamHandle) -> Result<(), Failure>;

    /// Has what comes later on a stream wait for an event as it was recorded last; of one that wasn't, for nothing.
    unsafe fn wait(&self, stream: StreamHandle, event: EventHandle) -> Result<(), Failure>;

    /// Whether the work before an event is done.
    unsafe fn is_done(&self, event: EventHandle) -> Result<bool, Failure>;

    /// Waits for the work before an event.
    unsafe fn synchronize_event(&self, event: EventHandle) -> Result<(), Failure>;

    /// Seconds between two events with times, both of them done.
    unsafe fn elapsed(&self, start: EventHandle, end: EventHandle) -> Result<f64, Failure>;

    /// Loads code in one of the forms that the vendor's drivers take.
    fn load(&self, image: &[u8]) -> Result<ModuleHandle, Failure>;

    /// Unloads code that nobody runs any more.
    unsafe fn unload(&self, module: ModuleHandle) -> Result<(), Failure>;

    /// A kernel by its symbol, ready for launches with so much shared memory.
    unsafe fn function(
        &self,
        module: ModuleHandle,
        symbol: &CStr,
        shared_bytes: u32,
    ) -> Result<FunctionHandle, Failure>;

    /// How many blocks of a function run at once on one multiprocessor.
    unsafe fn blocks_per_multiprocessor(
        &self,
        function: FunctionHandle,
        launch: &Launch,
    ) -> Result<u32, Failure>;

    /// How many clusters of a function, which its code makes of so many blocks, run at once on the device.
    unsafe fn clusters_at_once(&self, function: FunctionHandle, launch: &Launch) -> Result<u32, Failure>;

    /// A tensor map in the driver's form.
    fn encode(&self, map: &BoundMap) -> Result<EncodedMap, Failure>;

    /// Enqueues a kernel. Each parameter points at what it is, which the call copies. Blocks form clusters where the code
    /// says so.
    unsafe fn launch(
        &self,
        function: FunctionHandle,
        grid: Grid,
        parameters: &mut [*mut c_void],
        stream: StreamHandle,
    ) -> Result<(), Failure>;

    /// Has a function called behind the work of a stream, which waits for it. The function calls no driver.
    unsafe fn call(
        &self,
        function: HostFunction,
        data: *mut c_void,
        stream: StreamHandle,
    ) -> Result<(), Failure>;

    /// From here on, what is enqueued on a stream is kept as a graph and isn't run.
    unsafe fn begin_capture(&self, stream: StreamHandle) -> Result<(), Failure>;

    /// What was enqueued since.
    unsafe fn end_capture(&self, stream: StreamHandle) -> Result<GraphHandle, Failure>;

    /// A graph that can be launched; the captured one isn't needed any more.
    unsafe fn instantiate(&self, graph: GraphHandle) -> Result<ExecutableHandle, Failure>;

    /// Destroys a captured graph.
    unsafe fn destroy_graph(&self, graph: GraphHandle) -> Result<(), Failure>;

    /// Enqueues all work of a graph.
    unsafe fn launch_graph(&self, graph: ExecutableHandle, stream: StreamHandle) -> Result<(), Failure>;

    /// Destroys a graph that can be launched, after its launches.
    unsafe fn destroy_executable(&self, graph: ExecutableHandle) -> Result<(), Failure>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_whether_anything_works_after_them() {
        // Invalid value, not ready, not supported; illegal address; launch failed.
        assert_eq!([1, 600, 801].map(FailureKind::of_code), [FailureKind::Refused; 3]);
        assert_eq!([700, 719].map(FailureKind::of_code), [FailureKind::Lost; 2]);
        // Contained errors; memory of tensors that a kernel left allocated; an external device's; MPS that ended the client.
        assert_eq!([226, 721, 911, 810].map(FailureKind::of_code), [FailureKind::Lost; 4]);
        assert_eq!(FailureKind::of_code(2), FailureKind::OutOfMemory);
    }

    #[test]
    fn a_pattern_is_as_short_as_it_can_be() {
        let of = |number: u64, bytes: usize| Pattern::of(&number.to_le_bytes()[..bytes]);
        assert_eq!(of(0x07, 1), Some(Pattern::Byte(7)));
        assert_eq!(of(0x0707, 2), Some(Pattern::Byte(7)));
        assert_eq!(of(0x0807, 2), Some(Pattern::Half(0x0807)));
        assert_eq!(of(0x0807_0807, 4), Some(Pattern::Half(0x0807)));
        assert_eq!(of(0x0807_0907, 4), Some(Pattern::Word(0x0807_0907)));
        assert_eq!(of(0x0807_0907_0807_0907, 8), Some(Pattern::Word(0x0807_0907)));
        assert_eq!(of(0, 8), Some(Pattern::Byte(0)));
        // Two words that differ: no driver fills with them.
        assert_eq!(of(0x0807_0907_0807_0908, 8), None);
        assert_eq!(Pattern::of(&[]), None);
    }
}
