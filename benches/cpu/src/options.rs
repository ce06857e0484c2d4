//! What the command line says.

use crate::Result;
use std::path::PathBuf;

/// Shown where the command line isn't understood.
pub(crate) const HELP: &str = "\
cargo xtask bench cpu [OPTIONS]

  --rows a,b          only rows whose titles contain one of these texts: --rows matmul,softmax
  --threads 1|all|both  with one thread, with all of the machine, or with both (as without the option)
  --csv PATH          where the values go; target/bench/cpu.csv
  --png PATH          where the chart goes; target/bench/cpu.png
  --quick             fewer and shorter rounds, for a first look
  --list              only print the titles of the rows

Environment: OPENBLAS_CORETYPE names the class of processor for OpenBLAS, CC the C compiler, TILE_BENCH_PYTHON a Python
with PyTorch.
";

/// How many threads rows are measured with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Threads {
    One,
    All,
    #[default]
    Both,
}

impl Threads {
    /// The numbers, on a machine that has so many.
    pub(crate) fn numbers(self, machine: usize) -> Vec<usize> {
        match self {
            Threads::One => vec![1],
            Threads::All => vec![machine],
            Threads::Both if machine == 1 => vec![1],
            Threads::Both => vec![1, machine],
        }
    }
}

/// The options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Parts of titles; none for all rows.
    pub(crate) rows: Vec<String>,
    pub(crate) threads: Threads,
    pub(crate) csv: Option<PathBuf>,
    pub(crate) png: Option<PathBuf>,
    pub(crate) quick: bool,
    pub(crate) list: bool,
}

impl Options {
    /// Reads the arguments; of an option that is given twice the last counts.
    pub(crate) fn of(arguments: &[String]) -> Result<Options> {
        let mut options = Options::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().ok_or_else(|| format!("`{argument}` takes a value\n\n{HELP}"));
            match argument.as_str() {
                "--rows" => {
                    let parts = value()?.split(',').map(str::trim);
                    options.rows = parts.filter(|part| !part.is_empty()).map(str::to_owned).collect();
                }
                "--threads" => {
                    options.threads = match value()?.as_str() {
                        "1" => Threads::One,
                        "all" => Threads::All,
                        "both" => Threads::Both,
                        other => return Err(format!("`--threads {other}`: 1, all or both\n\n{HELP}").into()),
                    }
                }
                "--csv" => options.csv = Some(value()?.into()),
                "--png" => options.png = Some(value()?.into()),
                "--quick" => options.quick = true,
                "--list" => options.list = true,
                other => return Err(format!("`{other}` isn't an option\n\n{HELP}").into()),
            }
        }
        Ok(options)
    }

    /// Whether a row is measured: its title contains one of the texts, in either case.
    pub(crate) fn takes(&self, title: &str) -> bool {
        let title = title.to_lowercase();
        self.rows.is_empty() || self.rows.iter().any(|part| title.contains(&part.to_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options> {
        Options::of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn rows_are_chosen_by_parts_of_their_titles() {
        let some = options("--rows matmul,SoftMax --quick").unwrap();
        assert!(
            some.takes("matmul f32 256³") && some.takes("softmax 4096×4096") && !some.takes("sum, 64 Mi")
        );
        assert!(some.quick && !some.list);
        let all = options("").unwrap();
        assert!(all.takes("sum, 64 Mi"));
        assert!(!options("--rows attention").unwrap().takes("sum, 64 Mi"));
        // An empty text is none.
        assert_eq!(options("--rows ,").unwrap().rows, Vec::<String>::new());
    }

    #[test]
    fn the_last_value_counts() {
        let options = options("--csv a --png b --csv c --threads 1 --threads all").unwrap();
        assert_eq!((options.csv, options.png), (Some("c".into()), Some("b".into())));
        assert_eq!(options.threads, Threads::All);
    }

    #[test]
    fn what_isnt_understood_is_said() {
        let message = |line: &str| options(line).unwrap_err().to_string();
        assert!(message("--treads 1").starts_with("`--treads` isn't an option"));
        assert!(message("--threads 3").starts_with("`--threads 3`: 1, all or both"));
        assert!(message("--rows").starts_with("`--rows` takes a value"));
        assert!(message("--rows").contains("cargo xtask bench cpu [OPTIONS]"));
    }

    #[test]
    fn both_are_one_on_a_machine_with_one() {
        assert_eq!(Threads::Both.numbers(8), [1, 8]);
        assert_eq!(Threads::Both.numbers(1), [1]);
        assert_eq!(Threads::All.numbers(4), [4]);
        assert_eq!(Threads::One.numbers(4), [1]);
    }
}
