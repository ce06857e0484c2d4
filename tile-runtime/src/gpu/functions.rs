//! Kernels that a GPU has loaded, and their launches.

use super::architecture::Architecture;
use super::context::Context;
use super::driver::{
    Description, Driver, EncodedMap, EventKind, ExecutableHandle, Failure, FunctionHandle, Grid,
    ModuleHandle, RowSize, Rows, StreamHandle,
};
use super::streams::GpuStream;
use crate::error::{Error, Result};
use crate::flight::Flight;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tile_ir::abi::Launch;
use tile_ir::target::TARGETS;
use tile_ir::tensor_map::{BoundMap, TensorMap};

/// Code of a kernel for a GPU, which lives as long as the process.
#[derive(Clone)]
pub(crate) struct GpuCode {
    /// The code in the forms in which the program has it, the best one first: a driver may refuse what a later compiler
    /// made. There is at least one.
    pub(crate) images: SmallVec<[&'static [u8]; 2]>,
    pub(crate) symbol: String,
    pub(crate) launch: Launch,
    /// What its parameters for tensor maps are made of.
    pub(crate) tensor_maps: Arc<[TensorMap]>,
}

/// The parameters of a launch, as [`tile_ir::abi`] orders them.
pub(crate) struct Parameters<'p> {
    /// All slots but that of the log.
    pub(crate) slots: &'p [u64],
    /// What is made tensor maps of.
    pub(crate) maps: &'p [BoundMap],
    /// The slot of the log.
    pub(crate) log: Option<u64>,
}

/// A loaded function.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Function {
    handle: FunctionHandle,
    module: ModuleHandle,
    /// How many of its blocks run at once on the whole GPU: whole clusters.
    blocks_at_once: u32,
}

/// Launches that the driver keeps as a graph.
pub(crate) struct Captured {
    context: Arc<Context>,
    executable: ExecutableHandle,
}

impl Captured {
    /// Enqueues all of them on the context's own stream. Their memory is there.
    pub(crate) fn launch(&self) -> Result<()> {
        let _work = self.context.work.begin();
        // SAFETY: the graph is this value's own; the caller has the memory that its launches use.
        let launch =
            |driver: &dyn Driver| unsafe { driver.launch_graph(self.executable, self.context.stream) };
        self.context.ask(|| "launching a graph".to_owned(), launch)
    }
}

impl Drop for Captured {
    /// Waits for its launches. Of a device that fails nothing can be given back, and the next call says so.
    fn drop(&mut self) {
        if self.context.synchronize().is_ok() {
            // SAFETY: the graph is this value's own, and its launches are done.
            let _ = unsafe { self.context.driver.destroy_executable(self.executable) };
        }
    }
}

/// Functions by where the last of their images lies, whose first byte no other code has, and by how long it is.
type Flights = HashMap<(usize, usize), Arc<Flight<Function, Error>>>;

/// The functions of a GPU. Each is loaded once, outside of the lock, so that code that takes long to load keeps no launch of
/// other code waiting.
#[derive(Default)]
pub(crate) struct Functions(Mutex<Flights>);

impl Functions {
    /// The function of an image, loaded if nobody has loaded it.
    fn get_or_load(&self, image: &[u8], load: impl FnOnce() -> Result<Function>) -> Result<Function> {
        let mut functions = self.lock();
        let flight = functions
            .entry((image.as_ptr() as usize, image.len()))
            .or_insert_with(|| Arc::new(Flight::new()));
        if let Some(function) = flight.get() {
            return Ok(*function);
        }
        let flight = Arc::clone(flight);
        drop(functions);
        flight.get_or_make(load).copied()
    }

