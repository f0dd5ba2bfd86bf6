//! numawatch: which inference process pays for remote memory, how much, and why.

// These panic where nobody takes what they print.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod commands;
mod doctor;
mod engines;
mod export;
mod host;
mod launch;
mod logging;
mod probes;
mod sampler;
mod selftest;
mod shell;
mod topo;
mod wrap;

use std::process::ExitCode;

/// Wrong use, or it can't start.
const CANNOT: u8 = 2;

fn main() -> ExitCode {
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match commands::run(cli) {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            logging::say(&one_line(&error));
            ExitCode::from(CANNOT)
        }
    }
}

/// Help and the version as they are; an error in one line.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A closed pipe on the way out is nobody's fault.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    logging::say(&cli::one_line(error));
    ExitCode::from(CANNOT)
}

/// An error and what caused it, without saying anything twice: some errors tell their cause themselves.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.contains(&cause) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&cause);
    }
    line
}

/// `numawatch snapshot | head -1` is not an error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
