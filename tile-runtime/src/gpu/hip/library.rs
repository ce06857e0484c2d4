//! The functions of `libamdhip64` that the runtime calls, loaded by name.
//!
//! One table says each function's name and type, as HIP's `hip_runtime_api.h` declares it, the same from HIP 6.2 to 7.14.
//! A library or a function that isn't there is an error that names it.

use libloading::Library;
use std::error::Error;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_ushort, c_void};

/// `hipError_t`, `hipDeviceAttribute_t` and other enumerations.
pub(crate) type Enumeration = c_int;
/// Streams, events, modules, functions, graphs and pools: pointers to what only HIP knows.
pub(crate) type Pointer = *mut c_void;
/// `hipHostFn_t`.
pub(crate) type HostFunction = unsafe extern "C" fn(*mut c_void);

/// `hipMemAccessDesc`: a place, and what may be done from there.
#[repr(C)]
pub(crate) struct MemoryAccess {
    pub(crate) kind: Enumeration,
    pub(crate) device: c_int,
    pub(crate) flags: Enumeration,
}

/// Where the library is looked for: by the name that developers' packages link, by those of the versions that have the
/// same functions, and where ROCm's packages put it without telling the loader.
#[cfg(not(windows))]
pub(super) const NAMES: &[&str] =
    &["libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so"];
#[cfg(windows)]
pub(super) const NAMES: &[&str] = &["amdhip64.dll", "amdhip64_7.dll", "amdhip64_6.dll"];

macro_rules! functions {
    ($($name:ident($($parameter:ty),*);)*) => {
        /// HIP's functions. They give `hipError_t`.
        #[allow(non_snake_case, reason = "fields have the names of the functions")]
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($parameter),*) -> Enumeration,)*
            hipGetErrorName: unsafe extern "C" fn(Enumeration) -> *const c_char,
            hipGetErrorString: unsafe extern "C" fn(Enumeration) -> *const c_char,
            /// Its functions are called as long as this is there.
            _library: Library,
        }

        impl Functions {
            fn of(library: Library) -> Result<Functions, String> {
                // SAFETY: the functions have these types in every version of the library that has them.
                unsafe {
                    Ok(Functions {
                        $($name: function(&library, stringify!($name))?,)*
                        hipGetErrorName: function(&library, "hipGetErrorName")?,
                        hipGetErrorString: function(&library, "hipGetErrorString")?,
                        _library: library,
                    })
                }
            }
        }
    };
}

