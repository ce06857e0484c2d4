//! What the runtime tells of its work, by the events and spans of `tracing`; a program that installs a subscriber gets
//! them. Where there is none, and the environment variable `TILE_LOG` asks for them, they are lines on standard error.
//!
//! | level | what |
//! |---|---|
//! | `WARN` | a file in the disk cache that is damaged or can't be read, a folder that can't be written; an environment variable that makes no sense, and what a kernel printed that was lost |
//! | `INFO` | code that was found for an instance: where it came from, and how long that took; of code that is compiled for a GPU, which products are slower than they might be; a compilation that takes long |
//! | `DEBUG` | launches |

mod lines;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use lines::Listener;

use crate::device::Device;
use crate::resolve::display_parameters;
use std::path::Path;
use std::time::Duration;
#[cfg(feature = "jit")]
use tile_ir::TargetDesc;
use tile_ir::{Instance, Variant};
use tracing::{Level, Span, debug, dispatcher, info, info_span, span};

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

/// `matmul (BM = 128, BN = 128) for sm_90a`.
#[cfg(feature = "jit")]
pub(crate) fn title(instance: &Instance, target: &str) -> String {
    match display_parameters(instance).as_str() {
        "" => format!("`{}` for {target}", instance.name),
        bindings => format!("`{}` ({bindings}) for {target}", instance.name),
    }
}

/// The search for an instance's code. What is found, and warnings, are told in it.
pub(crate) struct Search {
    span: Span,
    /// What lines say of it, where there are some.
    line: Option<String>,
}

/// Being in a search, to its end.
pub(crate) struct Within<'s> {
    _span: span::Entered<'s>,
    _line: Option<lines::Within>,
}

pub(crate) fn search(instance: &Instance, target: &str, variant: Variant) -> Search {
    let (kernel, parameters, variant) = (&instance.name, display_parameters(instance), variant.name());
    let line = lines::wants(Level::INFO).then(|| {
        format!("code{{kernel={kernel} instance={parameters} target={target:?} variant={variant:?}}}")
    });
    let span = info_span!(target: TARGET, "code", kernel = %kernel, instance = %parameters, target, variant);
    Search { span, line }
}

impl Search {
    pub(crate) fn enter(&self) -> Within<'_> {
        Within { _span: self.span.enter(), _line: self.line.as_deref().map(lines::Within::enter) }
    }
}

/// Code that was found, how long that took, and the file that holds it.
pub(crate) fn found(origin: Origin, time: Duration, file: Option<&Path>) {
    let (origin, milliseconds) = (origin.name(), time.as_secs_f64() * 1e3);
    if lines::wants(Level::INFO) {
        let file = file.map(|file| format!(" file={}", file.display())).unwrap_or_default();
        lines::write(Level::INFO, &format!("origin={origin:?} milliseconds={milliseconds:.3}{file}"));
    }
    info!(
        target: TARGET,
        origin,
        milliseconds = %format_args!("{milliseconds:.3}"),
        file = file.map(|file| tracing::field::display(file.display())),
    );
}

/// What a person should know of code that was compiled for a GPU (slow products, hints that aren't followed), where somebody
/// hears it: the schedule is made once more for that. Where a build script compiles, it has warned of the same.
#[cfg(feature = "jit")]
pub(crate) fn remarks(instance: &Instance, target: &TargetDesc) {
    let is_line = lines::wants(Level::INFO);
    if is_line || tracing::enabled!(target: TARGET, Level::INFO) {
        for remark in tile_codegen::remarks(instance, target) {
            if is_line {
                lines::write(Level::INFO, &remark.to_string());
            }
            info!(target: TARGET, "{remark}");
        }
    }
}

/// What a user should hear of who asks for it, though it stops nothing.
#[cfg(feature = "jit")]
pub(crate) fn warn(message: &str) {
    if lines::wants(Level::WARN) {
        lines::write(Level::WARN, message);
    }
    tracing::warn!(target: TARGET, "{message}");
}

/// A launch whose arguments fit, of an instance with code, before its blocks run.
pub(crate) fn launch(instance: &Instance, device: &Device, blocks: usize) {
    if lines::wants(Level::DEBUG) {
        let (kernel, parameters, device) = (&instance.name, display_parameters(instance), device.name());
        let line = format!("launch kernel={kernel} instance={parameters} device={device:?} blocks={blocks}");
        lines::write(Level::DEBUG, &line);
    }
    let device = || device.name();
    debug!(target: TARGET, kernel = %instance.name, instance = %display_parameters(instance), device = device(), blocks, "launch");
}

/// What every user should hear of, though it stops nothing: on standard error, unless the program takes events, or
/// `TILE_LOG` doesn't let it.
pub(crate) fn notice(message: &str) {
    match lines::listener(Level::WARN) {
        Listener::Subscriber(subscriber) => {
            dispatcher::with_default(&subscriber, || tracing::warn!(target: TARGET, "{message}"));
        }
        Listener::StandardError => lines::say(&format!("tile: {message}\n")),
        Listener::Nobody => {}
    }
}

/// Who hears of a compilation that takes long.
#[cfg(feature = "jit")]
pub(crate) fn listener() -> Listener {
    lines::listener(Level::INFO)
}

/// What goes on for long, to a program that takes events.
#[cfg(feature = "jit")]
pub(crate) fn goes_on(subscriber: &tracing::Dispatch, message: &str) {
    dispatcher::with_default(subscriber, || info!(target: TARGET, "{message}"));
}
