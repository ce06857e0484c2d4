//! The table of commands: the words of each, what it takes, what it does, and the function that does it. What
//! `cargo xtask` prints as help is this table.

use crate::generated::Generated;
use crate::{
    aarch64, bench, budgets, demo, devices, docs, fuzz, gallery, miri, packages, passes, setup, sim, test,
    windows,
};

/// A command.
pub(crate) struct Command {
    /// The words that choose it.
    name: &'static str,
    /// What may stand behind them.
    takes: &'static str,
    /// What it does, in lines.
    does: &'static str,
    run: Run,
}

enum Run {
    /// There are no arguments.
    Alone(fn() -> Result<(), String>),
    /// The function reads its arguments.
    With(fn(&[&str]) -> Result<(), String>),
    /// The files are written, or with `--check` compared.
    Generate(fn() -> Result<Generated, String>),
}

const COMMANDS: &[Command] = &[
    Command {
        name: "demo",
        takes: "",
        does: "classify handwritten digits with two kernels, on the best device",
        run: Run::Alone(demo::run),
    },
    Command {
        name: "test",
        takes: "",
        does: "everything that CI checks: format, lints, tests, examples, device code",
        run: Run::Alone(test::run),
    },
    Command {
        name: "aarch64",
        takes: "",
        does: "the tests of native code once more, with code for AArch64 that QEMU runs",
        run: Run::Alone(aarch64::run_all),
    },
    Command {
        name: "bench choices",
        takes: "",
        does: "what the cost model chooses on this machine's processor, beside the times of every instance",
        run: Run::Alone(bench::choices::run),
    },
    Command {
        name: "bench compile",
        takes: "",
        does: "how long check, expansion and code generation take",
        run: Run::Alone(bench::compile::run),
    },
    Command {
        name: "bench cpu",
        takes: "[OPTION…]",
        does: "the CPU target beside OpenBLAS, faer, gemm, matrixmultiply, C loops and PyTorch, those that are\n\
               there, and beside what the machine does at most; --help has the options",
        run: Run::With(bench::cpu::run),
    },
    Command {
        name: "bench h200",
        takes: "",
        does: "build what a machine with an H200 needs into target/h200, and run it where a GPU is",
        run: Run::Alone(bench::h200::run),
    },
    Command {
        name: "bench launch",
        takes: "",
        does: "what a launch costs the thread that makes it",
        run: Run::Alone(bench::launch::run),
    },
    Command {
        name: "bench layout",
        takes: "",
        does: "how long single operations of the layout library take",
        run: Run::Alone(bench::layout::run),
    },
    Command {
        name: "budgets",
        takes: "[--check]",
        does: "write docs/codegen-budgets.md, what machine code GPU kernels become; --check: fail where it differs",
        run: Run::With(budgets::run),
    },
    Command {
        name: "devices",
        takes: "",
        does: "every device of this machine with what it is: units, clocks, memory, caches",
        run: Run::Alone(devices::print),
    },
    Command {
        name: "docs",
        takes: "[--check]",
        does: "write docs/ir.md and docs/ops.md from the op tables; --check: only tell whether they are current",
        run: Run::Generate(docs::generated),
    },
    Command {
        name: "fuzz rust",
        takes: "[KERNELS [SEED]]",
        does: "random Rust of kernels, run as Rust on the reference device, and natively as it was lowered",
        run: Run::With(fuzz::rust::run),
    },
    Command {
        name: "fuzz",
        takes: "[MINUTES]",
        does: "random kernels on every executor against the evaluator, as long as said, or for 10 minutes, after what\n\
               building takes",
        run: Run::With(fuzz::run),
    },
    Command {
        name: "gallery",
        takes: "[--check]",
        does: "draw the pictures of docs/gallery.md; --check: only tell whether they are current",
        run: Run::Generate(gallery::generated),
    },
    Command {
        name: "miri",
        takes: "",
        does: "the runtime's unsafe parts under Miri, with a nightly toolchain",
        run: Run::Alone(miri::all),
    },
    Command {
        name: "packages",
        takes: "",
        does: "pack what is published, and build and test the README's crate with nothing but that, by the oldest Rust\n\
               that it names, where it is installed",
        run: Run::Alone(packages::check),
    },
    Command {
        name: "passes",
        takes: "FILE.tir [NAME=VALUE…]",
        does: "a kernel's IR after every pass, and what is known of its index values",
        run: Run::With(passes::run),
    },
    Command {
        name: "setup",
        takes: "",
        does: "only install what is missing (LLVM 22, QEMU, ptxas, nvdisasm)",
        run: Run::Alone(setup::all),
    },
    Command {
        name: "sim",
        takes: "KERNEL [--target sm_90a] [--size m=128,n=64] [--early]",
        does: "a kernel of the budgets' list, run thread by thread on the host as a GPU would, beside the evaluator:\n\
               errors, bank conflicts, sectors of global memory, instructions; --early: asynchronous copies do their\n\
               work at once",
        run: Run::With(sim::run),
    },
    Command {
        name: "windows",
        takes: "",
        does: "the examples and the kernels' tests as programs for Windows, which Wine runs",
        run: Run::Alone(windows::run_all),
    },
];

/// What every command does.
pub(crate) fn help() -> String {
    let commands: String = COMMANDS.iter().map(Command::help).collect();
    format!(
        "cargo xtask <command>\n\n{commands}\nEnvironment: TILE_DEVICE=cpu|reference|cuda:0 chooses the device of the demo.\n"
    )
}

/// Runs the command that these words say.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let arguments = |command: &Command| words.strip_prefix(&command.words()[..]).map(<[&str]>::to_vec);
    let chosen = COMMANDS.iter().find_map(|command| Some((command, arguments(command)?)));
    match chosen {
        Some((command, arguments)) => command.run(&arguments),
        None => Err(format!("`{}` isn't a command\n\n{}", words.join(" "), help())),
    }
}

impl Command {
    fn words(&self) -> Vec<&'static str> {
        self.name.split(' ').collect()
    }

    fn run(&self, arguments: &[&str]) -> Result<(), String> {
        match (&self.run, arguments) {
            (Run::With(run), _) => run(arguments),
            (Run::Alone(run), []) => run(),
            (Run::Generate(files), []) => files()?.write(),
            (Run::Generate(files), ["--check"]) => files()?.check(),
            _ => Err(format!("`{}` takes no `{}`\n\n{}", self.name, arguments.join(" "), self.help())),
        }
    }

    /// Its lines of [`help`]: where the head leaves no room, what it does stands below.
    fn help(&self) -> String {
        const WIDTH: usize = 20;
        let head = [self.name, self.takes].join(" ");
        let indent = format!("\n{:WIDTH$}  ", "");
        let does = self.does.replace('\n', &indent);
        match head.trim_end() {
            long if long.len() > WIDTH - 2 => format!("  {long}{indent}{does}\n"),
            short => format!("  {short:<width$}  {does}\n", width = WIDTH - 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_by_all_of_its_words() {
        for command in COMMANDS {
            let first = COMMANDS.iter().find(|other| command.words().starts_with(&other.words()));
            assert_eq!(first.map(|first| first.name), Some(command.name), "hidden by a shorter one");
        }
        let unknown = run(&["bench", "tea"]).expect_err("no such command");
        assert!(unknown.starts_with("`bench tea` isn't a command\n\ncargo xtask <command>"), "{unknown}");
        let many = run(&["docs", "--write"]).expect_err("no such option");
        assert!(many.starts_with("`docs` takes no `--write`\n\n  docs [--check]"), "{many}");
    }
}
