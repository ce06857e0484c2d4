//! What the cost model says of the instances of a launch, and what was measured of them, as a value and as a table for
//! people.

use crate::choose::Assessed;
use crate::device::Device;
use crate::error::Result;
use crate::quantity::time;
use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;
use tile_ir::cost::Prediction;

/// What the cost model says of the instances that a launch may take: the one with the least time first, those that the
/// launch doesn't fit last. Where the launch was [tuned](crate::Launch::tune), what was measured decides. Displayed, it is
/// a table.
#[derive(Clone, Debug)]
pub struct Choices {
    title: String,
    rows: Vec<Choice>,
    /// Why the launch takes none of those that fit.
    differ: Option<String>,
}

/// What the cost model says of an instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Choice {
    /// What the kernel's parameters are bound to: `BM = 128, BN = 64`.
    pub instance: String,
    /// The time and what takes it, or why the launch can't take the instance.
    pub prediction: std::result::Result<Prediction, String>,
    /// How long the instance took, where the launch was tuned.
    pub measured: Option<Duration>,
}

impl Choice {
    /// The order of instances by what is known of their times.
    fn compare(&self, other: &Choice) -> Ordering {
        match ((self.measured, &self.prediction), (other.measured, &other.prediction)) {
            ((Some(a), _), (Some(b), _)) => a.cmp(&b),
            ((_, Ok(a)), (_, Ok(b))) => a.compare(b),
            ((_, a), (_, b)) => a.is_err().cmp(&b.is_err()),
        }
    }

    /// The time that decides, in seconds: none of an instance that the launch can't take.
    fn seconds(&self) -> Option<f64> {
        let predicted = self.prediction.as_ref().ok()?.seconds;
        Some(self.measured.map_or(predicted, |time| time.as_secs_f64()))
    }
}

