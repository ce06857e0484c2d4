//! `cargo xtask budgets`: what machine code GPU kernels become, recorded in `docs/codegen-budgets.md` and compared with
//! it. [`compiled`] are the kernels, [`nvidia`] and [`amd`] what is read off their code, column by column. A check reads only
//! code that isn't what was recorded ([`checksums`]): assembling and taking apart all of it takes five minutes of a core.

mod amd;
mod checksums;
mod compiled;
mod instructions;
mod nvidia;
mod page;
mod table;

use crate::setup;
use crate::steps::{Progress, root};
use crate::tools::{NVDISASM, PTXAS, VERSION};
use checksums::Checksums;
use compiled::{Compiled, List};
pub(crate) use compiled::{all_sources, benchmark_sources};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use table::{Changes, Column, Row, Table};

/// What was compiled and measured.
struct Measured {
    list: List,
    checksums: Checksums,
    /// `None` where NVIDIA's tools can't be had.
    nvidia: Option<Table>,
    amd: Table,
}

fn path() -> PathBuf {
    root().join("docs/codegen-budgets.md")
}

/// Writes the page, or with `--check` compares.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    match options {
        [] => write(),
        ["--check"] => check(),
        _ => Err("the only option is --check".to_owned()),
    }
}

fn write() -> Result<(), String> {
    let Measured { list, checksums, nvidia, amd } = measure(None)?;
    let nvidia = nvidia.ok_or("the page needs ptxas and nvdisasm")?;
    let text = page::page(&versions(&list), &[&nvidia, &amd], &list.refused);
    fs::write(path(), &text).map_err(|error| format!("{}: {error}", path().display()))?;
    checksums.write(&text)?;
    println!("✓ {}", path().display());
    Ok(())
}

/// Fails where the page isn't what [`write()`] would write, and says what is worse.
pub(crate) fn check() -> Result<(), String> {
    let old = fs::read_to_string(path()).map_err(|error| format!("{}: {error}", path().display()))?;
    let (recorded_nvidia, recorded_amd) = (empty_nvidia().recorded(&old)?, empty_amd().recorded(&old)?);
    let recorded = Recorded {
        checksums: Checksums::recorded(),
        rows: [&recorded_nvidia, &recorded_amd].into_iter().flat_map(|table| table.rows.clone()).collect(),
    };
    let trusted = Some(&recorded).filter(|recorded| recorded.checksums.vouch_for(&old));
    if trusted.is_none() {
        println!("the page, or what reads its numbers, isn't as it was recorded: all are read anew");
    }
    let Measured { list, checksums, nvidia, amd } = measure(trusted)?;
    let mut changes = amd.changes_since(&recorded_amd);
    if let Some(nvidia) = &nvidia {
        changes.extend(nvidia.changes_since(&recorded_nvidia));
    }
    let nvidia = nvidia.unwrap_or(recorded_nvidia);
    let new = page::page(&versions(&list), &[&nvidia, &amd], &list.refused);
    if new == old {
        let is_new =
            |kernel: &&Compiled| trusted.is_none_or(|recorded| !checksums.agree(&recorded.checksums, kernel));
        let new = list.compiled.iter().filter(is_new).count();
        println!(
            "✓ the machine code of {} kernels has the recorded numbers, {new} of them read anew",
            list.compiled.len()
        );
        return Ok(());
    }
    let compilers = [&old, &new].map(|page| page.lines().find(|line| line.starts_with("Compiled by")));
    Err(message(&changes, compilers[0] == compilers[1]))
}

/// What is said of a page that isn't current.
fn message(changes: &Changes, same_compiler: bool) -> String {
    let mut text = String::from("docs/codegen-budgets.md isn't what the kernels become:\n");
    for (name, lines) in [("worse", &changes.worse), ("better", &changes.better), ("changed", &changes.other)]
    {
        text.extend(lines.iter().map(|line| format!("  {name}: {line}\n")));
    }
    if !same_compiler {
        text += "  it was made with other versions of the compiler and its tools\n";
    }
    text + "if that is meant, record it with `cargo xtask budgets`"
}

/// With what the numbers were made.
fn versions(list: &List) -> String {
    format!("Compiled by {}; PTX assembled by ptxas {VERSION}.", list.compiler)
}

fn empty_nvidia() -> Table {
    Table::new("NVIDIA GPUs", nvidia::COLUMNS)
}

fn empty_amd() -> Table {
    Table::new("AMD GPUs", amd::COLUMNS)
}

/// Numbers that needn't be read again, and of which code they are.
struct Recorded {
    checksums: Checksums,
    rows: Vec<Row>,
}

impl Recorded {
    /// The row of a kernel whose code has this checksum.
    fn row(&self, checksums: &Checksums, compiled: &Compiled) -> Option<Row> {
        let is_same = |row: &&Row| row.instance == compiled.instance && row.target == compiled.target;
        let row = self.rows.iter().find(is_same)?;
        checksums.agree(&self.checksums, compiled).then(|| row.clone())
    }
}

fn measure(recorded: Option<&Recorded>) -> Result<Measured, String> {
    setup::llvm()?;
    let tools = (PTXAS.installed()?, NVDISASM.installed()?);
    let list = compiled::compile()?;
    let checksums = Checksums::of(&list.compiled, &versions(&list))?;
    let known = |compiled: &Compiled| recorded?.row(&checksums, compiled);
    let progress = Progress::start("machine code of the kernels");
    let (objects, ptx): (Vec<&Compiled>, Vec<&Compiled>) = list
        .compiled
        .iter()
        .partition(|compiled| compiled.file.extension().is_some_and(|extension| extension == "hsaco"));
    let amd = fill(empty_amd(), amd::COLUMNS, &objects, known, amd::Measured::of);
    let nvidia = match &tools {
        (Some(ptxas), Some(nvdisasm)) => {
            let of = |compiled: &Compiled| nvidia::Measured::of(compiled, ptxas, nvdisasm);
            Some(fill(empty_nvidia(), nvidia::COLUMNS, &ptx, known, of)).transpose()
        }
        _ => Ok(None),
    };
    progress.finish(amd.is_ok() && nvidia.is_ok());
    Ok(Measured { nvidia: nvidia?, amd: amd?, list, checksums })
}

/// The table with a row for each kernel, where none is known measured by as many threads as there are processors.
fn fill<M>(
    table: Table,
    columns: &[Column<M>],
    kernels: &[&Compiled],
    known: impl Fn(&Compiled) -> Option<Row> + Sync,
    measure: impl Fn(&Compiled) -> Result<M, String> + Sync,
) -> Result<Table, String> {
    let row = |compiled: &Compiled| {
        if let Some(row) = known(compiled) {
            return Ok(row);
        }
        let measured = measure(compiled)?;
        Ok(Row {
            instance: compiled.instance.clone(),
            target: compiled.target.clone(),
            counts: columns.iter().map(|column| (column.of)(&measured)).collect(),
        })
    };
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(compiled) = kernels.get(i) else { break };
                    let row: Result<Row, String> = row(compiled);
                    rows.lock().expect("no thread panics with the lock").push((i, row));
                }
            });
        }
    });
    let mut rows = rows.into_inner().expect("no thread panics with the lock");
    rows.sort_by_key(|(i, _)| *i);
    let rows: Result<Vec<Row>, String> = rows.into_iter().map(|(_, row)| row).collect();
    Ok(Table { rows: rows?, ..table })
}
