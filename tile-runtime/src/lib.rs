//! Devices, tensors and launches for tile kernels.
//!
//! A [`Launch`] binds a kernel's arguments; [`Launch::launch`] checks everything that can be checked before
//! anything runs, finds code for the device of its tensors (embedded by the build script, else compiled at
//! run time with the feature `jit`) and runs it. Nothing here panics on what a user can cause.
//!
//! This crate knows the calling convention of compiled kernels ([`tile_ir::abi`]) and nothing of how they
//! are made.

pub mod bench;
mod choices;
mod choose;
mod columns;
#[cfg(feature = "jit")]
mod compile;
pub mod cpu;
pub mod device;
pub mod element;
pub mod embedded;
mod environment;
mod error;
mod flight;
#[cfg(test)]
#[path = "flight/tests.rs"]
mod flight_tests;
mod float8;
mod gpu;
mod host;
pub mod interchange;
mod journal;
pub mod launch;
mod list;
mod machine;
pub mod messages;
mod process;
pub mod profile;
#[cfg(feature = "jit")]
mod progress;
pub mod properties;
mod quantity;
pub mod reference;
mod resolve;
mod simulated;
mod stream;
mod sync;
pub mod tensor;

// Examples name these as users of the facade `tile` do.
#[doc(hidden)]
pub use tile_ir as ir;
#[doc(hidden)]
pub use tile_layout as layout;

pub use choices::{Choice, Choices};
pub use device::Device;
pub use element::{Element, Float, Int, Number, Scale};
pub use error::{Error, Result, SimulatedBlock};
pub use float8::{f8e4m3fn, f8e5m2, f8e8m0fnu};
pub use gpu::{MemoryLimits, MemoryUse};
pub use launch::Launch;
pub use profile::profile;
pub use properties::Properties;
pub use stream::{Event, Graph, Launching, Pending, Recorder, Stream};
pub use tensor::{HostTensor, Indices, Tensor, TensorRef, TensorView, TensorViewMut};

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{RefUnwindSafe, UnwindSafe};

    /// A test that catches panics around launches names these types, and needn't assert anything of them.
    #[test]
    fn what_users_hold_goes_through_caught_panics() {
        fn goes<T: UnwindSafe + RefUnwindSafe>() {}
        goes::<Device>();
        goes::<Tensor<f32>>();
        goes::<TensorView<'_, f32>>();
        goes::<HostTensor<f32>>();
        goes::<Error>();
        goes::<Stream>();
        goes::<Event>();
        goes::<Graph>();
        goes::<Properties>();
        goes::<profile::Profile>();
    }
}
