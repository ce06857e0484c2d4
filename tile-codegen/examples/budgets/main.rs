//! Writes the GPU code of kernels to a folder: `budgets FOLDER FILE.rs…` compiles every instance that the
//! `#[tile_kernel]` functions of the files name, for every GPU target, as `compile` does for everyone. `cargo xtask
//! budgets` reads what machine code came of it.
//!
//! The output names the compiler, then has one line per instance and target, its fields separated by tabs: the
//! instance, the target, and either the file's name, threads per block and bytes of shared memory that a launch
//! gives, or `refused` and the reason.

mod instances;

use instances::label;
use std::error::Error;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tile_codegen::{Options, compile, compiler_version};
use tile_ir::target::{Family, TARGETS};
use tile_ir::{Instance, TargetDesc};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: budgets FOLDER FILE.rs…")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let instances = instances::all(arguments)?;
    println!("{}", compiler_version());
    for line in compile_all(&instances, folder) {
        println!("{}", line?);
    }
    Ok(())
}

/// What the program says of every instance and target, in order; compiled by as many threads as there are processors.
fn compile_all(instances: &[Instance], folder: &Path) -> Vec<Result<String, String>> {
    let gpus = || TARGETS.iter().filter(|target| target.family != Family::Cpu);
    let work: Vec<(&Instance, &TargetDesc)> =
        instances.iter().flat_map(|instance| gpus().map(move |target| (instance, target))).collect();
    let (next, lines) = (AtomicUsize::new(0), Mutex::new(vec![Ok(String::new()); work.len()]));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((i, &(instance, target))) = next_of(&work, &next) {
                    let line = compile_one(instance, target, folder, i);
                    lines.lock().expect("no thread panics with the lock")[i] = line;
                }
            });
        }
    });
    lines.into_inner().expect("no thread panics with the lock")
}

fn next_of<'w, T>(work: &'w [T], next: &AtomicUsize) -> Option<(usize, &'w T)> {
    let i = next.fetch_add(1, Ordering::Relaxed);
    work.get(i).map(|item| (i, item))
}

fn compile_one(
    instance: &Instance,
    target: &TargetDesc,
    folder: &Path,
    number: usize,
) -> Result<String, String> {
    let start = format!("{}\t{target}", label(instance));
    let artifact = match compile(instance, target, &Options::default()) {
        Ok(artifact) => artifact,
        Err(error) => return Ok(format!("{start}\trefused\t{error}")),
    };
    let file = format!("{number}.{}", artifact.code.extension());
    let path = folder.join(&file);
    std::fs::write(&path, artifact.code.bytes()).map_err(|error| format!("{}: {error}", path.display()))?;
    let launch = artifact.launch;
    Ok(format!("{start}\t{file}\t{}\t{}", launch.threads, launch.shared_bytes))
}
