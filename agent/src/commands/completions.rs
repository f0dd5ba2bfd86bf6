//! `numawatch completions`: a shell's completion script on stdout.

use crate::cli::Cli;
use anyhow::Result;
use clap::CommandFactory;
use clap_complete::{Shell, generate};
use std::io::Write;
use std::process::ExitCode;

pub(super) fn run(shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "numawatch", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
