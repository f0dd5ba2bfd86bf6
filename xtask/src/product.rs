//! `run` and `dist`: numawatch itself, with the kernel side inside.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::{command, ebpf, say, workspace};

/// Builds both sides and runs numawatch, through sudo where this user is not root.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask run -- tui
  cargo xtask run --release -- snapshot --json --for 5s --all")]
pub(crate) struct RunArgs {
    /// Build with optimizations
    #[arg(long)]
    release: bool,
    /// numawatch's arguments
    #[arg(last = true)]
    args: Vec<OsString>,
}

/// Makes the release binary for people who have no LLVM, and prints where it is and its size.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  cargo xtask dist && sudo install target/dist/numawatch /usr/local/bin/"
)]
pub(crate) struct DistArgs {}

/// Does not come back: this process becomes numawatch, so that signals and status are its own.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    ebpf::build()?;
    let binary = build(args.release)?;
    let mut numawatch = if command::is_root() {
        Command::new(&binary)
    } else {
        let Some(sudo) = command::find("sudo") else {
            bail!("numawatch needs root and there is no sudo: become root, then type this again");
        };
        let mut sudo = Command::new(sudo);
        // OTEL_* and NUMAWATCH_* are settings.
        sudo.arg("--preserve-env").arg(&binary);
        sudo
    };
    let error = numawatch.args(&args.args).exec();
    Err(error).with_context(|| format!("cannot start {}", binary.display()))
}

/// The host's binary, up to date but for the kernel side.
pub(crate) fn build(release: bool) -> Result<PathBuf> {
    let profile = if release { "release" } else { "debug" };
    say::step(&format!("Building numawatch ({profile})"), || {
        let mut cargo = command::cargo();
        cargo.args([
            "build",
            "--quiet",
            "--package",
            "numawatch",
            "--bin",
            "numawatch",
        ]);
        if release {
            cargo.arg("--release");
        }
        command::run(&mut cargo)
    })?;
    Ok(workspace::target().join(profile).join("numawatch"))
}

/// Builds, and puts the binary where people look for it.
pub(crate) fn dist(_: &DistArgs) -> Result<ExitCode> {
    ebpf::build()?;
    // glibc stays dynamic: a static binary cannot load NVML.
    let built = build(true)?;
    let dir = workspace::target().join("dist");
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let binary = dir.join("numawatch");
    fs::copy(&built, &binary).with_context(|| format!("cannot write {}", binary.display()))?;
    if let Some(strip) = command::find("strip") {
        // Names stay for backtraces; the standard library's line tables go.
        command::output(Command::new(strip).arg("--strip-debug").arg(&binary))?;
    }
    let tenths = fs::metadata(&binary)?.len() * 10 / (1024 * 1024);
    println!("{} ({}.{} MiB)", binary.display(), tenths / 10, tenths % 10);
    Ok(ExitCode::SUCCESS)
}
