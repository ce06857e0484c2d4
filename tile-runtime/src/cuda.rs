//! NVIDIA GPUs through the driver API, loaded when first asked for.
//!
//! cudarc loads `libcuda` lazily and panics where it is missing, so every use goes through [`Context::new`],
//! which asks first. Work is enqueued on one stream per context, in order; reads of results wait for it.

mod tensor_maps;

use crate::error::{Error, Result};
use crate::resolve::PtxCode;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtrMut, DriverError, result, sys};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tensor_maps::Encoded;
use tile_ir::Variant;
use tile_ir::abi::Launch;
use tile_ir::tensor_map::BoundMap;

/// A GPU and its stream.
pub(crate) struct Context {
    ordinal: usize,
    name: String,
    capability: (i32, i32),
    multiprocessors: usize,
    /// Bytes of memory per second, where the driver says what they follow from.
    memory_rate: Option<f64>,
    /// Whether blocks can run together.
    clusters: bool,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    /// Loaded functions by the address of their PTX text and their symbol. Modules live as long as the context.
    functions: Mutex<HashMap<(usize, String), Function>>,
    tensor_maps: Mutex<Encoded>,
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

/// A stream that another library has made, such as PyTorch's current one, for [`crate::Launch::on_stream`].
#[derive(Clone, Copy, Debug)]
pub struct Stream(sys::CUstream);

impl Stream {
    /// The stream with this handle of the driver, a `CUstream` or `cudaStream_t`; null is the default stream.
    ///
    /// # Safety
    /// The handle is that of a stream of the primary context of the GPU on which the launch runs, and the stream is
    /// there as long as this is used.
    pub unsafe fn from_raw(handle: *mut c_void) -> Stream {
        Stream(handle.cast())
    }
}

/// A loaded function.
#[derive(Clone, Copy)]
struct Function {
    /// The driver's handle, as a number.
    handle: usize,
    /// How many of its blocks run at once on the whole GPU: whole clusters.
    blocks_at_once: u32,
}

/// What the name of an NVIDIA target says: `sm_80` is for compute capability 8.0 and every later one, `sm_90a` for
/// 9.0 alone. The greater of two that run on a GPU makes more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Architecture {
    capability: (i32, i32),
    exact: bool,
}

impl Architecture {
    /// The architecture of a target; `None` for a target of another vendor.
    pub(crate) fn named(target: &str) -> Option<Architecture> {
        let name = target.strip_prefix("sm_")?;
        let (number, exact) = name.strip_suffix('a').map_or((name, false), |number| (number, true));
        let number: i32 = number.parse().ok()?;
        Some(Architecture { capability: (number / 10, number % 10), exact })
    }

    fn runs_on(self, capability: (i32, i32)) -> bool {
        if self.exact { self.capability == capability } else { self.capability <= capability }
    }
}

/// Device memory.
pub(crate) struct Buffer {
    slice: CudaSlice<u8>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{} ({})", self.ordinal, self.name)
    }
}

impl Context {
    /// The GPU with this number.
    pub(crate) fn new(ordinal: usize) -> Result<Arc<Context>> {
        let no = |reason: String| Error::NoDevice { device: format!("cuda:{ordinal}"), reason };
        // SAFETY: only looks whether the driver library can be loaded.
        if !unsafe { sys::is_culib_present() } {
            return Err(no("no NVIDIA driver is installed (libcuda.so isn't found)".to_owned()));
        }
        let driver = |error: DriverError| no(format!("the NVIDIA driver reports {error}"));
        let count = CudaContext::device_count().map_err(driver)?;
        if ordinal >= usize::try_from(count).unwrap_or(0) {
            return Err(no(format!("this machine has {count} NVIDIA GPUs")));
        }
        let context = CudaContext::new(ordinal).map_err(driver)?;
        let stream = context.default_stream();
        let (name, capability) =
            (context.name().map_err(driver)?, context.compute_capability().map_err(driver)?);
        let count = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let multiprocessors = context.attribute(count).map_err(driver)?;
        let multiprocessors = usize::try_from(multiprocessors).unwrap_or(1);
        let memory_rate = memory_rate(&context);
        // Drivers that don't know of clusters say that there is no such attribute.
        let clusters = context.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
        Ok(Arc::new(Context {
            ordinal,
            name,
            capability,
            multiprocessors,
            memory_rate,
            clusters: clusters.is_ok_and(|clusters| clusters != 0),
            context,
            stream,
            functions: Mutex::default(),
            tensor_maps: Mutex::default(),
        }))
    }

