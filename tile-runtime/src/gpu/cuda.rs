//! NVIDIA GPUs through the CUDA driver API, by cudarc, which loads `libcuda` when it is first asked for.
//!
//! cudarc panics where the library or a function of it is missing, so every use goes through [`count`], which asks first.
//! A call binds the device's primary context to its thread, which other libraries of the process share.

mod peers;
mod tensor_maps;

use super::architecture::Architecture;
use super::driver::{
    Description, Driver, EncodedMap, EventHandle, EventKind, ExecutableHandle, Failure, FailureKind,
    FunctionHandle, GraphHandle, Grid, HostFunction, ModuleHandle, Pattern, PoolBytes, RowSize, Rows,
    StreamHandle,
};
use super::identity;
use super::image::Image;
use cudarc::driver::{
    CudaContext, DriverError,
    sys::{self, CUdevice_attribute as Attribute, CUmemPool_attribute as PoolAttribute},
};
use peers::Peers;
use std::ffi::{CStr, c_void};
use std::sync::Arc;
use tile_ir::abi::Launch;
use tile_ir::tensor_map::BoundMap;

/// What a block has of shared memory unless it asks for more, in bytes.
const SHARED_BYTES: u32 = 48 * 1024;

/// Of the functions that are called of every driver, the one that came last, with CUDA 11.4. Later ones are called where
/// [`has`] finds them, or code runs that earlier drivers don't take.
const LATEST: &str = "cuGraphInstantiateWithFlags";

/// A GPU.
pub(super) struct Cuda {
    ordinal: usize,
    context: Arc<CudaContext>,
    peers: Peers,
}

/// How many NVIDIA GPUs there are; the reason why none can be used.
pub(super) fn count() -> Result<usize, String> {
    // SAFETY: only looks whether the driver library can be loaded.
    if !unsafe { sys::is_culib_present() } {
        return Err("no NVIDIA driver is installed (libcuda.so isn't found)".to_owned());
    }
    if !has(LATEST) {
        return Err(format!(
            "the NVIDIA driver is older than that of CUDA 11.4 (it lacks `{LATEST}`); update it"
        ));
    }
    let count = CudaContext::device_count().map_err(|error| failure(error).message);
    count
        .map(|count| usize::try_from(count).unwrap_or(0))
        .map_err(|message| format!("the NVIDIA driver reports {message}"))
}

/// Whether the driver's library, which is there, has a function.
fn has(function: &str) -> bool {
    // SAFETY: the symbol is only looked up, and not used as what it isn't.
    unsafe { sys::culib().get::<*const ()>(function.as_bytes()).is_ok() }
}

/// Calls a function of the driver's with the context bound.
macro_rules! call {
    ($self:ident, $name:ident($($argument:expr),* $(,)?)) => {{
        $self.bind()?;
        // SAFETY: handles and memory are what the trait's callers vouch for; the places that the driver writes to are
        // locals of the types that it writes.
        done(unsafe { sys::$name($($argument),*) })
    }};
}

impl Cuda {
    /// The GPU with this number, which [`count`] counted.
    pub(super) fn open(ordinal: usize) -> Result<Cuda, Failure> {
        let context = CudaContext::new(ordinal).map_err(failure)?;
        Ok(Cuda { ordinal, context, peers: Peers::default() })
    }

    /// Binds the context to this thread.
    fn bind(&self) -> Result<(), Failure> {
        self.context.bind_to_thread().map_err(failure)
    }

    /// The driver's version: 12080 is that of CUDA 12.8.
    fn version(&self) -> Result<i32, Failure> {
        let mut version = 0;
        call!(self, cuDriverGetVersion(&raw mut version))?;
        Ok(version)
    }

    fn attribute(&self, attribute: Attribute) -> Result<i32, Failure> {
        self.context.attribute(attribute).map_err(failure)
    }

    /// An attribute that drivers may say 0 of, or don't know.
    fn known(&self, attribute: Attribute) -> Option<i32> {
        self.attribute(attribute).ok().filter(|&value| value > 0)
    }

