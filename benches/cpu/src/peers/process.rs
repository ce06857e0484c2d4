//! A peer in a process of its own, because it is of another language or reads its number of threads once in a process.
//!
//! It gets lines and answers each with one: a task (`matmul THREADS M N K`) with `ready`, and `run RUNS SECONDS CLOCK` with
//! the median seconds of as many runs by that clock. It keeps its own memory and takes its own times.

use crate::Result;
use crate::effort::{Clock, Effort};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A process that was started.
pub(crate) struct Process {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// What it was told last.
    task: String,
}

impl Process {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> Result<Process> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a process without pipes".into());
        };
        Ok(Process { child, requests, answers: BufReader::new(answers), task: String::new() })
    }

    /// The answer to a line.
    pub(crate) fn ask(&mut self, request: &str) -> Result<String> {
        writeln!(self.requests, "{request}")?;
        self.requests.flush()?;
        let mut answer = String::new();
        if self.answers.read_line(&mut answer)? == 0 {
            return Err(format!("it ended when it was told `{request}`").into());
        }
        Ok(answer.trim().to_owned())
    }

    /// The median seconds of a run of a task.
    pub(crate) fn sample(&mut self, task: &str, clock: Clock, effort: &Effort) -> Result<f64> {
        if self.task != task {
            let answer = self.ask(task)?;
            if answer != "ready" {
                return Err(format!("it answered `{answer}` to `{task}`").into());
            }
            self.task = task.to_owned();
        }
        let request = format!("run {} {} {}", effort.runs, effort.time.as_secs_f64(), clock.name());
        let answer = self.ask(&request)?;
        answer.parse().map_err(|_| format!("it answered `{answer}` to `{request}`").into())
    }
}

impl Drop for Process {
    /// It ends when its input does; killed, so that nothing waits for it.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The words of `run RUNS SECONDS CLOCK`.
pub(crate) fn effort_of(words: &[&str]) -> Option<(Effort, Clock)> {
    let ["run", runs, seconds, clock] = words else { return None };
    let time = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
    Some((Effort { rounds: 1, runs: runs.parse().ok()?, time }, Clock::named(clock)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let effort = Effort { rounds: 1, runs: 3, time: Duration::from_millis(60) };
        assert_eq!(effort_of(&["run", "3", "0.06", "thread"]), Some((effort, Clock::Thread)));
        assert_eq!(effort_of(&["run", "3", "-1", "wall"]), None);
        assert_eq!(effort_of(&["run", "3", "1", "sun"]), None);
        assert_eq!(effort_of(&["matmul", "3", "1", "wall"]), None);
    }

    #[test]
    fn a_process_that_ends_is_an_error() {
        let mut process =
            Process::start(Command::new("sh").args(["-c", "read line; echo \"$line back\""])).unwrap();
        assert_eq!(process.ask("there and").unwrap(), "there and back");
        assert!(process.ask("again").is_err());
        assert!(Process::start(&mut Command::new("no-such-program")).is_err());
    }
}
