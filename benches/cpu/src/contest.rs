//! A contest: one computation by this project, by its peers, and as much of it as the machine reaches at most, all on the
//! same memory and measured in turns.

use crate::Result;
use crate::effort::{Clock, Effort};
use crate::memory::Memory;
use crate::peers::process::Process;
use crate::verdict::{Bars, Work};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// What a contestant is to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// This project.
    Ours,
    /// Another library.
    Peer,
    /// What the machine does at most.
    Limit,
}

impl Role {
    /// Its name in the CSV.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Ours => "ours",
            Role::Peer => "peer",
            Role::Limit => "limit",
        }
    }
}

/// What all contestants read and write.
pub(crate) struct Shared {
    /// What is computed from.
    pub(crate) inputs: Vec<Memory>,
    /// What is computed.
    pub(crate) output: Memory,
}

/// Computes once.
pub(crate) type Run = Box<dyn FnMut(&mut Shared) -> Result<()>>;

/// How a contestant computes.
enum How {
    /// In this process, on the shared memory.
    Here(Run),
    /// In another process, on memory of its own, after being told what.
    Elsewhere(Rc<RefCell<Process>>, String),
}

/// One that is measured.
pub(crate) struct Contestant {
    pub(crate) name: String,
    pub(crate) role: Role,
    how: How,
}

impl Contestant {
    /// One of this process.
    pub(crate) fn here(
        role: Role,
        name: impl Into<String>,
        run: impl FnMut(&mut Shared) -> Result<()> + 'static,
    ) -> Contestant {
        Contestant { name: name.into(), role, how: How::Here(Box::new(run)) }
    }

    /// A peer in another process, which a line tells what to compute.
    pub(crate) fn elsewhere(
        name: impl Into<String>,
        process: Rc<RefCell<Process>>,
        task: String,
    ) -> Contestant {
        Contestant { name: name.into(), role: Role::Peer, how: How::Elsewhere(process, task) }
    }

    /// The time of a run in seconds.
    pub(crate) fn turn(&mut self, shared: &mut Shared, clock: Clock, effort: &Effort) -> Result<f64> {
        match &mut self.how {
            How::Here(run) => effort.sample(clock, &mut || run(shared)),
            How::Elsewhere(process, task) => process.borrow_mut().sample(task, clock, effort),
        }
    }

    /// Leaves its result in the shared memory; `false` where it can't.
    pub(crate) fn compute(&mut self, shared: &mut Shared) -> Result<bool> {
        match &mut self.how {
            How::Here(run) if self.role != Role::Limit => run(shared).map(|()| true),
            _ => Ok(false),
        }
    }
}

/// What is contested, and by whom.
pub(crate) struct Contest {
    /// Such as `matmul f32 1024³`.
    pub(crate) title: String,
    /// Threads of each.
    pub(crate) threads: usize,
    pub(crate) work: Work,
    pub(crate) bars: Bars,
    pub(crate) shared: Shared,
    /// Ours first.
    pub(crate) contestants: Vec<Contestant>,
    /// Whether multiply-adds are what limits it.
    pub(crate) by_multiply_adds: bool,
    /// How the result is compared, and how far results may be apart.
    pub(crate) check: Check,
    /// The instance that the library has chosen, and what is particular.
    pub(crate) note: String,
}

/// How results are compared.
#[derive(Clone, Copy)]
pub(crate) enum Check {
    /// Numbers of f32: the length of the difference by that of the result.
    Floats(f64),
    /// Ours are integers, others' the same numbers as f32.
    Integers,
    /// Nobody else computes the same.
    Alone,
}

/// How long others rest before a turn with several threads: those of libraries look out for more work for some time
/// (OpenBLAS's for 2²⁶ clocks), and take a core from whoever is next.
const REST: Duration = Duration::from_millis(40);

/// What a round has shown.
pub(crate) struct Round {
    /// Seconds of a run, by contestant.
    pub(crate) seconds: Vec<f64>,
    /// Multiply-adds per second between the turns: the most and the least. Unknown on some processors.
    pub(crate) most: Option<f64>,
    pub(crate) least: Option<f64>,
}

