//! `cargo xtask fuzz [minutes]`: random kernels, and ops of random shapes, natively, thread by thread and after every
//! pass, against the evaluator, until the time is over. A kernel that differs is shown, made as small as lines can be
//! dropped, with the number that its batch began with. At the end a table says which ops were reached ([`table`]).
//!
//! The tests are told when the time is over and begin nothing after that, so a run takes the minutes that it was given, what
//! building takes besides, and what the last kernels need to end.

pub(crate) mod rust;
mod table;

use crate::steps::{cargo, run as run_step, target};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Kernels that one process tries: their code is never unloaded.
const BATCH: u32 = 400;

const DEFAULT_MINUTES: u64 = 10;

/// The environment variable with the second at which the tests begin nothing more.
const UNTIL: &str = "TILE_FUZZ_UNTIL";

/// Runs batches for so many minutes, if the arguments say how many.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let minutes = minutes(arguments)?;
    run_step("building the tests", &mut program("--no-run"))?;
    let (half, end) = {
        let (start, seconds) = (milliseconds() / 1000, minutes.saturating_mul(60));
        (start.saturating_add(seconds / 2), start.saturating_add(seconds))
    };
    let mut edges = program("--quiet");
    edges.args(["--", "edges::"]).env("TILE_EVERY_EDGE", "1").env(UNTIL, half.to_string());
    run_step("leaf ops at the ends of formats, on every target", &mut edges)?;
    let reached = target().join("reached.tsv");
    // What an earlier run reached isn't this one's.
    let _ = std::fs::remove_file(&reached);
    let mut batches = 0;
    while milliseconds() / 1000 < end {
        let seed = milliseconds().to_string();
        let mut batch = program("--quiet");
        batch.args(["--", "random::", "_of_any_shape"]).env(UNTIL, end.to_string());
        batch.env("TILE_FUZZ_CASES", BATCH.to_string()).env("PROPTEST_RNG_SEED", &seed);
        batch.env("TILE_FUZZ_REACHED", &reached);
        batches += 1;
        run_step(&format!("batch {batches} of random kernels, PROPTEST_RNG_SEED={seed}"), &mut batch)?;
    }
    let rows =
        std::fs::read_to_string(&reached).map_err(|error| format!("{}: {error}", reached.display()))?;
    println!("{}\nall random kernels agree; batches that were begun: {batches}", table::text(&rows));
    Ok(())
}

/// The minutes that the arguments name.
fn minutes(arguments: &[&str]) -> Result<u64, String> {
    match arguments {
        [] => Ok(DEFAULT_MINUTES),
        [text] => {
            let minutes = text.parse().ok().filter(|&minutes| minutes > 0);
            minutes.ok_or_else(|| format!("`{text}` isn't a number of minutes from 1 on"))
        }
        _ => Err("only the number of minutes can be said".to_owned()),
    }
}

/// The program with the tests.
fn program(how: &str) -> Command {
    cargo(&["test", how, "--package", "tile-codegen", "--test", "main"])
}

/// Since 1970.
fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::minutes;

    #[test]
    fn minutes_are_counted_from_one_on() {
        assert_eq!((minutes(&[]), minutes(&["7"])), (Ok(10), Ok(7)));
        for wrong in ["0", "-1", "1.5", "many"] {
            let expected = format!("`{wrong}` isn't a number of minutes from 1 on");
            assert_eq!(minutes(&[wrong]), Err(expected));
        }
        assert!(minutes(&["1", "2"]).is_err());
    }
}
