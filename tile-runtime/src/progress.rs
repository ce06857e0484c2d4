//! A word on what takes longer than a second, so that nobody takes a long compilation for a program that hangs: a line on
//! standard error, or an event where the program takes those.

use crate::journal::{self, Listener};
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long nothing is said.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a terminal's line is written anew.
const EVERY: Duration = Duration::from_millis(200);

/// Does some work; where that takes long, says so: to the program if it takes events, else on standard error, on a terminal
/// in a line that counts the seconds and goes away, elsewhere once. `title` names the work, where it is needed.
pub(crate) fn told<T>(title: impl Fn() -> String + Send, work: impl FnOnce() -> T) -> T {
    let patience = patience();
    match journal::listener() {
        Listener::Nobody => work(),
        Listener::Subscriber(subscriber) => {
            let event = move |_: &_| journal::goes_on(&subscriber, &text(&title(), patience));
            beside(patience, event, work)
        }
        Listener::StandardError => {
            shown(io::stderr(), io::stderr().is_terminal(), patience, EVERY, title, work)
        }
    }
}

#[cfg(not(test))]
fn patience() -> Duration {
    PATIENCE
}

/// Tests needn't do work that takes so long.
#[cfg(test)]
fn patience() -> Duration {
    tests::OWN.get().unwrap_or(PATIENCE)
}

fn text(title: &str, patience: Duration) -> String {
    format!("compiling {title} takes longer than {} s", patience.as_secs_f32())
}

fn shown<T>(
    mut target: impl Write + Send,
    is_terminal: bool,
    patience: Duration,
    every: Duration,
    title: impl Fn() -> String + Send,
    work: impl FnOnce() -> T,
) -> T {
    let start = Instant::now();
    let show = move |ended: &Receiver<()>| {
        let title = title();
        // What can't be written is of no concern to the work.
        if !is_terminal {
            let _ = writeln!(target, "tile: {}", text(&title, patience));
            return;
        }
        loop {
            let _ = write!(target, "\r\x1b[Ktile: compiling {title}, {:.0} s", start.elapsed().as_secs_f32());
            let _ = target.flush();
            if has_ended(ended, every) {
                let _ = write!(target, "\r\x1b[K");
                let _ = target.flush();
                return;
            }
        }
    };
    beside(patience, show, work)
}

/// Whether the work ends within some time. The sender is dropped with its end, be it a panic.
fn has_ended(ended: &Receiver<()>, within: Duration) -> bool {
    ended.recv_timeout(within) != Err(RecvTimeoutError::Timeout)
}

/// Does some work, and shows something beside it where that takes longer than one is patient.
fn beside<T>(patience: Duration, show: impl FnOnce(&Receiver<()>) + Send, work: impl FnOnce() -> T) -> T {
    let (done, ended) = channel::<()>();
    let show = move || {
        if !has_ended(&ended, patience) {
            show(&ended);
        }
    };
    std::thread::scope(|scope| {
        // Without a thread nothing is told.
        let _ = std::thread::Builder::new().name("tile-progress".to_owned()).spawn_scoped(scope, show);
        let result = work();
        drop(done);
        result
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// How long nothing is said in a test that is less patient.
        pub(super) static OWN: Cell<Option<Duration>> = const { Cell::new(None) };
    }

    /// Does some work of whose parts much shorter ones are told of.
    pub(crate) fn without_patience<T>(work: impl FnOnce() -> T) -> T {
        OWN.set(Some(Duration::from_millis(1)));
        let result = work();
        OWN.set(None);
        result
    }

    /// What is shown of work that takes some milliseconds, where one is patient for 30.
    fn of(milliseconds: u64, is_terminal: bool) -> String {
        let mut text = Vec::new();
        let [patience, every] = [30, 10].map(Duration::from_millis);
        let work = || {
            std::thread::sleep(Duration::from_millis(milliseconds));
            7
        };
        assert_eq!(shown(&mut text, is_terminal, patience, every, || "`k` for cpu".to_owned(), work), 7);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn what_is_quick_says_nothing() {
        assert_eq!(of(0, true) + &of(0, false), "");
    }

    #[test]
    fn what_takes_long_is_one_line_or_one_that_goes_away() {
        assert_eq!(of(200, false), "tile: compiling `k` for cpu takes longer than 0.03 s\n");
        let text = of(200, true);
        assert!(text.starts_with("\r\x1b[Ktile: compiling `k` for cpu, 0 s\r"), "{text:?}");
        assert!(text.ends_with(" s\r\x1b[K"), "{text:?}");
    }
    #[test]
    fn a_program_that_takes_events_gets_one() {
        use crate::journal::tests::events;
        let sleep = || std::thread::sleep(PATIENCE + Duration::from_millis(200));
        let (told, ()) = events(|| super::told(|| "`k` for cpu".to_owned(), sleep));
        assert_eq!(told, "INFO: compiling `k` for cpu takes longer than 1 s\n");
    }
}
