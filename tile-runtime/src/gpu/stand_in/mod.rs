//! A device that a test can look at: the driver that the runtime asks, and the controls of the machine behind it.
//!
//! `machine` is that: GPUs on host memory, which run their work as late as they may. `own.rs` has it under the runtime's
//! trait. In a process for which `TILE_TEST_DRIVER` says `cuda` or `hip`, it is a library with that vendor's functions
//! which is asked, and the runtime's own calls of that vendor's come between: `vendors.rs` builds the library and starts
//! the process.

pub(super) mod machine;
mod own;
#[cfg(all(target_os = "linux", not(miri)))]
pub(super) mod vendors;

use super::architecture::Architecture;
use super::driver::{Driver, Failure, StreamHandle};
use machine::controls::{BeforeLoad, NewKernel};
use machine::{CONTROLS, Code, Controls, Device};
use own::Own;
use std::ffi::{CString, c_void};
use std::ops::Deref;
use tile_ir::target::Family;

pub(super) use machine::{Grid, Live, UNWRITTEN};

/// A kernel of the stand-in: its grid, and the words of its parameters.
pub(super) type Kernel = fn(grid: Grid, words: &[u64]);

/// A driver, and what it stands on.
pub(super) struct StandIn {
    ordinal: usize,
    surface: Surface,
    driver: Box<dyn Driver>,
}

/// Which functions the machine is behind.
#[derive(Clone, Copy)]
pub(super) enum Surface {
    /// The runtime's trait, for a device of a family.
    Own(Family),
    /// A library with a vendor's functions.
    #[cfg(all(target_os = "linux", not(miri)))]
    Vendor(vendors::Vendor),
}

impl Surface {
    /// The one that the process is for.
    fn of_process() -> Surface {
        #[cfg(all(target_os = "linux", not(miri)))]
        if let Some(vendor) = vendors::Vendor::of_process() {
            return Surface::Vendor(vendor);
        }
        Surface::Own(Family::Amdgpu)
    }

    fn controls(self) -> &'static Controls {
        match self {
            Surface::Own(_) => &CONTROLS,
            #[cfg(all(target_os = "linux", not(miri)))]
            Surface::Vendor(vendor) => vendor.controls(),
        }
    }

    pub(super) fn family(self) -> Family {
        match self {
            Surface::Own(family) => family,
            #[cfg(all(target_os = "linux", not(miri)))]
            Surface::Vendor(vendor) => vendor.family(),
        }
    }

    fn open(self, ordinal: usize) -> Box<dyn Driver> {
        match self {
            Surface::Own(family) => {
                let device = Device::of(ordinal).expect("the device was plugged in");
                let architecture = match family {
                    Family::Nvptx => Architecture::Nvidia { major: 9, minor: 0 },
                    _ => Architecture::Amd("gfx942".to_owned()),
                };
                Box::new(Own { device, architecture })
            }
            #[cfg(all(target_os = "linux", not(miri)))]
            Surface::Vendor(vendor) => vendor.open(ordinal),
        }
    }
}

impl StandIn {
    /// A device with so many bytes of memory.
    pub(super) fn new(bytes: u64, pools: bool) -> StandIn {
        let surface = Surface::of_process();
        StandIn::at(surface, (surface.controls().plug)(bytes, pools))
    }

    /// A device of another vendor's.
    pub(super) fn of_another_vendor(bytes: u64, pools: bool) -> StandIn {
        let own = match Surface::of_process().family() {
            Family::Nvptx => Family::Amdgpu,
            _ => Family::Nvptx,
        };
        StandIn::at(Surface::Own(own), (CONTROLS.plug)(bytes, pools))
    }

    /// One of the devices that a vendor's library has by itself.
    #[cfg(all(target_os = "linux", not(miri)))]
    pub(super) fn existing(ordinal: usize) -> StandIn {
        StandIn::at(Surface::of_process(), ordinal)
    }

