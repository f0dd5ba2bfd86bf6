//! `test`: everything that must hold before a change lands, told as numbered prose.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::{command, ebpf, product, python, receivers::RECEIVERS, say, vm, workspace};

/// One part of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// rustfmt
    Fmt,
    /// The kernel side builds
    Ebpf,
    /// clippy, warnings denied
    Clippy,
    /// Unit tests of all crates
    Unit,
    /// Black-box tests on this machine (tests/tests/*.rs but guest*.rs)
    Host,
    /// Black-box tests in the two-node guest (tests/tests/guest*.rs)
    Guest,
}

/// Formatting, clippy, unit tests, the eBPF build, black-box tests here and in the guest.
#[derive(clap::Args)]
#[command(after_long_help = "\
Installs what it needs (compiler sources, bpf-linker, QEMU, kernels), into the cache where it is not
root. A part that cannot run is skipped, loudly; with CI=true it is a failure.

The black-box tests find what they test by environment:
  NUMAWATCH_BIN         the host's binary
  NUMAWATCH_WORKLOAD    the workload for this machine
  NUMAWATCH_XTASK       this program: `$NUMAWATCH_XTASK vm --no-build -- COMMAND`
  NUMAWATCH_PROMETHEUS  a Prometheus 3.x, where one could be had
  NUMAWATCH_VMAGENT     Victoria Metrics' agent, where one could be had

Examples:
  cargo xtask test
  cargo xtask test --only clippy --only unit
  cargo xtask test --only guest -- first_touch
  NUMAWATCH_WRITE_DOCS=1 cargo xtask test --only guest -- matrix")]
pub(crate) struct Args {
    /// Only this part; may be given several times
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// Only tests whose name contains this, and other arguments for the test programs
    #[arg(last = true)]
    filter: Vec<String>,
}

/// What became of a part.
enum Outcome {
    Passed(Duration),
    Skipped(String),
}

/// Runs the parts in order; the first that fails ends it.
pub(crate) fn main(args: &Args) -> Result<ExitCode> {
    let start = Instant::now();
    let mut told = Vec::new();
    for part in Part::value_variants() {
        if !args.only.is_empty() && !args.only.contains(part) {
            continue;
        }
        let begun = Instant::now();
        let skipped = run(*part, &args.filter).with_context(|| format!("{part:?} failed"))?;
        told.push((
            part,
            skipped.map_or(Outcome::Passed(begun.elapsed()), Outcome::Skipped),
        ));
    }
    eprintln!("All in {}:", say::seconds(start.elapsed()));
    for (part, outcome) in &told {
        match outcome {
            Outcome::Passed(took) => eprintln!("  {part:?} passed in {}", say::seconds(*took)),
            Outcome::Skipped(why) => eprintln!("  {part:?} SKIPPED: {why}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs one part. Gives why it was skipped, if it was.
fn run(part: Part, filter: &[String]) -> Result<Option<String>> {
    match part {
        Part::Fmt => {
            say::step("Checking the formatting", || {
                cargo(&["fmt", "--all", "--check"])
            })?;
        }
        Part::Ebpf => drop(ebpf::build()?),
        Part::Clippy => {
            ebpf::build()?;
            say::step("Running clippy on everything", || {
                let all = ["clippy", "--quiet", "--workspace", "--all-targets", "--"];
                cargo(&[&all[..], &["-D", "warnings"]].concat())
            })?;
        }
        Part::Unit => {
            ebpf::build()?;
            say::step("Running the unit tests", || {
                let filter = filter.iter().map(String::as_str);
                let own = ["test", "--quiet", "--workspace", "--exclude", "tests", "--"];
                cargo(&own.into_iter().chain(filter.clone()).collect::<Vec<_>>())?;
                // The black-box tests' own helpers, without the black-box tests.
                let helpers = [
                    "test",
                    "--quiet",
                    "--package",
                    "tests",
                    "--lib",
                    "--bins",
                    "--",
                ];
                cargo(&helpers.into_iter().chain(filter).collect::<Vec<_>>())
            })?;
        }
        Part::Host => {
            if !command::is_root() {
                return unable("the tests on this machine load eBPF programs: run them as root");
            }
            let mut found = Vec::new();
            for receiver in &RECEIVERS {
                match receiver.provide() {
                    Ok(program) => found.push((receiver.variable, program)),
                    Err(error) => {
                        unable(&format!("the OTLP tests lack a receiver: {error:#}"))?;
                    }
                }
            }
            return black_box(part, &found, filter);
        }
        Part::Guest => {
            if let Err(error) = vm::prepare() {
                return unable(&format!("the guest cannot be had: {error:#}"));
            }
            return black_box(part, &[], filter);
        }
    }
    Ok(None)
}

/// What can't run is a failure in CI, where nobody reads a skip.
fn unable(why: &str) -> Result<Option<String>> {
    if env::var("CI").is_ok_and(|value| value == "true" || value == "1") {
        bail!("{why} (CI=true: no skips)");
    }
    eprintln!("*** SKIPPED: {why}");
    Ok(Some(why.to_owned()))
}

fn black_box(part: Part, found: &[(&str, PathBuf)], filter: &[String]) -> Result<Option<String>> {
    let programs = programs(part)?;
    if programs.is_empty() {
        return unable(&format!("tests/tests has no {part:?} tests"));
    }
    ebpf::build()?;
    if let Err(error) = python::provide() {
        unable(&format!(
            "the tests with llama.cpp lack a Python: {error:#}"
        ))?;
    }
    let binary = product::build(false)?;
    say::step("Building the tests and their workload", || {
        cargo(&[
            "build",
            "--quiet",
            "--package",
            "tests",
            "--bins",
            "--tests",
        ])
    })?;
    let place = if part == Part::Guest {
        "in the guest"
    } else {
        "on this machine"
    };
    say::step(&format!("Running the black-box tests {place}"), || {
        let mut cargo = command::cargo();
        cargo.args(["test", "--package", "tests"]);
        for program in &programs {
            cargo.args(["--test", program]);
        }
        // On one machine the tests share the kernel's counters and settings; each guest is its own,
        // and takes one CPU.
        let threads = if part == Part::Guest {
            "--test-threads=2"
        } else {
            "--test-threads=1"
        };
        cargo.args(["--", threads]).args(filter);
        cargo.env("NUMAWATCH_BIN", &binary);
        cargo.env("NUMAWATCH_WORKLOAD", binary.with_file_name("workload"));
        cargo.env(
            "NUMAWATCH_XTASK",
            env::current_exe().context("cannot find this program")?,
        );
        cargo.envs(found.iter().map(|(variable, program)| (variable, program)));
        shown(&mut cargo)
    })?;
    Ok(None)
}

/// The test programs of a part: those that need a guest say so by their name.
fn programs(part: Part) -> Result<Vec<String>> {
    let dir = workspace::root().join("tests/tests");
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        if let Some(name) = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .filter(|_| is_source)
            && name.starts_with("guest") == (part == Part::Guest)
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn cargo(args: &[&str]) -> Result<()> {
    shown(command::cargo().args(args))
}

/// Runs with stdout as it is: the test programs' closing lines are this task's result.
fn shown(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", command::line(command)))?;
    if !status.success() {
        bail!(
            "`{}` says no ({status}): its output is above",
            command::line(command)
        );
    }
    Ok(())
}
