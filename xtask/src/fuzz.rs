//! `cargo xtask fuzz [minutes]`: random kernels, natively, thread by thread and after every pass, against the
//! evaluator, until the time is over. A kernel that differs is shown, made as small as lines can be dropped.

use crate::steps::{cargo, run};
use std::time::{Duration, Instant};

/// Kernels that one process tries: their code is never unloaded.
const BATCH: u32 = 400;

const DEFAULT_MINUTES: u64 = 10;

/// Runs batches until the time is over.
pub(crate) fn run_for(minutes: Option<&str>) -> Result<(), String> {
    let minutes = match minutes {
        None => DEFAULT_MINUTES,
        Some(text) => text.parse().map_err(|_| format!("`{text}` isn't a number of minutes"))?,
    };
    let build = ["test", "--package", "tile-codegen", "--test", "main", "--no-run"];
    run("building the tests", &mut cargo(&build))?;
    let (start, limit) = (Instant::now(), Duration::from_secs(60 * minutes));
    let mut tried = 0;
    while start.elapsed() < limit {
        let mut batch =
            cargo(&["test", "--quiet", "--package", "tile-codegen", "--test", "main", "random::"]);
        batch.env("TILE_FUZZ_CASES", BATCH.to_string());
        run(&format!("kernels {tried} to {}", tried + BATCH), &mut batch)?;
        tried += BATCH;
    }
    println!("{tried} random kernels agree");
    Ok(())
}
