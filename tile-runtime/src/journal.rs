//! What the runtime tells of its work, by the events and spans of `tracing`; a program that installs a subscriber gets
//! them. Where it installs none, and the environment variable `TILE_LOG` is set, they are lines on standard error.
//!
//! | level | what |
//! |---|---|
//! | `WARN` | a damaged file in the disk cache, a folder that can't be written |
//! | `INFO` | code that was found for an instance: where it came from, and how long that took; of code that is compiled for a GPU, which products are slower than they might be |
//! | `DEBUG` | launches |

mod lines;

use crate::device::Device;
use crate::resolve::display_parameters;
use std::path::Path;
use std::sync::Once;
use std::time::Duration;
#[cfg(feature = "jit")]
use tile_ir::TargetDesc;
use tile_ir::{Instance, Variant};
use tracing::{Span, debug, info, info_span};

/// What the names of events and spans begin with.
const TARGET: &str = "tile";

/// Where code comes from, the first that has it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// The executable.
    Embedded,
    /// An earlier run's file.
    #[cfg_attr(not(feature = "jit"), allow(dead_code, reason = "files are of compiled code"))]
    Disk,
    /// The compiler.
    #[cfg_attr(not(feature = "jit"), allow(dead_code, reason = "there is no compiler"))]
    Compiled,
}

impl Origin {
    fn name(self) -> &'static str {
        match self {
            Origin::Embedded => "embedded",
            Origin::Disk => "disk",
            Origin::Compiled => "compiled",
        }
    }
}

/// Has lines written where `TILE_LOG` asks for them and the program has no subscriber; once.
pub(crate) fn begin() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(lines::install);
}

/// `matmul (BM = 128, BN = 128) for sm_90a`.
#[cfg(feature = "jit")]
pub(crate) fn title(instance: &Instance, target: &str) -> String {
    match display_parameters(instance).as_str() {
        "" => format!("`{}` for {target}", instance.name),
        bindings => format!("`{}` ({bindings}) for {target}", instance.name),
    }
}

/// The search for an instance's code. What is found, and warnings, are told in it.
pub(crate) fn search(instance: &Instance, target: &str, variant: Variant) -> Span {
    info_span!(target: TARGET, "code", kernel = %instance.name, instance = %display_parameters(instance), target, variant = variant.name())
}

/// Code that was found, how long that took, and the file that holds it.
pub(crate) fn found(origin: Origin, time: Duration, file: Option<&Path>) {
    let milliseconds = time.as_secs_f64() * 1e3;
    info!(
        target: TARGET,
        origin = origin.name(),
        milliseconds = %format_args!("{milliseconds:.3}"),
        file = file.map(|file| tracing::field::display(file.display())),
    );
}

/// Which products of code that was compiled for a GPU are slower than the target could do them, where somebody hears it:
/// the schedule is made once more for that. Where a build script compiles, it has warned of the same.
#[cfg(feature = "jit")]
pub(crate) fn slow_products(instance: &Instance, target: &TargetDesc) {
    if tracing::enabled!(target: TARGET, tracing::Level::INFO) {
        for remark in tile_codegen::remarks(instance, target) {
            info!(target: TARGET, "{remark}");
        }
    }
}

/// What a user should hear of, though it stops nothing.
#[cfg(feature = "jit")]
pub(crate) fn warn(message: &str) {
    tracing::warn!(target: TARGET, "{message}");
}

/// A launch whose arguments fit, of an instance with code, before its blocks run.
pub(crate) fn launch(instance: &Instance, device: &Device, blocks: usize) {
    let device = || device.name();
    debug!(target: TARGET, kernel = %instance.name, instance = %display_parameters(instance), device = device(), blocks, "launch");
}
