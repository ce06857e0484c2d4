//! `cargo xtask bench cpu`: the CPU target beside the best libraries for the same work, and beside what the machine does
//! at most, in one run. Figures, and whether bars are met; only results that differ are an error.

mod chart;
mod contest;
mod effort;
mod kernels;
mod limits;
mod machine;
mod memory;
mod options;
mod pace;
mod peers;
mod report;
mod rows;
mod verdict;

use effort::{FULL, QUICK};
use options::Options;
use pace::Pace;
use peers::{Peers, crates, openblas};
use rows::Setting;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use verdict::Outcome;

/// A result of anything here.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.as_slice() {
        [word] if word == crates::SERVE => crates::serve().map(|()| true),
        [word] if word == "--help" => {
            print!("{}", options::HELP);
            Ok(true)
        }
        _ => Options::of(&arguments).and_then(|options| run(&options)),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures and reports; whether every result was right.
fn run(options: &Options) -> Result<bool> {
    let rows: Vec<_> = rows::all().into_iter().filter(|row| options.takes(&row.title)).collect();
    if options.list || rows.is_empty() {
        rows.iter().for_each(|row| println!("{}", row.title));
        return if rows.is_empty() { Err("no row has such a title".into()) } else { Ok(true) };
    }
    // SAFETY: no other thread has been started.
    let other_class = unsafe { openblas::name_class(machine::has, machine::is_amd()) };
    let machine_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let peers = Peers::find();
    machine::description().iter().for_each(|line| println!("{line}"));
    println!("{}", peers.present.join("\n"));
    peers.missing.iter().chain(&other_class).for_each(|line| println!("! {line}"));
    println!();

    let effort = if options.quick { QUICK } else { FULL };
    let (mut outcomes, mut problems) = (Vec::new(), Vec::new());
    let mut pace = Pace::default();
    for row in &rows {
        let numbers = if row.is_threaded { options.threads.numbers(machine_threads) } else { vec![1] };
        for threads in numbers {
            tile::cpu::set_threads(threads);
            peers.set_threads(threads);
            let setting = Setting { peers: &peers, threads };
            let measured = row.build(&setting).and_then(|mut contest| {
                contest.compare()?;
                pace.measure(contest, &effort)
            });
            match measured {
                Ok(outcome) => {
                    // What there is, for those who look on, or end it.
                    eprint!("{}", report::everyone(std::slice::from_ref(&outcome)));
                    outcomes.push(outcome);
                }
                Err(error) => problems.push(error.to_string()),
            }
        }
    }
    report(options, &outcomes, &problems)?;
    Ok(problems.is_empty())
}

fn report(options: &Options, outcomes: &[Outcome], problems: &[String]) -> Result<()> {
    if !outcomes.is_empty() {
        println!("{}", report::table(outcomes));
        println!("Everyone's rates, and the tiles that the library chose:\n{}", report::everyone(outcomes));
        println!("{}", report::summary(outcomes));
    }
    problems.iter().for_each(|problem| println!("WRONG: {problem}"));
    if let Some(path) = &options.csv {
        create(path)?;
        std::fs::write(path, report::csv(outcomes))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        println!("{}", path.display());
    }
    if let Some(path) = &options.png {
        create(path)?;
        chart::draw(path, outcomes)?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Makes the folder of a file.
fn create(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()).into())
}
