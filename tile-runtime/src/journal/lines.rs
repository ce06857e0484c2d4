//! Lines on standard error, for programs that have no subscriber of their own: a line for an event, with the fields of the
//! spans that it is in.

use super::TARGET;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, dispatcher, subscriber};

/// The environment variable that asks for lines: the least level that is shown.
const VARIABLE: &str = "TILE_LOG";

/// Writes lines from now on, where they are asked for and nobody else takes the events.
pub(super) fn install() {
    let Some(asked) = std::env::var_os(VARIABLE) else { return };
    if dispatcher::has_been_set() {
        return;
    }
    let asked = asked.to_string_lossy();
    let level = level(&asked).unwrap_or_else(|| {
        eprintln!("tile: {VARIABLE} is `{asked}`, which is none of {NAMES}; `info` is taken");
        LevelFilter::INFO
    });
    // Another thread may have been quicker with a subscriber of the program's.
    let _ = subscriber::set_global_default(Lines::new(level, |line| {
        // Standard error that is closed is no reason to stop.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }));
}

const NAMES: &str = "off, warn, info, debug";

fn level(name: &str) -> Option<LevelFilter> {
    match name.to_ascii_lowercase().as_str() {
        "off" | "0" | "" => Some(LevelFilter::OFF),
        "warn" => Some(LevelFilter::WARN),
        "info" | "1" => Some(LevelFilter::INFO),
        "debug" => Some(LevelFilter::DEBUG),
        _ => None,
    }
}

/// Writes an event as `tile info code{kernel=k}: origin=disk`.
struct Lines<W> {
    level: LevelFilter,
    write: W,
    last: AtomicU64,
    /// The text of spans that are open.
    spans: Mutex<HashMap<u64, String>>,
}

thread_local! {
    /// The spans that a thread is in, the innermost last.
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

impl<W: Fn(&str)> Lines<W> {
    fn new(level: LevelFilter, write: W) -> Lines<W> {
        Lines { level, write, last: AtomicU64::new(0), spans: Mutex::default() }
    }

    fn spans(&self) -> MutexGuard<'_, HashMap<u64, String>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Fn(&str) + Send + Sync + 'static> Subscriber for Lines<W> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET && *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields(String::new());
        attributes.record(&mut fields);
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.spans().insert(id, format!("{}{{{}}}", attributes.metadata().name(), fields.0));
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        let mut line = format!("{TARGET} {}", event.metadata().level().as_str().to_ascii_lowercase());
        ENTERED.with_borrow(|entered| {
            let spans = self.spans();
            for span in entered.iter().filter_map(|id| spans.get(id)) {
                let _ = write!(line, " {span}");
            }
        });
        // One call, so that lines of threads aren't mixed.
        (self.write)(&format!("{line}: {}\n", fields.0));
    }

    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            if let Some(place) = entered.iter().rposition(|id| *id == span.into_u64()) {
                entered.remove(place);
            }
        });
    }

    fn try_close(&self, id: Id) -> bool {
        self.spans().remove(&id.into_u64()).is_some()
    }
}

/// `kernel=k blocks=3`; a message stands without its name.
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let separator = if self.0.is_empty() { "" } else { " " };
        let _ = match field.name() {
            "message" => write!(self.0, "{separator}{value:?}"),
            name => write!(self.0, "{separator}{name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tracing::{debug, info, info_span, warn};

    /// The lines that some code gives.
    fn lines(level: LevelFilter, code: impl FnOnce()) -> String {
        let text = Arc::new(Mutex::new(String::new()));
        let target = Arc::clone(&text);
        subscriber::with_default(Lines::new(level, move |line| target.lock().unwrap().push_str(line)), code);
        let text = text.lock().unwrap();
        text.clone()
    }

    #[test]
    fn an_event_is_a_line_with_its_spans() {
        let told = || {
            let span = info_span!(target: TARGET, "code", kernel = %"k", instance = %"B = 4");
            span.in_scope(|| {
                info!(target: TARGET, origin = "disk", file = Option::<&str>::None, seconds = 2);
                warn!(target: TARGET, "{} is damaged", "file");
                debug!(target: TARGET, "not asked for");
            });
            drop(span);
            info!(target: TARGET, blocks = 3, "launch");
            info!(target: "another", "not ours");
        };
        assert_eq!(
            lines(LevelFilter::INFO, told),
            "tile info code{kernel=k instance=B = 4}: origin=\"disk\" seconds=2\n\
             tile warn code{kernel=k instance=B = 4}: file is damaged\n\
             tile info: launch blocks=3\n"
        );
        assert_eq!(lines(LevelFilter::OFF, told), "");
    }

    /// Whoever asks where code came from is told so of every device.
    #[cfg(feature = "jit")]
    #[test]
    fn code_for_a_simulated_gpu_is_told_of_as_others() {
        use crate::launch::KernelDef;
        use crate::{Device, Launch, Tensor};
        static KERNEL: KernelDef = KernelDef::new(
            "ones",
            "kernel @ones(%y: mut tensor<n x f32>) {\n  %v = partition %y [4] : mut partition<n x f32, [4]>\n  \
             %0 = constant 1.0 : f32\n  %t = splat %0 : tile<4 x f32>\n  store_masked %v, %t\n}\n",
            &[],
        );
        let mut y = Tensor::<f32>::zeros(&Device::simulated("sm_80").unwrap(), [9]).unwrap();
        let told = lines(LevelFilter::INFO, || {
            Launch::new(&KERNEL).tensor_mut("y", &mut y).launch().unwrap();
        });
        let begin = "tile info code{kernel=ones instance= target=\"simulated:sm_80\" variant=\"general\"}: origin=\"compiled\" ";
        assert!(told.starts_with(begin) && told.lines().count() == 1, "{told}");
    }

    #[test]
    fn levels_have_the_names_that_are_said() {
        assert!(NAMES.split(", ").all(|name| level(name).is_some()));
        assert_eq!(level("DEBUG"), Some(LevelFilter::DEBUG));
        assert_eq!(level("loud"), None);
    }
}
