//! AMD GPUs through the HIP runtime, which is loaded when it is first asked for.
//!
//! HIP speaks to the device that a thread has set last, so every call sets it first.

mod library;
mod numbers;
mod peers;

use super::architecture::Architecture;
use super::driver::{
    Description, Driver, EncodedMap, EventHandle, EventKind, ExecutableHandle, Failure, FailureKind,
    FunctionHandle, GraphHandle, Grid, HostFunction, ModuleHandle, Pattern, PoolBytes, RowSize, Rows,
    StreamHandle,
};
use super::identity;
use super::image::Image;
use library::{Enumeration, Functions, NAMES, Pointer};
use numbers::*;
use peers::Peers;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock, PoisonError};
use tile_ir::abi::Launch;
use tile_ir::tensor_map::BoundMap;

/// A GPU.
pub(super) struct Hip {
    ordinal: c_int,
    hip: &'static Functions,
    /// What modules were loaded from: HIP reads code where it was given, not when it was.
    images: Mutex<HashMap<ModuleHandle, Image>>,
    peers: Peers,
}

/// The library, loaded once.
fn installed() -> Result<&'static Functions, String> {
    static FUNCTIONS: OnceLock<Result<Functions, String>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| Functions::load(NAMES)).as_ref().map_err(Clone::clone)
}

/// How many AMD GPUs there are; the reason why none can be used.
pub(super) fn count() -> Result<usize, String> {
    count_of(installed()?)
}

fn count_of(hip: &Functions) -> Result<usize, String> {
    let mut count = 0;
    // SAFETY: initialises the library, and writes the number.
    match unsafe { (hip.hipGetDeviceCount)(&raw mut count) } {
        SUCCESS => Ok(usize::try_from(count).unwrap_or(0)),
        ERROR_NO_DEVICE => Ok(0),
        code => Err(format!("the AMD driver reports {}", hip.text_of(code))),
    }
}

/// Calls a function of the library's with the device set.
macro_rules! call {
    ($self:ident, $name:ident($($argument:expr),* $(,)?)) => {{
        $self.set()?;
        // SAFETY: handles and memory are what the trait's callers vouch for; the places that HIP writes to are locals of
        // the types that it writes.
        $self.done(unsafe { ($self.hip.$name)($($argument),*) })
    }};
}

impl Hip {
    /// The GPU with this number, which [`count`] counted.
    pub(super) fn open(ordinal: usize) -> Result<Hip, Failure> {
        Hip::of(installed().map_err(Failure::refused)?, ordinal)
    }

    fn of(hip: &'static Functions, ordinal: usize) -> Result<Hip, Failure> {
        let ordinal = c_int::try_from(ordinal).map_err(|_| Failure::refused("there is no such GPU"))?;
        Ok(Hip { ordinal, hip, images: Mutex::default(), peers: Peers::default() })
    }

    /// Sets the device of this thread.
    fn set(&self) -> Result<(), Failure> {
        // SAFETY: says which device the thread's next calls are for.
        self.done(unsafe { (self.hip.hipSetDevice)(self.ordinal) })
    }

    /// What a call gave, as a result.
    fn done(&self, code: Enumeration) -> Result<(), Failure> {
        match code {
            SUCCESS => Ok(()),
            code => Err(Failure {
                kind: FailureKind::of_code(code.unsigned_abs()),
                message: self.hip.text_of(code),
            }),
        }
    }

    /// The same of a query: that work isn't done is an answer.
    fn answered(&self, code: Enumeration) -> Result<bool, Failure> {
        match code {
            ERROR_NOT_READY => Ok(false),
            code => self.done(code).map(|()| true),
        }
    }

