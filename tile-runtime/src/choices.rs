//! What the cost model says of the instances of a launch, as a value and as a table for people.

use crate::choose::{self, Assessed};
use crate::device::Device;
use crate::quantity::time;
use std::fmt;
use tile_ir::cost::Prediction;

/// What the cost model says of the instances that a launch may take: the one with the least time first, those that the
/// launch doesn't fit last. Displayed, it is a table.
#[derive(Clone, Debug)]
pub struct Choices {
    title: String,
    rows: Vec<Choice>,
}

/// What the cost model says of an instance.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What the kernel's parameters are bound to: `BM = 128, BN = 64`.
    pub instance: String,
    /// The time and what takes it, or why the launch can't take the instance.
    pub prediction: Result<Prediction, String>,
}

impl Choices {
    pub(crate) fn new(kernel: &str, device: &Device, assessed: Vec<Assessed>) -> Choices {
        let sizes = assessed.iter().find_map(|one| one.outcome.as_ref().ok()).map(|fitting| {
            let sizes = fitting.prepared.abi().sizes.iter().zip(&fitting.bound.sizes);
            sizes.map(|(name, value)| format!(", {name} = {value}")).collect::<String>()
        });
        let title = format!("`{kernel}` on {device}{}", sizes.unwrap_or_default());
        let best = choose::best(&assessed);
        let rows = assessed.into_iter().map(|Assessed { instance, outcome }| {
            let prediction = outcome.map(|fitting| fitting.prediction).map_err(|refusal| refusal.to_string());
            Choice { instance, prediction }
        });
        let mut rows: Vec<(usize, Choice)> = rows.enumerate().collect();
        // The chosen one is first, whatever the order of equal ones.
        rows.sort_by(|(first, a), (second, b)| match (&a.prediction, &b.prediction) {
            (Ok(x), Ok(y)) => (Some(*second) == best).cmp(&(Some(*first) == best)).then(x.compare(y)),
            (a, b) => a.is_err().cmp(&b.is_err()),
        });
        Choices { title, rows: rows.into_iter().map(|(_, row)| row).collect() }
    }

    /// The instances, the chosen one first.
    pub fn rows(&self) -> &[Choice] {
        &self.rows
    }

    /// The instance that the launch takes, where it can take any.
    pub fn chosen(&self) -> Option<&Choice> {
        self.rows.first().filter(|row| row.prediction.is_ok())
    }
}

impl fmt::Display for Choices {
    /// A line for each instance; the chosen one has an arrow.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEAD: &str = "instance";
        let width =
            self.rows.iter().map(|row| row.instance.chars().count()).chain([HEAD.len()]).max().unwrap_or(0);
        writeln!(f, "{}", self.title)?;
        writeln!(f, "  {HEAD:width$}  {:>9}  {:17}  {:>8}  why not", "predicted", "limit", "waves")?;
        let best = self.chosen().and_then(|row| row.prediction.as_ref().ok()).map(|it| it.seconds);
        for (number, Choice { instance, prediction }) in self.rows.iter().enumerate() {
            let line = match prediction {
                Ok(it) => {
                    let why_not = match best {
                        Some(best) if number > 0 && it.seconds > best => {
                            format!("{:.2} times as long", it.seconds / best)
                        }
                        Some(_) if number > 0 => String::from("as long, with more work"),
                        _ => String::new(),
                    };
                    let arrow = if number == 0 { '▶' } else { ' ' };
                    let (time, limit) = (time(it.seconds), it.limit);
                    format!("{arrow} {instance:width$}  {time:>9}  {limit:17}  {:>8.2}  {why_not}", it.waves)
                }
                Err(reason) => {
                    format!("  {instance:width$}  {:>9}  {:17}  {:>8}  {reason}", "–", "", "")
                }
            };
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::cost::Limit;

    #[test]
    fn a_table_says_why_instances_are_not_taken() {
        let row = |instance: &str, microseconds: f64, limit| Choice {
            instance: instance.to_owned(),
            prediction: Ok(Prediction {
                seconds: microseconds * 1e-6,
                limit,
                on_chip: 0.0,
                operations: 0.0,
                at_once: 132,
                waves: 3.879,
            }),
        };
        let refused =
            Choice { instance: "BM = 48".to_owned(), prediction: Err("`m % BM == 0` isn't so".to_owned()) };
        let rows = vec![
            row("BM = 128", 146.5, Limit::Shared),
            row("BM = 64", 146.5, Limit::Memory),
            row("BM = 16", 1466.0, Limit::Matrix),
            refused,
        ];
        let choices = Choices { title: "`matmul` on cuda:0, m = 4096".to_owned(), rows };
        let expected = "\
`matmul` on cuda:0, m = 4096
  instance  predicted  limit                 waves  why not
▶ BM = 128     146 µs  shared memory          3.88
  BM = 64      146 µs  memory                 3.88  as long, with more work
  BM = 16     1.47 ms  matrix units           3.88  10.01 times as long
  BM = 48           –                               `m % BM == 0` isn't so
";
        assert_eq!(choices.to_string(), expected);
        assert_eq!(choices.chosen().unwrap().instance, "BM = 128");
    }
}