functions! {
    hipDriverGetVersion(*mut c_int);
    hipGetDeviceCount(*mut c_int);
    hipSetDevice(c_int);
    hipDeviceGetName(*mut c_char, c_int, c_int);
    hipDeviceGetUuid(*mut [u8; 16], c_int);
    hipDeviceGetPCIBusId(*mut c_char, c_int, c_int);
    hipDeviceGetAttribute(*mut c_int, Enumeration, c_int);
    hipGetDevicePropertiesR0600(*mut c_void, c_int);
    hipDeviceSynchronize();
    hipMemGetInfo(*mut usize, *mut usize);
    hipMalloc(*mut *mut c_void, usize);
    hipFree(*mut c_void);
    hipMallocAsync(*mut *mut c_void, usize, Pointer);
    hipFreeAsync(*mut c_void, Pointer);
    hipDeviceGetDefaultMemPool(*mut Pointer, c_int);
    hipMemPoolSetAttribute(Pointer, Enumeration, *mut c_void);
    hipMemPoolGetAttribute(Pointer, Enumeration, *mut c_void);
    hipMemPoolTrimTo(Pointer, usize);
    hipHostMalloc(*mut *mut c_void, usize, c_uint);
    hipHostFree(*mut c_void);
    hipMemcpyAsync(*mut c_void, *const c_void, usize, Enumeration, Pointer);
    hipMemcpy2DAsync(*mut c_void, usize, *const c_void, usize, usize, usize, Enumeration, Pointer);
    hipMemcpyPeerAsync(*mut c_void, c_int, *const c_void, c_int, usize, Pointer);
    hipDeviceCanAccessPeer(*mut c_int, c_int, c_int);
    hipDeviceEnablePeerAccess(c_int, c_uint);
    hipMemPoolSetAccess(Pointer, *const MemoryAccess, usize);
    hipMemset2DAsync(*mut c_void, usize, c_int, usize, usize, Pointer);
    hipMemsetD8Async(*mut c_void, u8, usize, Pointer);
    hipMemsetD16Async(*mut c_void, c_ushort, usize, Pointer);
    hipMemsetD32Async(*mut c_void, c_int, usize, Pointer);
    hipStreamCreateWithFlags(*mut Pointer, c_uint);
    hipStreamDestroy(Pointer);
    hipStreamSynchronize(Pointer);
    hipStreamWaitEvent(Pointer, Pointer, c_uint);
    hipEventCreateWithFlags(*mut Pointer, c_uint);
    hipEventDestroy(Pointer);
    hipEventRecord(Pointer, Pointer);
    hipEventQuery(Pointer);
    hipEventSynchronize(Pointer);
    hipEventElapsedTime(*mut f32, Pointer, Pointer);
    hipModuleLoadData(*mut Pointer, *const c_void);
    hipModuleUnload(Pointer);
    hipModuleGetFunction(*mut Pointer, Pointer, *const c_char);
    hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(*mut c_int, Pointer, c_int, usize);
    hipModuleLaunchKernel(Pointer, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Pointer, *mut *mut c_void, *mut *mut c_void);
    hipLaunchHostFunc(Pointer, HostFunction, *mut c_void);
    hipStreamBeginCapture(Pointer, Enumeration);
    hipStreamEndCapture(Pointer, *mut Pointer);
    hipGraphInstantiateWithFlags(*mut Pointer, Pointer, c_ulonglong);
    hipGraphDestroy(Pointer);
    hipGraphLaunch(Pointer, Pointer);
    hipGraphExecDestroy(Pointer);
}

/// A function of a library by its name.
///
/// # Safety
/// It has this type.
unsafe fn function<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: the caller vouches for the type.
    let found = unsafe { library.get::<T>(name) };
    found.map(|function| *function).map_err(|error| format!("it lacks `{name}` ({})", words(&error)))
}

/// What the system's loader says.
fn words(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

impl Functions {
    /// The library by the first of these names that there is; a sentence that says what is missing.
    pub(super) fn load(names: &[&str]) -> Result<Functions, String> {
        let mut missing = Vec::new();
        for name in names {
            // SAFETY: loading AMD's library runs what it does to be loaded, as in any program that links it.
            match unsafe { Library::new(*name) } {
                Ok(library) => {
                    let functions = Functions::of(library);
                    return functions
                        .map_err(|why| format!("`{name}` isn't a HIP runtime of ROCm 6.0 or later: {why}"));
                }
                Err(error) => missing.push(words(&error)),
            }
        }
        // What the loader says of the first one, which others are a fallback for, may name a library that it needs.
        let first = missing.first().map(String::as_str).unwrap_or_default();
        Err(format!("no HIP runtime is installed ({first})"))
    }

    /// What HIP says of an error, with its name.
    pub(super) fn text_of(&self, code: Enumeration) -> String {
        // SAFETY: both give the address of a text that stays, whatever the number.
        let texts = unsafe { [(self.hipGetErrorString)(code), (self.hipGetErrorName)(code)] };
        let [words, name] = texts.map(|text| match text.is_null() {
            true => "unknown error".into(),
            // SAFETY: it is one of the library's texts, which end with a NUL byte.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy(),
        });
        // Earlier versions have no words but the name.
        if words == name { words.into_owned() } else { format!("{words} ({name})") }
    }
}