    fn attribute(&self, attribute: Enumeration) -> Result<u32, Failure> {
        let mut value = 0;
        call!(self, hipDeviceGetAttribute(&raw mut value, attribute, self.ordinal))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// An attribute that the driver may say 0 of, or doesn't know.
    fn known(&self, attribute: Enumeration) -> Option<u32> {
        self.attribute(attribute).ok().filter(|&value| value > 0)
    }

    fn has_pools(&self) -> bool {
        self.known(attribute::MEMORY_POOLS_SUPPORTED).is_some()
    }

    fn pool(&self) -> Result<Pointer, Failure> {
        let mut pool = null_mut();
        call!(self, hipDeviceGetDefaultMemPool(&raw mut pool, self.ordinal))?;
        Ok(pool)
    }

    fn pool_attribute(&self, attribute: Enumeration) -> Result<u64, Failure> {
        let (pool, mut value) = (self.pool()?, 0_u64);
        call!(self, hipMemPoolGetAttribute(pool, attribute, (&raw mut value).cast()))?;
        Ok(value)
    }

    /// Two words of the bus per clock of the memory.
    fn memory_rate(&self) -> Option<f64> {
        let clock = self.known(attribute::MEMORY_CLOCK_RATE)?;
        let bits = self.known(attribute::MEMORY_BUS_WIDTH)?;
        Some(2.0 * f64::from(clock) * 1e3 * f64::from(bits) / 8.0)
    }

    /// `gfx942:sramecc+:xnack-`.
    fn target_id(&self) -> Result<String, Failure> {
        let mut properties = [0_u64; PROPERTIES_BYTES / size_of::<u64>()];
        call!(self, hipGetDevicePropertiesR0600(properties.as_mut_ptr().cast(), self.ordinal))?;
        let bytes = properties.iter().flat_map(|word| word.to_ne_bytes());
        let text: Vec<u8> = bytes.skip(ARCHITECTURE_OFFSET).take(256).take_while(|&byte| byte != 0).collect();
        let name = String::from_utf8_lossy(&text).into_owned();
        match name.starts_with("gfx") {
            true => Ok(name),
            false => Err(Failure::refused(format!("`{name}` for the architecture, which is none"))),
        }
    }

    fn name(&self) -> Result<String, Failure> {
        let mut text = [0_u8; 256];
        call!(
            self,
            hipDeviceGetName(text.as_mut_ptr().cast::<c_char>(), text.len() as c_int - 1, self.ordinal)
        )?;
        let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
        Ok(text.to_string_lossy().into_owned())
    }

    fn uuid(&self) -> Result<Option<String>, Failure> {
        let mut bytes = [0; 16];
        call!(self, hipDeviceGetUuid(&raw mut bytes, self.ordinal))?;
        Ok(identity::uuid(bytes))
    }

    fn pci_bus(&self) -> Result<Option<String>, Failure> {
        let mut text = [0_u8; 32];
        let (first, bytes) = (text.as_mut_ptr().cast::<c_char>(), text.len() as c_int - 1);
        call!(self, hipDeviceGetPCIBusId(first, bytes, self.ordinal))?;
        Ok(identity::pci_bus(&text))
    }

    fn images(&self) -> std::sync::MutexGuard<'_, HashMap<ModuleHandle, Image>> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stream(handle: StreamHandle) -> Pointer {
    handle.0 as Pointer
}

fn event(handle: EventHandle) -> Pointer {
    handle.0 as Pointer
}

impl Driver for Hip {
    fn api(&self) -> &'static str {
        "hip"
    }

    fn ordinal(&self) -> usize {
        self.ordinal.unsigned_abs() as usize
    }

    fn describe(&self) -> Result<Description, Failure> {
        let mut version = 0;
        call!(self, hipDriverGetVersion(&raw mut version))?;
        let clock = self.known(attribute::CLOCK_RATE);
        Ok(Description {
            name: self.name()?,
            uuid: self.uuid().ok().flatten(),
            pci_bus: self.pci_bus().ok().flatten(),
            architecture: Architecture::of_target_id(&self.target_id()?),
            multiprocessors: self.attribute(attribute::MULTIPROCESSOR_COUNT)?,
            warp: self.attribute(attribute::WARP_SIZE)?,
            clock: clock.map(|kilohertz| f64::from(kilohertz) * 1e3),
            memory_rate: self.memory_rate(),
            shared_bytes: self.attribute(attribute::MAX_SHARED_MEMORY_PER_BLOCK)?.into(),
            l2_bytes: self.attribute(attribute::L2_CACHE_SIZE)?.into(),
            // `HIP_VERSION` of hip_version.h: a major number of two digits, a minor one of two, and five of a patch.
            driver: format!("HIP {}.{}", version / 10_000_000, version / 100_000 % 100),
            clusters: false,
            pools: self.has_pools(),
            grid_threads: Some(GRID_THREADS),
        })
    }