    fn has_pools(&self) -> bool {
        self.known(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED).is_some()
    }

    fn pool(&self) -> Result<sys::CUmemoryPool, Failure> {
        let mut pool = std::ptr::null_mut();
        call!(self, cuDeviceGetDefaultMemPool(&raw mut pool, self.context.cu_device()))?;
        Ok(pool)
    }

    fn pool_attribute(&self, attribute: PoolAttribute) -> Result<u64, Failure> {
        let (pool, mut value) = (self.pool()?, 0_u64);
        call!(self, cuMemPoolGetAttribute(pool, attribute, (&raw mut value).cast()))?;
        Ok(value)
    }

    /// That of the instance where the GPU is in parts (MIG), unlike what the first version of the function gives.
    fn uuid(&self) -> Result<Option<String>, Failure> {
        let mut uuid = sys::CUuuid { bytes: [0; 16] };
        call!(self, cuDeviceGetUuid_v2(&raw mut uuid, self.context.cu_device()))?;
        Ok(identity::uuid(uuid.bytes.map(|byte| byte as u8)))
    }

    fn pci_bus(&self) -> Result<Option<String>, Failure> {
        let mut text = [0_u8; 32];
        let (first, bytes) = (text.as_mut_ptr().cast(), text.len() as i32 - 1);
        call!(self, cuDeviceGetPCIBusId(first, bytes, self.context.cu_device()))?;
        Ok(identity::pci_bus(&text))
    }

