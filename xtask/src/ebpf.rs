//! `build-ebpf`: the kernel side, compiled to one object file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::{command, compiler, linker, programs, say, workspace};

const TARGET: &str = "bpfel-unknown-none";
const BINARY: &str = "numawatch-ebpf";
/// Empty programs, to measure the others against.
const EMPTY: &str = "numawatch-empty";

/// Builds the kernel side and prints where it is and which programs it has.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Builds, and prints what was built.
pub(crate) fn main(_: &Args) -> Result<ExitCode> {
    let object = build()?;
    let contents = programs::read(&object)?;
    println!("{}", object.display());
    println!("{} programs:", contents.programs.len());
    for program in &contents.programs {
        println!("  {program}");
    }
    println!("{} maps: {}", contents.maps.len(), contents.maps.join(" "));
    Ok(ExitCode::SUCCESS)
}

/// Brings the object file up to date, fetching compiler and linker where they are missing. Once in a
/// task, however many of its parts need it.
pub(crate) fn build() -> Result<PathBuf> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if let Some(object) = BUILT.get() {
        return Ok(object.clone());
    }
    let object = bring_up_to_date()?;
    Ok(BUILT.get_or_init(|| object).clone())
}

fn bring_up_to_date() -> Result<PathBuf> {
    let start = Instant::now();
    let compiler = compiler::provide()?;
    let linker = linker::provide(&compiler)?;
    let what = format!("Building the eBPF programs ({})", compiler.description);
    say::step(&what, || {
        let mut cargo = command::cargo();
        cargo.args([
            "build",
            "--quiet",
            "--release",
            "--package",
            "agent-ebpf",
            "--bin",
            BINARY,
            "--bin",
            EMPTY,
        ]);
        cargo.args(["--no-default-features", "--features", "kernel"]);
        cargo.args(["--target", TARGET, "-Z", "build-std=core"]);
        // Its own directory: flags and compiler differ, and nobody waits for the other's lock.
        cargo.arg("--target-dir").arg(target_dir());
        compiler.apply(&mut cargo)?;
        // Debug information becomes BTF: the kernel wants it for maps' and programs' types.
        cargo.env("RUSTFLAGS", "-C debuginfo=2 -C link-arg=--btf");
        cargo.env("PATH", command::path_with(&linker)?);
        command::run(&mut cargo)
    })?;
    let built = release().join(BINARY);
    let object = workspace::ebpf_object();
    if copy_if_changed(&built, &object)? {
        say::note(&format!(
            "{} is new ({})",
            object.display(),
            say::seconds(start.elapsed())
        ));
    }
    Ok(object)
}

/// The object of empty programs, which comes with the other.
pub(crate) fn build_empty() -> Result<PathBuf> {
    build()?;
    Ok(release().join(EMPTY))
}

fn release() -> PathBuf {
    target_dir().join(TARGET).join("release")
}

fn target_dir() -> PathBuf {
    workspace::target().join("ebpf")
}

/// Copies only when the bytes differ: a new time stamp alone would rebuild the agent.
fn copy_if_changed(from: &Path, to: &Path) -> Result<bool> {
    let new = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|old| old == new) {
        return Ok(false);
    }
    // In one go, for a build that may be reading it.
    let partial = to.with_extension("o.partial");
    fs::write(&partial, new).with_context(|| format!("cannot write {}", partial.display()))?;
    fs::rename(&partial, to).with_context(|| format!("cannot replace {}", to.display()))?;
    Ok(true)
}
