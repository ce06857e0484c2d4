//! A driver on host memory, for tests: what is enqueued runs as late as it may, so that a wait which is missing shows as a
//! wrong value.
//!
//! Work runs when somebody waits for it, a piece whenever somebody asks whether it is done, and never by itself. Memory
//! that was never written, or was freed, holds a pattern; work on memory that isn't there loses the device. Memory has a
//! limit, calls fail on demand, and everything that is there is counted.

mod queue;

use super::architecture::Architecture;
use super::driver::{
    Description, Driver, EncodedMap, EventHandle, ExecutableHandle, Failure, FailureKind, FunctionHandle,
    GraphHandle, Grid, HostFunction, MOST_PITCH, ModuleHandle, Pattern, PoolBytes, RowSize, Rows,
    StreamHandle,
};
use queue::{State, Work};
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tile_ir::abi::Launch;
use tile_ir::tensor_map::BoundMap;

/// A kernel of the stand-in: its blocks, and the slots that its launch gave.
pub(super) type Kernel = fn(blocks: u32, slots: &[u64]);

/// What happens to an image of code before it is loaded.
pub(super) type BeforeLoad = fn(&[u8]);

/// What bytes are that nobody has written, or that were freed.
pub(super) const UNWRITTEN: u8 = 0xA5;

/// Multiprocessors, and the blocks of each that run at once.
const MULTIPROCESSORS: u32 = 4;
const BLOCKS: u32 = 2;

/// The driver. Copies are the same one.
#[derive(Clone)]
pub(super) struct StandIn {
    ordinal: usize,
    architecture: Architecture,
    /// Whether it has pools of its own.
    pools: bool,
    /// What happens to code before it is loaded, while other calls go on.
    before_loads: Arc<OnceLock<BeforeLoad>>,
    /// The stream that is the default one of this device.
    default: StreamHandle,
    state: Arc<Mutex<State>>,
}

/// What is there and wasn't given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) allocations: usize,
    pub(super) bytes: u64,
    pub(super) pinned: usize,
    pub(super) streams: usize,
    pub(super) events: usize,
    pub(super) modules: usize,
    pub(super) graphs: usize,
}

impl StandIn {
    /// A device with so many bytes of memory, which runs the code of `gfx942`.
    pub(super) fn new(bytes: u64, pools: bool) -> StandIn {
        static ORDINAL: AtomicUsize = AtomicUsize::new(0);
        StandIn {
            ordinal: ORDINAL.fetch_add(1, Ordering::Relaxed),
            architecture: Architecture::Amd("gfx942".to_owned()),
            pools,
            before_loads: Arc::default(),
            default: StreamHandle::DEFAULT,
            state: Arc::new(Mutex::new(State::new(bytes))),
        }
    }

    /// The same device, of another vendor's.
    pub(super) fn of_nvidia(self) -> StandIn {
        StandIn { architecture: Architecture::Nvidia { major: 9, minor: 0 }, ..self }
    }

    /// Another device of this driver's, which has memory and streams of its own and takes a part in the same limits.
    pub(super) fn another(&self) -> StandIn {
        let other = StandIn::new(0, self.pools);
        let default = self.state().create_stream();
        StandIn { default, state: Arc::clone(&self.state), ..other }
    }

    /// The stream that a handle stands for.
    fn of(&self, stream: StreamHandle) -> StreamHandle {
        if stream == StreamHandle::DEFAULT { self.default } else { stream }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, for a call that may fail.
    fn asked(&self) -> Result<MutexGuard<'_, State>, Failure> {
        let mut state = self.state();
        match state.lost.clone().or_else(|| state.refusals.pop_front().flatten()) {
            Some(failure) => Err(failure),
            None => Ok(state),
        }
    }

    /// What is there.
    pub(super) fn live(&self) -> Live {
        self.state().live()
    }

    /// How many pieces of work wait for somebody.
    pub(super) fn pending(&self) -> usize {
        self.state().pending()
    }

    /// A kernel that modules have from now on.
    pub(super) fn add(&self, symbol: &str, kernel: Kernel) {
        self.state().kernels.push((symbol.to_owned(), kernel));
    }

    /// Has every load begin with this, beside which other calls go on.
    pub(super) fn before_loads(&self, begin: BeforeLoad) {
        self.before_loads.set(begin).expect("it is said once");
    }

    /// The call after so many others is refused.
    pub(super) fn refuse_after(&self, calls: usize, failure: Failure) {
        self.refuse(calls, 1, failure);
    }

    /// So many calls after so many others are refused.
    pub(super) fn refuse(&self, after: usize, calls: usize, failure: Failure) {
        let refused = std::iter::repeat_n(Some(failure), calls);
        self.state().refusals = std::iter::repeat_n(None, after).chain(refused).collect();
    }

    /// No call is refused any more.
    pub(super) fn refuse_nothing(&self) {
        self.state().refusals.clear();
    }

