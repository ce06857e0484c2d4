//! A library with the functions of CUDA's driver that the runtime calls, built by its tests: the machine of the stand-in
//! under NVIDIA's names, with the checks of arguments that the CUDA Driver API's reference says.
//!
//! Nothing works before `cuInit`, and next to nothing without a context that is current on the thread. Of streams, events,
//! modules and functions only those of the current context are taken. The first two GPUs have compute capability 8.0 and
//! 9.0; those that tests add have 8.0. A function is missing, as in an older library, where `--cfg` names it.

#![allow(non_snake_case, clippy::missing_safety_doc)]

#[path = "../common.rs"]
mod common;
#[path = "../../../src/gpu/stand_in/machine/mod.rs"]
mod machine;

mod context;
mod execution;
mod memory;
mod modules;
mod tensor_maps;

use context::current;
use machine::{CONTROLS, Controls, Outcome};

/// What tests do with the devices.
#[unsafe(no_mangle)]
pub extern "C" fn controls() -> *const Controls {
    common::plug_first();
    &raw const CONTROLS
}

/// `CUDA_SUCCESS`, or what went wrong.
fn code(outcome: Outcome<()>) -> u32 {
    outcome.map_or_else(|code| code.0, |()| 0)
}

/// Functions as the library exports them, whose bodies are outcomes.
#[macro_export]
macro_rules! functions {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        #[cfg(not($name))]
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[allow(unused_unsafe, clippy::too_many_arguments)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
            $crate::code((|| -> $crate::machine::Outcome<()> { unsafe { $body } })())
        }
    )*};
}
