//! Checks every kernel of the benchmark at small sizes, and on an NVIDIA GPU measures every row:
//! `h200 [DEVICE] [ROW…]`. Prints JSON; what is under way goes to standard error.

use h200::check::check;
use h200::problem::Result;
use h200::table::{LEFT_OUT, ROWS, Row};
use h200::timing::{Timer, Times};
use serde_json::{Value, json};
use std::process::ExitCode;
use tile::Device;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(report) => {
            println!("{report:#}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<Value> {
    let device = match words.first() {
        Some(name) => Device::named(name)?,
        None => Device::best()?,
    };
    let rows = rows(words.get(1..).unwrap_or_default())?;
    let mut checks = serde_json::Map::new();
    for row in &rows {
        eprintln!("checking {} on {}", row.name, device.name());
        checks.insert(row.name.to_owned(), json!(check(row, &device)?));
    }
    let left_out: Vec<Value> =
        LEFT_OUT.iter().map(|left| json!({"what": left.what, "reason": left.reason})).collect();
    let mut report = json!({"device": device.to_string(), "relative_errors": checks, "left_out": left_out});
    if let Some(ordinal) = device.name().strip_prefix("cuda:") {
        let mut timer = Timer::new(ordinal.parse()?)?;
        report["rows"] = rows.iter().map(|row| measure(row, &mut timer)).collect::<Result<_>>()?;
        report["host_latency_microseconds"] = json!(timer.host_latency()?);
    }
    Ok(report)
}

/// The rows of these names, or all.
fn rows(names: &[String]) -> Result<Vec<&'static Row>> {
    if names.is_empty() {
        return Ok(ROWS.iter().collect());
    }
    let named = |name: &String| {
        let known = || ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
        let found = ROWS.iter().find(|row| row.name == *name);
        found.ok_or_else(|| format!("no row is called `{name}`; the rows are {}", known()).into())
    };
    names.iter().map(named).collect()
}

/// The times of a row, and how much it computes and moves per second.
fn measure(row: &Row, timer: &mut Timer) -> Result<Value> {
    eprintln!("measuring {}", row.name);
    let Times { median, shortest, longest, sustained } = timer.time(row.problem)?;
    let teraflops = |time: f64| row.problem.operations().map(|operations| operations / time / 1e6);
    Ok(json!({
        "row": row.name,
        "microseconds": {"median": median, "shortest": shortest, "longest": longest, "sustained": sustained},
        "teraflops": teraflops(median),
        "sustained_teraflops": sustained.and_then(teraflops),
        "gigabytes_per_second": row.problem.bytes() / median / 1e3,
    }))
}
