//! What a test does with a device that no driver lets it do: kernels, refusals, and looks at what is there.
//!
//! A table of functions of C's calling convention: the same whether the machine is the test's own or a library's.

use super::{Code, Device, Handle, Kernel, Machine, Way, modules};
use std::ffi::{CStr, c_char, c_void};

/// What happens to an image of code before it is loaded.
pub type BeforeLoad = extern "C" fn(image: *const u8, bytes: usize);

/// What is there and wasn't given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Live {
    pub allocations: usize,
    pub bytes: u64,
    pub pinned: usize,
    pub streams: usize,
    pub events: usize,
    pub modules: usize,
    pub graphs: usize,
}

/// A kernel that is added.
#[repr(C)]
pub struct NewKernel {
    pub symbol: *const c_char,
    /// Bytes of each parameter, and how many there are.
    pub parameters: *const usize,
    pub count: usize,
    pub cluster: u32,
    pub run: modules::Run,
    pub data: *const c_void,
}

/// The functions, by what they do. Devices are told by their numbers.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Controls {
    /// Adds a device with so many bytes of memory, with pools or without; gives its number.
    pub plug: extern "C" fn(bytes: u64, pools: bool) -> usize,
    /// Adds one that takes a part in the same limits.
    pub plug_beside: extern "C" fn(device: usize) -> usize,
    pub live: extern "C" fn(device: usize) -> Live,
    /// How many pieces of work wait for somebody.
    pub pending: extern "C" fn(device: usize) -> usize,
    /// A kernel that modules have from now on, in the place of one of its symbol. What its addresses stand for is read during the call.
    pub add: unsafe extern "C" fn(device: usize, kernel: *const NewKernel),
    pub before_loads: extern "C" fn(device: usize, begin: BeforeLoad),
    /// So many calls after so many others are refused.
    pub refuse: extern "C" fn(device: usize, after: usize, calls: usize, code: Code),
    /// The next piece of work that runs fails.
    pub break_next: extern "C" fn(device: usize, code: Code),
    /// Runs the next piece of work of a stream; whether nothing is left then.
    pub step: extern "C" fn(device: usize, stream: Handle) -> bool,
    /// Whether a device was let at another's memory, by contexts and by pools.
    pub has_ways: extern "C" fn(device: usize, other: usize) -> bool,
}

/// Those of the machine that this is compiled into.
pub static CONTROLS: Controls =
    Controls { plug, plug_beside, live, pending, add, before_loads, refuse, break_next, step, has_ways };

fn device(ordinal: usize) -> &'static Device {
    Device::of(ordinal).expect("the test has added the device")
}

extern "C" fn plug(bytes: u64, pools: bool) -> usize {
    Device::plug(bytes, pools, None).ordinal
}

extern "C" fn plug_beside(ordinal: usize) -> usize {
    let first = device(ordinal);
    Device::plug(0, first.pools, Some(first)).ordinal
}

extern "C" fn live(ordinal: usize) -> Live {
    device(ordinal).machine().live()
}

extern "C" fn pending(ordinal: usize) -> usize {
    device(ordinal).machine().queued()
}

unsafe extern "C" fn add(ordinal: usize, kernel: *const NewKernel) {
    // SAFETY: the caller vouches for the kernel, its name and its list.
    let (kernel, symbol, parameters) = unsafe {
        let kernel = &*kernel;
        let parameters = std::slice::from_raw_parts(kernel.parameters, kernel.count);
        (kernel, CStr::from_ptr(kernel.symbol), parameters)
    };
    let NewKernel { cluster, run, data, .. } = *kernel;
    let (symbol, parameters) = (symbol.to_string_lossy().into_owned(), parameters.to_vec());
    device(ordinal).machine().kernels.push(Kernel { symbol, parameters, cluster, run, data });
}

extern "C" fn before_loads(ordinal: usize, begin: BeforeLoad) {
    device(ordinal).machine().before_loads = Some(begin);
}

extern "C" fn refuse(ordinal: usize, after: usize, calls: usize, code: Code) {
    let refused = std::iter::repeat_n(Some(code), calls);
    device(ordinal).machine().refusals = std::iter::repeat_n(None, after).chain(refused).collect();
}

extern "C" fn break_next(ordinal: usize, code: Code) {
    device(ordinal).machine().breaks = Some(code);
}

extern "C" fn step(ordinal: usize, stream: Handle) -> bool {
    let device = device(ordinal);
    let stepped = device.machine().step(device.stream(stream));
    stepped.expect("the stream is there, and its work succeeds")
}

extern "C" fn has_ways(ordinal: usize, other: usize) -> bool {
    let machine = device(ordinal).machine();
    [Way::Context, Way::Pool].iter().all(|&way| machine.is_open(ordinal, other, way))
}

impl Machine {
    fn live(&self) -> Live {
        let used = || self.memory.values().filter(|allocation| !allocation.pooled);
        Live {
            allocations: used().count(),
            bytes: used().map(|allocation| allocation.bytes as u64).sum(),
            pinned: self.pinned.len(),
            streams: self.made_streams(),
            events: self.events.len(),
            modules: self.modules.len(),
            graphs: self.graphs.len() + self.executables.len(),
        }
    }
}