    fn memory(&self) -> Result<(u64, u64), Failure> {
        let (mut free, mut total) = (0, 0);
        call!(self, hipMemGetInfo(&raw mut free, &raw mut total))?;
        Ok((free as u64, total as u64))
    }

    fn allocate(&self, bytes: usize) -> Result<u64, Failure> {
        let mut address = null_mut();
        call!(self, hipMalloc(&raw mut address, bytes))?;
        Ok(address as u64)
    }

    unsafe fn free(&self, address: u64) -> Result<(), Failure> {
        self.synchronize_device()?;
        call!(self, hipFree(address as *mut c_void))
    }

    unsafe fn allocate_ordered(&self, bytes: usize, on: StreamHandle) -> Result<u64, Failure> {
        let mut address = null_mut();
        call!(self, hipMallocAsync(&raw mut address, bytes, stream(on)))?;
        Ok(address as u64)
    }

    unsafe fn free_ordered(&self, address: u64, on: StreamHandle) -> Result<(), Failure> {
        call!(self, hipFreeAsync(address as *mut c_void, stream(on)))
    }

    fn pool_bytes(&self) -> Result<PoolBytes, Failure> {
        Ok(PoolBytes {
            reserved: self.pool_attribute(POOL_RESERVED_MEM_CURRENT)?,
            used: self.pool_attribute(POOL_USED_MEM_CURRENT)?,
        })
    }

    fn hold_in_pool(&self, mut bytes: u64) -> Result<(), Failure> {
        let pool = self.pool()?;
        call!(self, hipMemPoolSetAttribute(pool, POOL_RELEASE_THRESHOLD, (&raw mut bytes).cast()))
    }

    fn trim_pool(&self) -> Result<(), Failure> {
        let pool = self.pool()?;
        call!(self, hipMemPoolTrimTo(pool, 0))
    }

    fn allocate_pinned(&self, bytes: usize) -> Result<*mut u8, Failure> {
        let mut first = null_mut();
        call!(self, hipHostMalloc(&raw mut first, bytes, HOST_MALLOC_PORTABLE))?;
        Ok(first.cast())
    }

    unsafe fn free_pinned(&self, first: *mut u8) -> Result<(), Failure> {
        call!(self, hipHostFree(first.cast()))
    }

    unsafe fn upload(
        &self,
        target: u64,
        source: *const u8,
        bytes: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        let target = target as *mut c_void;
        call!(self, hipMemcpyAsync(target, source.cast(), bytes, HOST_TO_DEVICE, stream(on)))
    }

    unsafe fn download(
        &self,
        target: *mut u8,
        source: u64,
        bytes: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        let source = source as *const c_void;
        call!(self, hipMemcpyAsync(target.cast(), source, bytes, DEVICE_TO_HOST, stream(on)))
    }

    unsafe fn copy(&self, target: u64, source: u64, bytes: usize, on: StreamHandle) -> Result<(), Failure> {
        let (target, source) = (target as *mut c_void, source as *const c_void);
        call!(self, hipMemcpyAsync(target, source, bytes, DEVICE_TO_DEVICE, stream(on)))
    }