    /// Unloads everything.
    pub(super) fn unload(&self, driver: &dyn Driver) -> Result<(), Failure> {
        std::mem::take(&mut *self.lock()).into_values().try_for_each(|flight| match flight.get() {
            // SAFETY: the module was loaded here; who unloads it has waited for what was enqueued.
            Some(function) => unsafe { driver.unload(function.module) },
            None => Ok(()),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Flights> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rows of bytes that are copied on the device before a kernel reads them.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct RowCopy {
    pub(crate) target: Rows,
    pub(crate) source: Rows,
    pub(crate) size: RowSize,
}

/// A launch whose parameters are checked and whose code is loaded.
#[derive(Clone, PartialEq)]
pub(crate) struct Ready {
    symbol: &'static str,
    /// What is copied before.
    copies: SmallVec<[RowCopy; 2]>,
    function: Function,
    grid: Grid,
    slots: SmallVec<[u64; 12]>,
    maps: SmallVec<[EncodedMap; 4]>,
    log: Option<u64>,
}

impl Ready {
    /// Enqueues what is copied before.
    ///
    /// # Safety
    /// As [`Ready::enqueue`].
    unsafe fn copy(&self, driver: &dyn Driver, stream: StreamHandle) -> Result<(), Failure> {
        self.copies.iter().try_for_each(|copy| {
            // SAFETY: the caller vouches for the stream and the memory.
            unsafe { driver.copy_rows(copy.target, copy.source, copy.size, stream) }
        })
    }

    /// Enqueues it.
    ///
    /// # Safety
    /// The stream and the memory in the slots and copies are there until it has run.
    unsafe fn enqueue(&self, driver: &dyn Driver, stream: StreamHandle) -> Result<(), Failure> {
        let slots = self.slots.iter().map(address_of);
        let maps = self.maps.iter().map(address_of);
        let mut parameters: SmallVec<[*mut c_void; 16]> =
            slots.chain(maps).chain(self.log.iter().map(address_of)).collect();
        // SAFETY: the function is alive as long as the context; the parameters are those of its calling convention
        // (checked against the kernel's ABI by `Launch`), each outlives the call, which copies it. The caller vouches for
        // the rest.
        unsafe { driver.launch(self.function.handle, self.grid, &mut parameters, stream) }
    }
}

impl Ready {
    /// The launch after copies of rows.
    pub(crate) fn after(self, copies: impl IntoIterator<Item = RowCopy>) -> Ready {
        Ready { copies: copies.into_iter().collect(), ..self }
    }
}

impl Context {
    /// Prepares a launch.
    pub(crate) fn ready(
        &self,
        code: &'static GpuCode,
        blocks: usize,
        parameters: &Parameters<'_>,
    ) -> Result<Ready> {
        let GpuCode { symbol, launch, .. } = code;
        let Launch { threads, shared_bytes, .. } = *launch;
        let function = self.function(code)?;
        let most = most_blocks(threads, self.description().grid_threads);
        let blocks = blocks.saturating_mul(launch.blocks_per_tile as usize);
        let blocks = u32::try_from(blocks).ok().filter(|&blocks| blocks <= most).ok_or_else(|| {
            let problem = format!("a grid of {blocks} blocks exceeds {most}; use larger tiles");
            Error::Refused { kernel: symbol.clone(), problem }
        })?;
        // Of a kernel of clusters both are whole ones: its variant is taken where the grid's places are, or each place is one's.
        let blocks = if launch.shares_grid { blocks.min(function.blocks_at_once) } else { blocks };
        Ok(Ready {
            symbol,
            copies: SmallVec::new(),
            function,
            grid: Grid { blocks, threads, shared_bytes },
            slots: parameters.slots.iter().copied().collect(),
            maps: self.encoded(parameters.maps)?,
            log: parameters.log,
        })
    }

    /// Enqueues a kernel, on a stream or on the context's own; whether the driver takes what is copied before. A launch
    /// without copies it takes, or this fails.
    pub(crate) fn enqueue(&self, launch: &Ready, stream: Option<&GpuStream>) -> Result<bool> {
        let (stream, _work) = self.handle(stream);
        // SAFETY: the stream's giver vouches for it. The tensors are borrowed while this is enqueued, and who uses or
        // frees their memory later does so behind the stream's work.
        let copy = |driver: &dyn Driver| unsafe { launch.copy(driver, stream) };
        if !launch.copies.is_empty() {
            match self.ask(|| format!("copying for `{}`", launch.symbol), copy) {
                Err(Error::Driver { .. }) => return Ok(false),
                copied => copied?,
            }
        }
        // SAFETY: likewise.
        let enqueue = |driver: &dyn Driver| unsafe { launch.enqueue(driver, stream) };
        self.ask(|| format!("launching `{}`", launch.symbol), enqueue).map(|()| true)
    }

    /// Runs a kernel on the context's own stream, and gives the time that it took; nothing where the driver doesn't take what
    /// is copied before.
    pub(crate) fn time(self: &Arc<Self>, launch: &Ready) -> Result<Option<Duration>> {
        // Both are there before the kernel begins, so that making one isn't part of the time.
        let (start, end) = (self.new_event(EventKind::Timed)?, self.new_event(EventKind::Timed)?);
        start.record(self.stream)?;
        if !self.enqueue(launch, None)? {
            return Ok(None);
        }
        end.record(self.stream)?;
        end.wait()?;
        end.since(&start).map(Some)
    }

    /// Captures launches as a graph.
    pub(crate) fn capture(self: &Arc<Self>, launches: &[Ready]) -> Result<Captured> {
        let stream = GpuStream::for_captures(self)?;
        let capture = |driver: &dyn Driver| {
            // SAFETY: the stream is this function's own. What is captured doesn't run; a launch of the graph comes right
            // behind a comparison with launches whose memory is there.
            let (captured, graph) = unsafe {
                driver.begin_capture(stream.handle())?;
                let captured = launches.iter().try_for_each(|launch| launch.enqueue(driver, stream.handle()));
                // The capture ends even if a launch was refused, so that the stream can be used again.
                (captured, driver.end_capture(stream.handle()))
            };
            // Of a capture that a launch has spoilt, the launch's failure says more.
            let (captured, graph) = match (captured, graph) {
                (Err(refused), Err(_)) => return Err(refused),
                (captured, graph) => (captured, graph?),
            };
            // SAFETY: the graph was captured above, and isn't needed any more.
            unsafe {
                let executable = captured.and_then(|()| driver.instantiate(graph));
                let _ = driver.destroy_graph(graph);
                executable
            }
        };
        let executable = self.ask(|| format!("recording {} launches", launches.len()), capture)?;
        Ok(Captured { context: Arc::clone(self), executable })
    }

    /// Has the driver load some code before it is launched.
    pub(crate) fn warm(&self, code: &GpuCode) -> Result<()> {
        self.function(code).map(drop)
    }

    /// Tensor maps in the driver's form.
    fn encoded(&self, maps: &[BoundMap]) -> Result<SmallVec<[EncodedMap; 4]>> {
        if maps.is_empty() {
            return Ok(SmallVec::new());
        }
        let mut known = self.tensor_maps.lock().unwrap_or_else(PoisonError::into_inner);
        let mut encoded = |map: &BoundMap| {
            known.get(map, |map| self.ask(|| format!("describing {map:?}"), |driver| driver.encode(map)))
        };
        maps.iter().map(&mut encoded).collect()
    }

    /// The function of some code, loaded once.
    fn function(&self, code: &GpuCode) -> Result<Function> {
        let last = code.images.last().copied().unwrap_or_default();
        self.functions.get_or_load(last, || self.load(code))
    }

    fn load(&self, GpuCode { images, symbol, launch, .. }: &GpuCode) -> Result<Function> {
        let damaged =
            |_| Error::Launch { kernel: symbol.clone(), problem: "its name holds a NUL byte".to_owned() };
        let name = CString::new(symbol.as_str()).map_err(damaged)?;
        let Description { architecture, shared_bytes, .. } = self.description();
        if let Some(problem) = no_shared_memory(launch.shared_bytes.into(), architecture, *shared_bytes) {
            return Err(Error::Refused { kernel: symbol.clone(), problem });
        }
        let action = || format!("loading `{symbol}`");
        let module = self.ask(action, |driver| first_that_loads(driver, images))?;
        let found = self.ask(action, |driver| {
            // SAFETY: the module was loaded above.
            unsafe { driver.function(module, &name, launch.shared_bytes) }
        });
        let function = found.and_then(|handle| {
            // SAFETY: the function was found above.
            let at_once =
                self.ask(action, |driver| unsafe { self.blocks_at_once(driver, handle, launch) })?;
            match at_once {
                0 => Err(Error::Refused { kernel: symbol.clone(), problem: no_room(launch) }),
                blocks_at_once => Ok(Function { handle, module, blocks_at_once }),
            }
        });
        if function.is_err() {
            // SAFETY: nothing of the module was launched. What the driver says of this hides the error.
            let _ = unsafe { self.driver.unload(module) };
        }
        function
    }

    /// How many blocks of a function run at once on the whole GPU, one at least; of a function of clusters, how many in
    /// whole ones.
    ///
    /// # Safety
    /// The function is there.
    unsafe fn blocks_at_once(
        &self,
        driver: &dyn Driver,
        function: FunctionHandle,
        launch: &Launch,
    ) -> Result<u32, Failure> {
        if launch.cluster > 1 {
            // SAFETY: the caller vouches for the function.
            return Ok(unsafe { driver.clusters_at_once(function, launch) }? * launch.cluster);
        }
        // SAFETY: likewise.
        let blocks = unsafe { driver.blocks_per_multiprocessor(function, launch) }?;
        Ok(blocks.max(1).saturating_mul(self.description().multiprocessors))
    }
}

/// The module of the first image that the driver takes; the last one's failure where it takes none.
fn first_that_loads(driver: &dyn Driver, images: &[&[u8]]) -> Result<ModuleHandle, Failure> {
    let mut result = Err(Failure::refused("there is no code"));
    for image in images {
        result = driver.load(image);
        if result.is_ok() {
            break;
        }
    }
    result
}

/// The most blocks of so many threads that a grid has along its one axis.
fn most_blocks(threads: u32, grid_threads: Option<u64>) -> u32 {
    let most = i32::MAX as u32;
    let by_threads = grid_threads.map_or(u64::from(most), |grid| grid / u64::from(threads.max(1)));
    most.min(u32::try_from(by_threads).unwrap_or(most))
}

/// Why a block that needs so many bytes of shared memory doesn't run on a GPU, whose blocks have so many: its code is for
/// another one.
fn no_shared_memory(needed: u64, gpu: &Architecture, available: u64) -> Option<String> {
    if needed <= available {
        return None;
    }
    let own = gpu.best_of(available, TARGETS.iter(), |&target| Some(target));
    let own = own.filter(|target| u64::from(target.shared_bytes) <= available);
    let advice = own.map_or(String::new(), |own| format!("build it for `{own}` as well, or "));
    Some(format!(
        "a block of its code needs {needed} bytes of shared memory, and this GPU's have {available}; {advice}choose \
         smaller tiles"
    ))
}

/// Why no cluster runs.
fn no_room(launch: &Launch) -> String {
    let Launch { cluster, threads, shared_bytes, .. } = launch;
    format!(
        "no {cluster} blocks of {threads} threads and {shared_bytes} bytes of shared memory run together on this GPU; \
         is it a part of one? Use the whole"
    )
}

/// Where a launch finds a parameter, which it only reads.
fn address_of<T>(parameter: &T) -> *mut c_void {
    std::ptr::from_ref(parameter).cast_mut().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code for `sm_80` runs on every later GPU, of which some have less shared memory.
    #[test]
    fn code_for_more_shared_memory_than_there_is_is_refused() {
        let refused = |(major, minor), available, needed| {
            no_shared_memory(needed, &Architecture::Nvidia { major, minor }, available)
        };
        assert_eq!(refused((8, 6), 101_376, 101_376), None);
        assert_eq!(
            refused((8, 9), 101_376, 131_072).unwrap(),
            "a block of its code needs 131072 bytes of shared memory, and this GPU's have 101376; build it for `sm_89` \
             as well, or choose smaller tiles"
        );
        assert_eq!(
            refused((8, 0), 65_536, 131_072).unwrap(),
            "a block of its code needs 131072 bytes of shared memory, and this GPU's have 65536; choose smaller tiles"
        );
    }

    #[test]
    fn why_no_cluster_runs_is_said() {
        let launch = Launch {
            threads: 384,
            shared_bytes: 230_400,
            scratch_bytes: 0,
            shares_grid: true,
            cluster: 2,
            blocks_per_tile: 1,
        };
        assert_eq!(
            no_room(&launch),
            "no 2 blocks of 384 threads and 230400 bytes of shared memory run together on this GPU; is it a part of \
             one? Use the whole"
        );
    }

    #[test]
    fn a_grid_has_as_many_blocks_as_its_threads_allow() {
        assert_eq!(most_blocks(1024, None), i32::MAX as u32);
        assert_eq!(most_blocks(256, Some(u32::MAX.into())), (1 << 24) - 1);
        assert_eq!(most_blocks(1, Some(u32::MAX.into())), i32::MAX as u32);
    }
}
