//! What times say: rates, ratios round by round, and whether bars are met.

use crate::contest::Role;
use crate::effort::median;
use tile::bench::{byte_rate, flop_rate, time};

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Work {
    /// Floating-point operations.
    Floats(f64),
    /// Operations on integers.
    Integers(f64),
    /// Bytes that memory gives and takes.
    Bytes(f64),
    /// Something of which the time is asked.
    Once,
}

impl Work {
    /// How much of it, in operations or bytes.
    pub(crate) fn amount(self) -> Option<f64> {
        match self {
            Work::Floats(amount) | Work::Integers(amount) | Work::Bytes(amount) => Some(amount),
            Work::Once => None,
        }
    }

    /// The rate of a run of so many seconds, or its time: `212 GFLOP/s`, `29.0 GB/s`, `0.48 µs`.
    pub(crate) fn rate(self, seconds: f64) -> String {
        match self {
            Work::Floats(amount) => flop_rate(amount / seconds),
            Work::Integers(amount) => flop_rate(amount / seconds).replace("FLOP", "OP"),
            Work::Bytes(amount) => byte_rate(amount / seconds),
            Work::Once => time(seconds),
        }
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bars {
    /// The rate by that of the best peer, at least.
    pub(crate) peer: Option<f64>,
    /// The rate by the limit, at least.
    pub(crate) limit: Option<f64>,
    /// The seconds of a run, at most.
    pub(crate) seconds: Option<f64>,
}

impl Bars {
    /// `≥ 0.95, ≥ 90 %`.
    pub(crate) fn text(&self) -> String {
        let peer = self.peer.map(|bar| format!("≥ {bar:.2}"));
        let limit = self.limit.map(|bar| format!("≥ {:.0} %", bar * 100.0));
        let seconds = self.seconds.map(|bar| format!("≤ {}", time(bar)));
        [peer, limit, seconds].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// A contestant's times, a round each, the same rounds as all others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lane {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) seconds: Vec<f64>,
}

impl Lane {
    /// The median.
    pub(crate) fn median(&self) -> f64 {
        median(&mut self.seconds.clone())
    }

    /// How many times as long as ours it takes: median, least and most of the rounds.
    pub(crate) fn ratios(&self, ours: &Lane) -> [f64; 3] {
        let mut ratios: Vec<f64> = self.seconds.iter().zip(&ours.seconds).map(|(a, b)| a / b).collect();
        let middle = median(&mut ratios);
        [middle, ratios[0], ratios[ratios.len() - 1]]
    }
}

/// How a row stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every bar is met.
    Met,
    /// One isn't.
    Missed,
    /// Whom a bar is about isn't there.
    Unknown,
    /// There is no bar.
    Open,
}

impl Verdict {
    /// `yes`, `NO`, `?`, or nothing.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Verdict::Met => "yes",
            Verdict::Missed => "NO",
            Verdict::Unknown => "?",
            Verdict::Open => "",
        }
    }
}

/// A row that was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) title: String,
    pub(crate) threads: usize,
    pub(crate) work: Work,
    pub(crate) bars: Bars,
    /// Ours first.
    pub(crate) lanes: Vec<Lane>,
    /// How many rounds were tried besides those that count.
    pub(crate) repeated: usize,
    /// How many of those that count were disturbed.
    pub(crate) disturbed: usize,
    pub(crate) note: String,
}

impl Outcome {
    /// Our times.
    pub(crate) fn ours(&self) -> &Lane {
        &self.lanes[0]
    }

    /// The fastest of a role.
    pub(crate) fn best(&self, role: Role) -> Option<&Lane> {
        let lanes = self.lanes.iter().filter(|lane| lane.role == role);
        lanes.min_by(|a, b| a.median().total_cmp(&b.median()))
    }

    /// Our rate by that of the fastest of a role: median, least and most.
    pub(crate) fn ratios(&self, role: Role) -> Option<[f64; 3]> {
        self.best(role).map(|lane| lane.ratios(self.ours()))
    }