    pub(crate) fn ordinal(&self) -> usize {
        self.ordinal
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How many blocks run at once, at least.
    pub(crate) fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }

    /// Bytes of memory per second, where they are known.
    pub(crate) fn memory_rate(&self) -> Option<f64> {
        self.memory_rate
    }

    /// Whether code of a variant runs here that runs elsewhere on such GPUs.
    pub(crate) fn takes(&self, variant: Variant) -> bool {
        self.clusters || variant != Variant::Paired
    }

    /// Whether code for a target such as `sm_80` or `sm_90a` runs here.
    pub(crate) fn runs(&self, target: &str) -> bool {
        Architecture::named(target).is_some_and(|architecture| architecture.runs_on(self.capability))
    }

    fn error(&self, action: impl Into<String>, error: &DriverError) -> Error {
        Error::Driver { device: format!("{self:?}"), action: action.into(), message: error.to_string() }
    }

    fn allocation_error(&self, bytes: usize, error: &DriverError) -> Error {
        if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Error::OutOfMemory { device: format!("{self:?}"), bytes };
        }
        self.error(format!("allocating {bytes} bytes"), error)
    }

    /// Zeroed device memory. An empty tensor has one byte, so that its address is one.
    pub(crate) fn zeroed(&self, bytes: usize) -> Result<Buffer> {
        let slice = self.stream.alloc_zeros::<u8>(bytes.max(1));
        slice.map(|slice| Buffer { slice }).map_err(|error| self.allocation_error(bytes, &error))
    }

    /// Copies host bytes to device memory, after all work enqueued before.
    pub(crate) fn upload(&self, bytes: &[u8], address: u64) -> Result<()> {
        self.synchronize(None)?;
        let failed = |error: DriverError| self.error("copying to the device", &error);
        // SAFETY: the context is current, bound by the wait; the memory is that of a tensor or a log, which is as large.
        unsafe { result::memcpy_htod_sync(address, bytes) }.map_err(failed)
    }

    /// Copies device memory to the host, after all work enqueued before.
    pub(crate) fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.synchronize(None)?;
        let failed = |error: DriverError| self.error("copying to the host", &error);
        // SAFETY: the context is current, bound by the wait; the memory is that of a tensor or a log, which is as large.
        unsafe { result::memcpy_dtoh_sync(bytes, address) }.map_err(failed)
    }

    /// Waits for everything that was enqueued on a stream, or on the context's own.
    pub(crate) fn synchronize(&self, stream: Option<Stream>) -> Result<()> {
        let failed = |error: DriverError| self.error("waiting for the device", &error);
        self.context.bind_to_thread().map_err(failed)?;
        let stream = stream.map_or(self.stream.cu_stream(), |Stream(handle)| handle);
        // SAFETY: the stream is the context's own, or one whose giver vouches for it.
        unsafe { result::stream::synchronize(stream) }.map_err(failed)
    }

    /// The address of device memory.
    pub(crate) fn address_mut(&self, buffer: &mut Buffer) -> u64 {
        buffer.slice.device_ptr_mut(&self.stream).0
    }

    /// Enqueues a kernel, on a stream or on the context's own. Gives the time that it took if `timed`, which waits for
    /// it.
    pub(crate) fn launch(
        &self,
        code: &PtxCode,
        blocks: usize,
        parameters: &Parameters<'_>,
        stream: Option<Stream>,
        timed: bool,
    ) -> Result<Duration> {
        let PtxCode { symbol, launch, .. } = code;
        let action = || format!("launching `{symbol}`");
        let blocks =
            u32::try_from(blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32).ok_or_else(|| {
                Error::Launch {
                    kernel: symbol.clone(),
                    problem: format!("a grid of {blocks} blocks exceeds 2³¹ − 1; use larger tiles"),
                }
            })?;
        // Every thread that launches needs the context, also where the function is known already.
        self.context.bind_to_thread().map_err(|error| self.error(action(), &error))?;
        let function = self.function(code)?;
        // Of a kernel of clusters both are whole ones: its variant is taken where the grid's places are.
        let blocks = if launch.shares_grid { blocks.min(function.blocks_at_once) } else { blocks };
        let maps = self.encoded(parameters.maps)?;
        let slots = parameters.slots.iter().map(address_of);
        let mut parameters: Vec<*mut c_void> =
            slots.chain(maps.iter().map(address_of)).chain(parameters.log.iter().map(address_of)).collect();
        let failed = |error: DriverError| self.error(action(), &error);
        if timed {
            self.synchronize(stream)?;
        }
        let start = Instant::now();
        // SAFETY: the function is alive as long as the context; the parameters are those of its calling
        // convention (checked against the kernel's ABI by `Launch`), each outlives the call, which copies it.
        unsafe {
            result::launch_kernel(
                function.handle as sys::CUfunction,
                (blocks, 1, 1),
                (launch.threads, 1, 1),
                launch.shared_bytes,
                stream.map_or(self.stream.cu_stream(), |Stream(handle)| handle),
                &mut parameters,
            )
        }
        .map_err(failed)?;
        if timed {
            self.synchronize(stream)?;
        }
        Ok(start.elapsed())
    }

    /// Tensor maps in the driver's form.
    fn encoded(&self, maps: &[BoundMap]) -> Result<Vec<sys::CUtensorMap>> {
        if !maps.is_empty() && !tensor_maps::are_known() {
            return Err(Error::Driver {
                device: format!("{self:?}"),
                action: "describing a tensor".to_owned(),
                message: "the NVIDIA driver is older than that of CUDA 12; update it".to_owned(),
            });
        }
        let mut known = self.tensor_maps.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |map: &BoundMap, error: DriverError| self.error(format!("describing {map:?}"), &error);
        let mut encoded = |map: &BoundMap| {
            known.get(map, |map| tensor_maps::encode(map).map_err(|error| refused(map, error)))
        };
        maps.iter().map(&mut encoded).collect()
    }

    /// The module of machine code, or of PTX where there is none that the driver takes: a driver refuses what a later
    /// `ptxas` has made, and assembles the PTX.
    fn module(&self, PtxCode { text, cubin, symbol, .. }: &PtxCode) -> Result<sys::CUmodule> {
        // The driver reads the file's header in place: a copy is aligned.
        let cubin = cubin.map(<[u8]>::to_vec);
        // SAFETY: the image is a cubin, which says how long it is, and the context is current; the module is never
        // unloaded.
        let loaded = cubin.and_then(|image| unsafe { result::module::load_data(image.as_ptr().cast()) }.ok());
        if let Some(module) = loaded {
            return Ok(module);
        }
        let damaged =
            |_| Error::Launch { kernel: symbol.clone(), problem: "its PTX holds a NUL byte".to_owned() };
        let text = CString::new(*text).map_err(damaged)?;
        // SAFETY: the text is NUL-terminated PTX and the context is current; the module is never unloaded.
        let module = unsafe { result::module::load_data(text.as_ptr().cast()) };
        module.map_err(|error| self.error(format!("loading the PTX of `{symbol}`"), &error))
    }

    /// The function of a PTX text, loaded once.
    fn function(&self, code: &PtxCode) -> Result<Function> {
        let PtxCode { text, symbol, launch, .. } = code;
        let key = (text.as_ptr() as usize, symbol.clone());
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&function) = functions.get(&key) {
            return Ok(function);
        }
        let damaged =
            |_| Error::Launch { kernel: symbol.clone(), problem: "its name holds a NUL byte".to_owned() };
        let name = CString::new(symbol.as_str()).map_err(damaged)?;
        let failed = |error: DriverError| self.error(format!("loading `{symbol}`"), &error);
        let module = self.module(code)?;
        // SAFETY: the module was loaded above.
        let function = unsafe { result::module::get_function(module, name) }.map_err(failed)?;
        if launch.shared_bytes > 48 * 1024 {
            let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function was found above. A block has 48 KiB unless it asks for more.
            unsafe {
                result::function::set_function_attribute(function, attribute, launch.shared_bytes as i32)
            }
            .map_err(failed)?;
        }
        let blocks_at_once = match launch.cluster {
            // SAFETY: the function was found above.
            1 => unsafe { self.blocks_at_once(function, launch) }.map_err(failed)?,
            // SAFETY: likewise, and its code says how many blocks are a cluster.
            _ => unsafe { clusters_at_once(function, launch) }.map_err(failed)? * launch.cluster,
        };
        if blocks_at_once == 0 {
            return Err(Error::Launch { kernel: symbol.clone(), problem: no_room(launch) });
        }
        let function = Function { handle: function as usize, blocks_at_once };
        functions.insert(key, function);
        Ok(function)
    }
}