    /// Another device of this driver's, which has memory and streams of its own and takes a part in the same limits.
    pub(super) fn another(&self) -> StandIn {
        StandIn::at(self.surface, (self.controls().plug_beside)(self.ordinal))
    }

    fn at(surface: Surface, ordinal: usize) -> StandIn {
        StandIn { ordinal, surface, driver: surface.open(ordinal) }
    }

    /// The driver once more, for a context.
    pub(super) fn driver(&self) -> Box<dyn Driver> {
        self.surface.open(self.ordinal)
    }

    pub(super) fn surface(&self) -> Surface {
        self.surface
    }

    fn controls(&self) -> &'static Controls {
        self.surface.controls()
    }

    /// What the driver makes of an error.
    pub(super) fn failure(&self, code: Code) -> Failure {
        match self.surface {
            Surface::Own(_) => own::failure(code),
            #[cfg(all(target_os = "linux", not(miri)))]
            Surface::Vendor(vendor) => vendor.failure(code),
        }
    }

    /// What is there.
    pub(super) fn live(&self) -> Live {
        (self.controls().live)(self.ordinal)
    }

    /// How many pieces of work wait for somebody.
    pub(super) fn pending(&self) -> usize {
        (self.controls().pending)(self.ordinal)
    }

    /// A kernel that modules have from now on, of so many parameters of eight bytes.
    pub(super) fn add(&self, symbol: &str, slots: usize, kernel: Kernel) {
        self.add_whole(symbol, &vec![8; slots], 1, kernel);
    }

    /// The same, with bytes for each parameter, and with blocks for a cluster.
    pub(super) fn add_whole(&self, symbol: &str, parameters: &[usize], cluster: u32, kernel: Kernel) {
        extern "C" fn run(data: *const c_void, grid: Grid, words: *const u64, count: usize) {
            // SAFETY: the data is what `add` gave, and the words are those of the kernel's parameters.
            let (kernel, words) = unsafe {
                (std::mem::transmute::<*const c_void, Kernel>(data), std::slice::from_raw_parts(words, count))
            };
            kernel(grid, words);
        }
        let symbol = CString::new(symbol).expect("a symbol has no NUL byte");
        let (symbol, count) = (symbol.as_ptr(), parameters.len());
        let (parameters, data) = (parameters.as_ptr(), kernel as *const c_void);
        let kernel = NewKernel { symbol, parameters, count, cluster, run, data };
        // SAFETY: the kernel and what it names are there.
        unsafe { (self.controls().add)(self.ordinal, &raw const kernel) };
    }

    /// Has every load begin with this, beside which other calls go on.
    pub(super) fn before_loads(&self, begin: BeforeLoad) {
        (self.controls().before_loads)(self.ordinal, begin);
    }

    /// The call after so many others is refused.
    pub(super) fn refuse_after(&self, calls: usize, code: Code) {
        self.refuse(calls, 1, code);
    }

    /// So many calls after so many others are refused.
    pub(super) fn refuse(&self, after: usize, calls: usize, code: Code) {
        (self.controls().refuse)(self.ordinal, after, calls, code);
    }

    /// No call is refused any more.
    pub(super) fn refuse_nothing(&self) {
        self.refuse(0, 0, Code::UNKNOWN);
    }

    /// The next piece of work that runs loses the device.
    pub(super) fn lose_at_next_work(&self, code: Code) {
        (self.controls().break_next)(self.ordinal, code);
    }

    /// Whether this device was let at another's memory, by contexts and by pools.
    #[cfg(all(target_os = "linux", not(miri)))]
    pub(super) fn has_ways_to(&self, other: &StandIn) -> bool {
        (self.controls().has_ways)(self.ordinal, other.ordinal)
    }

    /// Runs the next piece of work of a stream; whether nothing is left then.
    pub(super) fn step(&self, stream: StreamHandle) -> bool {
        (self.controls().step)(self.ordinal, stream.0)
    }
}

impl Deref for StandIn {
    type Target = dyn Driver;

    fn deref(&self) -> &(dyn Driver + 'static) {
        &*self.driver
    }
}
