//! GPUs on host memory, for tests: what is enqueued runs as late as it may, so that a wait which is missing shows as a
//! wrong value.
//!
//! Work runs when somebody waits for it, a piece whenever somebody asks whether it is done, the oldest piece when a queue
//! is full, and never by itself. Memory that was never written, or was freed, holds a pattern; work on memory that isn't
//! there loses the device. Memory has a limit, calls fail on demand, and everything that is there is counted.
//!
//! Three surfaces stand on this: the runtime's own trait, in the parent module, and the functions of two vendors' libraries,
//! in `tests/drivers`, which are built without the runtime. So it knows nothing of that: handles are numbers, errors are
//! [`Code`]s.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "two surfaces are other crates, and each uses a part"
)]

pub mod codes;
pub mod controls;
mod graphs;
mod memory;
mod modules;
mod streams;

pub use codes::Code;
pub use controls::{CONTROLS, Controls, Live};
pub use memory::{Allocation, PoolBytes, UNWRITTEN, Way};
pub use modules::{Grid, Kernel};
pub use streams::{HostFunction, Rows, Work};

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Streams, events, modules, functions, graphs: numbers that are never given twice, to whatever.
pub type Handle = usize;

pub type Outcome<T> = Result<T, Code>;

/// Multiprocessors of a device, and the blocks of each that run at once.
pub const MULTIPROCESSORS: u32 = 4;
pub const BLOCKS: u32 = 2;

/// A GPU, which lives as long as the process.
pub struct Device {
    pub ordinal: usize,
    /// Whether it has pools of its own.
    pub pools: bool,
    /// The stream that is the default one of this device.
    pub default: Handle,
    /// Devices that share memory's limit, and what is refused, share a machine.
    machine: &'static Mutex<Machine>,
}

/// What the devices of a machine have.
pub struct Machine {
    pub limit: u64,
    lost: Option<Code>,
    /// What the next calls fail with.
    refusals: VecDeque<Option<Code>>,
    /// What the next piece of work fails with.
    breaks: Option<Code>,
    /// What happens to code before it is loaded, while other calls go on.
    before_loads: Option<controls::BeforeLoad>,
    kernels: Vec<Kernel>,
    memory: BTreeMap<u64, Allocation>,
    pinned: BTreeMap<usize, Vec<memory::Line>>,
    streams: BTreeMap<Handle, streams::Stream>,
    captures: BTreeMap<Handle, Vec<Work>>,
    events: BTreeMap<Handle, streams::Event>,
    marks: BTreeMap<u64, streams::Mark>,
    modules: BTreeMap<Handle, modules::Module>,
    functions: BTreeMap<Handle, modules::Function>,
    /// How many bytes the pool of a device holds on to at a wait: none, unless it is told to.
    thresholds: BTreeMap<usize, u64>,
    /// Which device was let at whose memory, by their contexts, and at that of whose pool.
    ways: BTreeSet<(usize, usize, Way)>,
    graphs: BTreeMap<Handle, Vec<Work>>,
    executables: BTreeMap<Handle, Vec<Work>>,
    /// Pieces of work that ran.
    done: u64,
}

thread_local! {
    /// Whether a stream is calling a function of the host's on this thread, which may call no driver (CUDA Driver API,
    /// `cuLaunchHostFunc`).
    static IS_IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

static DEVICES: Mutex<Vec<&Device>> = Mutex::new(Vec::new());

fn devices() -> MutexGuard<'static, Vec<&'static Device>> {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle that nobody has had.
fn give() -> Handle {
    static GIVEN: AtomicUsize = AtomicUsize::new(0x1000);
    GIVEN.fetch_add(16, Ordering::Relaxed)
}

impl Device {
    /// Adds a device, which has a machine of its own with so many bytes of memory, or another's.
    pub fn plug(bytes: u64, pools: bool, beside: Option<&Device>) -> &'static Device {
        let mut devices = devices();
        let ordinal = devices.len();
        let machine = match beside {
            Some(device) => device.machine,
            None => Box::leak(Box::new(Mutex::new(Machine::new(bytes)))),
        };
        let mut state = machine.lock().unwrap_or_else(PoisonError::into_inner);
        let default = state.create_stream(ordinal);
        drop(state);
        let device: &Device = Box::leak(Box::new(Device { ordinal, pools, default, machine }));
        devices.push(device);
        device
    }

    pub fn count() -> usize {
        devices().len()
    }

    pub fn of(ordinal: usize) -> Option<&'static Device> {
        devices().get(ordinal).copied()
    }

    /// The machine, for one who looks.
    pub fn machine(&self) -> MutexGuard<'static, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machine, for a call that may fail.
    pub fn asked(&self) -> Outcome<MutexGuard<'static, Machine>> {
        if IS_IN_HOST_FUNCTION.get() {
            return Err(Code::NOT_PERMITTED);
        }
        let mut machine = self.machine();
        match machine.lost.or_else(|| machine.refusals.pop_front().flatten()) {
            Some(code) => Err(code),
            None => Ok(machine),
        }
    }

    /// Tells whoever wants to know of an image that is about to be loaded, while other calls go on.
    pub fn before_load(&self, image: &[u8]) {
        let begin = self.machine().before_loads;
        begin.into_iter().for_each(|begin| begin(image.as_ptr(), image.len()));
    }

    /// The stream that a handle stands for.
    pub fn stream(&self, handle: Handle) -> Handle {
        if handle == 0 { self.default } else { handle }
    }
}

impl Machine {
    fn new(limit: u64) -> Machine {
        Machine {
            limit,
            lost: None,
            refusals: VecDeque::new(),
            breaks: None,
            before_loads: None,
            kernels: Vec::new(),
            memory: BTreeMap::new(),
            pinned: BTreeMap::new(),
            streams: BTreeMap::new(),
            captures: BTreeMap::new(),
            events: BTreeMap::new(),
            marks: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            thresholds: BTreeMap::new(),
            ways: BTreeSet::new(),
            graphs: BTreeMap::new(),
            executables: BTreeMap::new(),
            done: 0,
        }
    }
}

// SAFETY: the pointers are to memory that who enqueued the work vouches for, on every thread.
unsafe impl Send for Machine {}