    /// Without a way past the host that [`Hip::open_way`] could open, HIP copies by way of it.
    unsafe fn copy_from_peer(
        &self,
        target: u64,
        peer: usize,
        source: u64,
        bytes: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        let peer = c_int::try_from(peer).map_err(|_| Failure::refused("there is no such GPU"))?;
        self.open_way(peer);
        let (target, source) = (target as *mut c_void, source as *const c_void);
        call!(self, hipMemcpyPeerAsync(target, self.ordinal, source, peer, bytes, stream(on)))
    }

    unsafe fn copy_rows(
        &self,
        target: Rows,
        source: Rows,
        RowSize { width, height }: RowSize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        let (to, from) = (target.first as *mut c_void, source.first as *const c_void);
        let (on, kind) = (stream(on), DEVICE_TO_DEVICE);
        call!(self, hipMemcpy2DAsync(to, target.pitch, from, source.pitch, width, height, kind, on))
    }

    /// Bytes alone (`hipMemset2DAsync`).
    unsafe fn fill_rows(
        &self,
        Rows { first, pitch }: Rows,
        pattern: Pattern,
        RowSize { width, height }: RowSize,
        on: StreamHandle,
    ) -> Result<bool, Failure> {
        let Pattern::Byte(byte) = pattern else { return Ok(false) };
        let target = first as *mut c_void;
        call!(self, hipMemset2DAsync(target, pitch, byte.into(), width, height, stream(on))).map(|()| true)
    }

    unsafe fn fill(
        &self,
        target: u64,
        pattern: Pattern,
        count: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        let target = target as *mut c_void;
        match pattern {
            Pattern::Byte(byte) => call!(self, hipMemsetD8Async(target, byte, count, stream(on))),
            Pattern::Half(half) => call!(self, hipMemsetD16Async(target, half, count, stream(on))),
            Pattern::Word(word) => {
                call!(self, hipMemsetD32Async(target, word.cast_signed(), count, stream(on)))
            }
        }
    }

    fn create_stream(&self) -> Result<StreamHandle, Failure> {
        let mut created = null_mut();
        call!(self, hipStreamCreateWithFlags(&raw mut created, STREAM_NON_BLOCKING))?;
        Ok(StreamHandle(created as usize))
    }

    unsafe fn destroy_stream(&self, on: StreamHandle) -> Result<(), Failure> {
        call!(self, hipStreamDestroy(stream(on)))
    }

    unsafe fn synchronize(&self, on: StreamHandle) -> Result<(), Failure> {
        call!(self, hipStreamSynchronize(stream(on)))
    }

    fn synchronize_device(&self) -> Result<(), Failure> {
        call!(self, hipDeviceSynchronize())
    }

    fn create_event(&self, kind: EventKind) -> Result<EventHandle, Failure> {
        let mut created = null_mut();
        let flags = match kind {
            EventKind::Plain => EVENT_DISABLE_TIMING,
            EventKind::Timed => EVENT_DEFAULT,
        };
        call!(self, hipEventCreateWithFlags(&raw mut created, flags))?;
        Ok(EventHandle(created as usize))
    }

    unsafe fn destroy_event(&self, of: EventHandle) -> Result<(), Failure> {
        call!(self, hipEventDestroy(event(of)))
    }

    unsafe fn record(&self, of: EventHandle, on: StreamHandle) -> Result<(), Failure> {
        call!(self, hipEventRecord(event(of), stream(on)))
    }

    unsafe fn wait(&self, on: StreamHandle, until: EventHandle) -> Result<(), Failure> {
        call!(self, hipStreamWaitEvent(stream(on), event(until), 0))
    }

    unsafe fn is_done(&self, of: EventHandle) -> Result<bool, Failure> {
        self.set()?;
        // SAFETY: the caller vouches for the event.
        self.answered(unsafe { (self.hip.hipEventQuery)(event(of)) })
    }

    unsafe fn synchronize_event(&self, of: EventHandle) -> Result<(), Failure> {
        call!(self, hipEventSynchronize(event(of)))
    }

    unsafe fn elapsed(&self, start: EventHandle, end: EventHandle) -> Result<f64, Failure> {
        let mut milliseconds = 0.0;
        call!(self, hipEventElapsedTime(&raw mut milliseconds, event(start), event(end)))?;
        Ok(f64::from(milliseconds) * 1e-3)
    }