    /// The next piece of work that runs loses the device.
    pub(super) fn lose_at_next_work(&self, message: &str) {
        let message = message.to_owned();
        self.state().breaks = Some(Failure { kind: FailureKind::Lost, message });
    }

    /// Runs the next piece of work of a stream; whether nothing is left then.
    pub(super) fn step(&self, stream: StreamHandle) -> bool {
        self.state().step(self.of(stream)).expect("the stream is there, and its work succeeds")
    }

    fn enqueue(&self, on: StreamHandle, work: Work) -> Result<(), Failure> {
        self.asked()?.enqueue(self.of(on), work)
    }
}

/// Rows that overlap, and rows that are farther apart than drivers take.
fn check_pitches<const N: usize>(rows: [Rows; N], size: RowSize) -> Result<(), Failure> {
    let is_fine = rows.iter().all(|rows| (size.width..=MOST_PITCH).contains(&rows.pitch) || size.height == 1);
    if is_fine { Ok(()) } else { Err(Failure::refused("invalid pitch argument")) }
}

impl Driver for StandIn {
    fn api(&self) -> &'static str {
        "stand-in"
    }

    fn ordinal(&self) -> usize {
        self.ordinal
    }

    fn describe(&self) -> Result<Description, Failure> {
        drop(self.asked()?);
        Ok(Description {
            name: "host memory".to_owned(),
            architecture: self.architecture.clone(),
            multiprocessors: MULTIPROCESSORS,
            warp: 64,
            clock: Some(1e9),
            memory_rate: None,
            shared_bytes: 65536,
            l2_bytes: 1 << 20,
            driver: "stand-in 1.0".to_owned(),
            clusters: false,
            pools: self.pools,
            grid_threads: Some(u32::MAX.into()),
        })
    }

    fn memory(&self) -> Result<(u64, u64), Failure> {
        let state = self.asked()?;
        Ok((state.limit - state.reserved(), state.limit))
    }

    fn allocate(&self, bytes: usize) -> Result<u64, Failure> {
        self.asked()?.allocate(bytes, self.ordinal)
    }

    unsafe fn free(&self, address: u64) -> Result<(), Failure> {
        let mut state = self.asked()?;
        state.run_everything()?;
        state.free(address)
    }

    unsafe fn allocate_ordered(&self, bytes: usize, stream: StreamHandle) -> Result<u64, Failure> {
        self.asked()?.allocate_ordered(bytes, self.ordinal, self.of(stream))
    }

    unsafe fn free_ordered(&self, address: u64, stream: StreamHandle) -> Result<(), Failure> {
        self.enqueue(stream, Work::Free(address))
    }

    fn pool_bytes(&self) -> Result<PoolBytes, Failure> {
        let state = self.asked()?;
        Ok(PoolBytes { reserved: state.reserved(), used: state.reserved() - state.pooled() })
    }

    fn trim_pool(&self) -> Result<(), Failure> {
        self.asked()?.trim();
        Ok(())
    }

    fn allocate_pinned(&self, bytes: usize) -> Result<*mut u8, Failure> {
        Ok(self.asked()?.pin(bytes))
    }

    unsafe fn free_pinned(&self, first: *mut u8) -> Result<(), Failure> {
        self.asked()?.unpin(first)
    }

    unsafe fn upload(
        &self,
        target: u64,
        source: *const u8,
        bytes: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        self.enqueue(on, Work::Upload { target, source, bytes })
    }

    unsafe fn download(
        &self,
        target: *mut u8,
        source: u64,
        bytes: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        self.enqueue(on, Work::Download { target, source, bytes })
    }

    unsafe fn copy(&self, target: u64, source: u64, bytes: usize, on: StreamHandle) -> Result<(), Failure> {
        let rows = RowSize { width: bytes, height: 1 };
        let [target, source] = [target, source].map(|first| Rows { first, pitch: bytes });
        // SAFETY: the caller vouches for the memory.
        unsafe { self.copy_rows(target, source, rows, on) }
    }

    unsafe fn copy_from_peer(
        &self,
        target: u64,
        (peer, source): (usize, u64),
        bytes: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        if peer == self.ordinal {
            return Err(Failure::refused("the device isn't its own peer"));
        }
        let rows = RowSize { width: bytes, height: 1 };
        let [target, source] = [target, source].map(|first| Rows { first, pitch: bytes });
        self.enqueue(on, Work::Copy { target, source, rows, devices: [self.ordinal, peer] })
    }

    unsafe fn copy_rows(
        &self,
        target: Rows,
        source: Rows,
        rows: RowSize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        check_pitches([target, source], rows)?;
        self.enqueue(on, Work::Copy { target, source, rows, devices: [self.ordinal; 2] })
    }

    unsafe fn fill(
        &self,
        target: u64,
        pattern: Pattern,
        count: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        let rows = RowSize { width: count * pattern.bytes(), height: 1 };
        let target = Rows { first: target, pitch: rows.width };
        self.enqueue(on, Work::Fill { target, pattern, rows })
    }

    /// As one vendor, this one has no such call for halves.
    unsafe fn fill_rows(
        &self,
        target: Rows,
        pattern: Pattern,
        rows: RowSize,
        on: StreamHandle,
    ) -> Result<bool, Failure> {
        check_pitches([target], rows)?;
        match pattern {
            Pattern::Half(_) => Ok(false),
            _ => self.enqueue(on, Work::Fill { target, pattern, rows }).map(|()| true),
        }
    }

    fn create_stream(&self) -> Result<StreamHandle, Failure> {
        Ok(self.asked()?.create_stream())
    }

    unsafe fn destroy_stream(&self, stream: StreamHandle) -> Result<(), Failure> {
        self.asked()?.destroy_stream(stream)
    }

    unsafe fn synchronize(&self, stream: StreamHandle) -> Result<(), Failure> {
        self.asked()?.run(self.of(stream))
    }

    fn create_event(&self, timed: bool) -> Result<EventHandle, Failure> {
        Ok(self.asked()?.create_event(timed))
    }

    unsafe fn destroy_event(&self, event: EventHandle) -> Result<(), Failure> {
        self.asked()?.destroy_event(event)
    }

    unsafe fn record(&self, event: EventHandle, stream: StreamHandle) -> Result<(), Failure> {
        self.asked()?.record(event, self.of(stream))
    }

    unsafe fn wait(&self, stream: StreamHandle, event: EventHandle) -> Result<(), Failure> {
        self.asked()?.wait(self.of(stream), event)
    }

    unsafe fn is_done(&self, event: EventHandle) -> Result<bool, Failure> {
        self.asked()?.is_done(event)
    }

    unsafe fn synchronize_event(&self, event: EventHandle) -> Result<(), Failure> {
        self.asked()?.synchronize_event(event)
    }

    unsafe fn elapsed(&self, start: EventHandle, end: EventHandle) -> Result<f64, Failure> {
        self.asked()?.elapsed(start, end)
    }

    /// Code has the kernels whose symbols stand somewhere in it, as they do in a code object.
    fn load(&self, image: &[u8]) -> Result<ModuleHandle, Failure> {
        if let Some(begin) = self.before_loads.get() {
            begin(image);
        }
        Ok(self.asked()?.load(image))
    }

    unsafe fn unload(&self, module: ModuleHandle) -> Result<(), Failure> {
        self.asked()?.unload(module)
    }

    unsafe fn function(
        &self,
        module: ModuleHandle,
        symbol: &CStr,
        _shared_bytes: u32,
    ) -> Result<FunctionHandle, Failure> {
        self.asked()?.function(module, &symbol.to_string_lossy())
    }

    unsafe fn blocks_per_multiprocessor(&self, _: FunctionHandle, _: &Launch) -> Result<u32, Failure> {
        drop(self.asked()?);
        Ok(BLOCKS)
    }

    unsafe fn clusters_at_once(&self, _: FunctionHandle, _: &Launch) -> Result<u32, Failure> {
        Err(Failure::refused("the stand-in has no clusters"))
    }

    fn encode(&self, _: &BoundMap) -> Result<EncodedMap, Failure> {
        Err(Failure::refused("the stand-in has no tensor maps"))
    }

    unsafe fn launch(
        &self,
        FunctionHandle(kernel): FunctionHandle,
        Grid { blocks, .. }: Grid,
        parameters: &mut [*mut c_void],
        on: StreamHandle,
    ) -> Result<(), Failure> {
        // SAFETY: each parameter is a slot, of eight bytes, as there are no tensor maps.
        let slots = parameters.iter().map(|slot| unsafe { slot.cast::<u64>().read_unaligned() }).collect();
        self.enqueue(on, Work::Launch { kernel, blocks, slots })
    }

    unsafe fn call(
        &self,
        function: HostFunction,
        data: *mut c_void,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        self.enqueue(on, Work::Call { function, data })
    }

    unsafe fn begin_capture(&self, stream: StreamHandle) -> Result<(), Failure> {
        self.asked()?.begin_capture(self.of(stream))
    }

    unsafe fn end_capture(&self, stream: StreamHandle) -> Result<GraphHandle, Failure> {
        self.asked()?.end_capture(self.of(stream))
    }

    unsafe fn instantiate(&self, graph: GraphHandle) -> Result<ExecutableHandle, Failure> {
        self.asked()?.instantiate(graph)
    }

    unsafe fn destroy_graph(&self, GraphHandle(graph): GraphHandle) -> Result<(), Failure> {
        self.asked()?.destroy_graph(graph)
    }

    unsafe fn launch_graph(&self, graph: ExecutableHandle, stream: StreamHandle) -> Result<(), Failure> {
        self.asked()?.launch_graph(graph, self.of(stream))
    }

    unsafe fn destroy_executable(&self, graph: ExecutableHandle) -> Result<(), Failure> {
        let ExecutableHandle(graph) = graph;
        self.asked()?.destroy_graph(graph)
    }
}
