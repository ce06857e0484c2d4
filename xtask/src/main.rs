//! The project's commands, `cargo xtask …`; the table of them is [`commands`].
//!
//! Needs nothing but Rust to build; installs what the rest needs.

mod aarch64;
mod bench;
mod budgets;
mod commands;
mod demo;
mod device_code;
mod devices;
mod docs;
mod fuzz;
mod gallery;
mod generated;
mod miri;
mod numpy;
mod ops_page;
mod packages;
mod passes;
mod setup;
mod sim;
mod steps;
mod systems;
mod test;
mod tools;
mod uses;
mod windows;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        [] | ["help" | "-h" | "--help"] => {
            print!("{}", commands::help());
            Ok(())
        }
        words => commands::run(words),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