    /// Whether the bars are met.
    pub(crate) fn verdict(&self) -> Verdict {
        let at_least =
            |bar: Option<f64>, role| bar.map(|bar| self.ratios(role).map(|[ratio, ..]| ratio >= bar));
        let seconds = self.bars.seconds.map(|bar| Some(self.ours().median() <= bar));
        let peer = at_least(self.bars.peer, Role::Peer);
        let limit = at_least(self.bars.limit, Role::Limit);
        let asked: Vec<Option<bool>> = [peer, limit, seconds].into_iter().flatten().collect();
        if asked.is_empty() {
            Verdict::Open
        } else if asked.contains(&Some(false)) {
            Verdict::Missed
        } else if asked.contains(&None) {
            Verdict::Unknown
        } else {
            Verdict::Met
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn lane(name: &str, role: Role, seconds: &[f64]) -> Lane {
        Lane { name: name.to_owned(), role, seconds: seconds.to_vec() }
    }

    pub(crate) fn outcome(bars: Bars, lanes: Vec<Lane>) -> Outcome {
        let (title, note) = ("matmul f32 1024³".to_owned(), "BM = 64".to_owned());
        let work = Work::Floats(2e9);
        Outcome { title, threads: 2, work, bars, lanes, repeated: 3, disturbed: 1, note }
    }

    fn lanes() -> Vec<Lane> {
        vec![
            // The machine is half as fast in the last round, for all.
            lane("ours", Role::Ours, &[0.01, 0.01, 0.02]),
            lane("slow", Role::Peer, &[0.02, 0.02, 0.04]),
            lane("fast", Role::Peer, &[0.0096, 0.0097, 0.0198]),
            lane("FMA", Role::Limit, &[0.0091, 0.0091, 0.0182]),
        ]
    }

    #[test]
    fn ratios_are_made_round_by_round_with_the_fastest() {
        let outcome = outcome(Bars::default(), lanes());
        assert_eq!(outcome.best(Role::Peer).unwrap().name, "fast");
        let [ratio, least, most] = outcome.ratios(Role::Peer).unwrap();
        assert_eq!(format!("{ratio:.3} {least:.3} {most:.3}"), "0.970 0.960 0.990");
        assert_eq!(outcome.work.rate(outcome.ours().median()), "200 GFLOP/s");
        assert_eq!(outcome.verdict(), Verdict::Open);
    }

    #[test]
    fn every_bar_counts() {
        let verdict = |peer, limit, seconds| outcome(Bars { peer, limit, seconds }, lanes()).verdict();
        assert_eq!(verdict(Some(0.95), Some(0.90), None), Verdict::Met);
        assert_eq!(verdict(Some(0.98), Some(0.90), None), Verdict::Missed);
        assert_eq!(verdict(Some(0.95), Some(0.92), None), Verdict::Missed);
        assert_eq!(verdict(None, None, Some(0.01)), Verdict::Met);
        assert_eq!(verdict(None, None, Some(0.0099)), Verdict::Missed);
        let alone = |limit| outcome(Bars { peer: Some(1.0), limit, seconds: None }, lanes()[..1].to_vec());
        assert_eq!(alone(None).verdict(), Verdict::Unknown);
        let beside_limit = vec![lanes().remove(0), lanes().remove(3)];
        let bars = Bars { peer: Some(1.0), limit: Some(0.95), seconds: None };
        // A bar that is missed is missed whoever else isn't there.
        assert_eq!(outcome(bars, beside_limit).verdict(), Verdict::Missed);
    }

    #[test]
    fn bars_and_rates_have_units() {
        let bars = Bars { peer: Some(0.95), limit: Some(0.9), seconds: None };
        assert_eq!(bars.text(), "≥ 0.95, ≥ 90 %");
        assert_eq!(Bars { seconds: Some(0.06), ..Bars::default() }.text(), "≤ 60.0 ms");
        assert_eq!(Work::Integers(4e9).rate(0.02), "200 GOP/s");
        assert_eq!(Work::Bytes(29e9).rate(1.0), "29.0 GB/s");
        assert_eq!(Work::Once.rate(4.8e-7), "0.48 µs");
    }
}