/// Two words of the bus per clock of the memory. Drivers may say 0 of a clock that they don't know.
fn memory_rate(context: &CudaContext) -> Option<f64> {
    use sys::CUdevice_attribute as Attribute;
    let clock = context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).ok()?;
    let bits = context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH).ok()?;
    let rate = 2.0 * f64::from(clock) * 1e3 * f64::from(bits) / 8.0;
    (rate > 0.0).then_some(rate)
}

impl Context {
    /// How many blocks of a function run at once on the whole GPU, one at least.
    ///
    /// # Safety
    /// The function is there.
    unsafe fn blocks_at_once(&self, function: sys::CUfunction, launch: &Launch) -> Result<u32, DriverError> {
        let (threads, bytes) = (launch.threads as i32, launch.shared_bytes as usize);
        // SAFETY: the caller vouches for the function.
        let occupancy =
            unsafe { result::occupancy::max_active_block_per_multiprocessor(function, threads, bytes) }?;
        let occupancy = usize::try_from(occupancy).unwrap_or(1).max(1);
        Ok(u32::try_from(occupancy * self.multiprocessors).unwrap_or(u32::MAX))
    }
}

/// How many clusters of a function run at once on the whole GPU. The function itself says how many blocks are one
/// (CUDA Driver API, `cuOccupancyMaxActiveClusters`).
///
/// # Safety
/// The function is there, and was made for clusters.
unsafe fn clusters_at_once(function: sys::CUfunction, launch: &Launch) -> Result<u32, DriverError> {
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
    // SAFETY: the caller vouches for the function; the driver writes the number alone. It knows of clusters: it loaded the
    // function.
    unsafe { sys::cuOccupancyMaxActiveClusters(&raw mut clusters, function, &raw const config) }.result()?;
    Ok(u32::try_from(clusters).unwrap_or(0))
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

    #[test]
    fn why_no_cluster_runs_is_said() {
        let launch =
            Launch { threads: 384, shared_bytes: 230_400, scratch_bytes: 0, shares_grid: true, cluster: 2 };
        assert_eq!(
            no_room(&launch),
            "no 2 blocks of 384 threads and 230400 bytes of shared memory run together on this GPU; is it a part of \
             one? Use the whole"
        );
    }

    fn best(targets: &[&'static str], capability: (i32, i32)) -> Option<&'static str> {
        let runs = |target: &&&str| Architecture::named(target).is_some_and(|a| a.runs_on(capability));
        targets.iter().filter(runs).max_by_key(|target| Architecture::named(target)).copied()
    }

    #[test]
    fn a_gpu_gets_the_latest_code_that_it_runs() {
        let targets = ["cpu", "sm_80", "sm_90a", "sm_100a", "gfx942"];
        assert_eq!(best(&targets, (7, 5)), None);
        assert_eq!(best(&targets, (8, 6)), Some("sm_80"));
        assert_eq!(best(&targets, (9, 0)), Some("sm_90a"));
        assert_eq!(best(&targets, (10, 0)), Some("sm_100a"));
        // Code for exactly one GPU doesn't run on a later one.
        assert_eq!(best(&targets, (10, 3)), Some("sm_80"));
        assert_eq!(best(&targets, (12, 0)), Some("sm_80"));
    }
}
