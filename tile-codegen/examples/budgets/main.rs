//! Writes the GPU code of kernels to a folder: `budgets FOLDER FILE.rs…` compiles every instance that the
//! `#[tile_kernel]` functions of the files name, for every GPU target, as `compile` does for everyone. Of `FILE.rs@sm_90a`
//! it compiles for that target alone, as the code that launches on aligned rows take, and that whose blocks are pairs.
//! Code for AMD's GPUs is that of launches whose masked tiles reach over less than 2 GiB. `cargo xtask budgets` reads
//! what machine code came of it.
//!
//! The output names the compiler, then has one line per instance and target, its fields separated by tabs: the
//! instance, the target, and either the file's name, threads per block and bytes of shared memory that a launch
//! gives, or `refused` and the reason.

mod aligned;
mod instances;

use instances::label;
use std::error::Error;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tile_codegen::{Options, compile, compiler_version};
use tile_ir::target::{Family, TARGETS};
use tile_ir::{Instance, TargetDesc, Variant};

/// One instance for one target.
struct Work {
    label: String,
    instance: Instance,
    target: &'static TargetDesc,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: budgets FOLDER FILE.rs… FILE.rs@sm_90a…")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let work = work(arguments)?;
    println!("{}", compiler_version());
    for line in compile_all(&work, folder) {
        println!("{}", line?);
    }
    Ok(())
}

/// What the files ask for: first what is for every GPU.
fn work(files: impl Iterator<Item = String>) -> Result<Vec<Work>, Box<dyn Error>> {
    let (for_one, for_all): (Vec<String>, Vec<String>) = files.partition(|file| file.contains('@'));
    let gpus = || TARGETS.iter().filter(|target| target.family != Family::Cpu);
    let mut work = Vec::new();
    for instance in instances::all(for_all)? {
        let near = Variant::Near.of(&instance).unwrap_or_else(|| instance.clone());
        let taken = |target: &TargetDesc| if target.family == Family::Amdgpu { &near } else { &instance };
        let one = |target| Work { label: label(&instance), instance: taken(target).clone(), target };
        work.extend(gpus().map(one));
    }
    for argument in for_one {
        let (file, target) = argument.split_once('@').expect("the argument has an `@`");
        let (source, target) = (std::fs::read_to_string(file)?, TargetDesc::named(target)?);
        for instance in instances::instances_of(&source, file)? {
            let taken = aligned::on_aligned_rows(&instance);
            work.extend(taken.map(|(variant, taken)| Work {
                label: format!("{} {variant}", label(&instance)),
                instance: taken,
                target,
            }));
        }
    }
    Ok(work)
}

/// What the program says of every instance and target, in order; compiled by as many threads as there are processors.
fn compile_all(work: &[Work], folder: &Path) -> Vec<Result<String, String>> {
    let (next, lines) = (AtomicUsize::new(0), Mutex::new(vec![Ok(String::new()); work.len()]));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((i, work)) = next_of(work, &next) {
                    let line = compile_one(work, folder, i);
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

fn compile_one(work: &Work, folder: &Path, number: usize) -> Result<String, String> {
    let start = format!("{}\t{}", work.label, work.target);
    let artifact = match compile(&work.instance, work.target, &Options::default()) {
        Ok(artifact) => artifact,
        Err(error) => return Ok(format!("{start}\trefused\t{error}")),
    };
    let file = format!("{number}.{}", artifact.code.extension());
    let path = folder.join(&file);
    std::fs::write(&path, artifact.code.bytes()).map_err(|error| format!("{}: {error}", path.display()))?;
    let launch = artifact.launch;
    Ok(format!("{start}\t{file}\t{}\t{}", launch.threads, launch.shared_bytes))
}
