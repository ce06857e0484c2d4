//! Programs that share the disk cache. A program is this test binary again, with one test of it, which launches kernels
//! and compares what they give; `TILE_LOG` says where it had their code from.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![cfg(unix)]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Barrier;
use tile::ir::target::Architecture;
use tile::prelude::*;

#[tile_kernel]
fn shifted<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let tile = x.load_masked(y.index());
    y.store_masked(tile + B as f32);
}

#[tile_kernel]
fn scaled<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let tile = x.load_masked(y.index());
    y.store_masked(tile * B as f32);
}

/// A kernel, launched for a vector of ones.
type Run = fn(&Tensor<f32>, &mut Tensor<f32>) -> tile::Result<()>;

/// What is launched, and what a one becomes.
const RUNS: [(Run, f32); 6] = [
    (|x, y| shifted::<4>(x, y).launch(), 5.0),
    (|x, y| shifted::<8>(x, y).launch(), 9.0),
    (|x, y| shifted::<16>(x, y).launch(), 17.0),
    (|x, y| scaled::<4>(x, y).launch(), 4.0),
    (|x, y| scaled::<8>(x, y).launch(), 8.0),
    (|x, y| scaled::<16>(x, y).launch(), 16.0),
];

/// Threads launch different and equal kernels at once that nobody has launched before.
#[test]
fn a_program_launches_from_many_threads() {
    const THREADS: usize = 32;
    let begin = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let begin = &begin;
            scope.spawn(move || {
                let device = Device::cpu();
                let x = Tensor::<f32>::ones(&device, [1000]).unwrap();
                let mut y = Tensor::<f32>::zeros(&device, [1000]).unwrap();
                begin.wait();
                for (run, expected) in RUNS.iter().cycle().skip(thread % RUNS.len()).take(3 * RUNS.len()) {
                    run(&x, &mut y).unwrap();
                    assert_eq!(y.to_vec().unwrap(), [*expected; 1000]);
                }
            });
        }
    });
}

/// What a program has done.
struct Ran {
    status: ExitStatus,
    /// What it wrote to standard error, where the lines of `TILE_LOG` are.
    log: String,
}

impl Ran {
    /// How many instances it had from somewhere.
    fn count(&self, origin: &str) -> usize {
        self.log.matches(&format!("origin=\"{origin}\"")).count()
    }

    fn succeeded(self) -> Ran {
        assert!(self.status.success(), "{}", self.log);
        self
    }
}

/// The program, with a folder for the disk cache; under a limit on the size of files that it writes, in blocks of the
/// shell's, if one is given.
fn program(folder: &Path, file_blocks: Option<usize>) -> Command {
    let test = ["--exact", "a_program_launches_from_many_threads", "--nocapture"];
    let this = std::env::current_exe().unwrap();
    let mut command = match file_blocks {
        None => Command::new(this),
        Some(blocks) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(format!("ulimit -c 0; ulimit -f {blocks}; exec \"$0\" \"$@\"")).arg(this);
            shell
        }
    };
    command.args(test).env("TILE_CACHE", folder).env("TILE_LOG", "info").env_remove("TILE_CPU_LEVEL");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Runs programs at once.
fn run<const N: usize>(programs: [Command; N]) -> [Ran; N] {
    let children = programs.map(|mut program| program.spawn().unwrap());
    children.map(|child| {
        let output = child.wait_with_output().unwrap();
        Ran { status: output.status, log: String::from_utf8_lossy(&output.stderr).into_owned() }
    })
}

fn run_one(folder: &Path) -> Ran {
    let [ran] = run([program(folder, None)]);
    ran.succeeded()
}

fn empty_folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tile-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// The files of a folder whose names end with something, sorted.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries.filter(|path| path.to_str().unwrap().ends_with(end)).collect();
    found.sort();
    found
}

#[test]
fn every_instance_is_compiled_once_and_then_found() {
    let folder = empty_folder("once");
    let first = run_one(&folder);
    assert_eq!((first.count("compiled"), first.count("disk")), (RUNS.len(), 0), "{}", first.log);
    let line = first.log.lines().find(|line| line.contains("kernel=scaled instance=B = 16")).unwrap();
    let begin = "tile info code{kernel=scaled instance=B = 16 target=\"cpu\" variant=\"general\"}: origin=\"compiled\" ";
    assert!(line.starts_with(begin), "{line}");
    let second = run_one(&folder);
    assert_eq!((second.count("compiled"), second.count("disk")), (0, RUNS.len()), "{}", second.log);
    // Nobody else may put code there.
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let [off] = run([program(Path::new("off"), None)]);
    assert_eq!(off.succeeded().count("compiled"), RUNS.len());
    fs::remove_dir_all(&folder).unwrap();
}

