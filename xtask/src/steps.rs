//! Runs commands as named steps: a spinner with the elapsed time on a terminal, plain lines elsewhere; the
//! output is kept and shown where the step fails. Steps may run side by side.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Lines of output that a failed step shows.
const SHOWN_LINES: usize = 80;

/// The workspace's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Where cargo puts what it builds. Its commands run in the workspace's root, which a relative folder is one of.
pub(crate) fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from))
}

/// A cargo command in the workspace's root, which builds for this machine into [`target`], whatever the environment says: what
/// it has built is run from there. After [`lint_what_is_built`], with Clippy for the compiler.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Not in the environment: the tests' own cargo commands compile wrong kernels, whose messages are rustc's.
    if let Some(clippy) = LINTS.get() {
        command.arg("--config").arg(clippy).env("CLIPPY_ARGS", WARNINGS_ARE_ERRORS);
    }
    command.args(arguments).current_dir(root());
    command.env("CARGO_TARGET_DIR", target()).env_remove("CARGO_BUILD_TARGET");
    command
}

/// The setting by which macros and build scripts aren't optimized: for a build of its own that has few of them, which run once,
/// that would take longer than they do.
pub(crate) const MACROS_AS_THEY_ARE: (&str, &str) = ("CARGO_PROFILE_DEV_BUILD_OVERRIDE_OPT_LEVEL", "0");

/// The setting by which cargo compiles the workspace with Clippy.
static LINTS: OnceLock<String> = OnceLock::new();

/// `-D warnings`, as `cargo clippy` hands it on.
const WARNINGS_ARE_ERRORS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// From here on cargo compiles the workspace with Clippy's driver, which is rustc with more lints, each an error: what is built
/// is linted. `cargo clippy` would build macros, build scripts and what these are made of once more.
pub(crate) fn lint_what_is_built() -> Result<(), String> {
    let (sysroot, found) = output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(root()))?;
    let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
    if !found || !driver.exists() {
        return Err(format!("there is no {}; `rustup component add clippy` installs it", driver.display()));
    }
    LINTS.get_or_init(|| format!("build.rustc-workspace-wrapper={driver:?}"));
    Ok(())
}

/// The spinners of the steps that run, each on a line of its own.
static SPINNERS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Shows that something takes its time.
pub(crate) struct Progress {
    name: String,
    bar: Option<ProgressBar>,
    start: Instant,
}

impl Progress {
    pub(crate) fn start(name: &str) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
            let bar = SPINNERS.add(
                ProgressBar::new_spinner()
                    .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner())),
            );
            bar.set_message(name.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        if bar.is_none() {
            println!("… {name}");
        }
        Progress { name: name.to_owned(), bar, start: Instant::now() }
    }

    pub(crate) fn finish(self, succeeded: bool) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let mark = if succeeded { "✓" } else { "✗" };
        SPINNERS.suspend(|| println!("{mark} {} ({:.1} s)", self.name, self.start.elapsed().as_secs_f64()));
    }
}

/// Runs a command as a step and gives its output, standard output and error together. Beside steps of which one has failed no
/// other begins.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<String, String> {
    if HAS_FAILED.load(Ordering::Relaxed) {
        return Err(format!("{name} wasn't begun"));
    }
    let progress = Progress::start(name);
    let result = output(command);
    progress.finish(matches!(&result, Ok((_, true))));
    let (text, succeeded) = result.map_err(|error| format!("{name}: {error}"))?;
    if succeeded {
        return Ok(text);
    }
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
    Err(format!("{tail}\n\n{name} failed: {command:?}"))
}

/// Prints the closing lines of test runners.
pub(crate) fn show_closing_lines(output: &str) {
    output.lines().filter(|line| line.starts_with("test result:")).for_each(|line| println!("    {line}"));
}

/// Whether one of the steps that run beside others has failed.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Runs steps beside others, and waits for both.
pub(crate) fn beside(
    others: impl FnOnce() -> Result<(), String> + Send,
    these: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    std::thread::scope(|scope| {
        let others = scope.spawn(others);
        let these = these().inspect_err(|_| HAS_FAILED.store(true, Ordering::Relaxed));
        let others = others.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (these, others) {
            (Err(first), Err(second)) => Err(format!("{first}\n\n{second}")),
            (these, others) => these.and(others),
        }
    })
}

/// What couldn't be had in this run.
static MISSING: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What a check needs besides the project; `None`, after saying why, where it can't be had.
pub(crate) fn if_had<T>(name: &str, had: Result<T, String>) -> Option<T> {
    had.inspect_err(|reason| {
        let last = reason.trim_end().lines().last().unwrap_or("");
        println!("{name} can't be had, so what it would check is left out: {last}");
        MISSING.lock().unwrap_or_else(PoisonError::into_inner).push(name.to_owned());
    })
    .ok()
}

/// The names of what couldn't be had.
pub(crate) fn missing() -> Vec<String> {
    MISSING.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Runs a command and gives its output and whether it succeeded.
pub(crate) fn output(command: &mut Command) -> Result<(String, bool), String> {
    let failed = |error: std::io::Error| format!("{:?} can't be run: {error}", command.get_program());
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    let second = writer.try_clone().map_err(failed)?;
    let program = command.get_program().to_owned();
    let spawned = command.stdin(Stdio::null()).stdout(writer).stderr(second).spawn();
    // The command keeps the writing ends until it is told otherwise, and the reader would wait for them.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = spawned.map_err(|error| format!("{program:?} can't be run: {error}"))?;
    let mut text = String::new();
    for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
        text += &String::from_utf8_lossy(&line);
        text.push('\n');
    }
    let status = child.wait().map_err(|error| format!("{program:?}: {error}"))?;
    Ok((text, status.success()))
}

/// Whether a program can be started.
pub(crate) fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").stdin(Stdio::null()).output().is_ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    /// Asserts that a module of a folder, in a file of its own or in this one of its folder, has a test that is called so, or
    /// tests whose names begin so: a list that names none would leave something out, or in, without a word.
    pub(crate) fn assert_is_a_test(folder: &Path, test: &str, inner: &str) {
        let (module, name) = test.split_once("::").expect("a module and a name");
        let name = name.strip_prefix("tests::").unwrap_or(name);
        let files = [folder.join(format!("{module}.rs")), folder.join(module).join(inner)];
        let texts: Vec<String> = files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect();
        let is_there = |text: &String| text.contains(&format!("fn {name}"));
        assert!(texts.iter().any(is_there), "{test} is in none of {files:?}");
    }
}