    fn load(&self, image: &[u8]) -> Result<ModuleHandle, Failure> {
        let (image, mut module) = (Image::of(image), null_mut());
        call!(self, hipModuleLoadData(&raw mut module, image.first().cast()))?;
        let module = ModuleHandle(module as usize);
        self.images().insert(module, image);
        Ok(module)
    }

    unsafe fn unload(&self, module: ModuleHandle) -> Result<(), Failure> {
        call!(self, hipModuleUnload(module.0 as Pointer))?;
        self.images().remove(&module);
        Ok(())
    }

    /// Kernels for these GPUs declare their shared memory themselves.
    unsafe fn function(
        &self,
        module: ModuleHandle,
        symbol: &CStr,
        _shared_bytes: u32,
    ) -> Result<FunctionHandle, Failure> {
        let mut found = null_mut();
        call!(self, hipModuleGetFunction(&raw mut found, module.0 as Pointer, symbol.as_ptr()))?;
        Ok(FunctionHandle(found as usize))
    }

    unsafe fn blocks_per_multiprocessor(&self, of: FunctionHandle, launch: &Launch) -> Result<u32, Failure> {
        let (function, threads, bytes) =
            (of.0 as Pointer, launch.threads as c_int, launch.shared_bytes as usize);
        let mut blocks = 0;
        call!(
            self,
            hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, function, threads, bytes)
        )?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    unsafe fn clusters_at_once(&self, _: FunctionHandle, _: &Launch) -> Result<u32, Failure> {
        Err(Failure::refused("AMD's GPUs have no clusters of blocks"))
    }

    fn encode(&self, _: &BoundMap) -> Result<EncodedMap, Failure> {
        Err(Failure::refused("AMD's GPUs have no tensor maps"))
    }

    unsafe fn launch(
        &self,
        of: FunctionHandle,
        Grid { blocks, threads, shared_bytes }: Grid,
        parameters: &mut [*mut c_void],
        on: StreamHandle,
    ) -> Result<(), Failure> {
        let (function, parameters) = (of.0 as Pointer, parameters.as_mut_ptr());
        let (on, none) = (stream(on), null_mut());
        call!(
            self,
            hipModuleLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared_bytes, on, parameters, none)
        )
    }

    unsafe fn call(
        &self,
        function: HostFunction,
        data: *mut c_void,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        call!(self, hipLaunchHostFunc(stream(on), function, data))
    }

    unsafe fn begin_capture(&self, on: StreamHandle) -> Result<(), Failure> {
        // What other threads do meanwhile is theirs.
        call!(self, hipStreamBeginCapture(stream(on), CAPTURE_THREAD_LOCAL))
    }

    unsafe fn end_capture(&self, on: StreamHandle) -> Result<GraphHandle, Failure> {
        let mut graph = null_mut();
        call!(self, hipStreamEndCapture(stream(on), &raw mut graph))?;
        Ok(GraphHandle(graph as usize))
    }

    unsafe fn instantiate(&self, graph: GraphHandle) -> Result<ExecutableHandle, Failure> {
        let mut executable = null_mut();
        call!(self, hipGraphInstantiateWithFlags(&raw mut executable, graph.0 as Pointer, 0))?;
        Ok(ExecutableHandle(executable as usize))
    }

    unsafe fn destroy_graph(&self, graph: GraphHandle) -> Result<(), Failure> {
        call!(self, hipGraphDestroy(graph.0 as Pointer))
    }

    unsafe fn launch_graph(&self, graph: ExecutableHandle, on: StreamHandle) -> Result<(), Failure> {
        call!(self, hipGraphLaunch(graph.0 as Pointer, stream(on)))
    }

    unsafe fn destroy_executable(&self, graph: ExecutableHandle) -> Result<(), Failure> {
        call!(self, hipGraphExecDestroy(graph.0 as Pointer))
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests;