impl Choices {
    pub(crate) fn new(
        kernel: &str,
        device: &Device,
        assessed: Vec<Assessed>,
        decided: Result<Option<usize>>,
    ) -> Choices {
        let sizes = assessed.iter().find_map(|one| one.outcome.as_ref().ok()).map(|fitting| {
            let sizes = fitting.prepared.abi().sizes.iter().zip(&fitting.bound.sizes);
            sizes.map(|(name, value)| format!(", {name} = {value}")).collect::<String>()
        });
        let title = format!("`{kernel}` on {device}{}", sizes.unwrap_or_default());
        let (chosen, differ) = match decided {
            Ok(chosen) => (chosen, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let rows = assessed.into_iter().map(|Assessed { instance, measured, outcome }| {
            let prediction = outcome.map(|fitting| fitting.prediction).map_err(|refusal| refusal.to_string());
            Choice { instance, prediction, measured }
        });
        let mut rows: Vec<(usize, Choice)> = rows.enumerate().collect();
        // The chosen one is first, whatever the order of equal ones.
        let is_chosen = |number: &usize| Some(*number) == chosen;
        rows.sort_by(|(first, a), (second, b)| is_chosen(second).cmp(&is_chosen(first)).then(a.compare(b)));
        Choices { title, rows: rows.into_iter().map(|(_, row)| row).collect(), differ }
    }

    /// The instances, the chosen one first.
    pub fn rows(&self) -> &[Choice] {
        &self.rows
    }

    /// The instance that the launch takes, where it can take any.
    pub fn chosen(&self) -> Option<&Choice> {
        self.rows.first().filter(|row| self.differ.is_none() && row.prediction.is_ok())
    }
}

impl fmt::Display for Choices {
    /// A line for each instance; the chosen one has an arrow.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEAD: &str = "instance";
        let width =
            self.rows.iter().map(|row| row.instance.chars().count()).chain([HEAD.len()]).max().unwrap_or(0);
        writeln!(f, "{}", self.title)?;
        let is_tuned = self.rows.iter().any(|row| row.measured.is_some());
        let head = if is_tuned { format!("  {:>9}", "measured") } else { String::new() };
        writeln!(f, "  {HEAD:width$}{head}  {:>9}  {:17}  {:>8}  why not", "predicted", "limit", "waves")?;
        let chosen = self.chosen().and_then(|row| Some((row.seconds()?, row.prediction.as_ref().ok()?)));
        for (number, row) in self.rows.iter().enumerate() {
            let Choice { instance, prediction, measured } = row;
            let measured = match measured {
                Some(measured) => format!("  {:>9}", time(measured.as_secs_f64())),
                None if is_tuned => format!("  {:>9}", "–"),
                None => String::new(),
            };
            let line = match prediction {
                Ok(it) => {
                    let seconds = row.seconds().unwrap_or(it.seconds);
                    let is_chosen = chosen.is_some() && number == 0;
                    let why_not = match chosen.filter(|_| !is_chosen) {
                        Some((best, _)) if seconds > best => format!("{:.2} times as long", seconds / best),
                        Some((_, prediction)) if prediction.compare(it).is_eq() => "as long".to_owned(),
                        Some(_) => "as long, with more work".to_owned(),
                        None => String::new(),
                    };
                    let arrow = if is_chosen { '▶' } else { ' ' };
                    let (time, limit) = (time(it.seconds), it.limit);
                    format!(
                        "{arrow} {instance:width$}{measured}  {time:>9}  {limit:17}  {:>8.2}  {why_not}",
                        it.waves
                    )
                }
                Err(reason) => {
                    format!("  {instance:width$}{measured}  {:>9}  {:17}  {:>8}  {reason}", "–", "", "")
                }
            };
            writeln!(f, "{}", line.trim_end())?;
        }
        self.differ.iter().try_for_each(|reason| writeln!(f, "{reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::cost::Limit;

    #[test]
    fn a_table_says_why_instances_are_not_taken() {
        let row = |instance: &str, microseconds: f64, (limit, operations)| Choice {
            instance: instance.to_owned(),
            prediction: Ok(Prediction {
                seconds: microseconds * 1e-6,
                limit,
                on_chip: 0.0,
                operations,
                at_once: 132,
                waves: 3.879,
            }),
            measured: None,
        };
        let refused = Choice {
            instance: "BM = 48".to_owned(),
            prediction: Err("`m % BM == 0` isn't so".to_owned()),
            measured: None,
        };
        let rows = vec![
            row("BM = 128", 146.5, (Limit::Shared, 1e9)),
            row("BM = 32", 146.5, (Limit::Shared, 1e9)),
            row("BM = 64", 146.5, (Limit::Memory, 2e9)),
            row("BM = 16", 1466.0, (Limit::Matrix, 1e9)),
            refused,
        ];
        let choices = Choices { title: "`matmul` on cuda:0, m = 4096".to_owned(), rows, differ: None };
        let expected = "\
`matmul` on cuda:0, m = 4096
  instance  predicted  limit                 waves  why not
▶ BM = 128     146 µs  shared memory          3.88
  BM = 32      146 µs  shared memory          3.88  as long
  BM = 64      146 µs  memory                 3.88  as long, with more work
  BM = 16     1.47 ms  matrix units           3.88  10.01 times as long
  BM = 48           –                               `m % BM == 0` isn't so
";
        assert_eq!(choices.to_string(), expected);
        assert_eq!(choices.chosen().unwrap().instance, "BM = 128");

        let mut rows = choices.rows;
        for (row, microseconds) in rows.iter_mut().zip([210, 250, 190, 1500]) {
            row.measured = Some(Duration::from_micros(microseconds));
        }
        rows.sort_by(Choice::compare);
        let tuned = Choices { title: choices.title, rows, differ: None };
        let expected = "\
`matmul` on cuda:0, m = 4096
  instance   measured  predicted  limit                 waves  why not
▶ BM = 64      190 µs     146 µs  memory                 3.88
  BM = 128     210 µs     146 µs  shared memory          3.88  1.11 times as long
  BM = 32      250 µs     146 µs  shared memory          3.88  1.32 times as long
  BM = 16     1.50 ms    1.47 ms  matrix units           3.88  7.89 times as long
  BM = 48           –          –                               `m % BM == 0` isn't so
";
        assert_eq!(tuned.to_string(), expected);
    }
}
