//! Whether the machine was quiet: the rate of multiply-adds between turns, by which rounds are repeated.

use crate::Result;
use crate::contest::{Contest, Role, Round};
use crate::effort::{Effort, counted};
use crate::verdict::{Lane, Outcome};
use std::collections::HashMap;
use tile::Device;
use tile::bench::Ceiling;
use tile::ir::DType;

/// The best rates of multiply-adds that were seen.
#[derive(Default)]
pub(crate) struct Pace {
    /// By the number of threads.
    best: HashMap<usize, f64>,
}

impl Pace {
    /// Measures a contest: as many quiet rounds as the effort asks for, if they can be had.
    pub(crate) fn measure(&mut self, mut contest: Contest, effort: &Effort) -> Result<Outcome> {
        let mut rounds: Vec<Round> = Vec::new();
        let counted = loop {
            let threads = contest.threads;
            let round = contest.round(rounds.len(), effort, &mut || self.multiply_adds(threads))?;
            rounds.push(round);
            let least: Vec<Option<f64>> = rounds.iter().map(|round| round.least).collect();
            let best = self.best.get(&threads).copied().unwrap_or(0.0);
            let counted = counted(&least, best, effort.rounds);
            let is_enough = counted.rounds.len() == effort.rounds && counted.disturbed == 0;
            if is_enough || rounds.len() == effort.most_rounds() {
                break counted;
            }
        };
        let rounds_of = |at: usize| counted.rounds.iter().map(|&round| rounds[round].seconds[at]).collect();
        let mut lanes: Vec<Lane> = contest
            .contestants
            .iter()
            .enumerate()
            .map(|(at, contestant)| Lane {
                name: contestant.name.clone(),
                role: contestant.role,
                seconds: rounds_of(at),
            })
            .collect();
        if let (true, Some(work)) = (contest.by_multiply_adds, contest.work.amount()) {
            // The most that a round has seen is what could have been reached in it.
            let seconds = counted.rounds.iter().map(|&round| rounds[round].most.map(|rate| work / rate));
            if let Some(seconds) = seconds.collect() {
                lanes.push(Lane { name: "multiply-adds".to_owned(), role: Role::Limit, seconds });
            }
        }
        Ok(Outcome {
            repeated: rounds.len() - counted.rounds.len(),
            disturbed: counted.disturbed,
            title: contest.title,
            threads: contest.threads,
            work: contest.work,
            bars: contest.bars,
            lanes,
            note: contest.note,
        })
    }

    /// The rates of multiply-adds now.
    fn multiply_adds(&mut self, threads: usize) -> Vec<f64> {
        let rates = Device::cpu().ceiling_tries(Ceiling::MultiplyAdd(DType::F32)).unwrap_or_default();
        let best = self.best.entry(threads).or_default();
        *best = rates.iter().copied().fold(*best, f64::max);
        rates
    }
}