    /// Two words of the bus per clock of the memory.
    fn memory_rate(&self) -> Option<f64> {
        let clock = self.known(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
        let bits = self.known(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?;
        Some(2.0 * f64::from(clock) * 1e3 * f64::from(bits) / 8.0)
    }
}

/// What the driver says of an error.
fn failure(error: DriverError) -> Failure {
    let text = |text: Result<&CStr, DriverError>| {
        text.map_or_else(|_| "unknown".to_owned(), |text| text.to_string_lossy().into_owned())
    };
    let (name, words) = (text(error.error_name()), text(error.error_string()));
    Failure { kind: FailureKind::of_code(error.0 as u32), message: format!("{words} ({name})") }
}

/// What a call gave, as a result.
fn done(result: sys::CUresult) -> Result<(), Failure> {
    result.result().map_err(failure)
}

/// The same of a query: that work isn't done is an answer.
fn answered(result: sys::CUresult) -> Result<bool, Failure> {
    match result {
        sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
        result => done(result).map(|()| true),
    }
}

fn stream(handle: StreamHandle) -> sys::CUstream {
    handle.0 as sys::CUstream
}

fn event(handle: EventHandle) -> sys::CUevent {
    handle.0 as sys::CUevent
}

fn function(handle: FunctionHandle) -> sys::CUfunction {
    handle.0 as sys::CUfunction
}

impl Driver for Cuda {
    fn api(&self) -> &'static str {
        "cuda"
    }

    fn ordinal(&self) -> usize {
        self.ordinal
    }

    fn describe(&self) -> Result<Description, Failure> {
        let (major, minor) = self.context.compute_capability().map_err(failure)?;
        let unsigned = |attribute| self.attribute(attribute).map(i32::unsigned_abs);
        let version = self.version()?;
        let clock = self.known(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
        let shared = Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        Ok(Description {
            name: self.context.name().map_err(failure)?,
            uuid: self.uuid().ok().flatten(),
            pci_bus: self.pci_bus().ok().flatten(),
            architecture: Architecture::Nvidia { major, minor },
            multiprocessors: unsigned(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            warp: unsigned(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            clock: clock.map(|kilohertz| f64::from(kilohertz) * 1e3),
            memory_rate: self.memory_rate(),
            shared_bytes: unsigned(shared)?.into(),
            l2_bytes: unsigned(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
            driver: format!("CUDA {}.{}", version / 1000, version % 1000 / 10),
            // Drivers that don't know of clusters say that there is no such attribute.
            clusters: self.known(Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH).is_some(),
            pools: self.has_pools(),
            grid_threads: None,
        })
    }

    fn memory(&self) -> Result<(u64, u64), Failure> {
        let (mut free, mut total) = (0, 0);
        call!(self, cuMemGetInfo_v2(&raw mut free, &raw mut total))?;
        Ok((free as u64, total as u64))
    }

    fn allocate(&self, bytes: usize) -> Result<u64, Failure> {
        let mut address = 0;
        call!(self, cuMemAlloc_v2(&raw mut address, bytes))?;
        Ok(address)
    }

    unsafe fn free(&self, address: u64) -> Result<(), Failure> {
        self.synchronize_device()?;
        call!(self, cuMemFree_v2(address))
    }

    unsafe fn allocate_ordered(&self, bytes: usize, on: StreamHandle) -> Result<u64, Failure> {
        let mut address = 0;
        call!(self, cuMemAllocAsync(&raw mut address, bytes, stream(on)))?;
        Ok(address)
    }

    unsafe fn free_ordered(&self, address: u64, on: StreamHandle) -> Result<(), Failure> {
        call!(self, cuMemFreeAsync(address, stream(on)))
    }

    fn pool_bytes(&self) -> Result<PoolBytes, Failure> {
        Ok(PoolBytes {
            reserved: self.pool_attribute(PoolAttribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
            used: self.pool_attribute(PoolAttribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
        })
    }

    fn hold_in_pool(&self, mut bytes: u64) -> Result<(), Failure> {
        let (pool, threshold) = (self.pool()?, PoolAttribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
        call!(self, cuMemPoolSetAttribute(pool, threshold, (&raw mut bytes).cast()))
    }

    fn trim_pool(&self) -> Result<(), Failure> {
        let pool = self.pool()?;
        call!(self, cuMemPoolTrimTo(pool, 0))
    }

    fn allocate_pinned(&self, bytes: usize) -> Result<*mut u8, Failure> {
        let mut first = std::ptr::null_mut();
        call!(self, cuMemHostAlloc(&raw mut first, bytes, sys::CU_MEMHOSTALLOC_PORTABLE))?;
        Ok(first.cast())
    }

    unsafe fn free_pinned(&self, first: *mut u8) -> Result<(), Failure> {
        call!(self, cuMemFreeHost(first.cast()))
    }

    unsafe fn upload(
        &self,
        target: u64,
        source: *const u8,
        bytes: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        call!(self, cuMemcpyHtoDAsync_v2(target, source.cast(), bytes, stream(on)))
    }

    unsafe fn download(
        &self,
        target: *mut u8,
        source: u64,
        bytes: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        call!(self, cuMemcpyDtoHAsync_v2(target.cast(), source, bytes, stream(on)))
    }

    unsafe fn copy(&self, target: u64, source: u64, bytes: usize, on: StreamHandle) -> Result<(), Failure> {
        call!(self, cuMemcpyDtoDAsync_v2(target, source, bytes, stream(on)))
    }

    unsafe fn copy_from_peer(
        &self,
        target: u64,
        peer: usize,
        source: u64,
        bytes: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        let (own, peer) = (self.context.cu_ctx(), self.peer(peer)?);
        call!(self, cuMemcpyPeerAsync(target, own, source, peer, bytes, stream(on)))
    }

    unsafe fn copy_rows(
        &self,
        target: Rows,
        source: Rows,
        RowSize { width, height }: RowSize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        let device = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
        let copy = sys::CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: device,
            srcHost: std::ptr::null(),
            srcDevice: source.first,
            srcArray: std::ptr::null_mut(),
            srcPitch: source.pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: device,
            dstHost: std::ptr::null_mut(),
            dstDevice: target.first,
            dstArray: std::ptr::null_mut(),
            dstPitch: target.pitch,
            WidthInBytes: width,
            Height: height,
        };
        call!(self, cuMemcpy2DAsync_v2(&raw const copy, stream(on)))
    }

    unsafe fn fill_rows(
        &self,
        Rows { first, pitch }: Rows,
        pattern: Pattern,
        RowSize { width, height }: RowSize,
        on: StreamHandle,
    ) -> Result<bool, Failure> {
        let (on, width) = (stream(on), width / pattern.bytes());
        match pattern {
            Pattern::Byte(byte) => call!(self, cuMemsetD2D8Async(first, pitch, byte, width, height, on)),
            Pattern::Half(half) => call!(self, cuMemsetD2D16Async(first, pitch, half, width, height, on)),
            Pattern::Word(word) => call!(self, cuMemsetD2D32Async(first, pitch, word, width, height, on)),
        }
        .map(|()| true)
    }

    unsafe fn fill(
        &self,
        target: u64,
        pattern: Pattern,
        count: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        match pattern {
            Pattern::Byte(byte) => call!(self, cuMemsetD8Async(target, byte, count, stream(on))),
            Pattern::Half(half) => call!(self, cuMemsetD16Async(target, half, count, stream(on))),
            Pattern::Word(word) => call!(self, cuMemsetD32Async(target, word, count, stream(on))),
        }
    }

    fn create_stream(&self) -> Result<StreamHandle, Failure> {
        let mut created = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        call!(self, cuStreamCreate(&raw mut created, flags))?;
        Ok(StreamHandle(created as usize))
    }

    unsafe fn destroy_stream(&self, on: StreamHandle) -> Result<(), Failure> {
        call!(self, cuStreamDestroy_v2(stream(on)))
    }

    unsafe fn synchronize(&self, on: StreamHandle) -> Result<(), Failure> {
        call!(self, cuStreamSynchronize(stream(on)))
    }

    fn synchronize_device(&self) -> Result<(), Failure> {
        call!(self, cuCtxSynchronize())
    }

    fn create_event(&self, kind: EventKind) -> Result<EventHandle, Failure> {
        use sys::CUevent_flags::{CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING};
        let mut created = std::ptr::null_mut();
        let flags = match kind {
            EventKind::Plain => CU_EVENT_DISABLE_TIMING,
            EventKind::Timed => CU_EVENT_DEFAULT,
        };
        call!(self, cuEventCreate(&raw mut created, flags as u32))?;
        Ok(EventHandle(created as usize))
    }

    unsafe fn destroy_event(&self, of: EventHandle) -> Result<(), Failure> {
        call!(self, cuEventDestroy_v2(event(of)))
    }

    unsafe fn record(&self, of: EventHandle, on: StreamHandle) -> Result<(), Failure> {
        call!(self, cuEventRecord(event(of), stream(on)))
    }

    unsafe fn wait(&self, on: StreamHandle, until: EventHandle) -> Result<(), Failure> {
        call!(self, cuStreamWaitEvent(stream(on), event(until), 0))
    }

    unsafe fn is_done(&self, of: EventHandle) -> Result<bool, Failure> {
        self.bind()?;
        // SAFETY: the caller vouches for the event.
        answered(unsafe { sys::cuEventQuery(event(of)) })
    }

    unsafe fn synchronize_event(&self, of: EventHandle) -> Result<(), Failure> {
        call!(self, cuEventSynchronize(event(of)))
    }

    unsafe fn elapsed(&self, start: EventHandle, end: EventHandle) -> Result<f64, Failure> {
        let mut milliseconds = 0.0;
        call!(self, cuEventElapsedTime(&raw mut milliseconds, event(start), event(end)))?;
        Ok(f64::from(milliseconds) * 1e-3)
    }

    fn load(&self, image: &[u8]) -> Result<ModuleHandle, Failure> {
        // The driver reads the header of a cubin in place, and PTX up to a NUL byte.
        let (image, mut module) = (Image::of(image), std::ptr::null_mut());
        call!(self, cuModuleLoadData(&raw mut module, image.first().cast()))?;
        Ok(ModuleHandle(module as usize))
    }

    unsafe fn unload(&self, module: ModuleHandle) -> Result<(), Failure> {
        call!(self, cuModuleUnload(module.0 as sys::CUmodule))
    }

    unsafe fn function(
        &self,
        module: ModuleHandle,
        symbol: &CStr,
        shared_bytes: u32,
    ) -> Result<FunctionHandle, Failure> {
        let mut found = std::ptr::null_mut();
        call!(self, cuModuleGetFunction(&raw mut found, module.0 as sys::CUmodule, symbol.as_ptr()))?;
        if shared_bytes > SHARED_BYTES {
            let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            call!(self, cuFuncSetAttribute(found, attribute, shared_bytes as i32))?;
        }
        Ok(FunctionHandle(found as usize))
    }

    unsafe fn blocks_per_multiprocessor(&self, of: FunctionHandle, launch: &Launch) -> Result<u32, Failure> {
        let (threads, bytes) = (launch.threads as i32, launch.shared_bytes as usize);
        let mut blocks = 0;
        call!(
            self,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, function(of), threads, bytes)
        )?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// The function itself says how many blocks are a cluster (CUDA Driver API, `cuOccupancyMaxActiveClusters`). A driver
    /// that doesn't know of clusters wouldn't have loaded it.
    unsafe fn clusters_at_once(&self, of: FunctionHandle, launch: &Launch) -> Result<u32, Failure> {
        let config = sys::CUlaunchConfig {
            gridDimX: launch.cluster,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: launch.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: launch.shared_bytes,
            hStream: std::ptr::null_mut(),
            attrs: std::ptr::null_mut(),
            numAttrs: 0,
        };
        let mut clusters = 0;
        call!(self, cuOccupancyMaxActiveClusters(&raw mut clusters, function(of), &raw const config))?;
        Ok(u32::try_from(clusters).unwrap_or(0))
    }

    fn encode(&self, map: &BoundMap) -> Result<EncodedMap, Failure> {
        // The driver looks at the context that is current on the thread, which may be none yet, or another device's.
        self.bind()?;
        tensor_maps::encode(map, self.version()?)
    }

    unsafe fn launch(
        &self,
        of: FunctionHandle,
        Grid { blocks, threads, shared_bytes }: Grid,
        parameters: &mut [*mut c_void],
        on: StreamHandle,
    ) -> Result<(), Failure> {
        let (parameters, none) = (parameters.as_mut_ptr(), std::ptr::null_mut());
        call!(
            self,
            cuLaunchKernel(
                function(of),
                blocks,
                1,
                1,
                threads,
                1,
                1,
                shared_bytes,
                stream(on),
                parameters,
                none
            )
        )
    }

    unsafe fn call(
        &self,
        function: HostFunction,
        data: *mut c_void,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        call!(self, cuLaunchHostFunc(stream(on), Some(function), data))
    }

    unsafe fn begin_capture(&self, on: StreamHandle) -> Result<(), Failure> {
        // What other threads do meanwhile is theirs.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        call!(self, cuStreamBeginCapture_v2(stream(on), mode))
    }

    unsafe fn end_capture(&self, on: StreamHandle) -> Result<GraphHandle, Failure> {
        let mut graph = std::ptr::null_mut();
        call!(self, cuStreamEndCapture(stream(on), &raw mut graph))?;
        Ok(GraphHandle(graph as usize))
    }

    unsafe fn instantiate(&self, graph: GraphHandle) -> Result<ExecutableHandle, Failure> {
        let mut executable = std::ptr::null_mut();
        call!(self, cuGraphInstantiateWithFlags(&raw mut executable, graph.0 as sys::CUgraph, 0))?;
        Ok(ExecutableHandle(executable as usize))
    }

    unsafe fn destroy_graph(&self, graph: GraphHandle) -> Result<(), Failure> {
        call!(self, cuGraphDestroy(graph.0 as sys::CUgraph))
    }

    unsafe fn launch_graph(&self, graph: ExecutableHandle, on: StreamHandle) -> Result<(), Failure> {
        call!(self, cuGraphLaunch(graph.0 as sys::CUgraphExec, stream(on)))
    }

    unsafe fn destroy_executable(&self, graph: ExecutableHandle) -> Result<(), Failure> {
        call!(self, cuGraphExecDestroy(graph.0 as sys::CUgraphExec))
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests;
