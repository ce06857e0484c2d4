//! A profile as a table: a line for each kernel on each device, that with the most time first.

use super::{Launched, Profile};
use crate::bench::Ceiling;
use crate::columns::aligned;
use crate::quantity;
use std::fmt;
use std::time::Duration;

/// The launches of one kernel, with the same parameters, on one device.
struct Row<'p> {
    first: &'p Launched,
    count: usize,
    time: Duration,
    bytes: u64,
    flops: u64,
    exact: bool,
}

const HEAD: [&str; 9] =
    ["kernel", "launches", "time", "share", "each", "bytes", "memory", "arithmetic", "device"];

fn rows(profile: &Profile) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for launched in &profile.launches {
        let is_of = |row: &Row<'_>| {
            let first = row.first;
            (first.kernel, &first.instance, &first.device)
                == (launched.kernel, &launched.instance, &launched.device)
        };
        let place = rows.iter().position(is_of).unwrap_or_else(|| {
            rows.push(Row {
                first: launched,
                count: 0,
                time: Duration::ZERO,
                bytes: 0,
                flops: 0,
                exact: true,
            });
            rows.len() - 1
        });
        let row = &mut rows[place];
        row.count += 1;
        row.time += launched.time;
        row.bytes = row.bytes.saturating_add(launched.bytes());
        row.flops = row.flops.saturating_add(launched.flops());
        row.exact &= launched.totals.is_exact();
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.time));
    rows
}

impl Row<'_> {
    fn cells(&self, whole: Duration) -> [String; HEAD.len()] {
        let Launched { kernel, instance, device, .. } = self.first;
        let seconds = self.time.as_secs_f64();
        let share = if whole.is_zero() { 0.0 } else { 100.0 * seconds / whole.as_secs_f64() };
        [
            if instance.is_empty() { (*kernel).to_owned() } else { format!("{kernel} ({instance})") },
            self.count.to_string(),
            quantity::time(seconds),
            format!("{share:.0} %"),
            quantity::time(seconds / self.count as f64),
            format!("{}{}", self.about(), quantity::bytes(self.bytes as f64)),
            self.rate(self.bytes, quantity::byte_rate, Ceiling::Copy),
            self.rate(self.flops, quantity::flop_rate, self.first.arithmetic()),
            device.name(),
        ]
    }

    /// What stands before numbers that are estimates.
    fn about(&self) -> &'static str {
        if self.exact { "" } else { "≈ " }
    }

    /// `29.0 GB/s, 71 %`: so much a second, and the part of what the device reaches at most; `≈` before an estimate.
    fn rate(&self, count: u64, show: impl Fn(f64) -> String, ceiling: Ceiling) -> String {
        if count == 0 || self.time.is_zero() {
            return "–".to_owned();
        }
        let rate = count as f64 / self.time.as_secs_f64();
        let about = self.about();
        match self.first.device.ceiling(ceiling) {
            Some(most) => format!("{about}{}, {:.0} %", show(rate), 100.0 * rate / most),
            None => format!("{about}{}", show(rate)),
        }
    }
}

impl fmt::Display for Profile {
    /// A line for each kernel. Percentages of rates are of what the device reaches at most, which is measured the first
    /// time that a process displays a profile.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let launched = self.launched_time();
        let [launched_text, whole] = [launched, self.time].map(|time| quantity::time(time.as_secs_f64()));
        writeln!(f, "{} launches took {launched_text} of {whole}", self.launches.len())?;
        let rows = rows(self);
        if rows.is_empty() {
            return Ok(());
        }
        let head = HEAD.map(str::to_owned).to_vec();
        let lines: Vec<Vec<String>> =
            std::iter::once(head).chain(rows.iter().map(|row| row.cells(launched).to_vec())).collect();
        f.write_str(&aligned(&lines, |column| column > 0 && column + 1 < HEAD.len()))
    }
}
