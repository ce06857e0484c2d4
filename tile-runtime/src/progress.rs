//! A line on standard error for what takes longer than a second, so that nobody takes a long compilation for a program
//! that hangs.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long nothing is said.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a terminal's line is written anew.
const EVERY: Duration = Duration::from_millis(200);

/// Does some work; where that takes long, says so on standard error: on a terminal in a line that counts the seconds and
/// goes away, elsewhere once. `title` names the work, where it is needed.
pub(crate) fn told<T>(title: impl Fn() -> String + Send, work: impl FnOnce() -> T) -> T {
    shown(io::stderr(), io::stderr().is_terminal(), PATIENCE, EVERY, title, work)
}

fn shown<T>(
    mut target: impl Write + Send,
    is_terminal: bool,
    patience: Duration,
    every: Duration,
    title: impl Fn() -> String + Send,
    work: impl FnOnce() -> T,
) -> T {
    let (done, ended) = channel::<()>();
    let start = Instant::now();
    let show = move || {
        // The sender is dropped with the end of the work, be it a panic.
        if ended.recv_timeout(patience) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        let title = title();
        // What can't be written is of no concern to the work.
        if !is_terminal {
            let _ =
                writeln!(target, "tile: compiling {title} takes longer than {} s", patience.as_secs_f32());
            return;
        }
        loop {
            let _ = write!(target, "\r\x1b[Ktile: compiling {title}, {:.0} s", start.elapsed().as_secs_f32());
            let _ = target.flush();
            if ended.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
                let _ = write!(target, "\r\x1b[K");
                let _ = target.flush();
                return;
            }
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
mod tests {
    use super::*;

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
}
