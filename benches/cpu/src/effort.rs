//! How much is measured: how many rounds, how many runs in a turn, and which rounds count.

use crate::Result;
use std::time::{Duration, Instant};

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effort {
    /// Rounds that count.
    pub(crate) rounds: usize,
    /// Runs of a turn, at least.
    pub(crate) runs: usize,
    /// How long a turn goes on, at least.
    pub(crate) time: Duration,
}

/// What a full run does.
pub(crate) const FULL: Effort = Effort { rounds: 7, runs: 3, time: Duration::from_millis(60) };

/// What `--quick` does.
pub(crate) const QUICK: Effort = Effort { rounds: 3, runs: 2, time: Duration::from_millis(20) };

/// The part of its best that the limit of multiply-adds must reach for a round to count: below, somebody else runs.
pub(crate) const QUIET: f64 = 0.9;

/// Runs that are shorter are timed by the wall's clock: to ask for a thread's takes a part of a microsecond.
const SHORT: Duration = Duration::from_micros(20);

/// What times are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The time that passes.
    Wall,
    /// The time that this thread has a core: what somebody else takes of it meanwhile isn't counted.
    Thread,
}

impl Clock {
    /// The clock for runs of so many threads.
    pub(crate) fn of(threads: usize) -> Clock {
        if threads == 1 { Clock::Thread } else { Clock::Wall }
    }

    /// Its name among processes.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Clock::Wall => "wall",
            Clock::Thread => "thread",
        }
    }

    /// The clock of a name.
    pub(crate) fn named(name: &str) -> Option<Clock> {
        [Clock::Wall, Clock::Thread].into_iter().find(|clock| clock.name() == name)
    }

    /// The seconds that something takes.
    fn time(self, run: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        let before = Instant::now();
        let seconds = match self {
            Clock::Wall => None,
            Clock::Thread => thread_seconds(),
        };
        run()?;
        match seconds {
            Some(seconds) => Ok(thread_seconds().unwrap_or(seconds) - seconds),
            None => Ok(before.elapsed().as_secs_f64()),
        }
    }
}

/// How long this thread has had a core.
#[cfg(unix)]
fn thread_seconds() -> Option<f64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for the time.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    (result == 0).then_some(time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9)
}

#[cfg(not(unix))]
fn thread_seconds() -> Option<f64> {
    None
}

impl Effort {
    /// The median time of a run in seconds. The first run doesn't count: its memory was somebody else's before.
    pub(crate) fn sample(&self, clock: Clock, run: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        let start = Instant::now();
        run()?;
        let clock = if start.elapsed() < SHORT { Clock::Wall } else { clock };
        let mut times = Vec::new();
        let start = Instant::now();
        while times.len() < self.runs || start.elapsed() < self.time {
            times.push(clock.time(run)?);
        }
        Ok(median(&mut times))
    }

    /// The most rounds that are tried.
    pub(crate) fn most_rounds(&self) -> usize {
        2 * self.rounds
    }
}

/// The median, of one value at least.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    0.5 * (low + high)
}

/// Which rounds count, by the least limit that each has seen and the best one known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Their numbers.
    pub(crate) rounds: Vec<usize>,
    /// How many of them were disturbed, because too few others were there.
    pub(crate) disturbed: usize,
}

/// The quiet rounds; where they are fewer than are wanted, the least disturbed ones beside them.
pub(crate) fn counted(least: &[Option<f64>], best: f64, wanted: usize) -> Counted {
    let is_quiet = |round: &usize| least[*round].is_none_or(|rate| rate >= QUIET * best);
    let (mut rounds, mut others): (Vec<usize>, Vec<usize>) = (0..least.len()).partition(is_quiet);
    rounds.truncate(wanted);
    others.sort_by(|&a, &b| least[b].unwrap_or(best).total_cmp(&least[a].unwrap_or(best)));
    others.truncate(wanted - rounds.len());
    let disturbed = others.len();
    rounds.extend(others);
    Counted { rounds, disturbed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_between_the_middle_values() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&mut [7.0]), 7.0);
    }

    #[test]
    fn a_sample_has_as_many_runs_as_are_asked_for() {
        let mut runs = 0;
        let effort = Effort { rounds: 1, runs: 4, time: Duration::ZERO };
        let seconds = effort.sample(Clock::Wall, &mut || {
            runs += 1;
            Ok(())
        });
        assert!(seconds.unwrap() < 1.0);
        assert_eq!(runs, 5);
    }

    #[test]
    fn a_thread_that_sleeps_has_no_core() {
        let mut sleep = || {
            std::thread::sleep(Duration::from_millis(20));
            Ok(())
        };
        assert!(Clock::Wall.time(&mut sleep).unwrap() >= 0.02);
        if cfg!(unix) {
            assert!(Clock::Thread.time(&mut sleep).unwrap() < 0.01);
        }
        assert_eq!((Clock::of(1), Clock::of(2)), (Clock::Thread, Clock::Wall));
        assert_eq!((Clock::named("thread"), Clock::named("sun")), (Some(Clock::Thread), None));
    }

    #[test]
    fn disturbed_rounds_count_only_for_want_of_others() {
        let least = [Some(100.0), Some(50.0), Some(95.0), Some(89.0), Some(91.0)];
        assert_eq!(counted(&least, 100.0, 3), Counted { rounds: vec![0, 2, 4], disturbed: 0 });
        assert_eq!(counted(&least, 100.0, 4), Counted { rounds: vec![0, 2, 4, 3], disturbed: 1 });
        // Where the limit isn't known every round counts.
        assert_eq!(counted(&[None, None], 0.0, 2), Counted { rounds: vec![0, 1], disturbed: 0 });
    }
}
