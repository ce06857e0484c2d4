//! `cargo xtask fuzz [minutes]`: random kernels, and ops of random shapes, natively, thread by thread and after every
//! pass, against the evaluator, until the time is over. A kernel that differs is shown, made as small as lines can be
//! dropped, with the number that its batch began with. At the end a table says which ops were reached ([`table`]).

mod table;

use crate::steps::{cargo, run as run_step, target};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Kernels that one process tries: their code is never unloaded.
const BATCH: u32 = 400;

const DEFAULT_MINUTES: u64 = 10;

/// Runs batches for so many minutes, if the arguments say how many.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let minutes = match arguments {
        [] => DEFAULT_MINUTES,
        [text] => text.parse().map_err(|_| format!("`{text}` isn't a number of minutes"))?,
        _ => return Err("only the number of minutes can be said".to_owned()),
    };
    let build = ["test", "--package", "tile-codegen", "--test", "main", "--no-run"];
    run_step("building the tests", &mut cargo(&build))?;
    let mut edges =
        cargo(&["test", "--quiet", "--package", "tile-codegen", "--test", "main", "--", "edges::"]);
    run_step("leaf ops at the ends of formats, on every target", edges.env("TILE_EVERY_EDGE", "1"))?;
    let reached = target().join("reached.tsv");
    // What an earlier run reached isn't this one's.
    let _ = std::fs::remove_file(&reached);
    let (start, limit) = (Instant::now(), Duration::from_secs(60 * minutes));
    let mut tried = 0;
    while start.elapsed() < limit {
        let seed =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis()).to_string();
        let mut batch = cargo(&["test", "--quiet", "--package", "tile-codegen", "--test", "main", "--"]);
        batch.args(["random::", "_of_any_shape"]);
        batch.env("TILE_FUZZ_CASES", BATCH.to_string()).env("PROPTEST_RNG_SEED", &seed);
        batch.env("TILE_FUZZ_REACHED", &reached);
        run_step(&format!("kernels {tried} to {}, PROPTEST_RNG_SEED={seed}", tried + BATCH), &mut batch)?;
        tried += BATCH;
    }
    let rows =
        std::fs::read_to_string(&reached).map_err(|error| format!("{}: {error}", reached.display()))?;
    println!("{}\n{tried} random kernels agree", table::text(&rows));
    Ok(())
}
