//! `cargo xtask fuzz rust [kernels [seed]]`: random Rust of kernels, whose bodies the reference device runs as Rust, against what the
//! front end makes of them, natively. They are of scalars, whose meaning is Rust's: types, arithmetic, conditions, loops,
//! branches, patterns and exits.
//!
//! What the front end refuses is listed by its messages, for a person to judge; a kernel that rustc alone refuses, or that
//! gives other numbers, is a fault.

mod expressions;
mod kernel;
mod program;
mod statements;
mod writer;

use super::milliseconds;
use crate::steps::{cargo, run as run_step, target};
use kernel::kernel;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Kernels of a run that doesn't say how many.
const KERNELS: u64 = 200;

/// Runs so many kernels, from a seed that may be said.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let (count, seed) = match arguments {
        [] => (KERNELS, milliseconds()),
        [count] => (number(count)?, milliseconds()),
        [count, seed] => (number(count)?, number(seed)?),
        _ => return Err("only how many kernels and a seed can be said".to_owned()),
    };
    println!("{count} kernels, from seed {seed}");
    let Sorted { accepted, refused } = sorted(seed, count)?;
    for (message, lines) in &refused {
        println!("refused {} times: {message}\n    {}", lines.len(), lines[0]);
    }
    println!("the front end takes {} of {count}", accepted.len());
    let folder = target().join("fuzz");
    write(&folder, &accepted)?;
    let mut command = cargo(&["run", "--quiet"]);
    command.current_dir(&folder).env("CARGO_TARGET_DIR", folder.join("target"));
    run_step("random Rust, as Rust and natively", &mut command).map(drop)
}

/// Writes the package of a program that runs kernels.
fn write(folder: &Path, kernels: &[(String, String)]) -> Result<(), String> {
    let sources = folder.join("src");
    let failed = |error: std::io::Error| format!("{}: {error}", sources.display());
    fs::create_dir_all(&sources).map_err(failed)?;
    fs::write(folder.join("Cargo.toml"), program::manifest()).map_err(failed)?;
    fs::write(sources.join("main.rs"), program::program(kernels)).map_err(failed)
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number of kernels, and no seed"))
}

/// Kernels, by what the front end says.
#[derive(Default)]
struct Sorted {
    /// The names and texts of those that it takes.
    accepted: Vec<(String, String)>,
    /// Of the others lines with mistakes, by its messages.
    refused: BTreeMap<String, Vec<String>>,
}

fn sorted(seed: u64, count: u64) -> Result<Sorted, String> {
    let Sorted { mut accepted, mut refused } = Sorted::default();
    for at in 0..count {
        let name = format!("k{at}");
        let text = kernel(&name, seed.wrapping_add(at));
        let function: syn::ItemFn =
            syn::parse_str(&text).map_err(|error| format!("{error} in what was written:\n{text}"))?;
        match tile_frontend::lower(proc_macro2::TokenStream::new(), function, "src/main.rs") {
            Ok(_) => accepted.push((name, text)),
            Err(error) => {
                for error in error.iter() {
                    let place = error.span.start();
                    let line = text.lines().nth(place.line - 1).unwrap_or_default();
                    // The column counts characters, of which each is a byte here.
                    let rest = line.get(place.column.saturating_sub(20)..).unwrap_or_default().trim();
                    refused.entry(error.message.clone()).or_default().push(format!("{name}: … {rest}"));
                }
            }
        }
    }
    Ok(Sorted { accepted, refused })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_end_takes_random_rust() {
        let Sorted { accepted, refused } = sorted(1, 60).expect("it is Rust");
        assert!(refused.is_empty(), "{refused:#?}");
        assert_eq!(accepted.len(), 60);
    }
}
