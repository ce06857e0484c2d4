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

impl Effort {
    /// The median time of a run in seconds. The first run doesn't count: its memory was somebody else's before.
    pub(crate) fn sample(&self, run: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        run()?;
        let mut times = Vec::new();
        let start = Instant::now();
        while times.len() < self.runs || start.elapsed() < self.time {
            let before = Instant::now();
            run()?;
            times.push(before.elapsed().as_secs_f64());
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
        let seconds = effort.sample(&mut || {
            runs += 1;
            Ok(())
        });
        assert!(seconds.unwrap() < 1.0);
        assert_eq!(runs, 5);
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
