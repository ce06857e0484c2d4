//! The machine code that is measured: what `tile-codegen`'s example `budgets` writes, and its list of it.

use crate::steps::{cargo, output, root, run, target};
use crate::test::{BENCHMARK, EXAMPLES, FEATURES};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Code of one instance for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compiled {
    /// `gemm(T=bf16, BM=128, BN=128, BK=64)`.
    pub(super) instance: String,
    /// `sm_90a`.
    pub(super) target: String,
    /// PTX or a code object.
    pub(super) file: PathBuf,
    /// Threads of a block.
    pub(super) threads: u64,
    /// Bytes of shared memory that a launch gives.
    pub(super) dynamic_shared: u64,
}

/// Everything that was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List {
    /// The compiler's name and version, and LLVM's.
    pub(super) compiler: String,
    pub(super) compiled: Vec<Compiled>,
    /// What a target can't do, each as a sentence.
    pub(super) refused: Vec<String>,
}

/// Compiles the kernels of the examples and those of the list for every GPU target, and the benchmark's for those of its kind.
pub(super) fn compile() -> Result<List, String> {
    // As the tests build it, so that nothing is built twice.
    let build = ["build", "--workspace", "--features", FEATURES, "--example", "budgets"];
    run("building the compiler", &mut cargo(&build))?;
    let folder = target().join("budgets");
    let mut command = Command::new(target().join("debug").join("examples").join("budgets"));
    command.current_dir(root()).arg(&folder).args(sources()?).args(benchmark()?);
    let text = run("kernels of the budgets for every GPU", &mut command)?;
    read(&text, &folder)
}

/// The sources of the examples, by their names in the workspace.
fn sources() -> Result<Vec<PathBuf>, String> {
    let folders = EXAMPLES.map(|example| Path::new("examples").join(example).join("src"));
    let files = folders.iter().map(|folder| sources_in(folder));
    let mut files = files.collect::<Result<Vec<_>, _>>()?.concat();
    files.sort();
    Ok(files)
}

/// The targets that the benchmark's kernels are compiled for: that of its GPU, and of the one after it.
const BENCHMARKED: [&str; 2] = ["sm_90a", "sm_100a"];

/// The kernels of the benchmark, each with the targets that it is for.
fn benchmark() -> Result<Vec<String>, String> {
    let files = benchmark_sources()?;
    let on = |target: &'static str| files.iter().map(move |file| format!("{}@{target}", file.display()));
    Ok(BENCHMARKED.into_iter().flat_map(on).collect())
}

/// The files with the benchmark's kernels.
pub(crate) fn benchmark_sources() -> Result<Vec<PathBuf>, String> {
    sources_in(&Path::new("examples").join(BENCHMARK).join("src").join("kernels"))
}

/// All files with kernels, of examples and of the benchmark.
pub(crate) fn all_sources() -> Result<Vec<PathBuf>, String> {
    Ok([sources()?, benchmark_sources()?].concat())
}

/// The Rust files of a folder of the workspace.
fn sources_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries =
        std::fs::read_dir(root().join(folder)).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = entries.filter_map(|entry| Some(folder.join(entry.ok()?.file_name())));
    let mut files: Vec<PathBuf> =
        names.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect();
    files.sort();
    Ok(files)
}

/// Reads the list.
fn read(text: &str, folder: &Path) -> Result<List, String> {
    let mut lines = text.lines();
    let compiler = lines.next().ok_or("the list of compiled kernels is empty")?.to_owned();
    let mut list = List { compiler, compiled: Vec::new(), refused: Vec::new() };
    let mut places = HashSet::new();
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        let wrong = || format!("this line isn't one of a list of compiled kernels: {line}");
        match fields.as_slice() {
            [instance, target, "refused", reason] => {
                list.refused.push(format!("`{instance}` on {target}: {reason}"));
            }
            [instance, target, file, threads, shared] => list.compiled.push(Compiled {
                instance: (*instance).to_owned(),
                target: (*target).to_owned(),
                file: folder.join(file),
                threads: threads.parse().map_err(|_| wrong())?,
                dynamic_shared: shared.parse().map_err(|_| wrong())?,
            }),
            _ => return Err(wrong()),
        }
        if !places.insert((fields[0], fields[1])) {
            return Err(format!("two kernels are called {} on {}; rename one", fields[0], fields[1]));
        }
    }
    Ok(list)
}

/// Runs a tool on a file; gives what it prints.
///
/// # Errors
/// What it prints, where it fails.
pub(super) fn tool(command: &mut Command) -> Result<String, String> {
    let (text, succeeded) = output(command)?;
    if succeeded { Ok(text) } else { Err(format!("{command:?} failed:\n{text}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_compiled_kernels_is_read() {
        let text = "tile-codegen 0.1.0 LLVM 22.1.8\nadd(B=4)\tsm_80\t0.ptx\t256\t1024\nadd(B=4)\tgfx942\trefused\ttoo large\n";
        let list = read(text, Path::new("out")).unwrap();
        assert_eq!(list.compiler, "tile-codegen 0.1.0 LLVM 22.1.8");
        let expected = Compiled {
            instance: "add(B=4)".to_owned(),
            target: "sm_80".to_owned(),
            file: PathBuf::from("out/0.ptx"),
            threads: 256,
            dynamic_shared: 1024,
        };
        assert_eq!(list.compiled, [expected]);
        assert_eq!(list.refused, ["`add(B=4)` on gfx942: too large"]);
        assert!(read("version\nadd(B=4)\tsm_80", Path::new("")).is_err());
        let error = read(&format!("{text}add(B=4)\tsm_80\t1.ptx\t1\t1\n"), Path::new("")).unwrap_err();
        assert_eq!(error, "two kernels are called add(B=4) on sm_80; rename one");
    }
}