/// Code of the least processor is another, and kept beside the machine's own.
#[test]
fn code_is_of_the_level_that_the_environment_says() {
    let folder = empty_folder("levels");
    let run_with = |level: &str| {
        let mut program = program(&folder, None);
        program.env("TILE_CPU_LEVEL", level);
        let [ran] = run([program]);
        let ran = ran.succeeded();
        let told =
            ran.log.lines().filter(|line| line.contains("TILE_CPU_LEVEL")).map(str::to_owned).collect();
        (ran.count("compiled"), ran.count("disk"), told)
    };
    let none = Vec::<String>::new();
    let least = Architecture::host().expect("a machine that CPU code is made for").least().name;
    assert_eq!(run_one(&folder).count("compiled"), RUNS.len());
    assert_eq!(run_with(least), (RUNS.len(), 0, none.clone()));
    assert_eq!(run_with(least), (0, RUNS.len(), none));
    let (compiled, found, told) = run_with("x86-64-v9");
    assert_eq!((compiled, found, told.len()), (0, RUNS.len(), 1), "{told:?}");
    let begin = "tile: TILE_CPU_LEVEL is `x86-64-v9`, which isn't a level of this machine (";
    let end = format!("{least}); it counts as not set");
    assert!(told[0].starts_with(begin) && told[0].ends_with(&end), "{told:?}");
    fs::remove_dir_all(&folder).unwrap();
}

/// A file larger than a process may write ends it in the middle (`setrlimit(2)`: SIGXFSZ).
#[test]
fn a_program_that_dies_while_it_writes_leaves_the_others_alone() {
    let folder = empty_folder("dies");
    for round in 0..3 {
        let [first, second, dies] =
            run([program(&folder, None), program(&folder, None), program(&folder, Some(1))]);
        let (first, second) = (first.succeeded(), second.succeeded());
        for ran in [&first, &second] {
            assert_eq!(ran.count("compiled") + ran.count("disk"), RUNS.len(), "{}", ran.log);
            assert!(!ran.log.contains("damaged"), "round {round}: {}", ran.log);
        }
        // It may have come so late that there was nothing left to write.
        if dies.status.success() {
            assert_eq!(dies.count("compiled"), 0, "{}", dies.log);
        } else {
            assert!(dies.status.signal().is_some(), "{}", dies.log);
        }
        assert_eq!(files(&folder, ".tile").len(), RUNS.len());
        assert_eq!(run_one(&folder).count("disk"), RUNS.len());
        files(&folder, ".tile").iter().for_each(|file| fs::remove_file(file).unwrap());
    }
    // Alone it has everything to write.
    let [dies] = run([program(&folder, Some(1))]);
    assert!(dies.status.signal().is_some(), "{}", dies.log);
    let halves = files(&folder, ".tmp");
    assert!(!halves.is_empty() && files(&folder, ".tile").is_empty());
    assert!(halves.iter().all(|half| fs::metadata(half).unwrap().len() <= 1024), "{halves:?}");
    assert_eq!(run_one(&folder).count("compiled"), RUNS.len());
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn damaged_and_foreign_files_are_compiled_anew() {
    let folder = empty_folder("damaged");
    run_one(&folder);
    let kept = files(&folder, ".tile");
    let [cut, flipped, emptied, text, other, whole] = &kept[..] else { panic!("six files: {kept:?}") };
    let bytes = |path: &PathBuf| fs::read(path).unwrap();
    fs::write(cut, &bytes(cut)[..bytes(cut).len() / 2]).unwrap();
    let mut changed = bytes(flipped);
    let place = changed.len() * 2 / 3;
    changed[place] ^= 4;
    fs::write(flipped, changed).unwrap();
    fs::write(emptied, []).unwrap();
    fs::write(text, "a text of someone else's, which is long enough to have a checksum").unwrap();
    // A file that is whole, but of another instance: that of a hash that is the same by chance.
    fs::write(other, bytes(whole)).unwrap();
    let notes = folder.join("notes.txt");
    fs::write(&notes, "mine").unwrap();

    let again = run_one(&folder);
    assert_eq!((again.count("compiled"), again.count("disk")), (5, 1), "{}", again.log);
    assert_eq!(again.log.matches("is damaged").count(), 4, "{}", again.log);
    assert_eq!(run_one(&folder).count("disk"), RUNS.len());
    assert_eq!(fs::read_to_string(&notes).unwrap(), "mine");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_folder_that_cannot_be_written_is_a_warning() {
    let folder = empty_folder("file");
    fs::write(&folder, "not a folder").unwrap();
    let ran = run_one(&folder);
    assert_eq!(ran.count("compiled"), RUNS.len());
    assert!(ran.log.contains("tile warn code{") && ran.log.contains("can't be written"), "{}", ran.log);
    fs::remove_file(&folder).unwrap();
}
