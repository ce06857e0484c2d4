//! What random kernels reached, as a table: for each op and format on how many targets one ran that had it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The columns.
const FORMATS: [&str; 15] = [
    "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f8e4m3fn", "f8e5m2", "f16", "bf16", "f32",
    "f64",
];

/// What stands for a target in rows of what is to be reached.
const NOWHERE: &str = "nowhere";

/// The targets of an op and a format.
type Targets<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<&'a str>>;

/// The table of a run's rows: op, format, target and count, between tabs. A dot is what the op tables have and nothing
/// reached.
pub(super) fn text(rows: &str) -> String {
    let mut targets = Targets::new();
    let mut too_large: u64 = 0;
    for row in rows.lines() {
        let cells: Vec<&str> = row.split('\t').collect();
        let [op, format, target, count] = cells[..] else { continue };
        if op == "refused" {
            too_large += count.parse::<u64>().unwrap_or(0);
            continue;
        }
        let found = targets.entry((op, format)).or_default();
        if target != NOWHERE {
            found.insert(target);
        }
    }
    let all: BTreeSet<&str> = targets.values().flatten().copied().collect();
    let ops: BTreeSet<&str> = targets.keys().map(|&(op, _)| op).collect();
    let widest = ops.iter().map(|op| op.len()).max().unwrap_or(0);
    let mut table = format!("{:widest$}", "");
    FORMATS.iter().for_each(|format| table += &format!(" {format}"));
    for op in ops {
        let _ = write!(table, "\n{op:widest$}");
        for format in FORMATS {
            let cell = targets.get(&(op, format)).map_or_else(String::new, |found| match found.len() {
                0 => "·".to_owned(),
                count => count.to_string(),
            });
            let _ = write!(table, " {cell:>width$}", width = format.len());
        }
    }
    let missing = targets.values().filter(|found| found.is_empty()).count();
    let _ = write!(
        table,
        "\n{} of {} ops of a format ran on some of {} targets; {too_large} kernels were too large for a GPU",
        targets.len() - missing,
        targets.len(),
        all.len()
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_reached_is_a_dot() {
        let rows = "add\tf32\tsm_80\t3\nadd\tf32\thost\t1\nadd\tf32\tnowhere\t0\nadd\tf64\tnowhere\t0\n\
                    not\tbool\thost\t2\nrefused\tprogram\tsm_80\t4\n";
        let table = text(rows);
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], FORMATS);
        assert_eq!(lines[1], ["add", "2", "·"]);
        assert_eq!(lines[2], ["not", "1"]);
        let last = "2 of 3 ops of a format ran on some of 2 targets; 4 kernels were too large for a GPU";
        assert_eq!(table.lines().last(), Some(last));
    }
}
