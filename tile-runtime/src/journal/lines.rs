//! Lines on standard error, for programs that have no subscriber of their own: a line for an event, with the fields of the
//! searches that it is in.
//!
//! No subscriber is made of them: the process has one place for a subscriber, which is the program's to fill, at any time.

use super::TARGET;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::OnceLock;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::NoSubscriber;
use tracing::{Dispatch, Level, dispatcher};

/// The environment variable that asks for lines: the least level that is shown.
const VARIABLE: &str = "TILE_LOG";

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

/// The least level that the environment asks for, if it says anything.
fn asked() -> Option<LevelFilter> {
    static ASKED: OnceLock<Option<LevelFilter>> = OnceLock::new();
    *ASKED.get_or_init(|| {
        let asked = std::env::var_os(VARIABLE)?;
        let asked = asked.to_string_lossy();
        Some(level(&asked).unwrap_or_else(|| {
            say(&format!("tile: {VARIABLE} is `{asked}`, which is none of {NAMES}; `info` is taken\n"));
            LevelFilter::INFO
        }))
    })
}

/// Writes to standard error. That it is closed is no reason to stop.
pub(super) fn say(text: &str) {
    // One call, so that lines of threads aren't mixed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Who takes this thread's events, if anybody does.
fn subscriber() -> Option<Dispatch> {
    dispatcher::get_default(|current| (!current.is::<NoSubscriber>()).then(|| current.clone()))
}

/// Whether an event of a level is to be a line: it is asked for, and nobody else takes events.
pub(super) fn wants(least: Level) -> bool {
    asked().is_some_and(|asked| least <= asked) && subscriber().is_none()
}

/// Who hears what a user should hear of though nobody has asked.
pub(crate) enum Listener {
    /// The program, by its subscriber.
    Subscriber(Dispatch),
    /// Whoever reads standard error.
    StandardError,
    /// Nobody wants to.
    Nobody,
}

/// Who hears of something of a level.
pub(super) fn listener(least: Level) -> Listener {
    match subscriber() {
        Some(subscriber) => Listener::Subscriber(subscriber),
        None if asked().is_none_or(|asked| least <= asked) => Listener::StandardError,
        None => Listener::Nobody,
    }
}

thread_local! {
    /// The searches that a thread is in, the innermost last.
    static ENTERED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Being in a search, to its end.
pub(super) struct Within;

impl Within {
    pub(super) fn enter(search: &str) -> Within {
        ENTERED.with_borrow_mut(|entered| entered.push(search.to_owned()));
        Within
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        ENTERED.with_borrow_mut(Vec::pop);
    }
}

/// Writes an event as `tile info code{kernel=k}: origin=disk`.
pub(super) fn write(level: Level, event: &str) {
    say(&line(level, event));
}

fn line(level: Level, event: &str) -> String {
    let mut line = format!("{TARGET} {}", level.as_str().to_ascii_lowercase());
    ENTERED.with_borrow(|entered| {
        for search in entered {
            let _ = write!(line, " {search}");
        }
    });
    line + ": " + event + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_line_with_its_searches() {
        let within = Within::enter("code{kernel=k instance=B = 4}");
        let inner = Within::enter("code{kernel=l}");
        assert_eq!(
            line(Level::WARN, "a file is damaged"),
            "tile warn code{kernel=k instance=B = 4} code{kernel=l}: a file is damaged\n"
        );
        drop(inner);
        assert_eq!(
            line(Level::INFO, "origin=\"disk\""),
            "tile info code{kernel=k instance=B = 4}: origin=\"disk\"\n"
        );
        drop(within);
        assert_eq!(line(Level::DEBUG, "launch blocks=3"), "tile debug: launch blocks=3\n");
    }

    #[test]
    fn levels_have_the_names_that_are_said() {
        assert!(NAMES.split(", ").all(|name| level(name).is_some()));
        assert_eq!(level("DEBUG"), Some(LevelFilter::DEBUG));
        assert_eq!(level("loud"), None);
    }
}