impl Contest {
    /// Compares the results at full size.
    pub(crate) fn compare(&mut self) -> Result<()> {
        let tolerance = match self.check {
            Check::Floats(tolerance) => tolerance,
            Check::Integers => 0.0,
            Check::Alone => return Ok(()),
        };
        let Some((ours, others)) = self.contestants.split_first_mut() else { return Ok(()) };
        if !ours.compute(&mut self.shared)? {
            return Ok(());
        }
        let output = &self.shared.output;
        let expected: Vec<f32> = match self.check {
            Check::Integers => output.of::<i32>().iter().map(|&number| number as f32).collect(),
            _ => output.of::<f32>().to_vec(),
        };
        for other in others {
            self.shared.output.of_mut::<f32>().fill(f32::NAN);
            if other.compute(&mut self.shared)? {
                let error = distance(&expected, self.shared.output.of::<f32>());
                if !is_within(error, tolerance) {
                    return Err(format!(
                        "{} with {} threads: ours and {} are {error:.1e} of the result apart, more than {tolerance:.0e}",
                        self.title, self.threads, other.name
                    )
                    .into());
                }
            }
        }
        Ok(())
    }

    /// One round, which begins with another contestant each time.
    pub(crate) fn round(
        &mut self,
        number: usize,
        effort: &Effort,
        multiply_adds: &mut dyn FnMut() -> Vec<f64>,
    ) -> Result<Round> {
        let count = self.contestants.len();
        let clock = Clock::of(self.threads);
        let mut round = Round { seconds: vec![0.0; count], most: None, least: None };
        round.note(multiply_adds());
        for turn in 0..count {
            let at = (turn + number) % count;
            if self.threads > 1 {
                std::thread::sleep(REST);
            }
            round.seconds[at] = self.contestants[at].turn(&mut self.shared, clock, effort)?;
            round.note(multiply_adds());
        }
        Ok(round)
    }
}

impl Round {
    fn note(&mut self, rates: Vec<f64>) {
        for rate in rates {
            self.most = Some(self.most.map_or(rate, |most| most.max(rate)));
            self.least = Some(self.least.map_or(rate, |least| least.min(rate)));
        }
    }
}

/// Whether an error is small enough; NaN isn't.
pub(crate) fn is_within(error: f64, tolerance: f64) -> bool {
    error <= tolerance
}

/// The length of the difference by the length of the first.
pub(crate) fn distance(expected: &[f32], actual: &[f32]) -> f64 {
    let (mut difference, mut length) = (0.0, 0.0);
    for (&expected, &actual) in expected.iter().zip(actual) {
        difference += f64::from(expected - actual).powi(2);
        length += f64::from(expected).powi(2);
    }
    (difference / length).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contest(other: fn(&mut Shared)) -> Contest {
        let ours = Contestant::here(Role::Ours, "ours", |shared| {
            shared.output.of_mut::<f32>().fill(2.0);
            Ok(())
        });
        let other = Contestant::here(Role::Peer, "other", move |shared| {
            other(shared);
            Ok(())
        });
        Contest {
            title: "twos".to_owned(),
            threads: 1,
            work: Work::Bytes(16.0),
            bars: Bars::default(),
            shared: Shared { inputs: Vec::new(), output: Memory::zeros::<f32>(4) },
            contestants: vec![ours, other],
            by_multiply_adds: false,
            check: Check::Floats(1e-5),
            note: String::new(),
        }
    }

    #[test]
    fn results_that_differ_are_seen() {
        assert!(contest(|shared| shared.output.of_mut::<f32>().fill(2.000_001)).compare().is_ok());
        let wrong = contest(|shared| shared.output.of_mut::<f32>().copy_from_slice(&[2.0, 2.0, 2.1, 2.0]));
        let message = { wrong }.compare().unwrap_err().to_string();
        assert_eq!(
            message,
            "twos with 1 threads: ours and other are 2.5e-2 of the result apart, more than 1e-5"
        );
        // What a peer doesn't write isn't what we have left there.
        let nothing = contest(|_| ()).compare().unwrap_err().to_string();
        assert!(nothing.contains("NaN of the result apart"), "{nothing}");
    }

    #[test]
    fn integers_are_the_same_numbers() {
        let mut contest = contest(|shared| shared.output.of_mut::<f32>().fill(-3.0));
        contest.check = Check::Integers;
        contest.contestants[0] = Contestant::here(Role::Ours, "ours", |shared| {
            shared.output.of_mut::<i32>().fill(-3);
            Ok(())
        });
        assert!(contest.compare().is_ok());
        contest.contestants.swap(0, 1);
        assert!(contest.compare().is_err());
    }

    #[test]
    fn everyone_has_a_turn_in_a_round_and_the_first_changes() {
        let mut contest = contest(|_| ());
        let effort = Effort { rounds: 1, runs: 1, time: Duration::ZERO };
        let mut rates = [vec![9.0, 9.5], vec![8.0, 10.0], vec![9.0]].into_iter();
        let round = contest.round(1, &effort, &mut || rates.next().unwrap()).unwrap();
        assert_eq!((round.most, round.least, round.seconds.len()), (Some(10.0), Some(8.0), 2));
        assert!(round.seconds.iter().all(|&seconds| seconds >= 0.0));
    }
}
