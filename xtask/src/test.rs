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
  cargo xtask test --test guest_launch
  cargo xtask test --test check --test topo -- node
  NUMAWATCH_WRITE_DOCS=1 cargo xtask test --only guest -- matrix")]
pub(crate) struct Args {
    /// Only this part; may be given several times
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// Only this file of tests/tests, without its `.rs`; may be given several times
    #[arg(long, value_name = "NAME")]
    test: Vec<String>,
    /// Only tests whose name contains this, and other arguments for the test programs
    #[arg(last = true)]
    filter: Vec<String>,
}

/// What became of a part.
enum Outcome {
    Passed(Duration),
    Skipped(String),
    /// The filter left no test.
    Unmatched,
}

/// Runs the parts in order; the first that fails ends it.
pub(crate) fn main(args: &Args) -> Result<ExitCode> {
    let start = Instant::now();
    let wanted = wanted(args)?;
    let mut told = Vec::new();
    for part in wanted {
        let begun = Instant::now();
        let outcome = run(part, args).with_context(|| format!("{part:?} failed"))?;
        told.push((part, outcome.unwrap_or(Outcome::Passed(begun.elapsed()))));
    }
    eprintln!("All in {}:", say::seconds(start.elapsed()));
    for (part, outcome) in &told {
        match outcome {
            Outcome::Passed(took) => eprintln!("  {part:?} passed in {}", say::seconds(*took)),
            Outcome::Skipped(why) => eprintln!("  {part:?} SKIPPED: {why}"),
            Outcome::Unmatched => eprintln!("  {part:?}: no test matched"),
        }
    }
    let unmatched = |(_, outcome): &(Part, Outcome)| matches!(outcome, Outcome::Unmatched);
    let mut filtered = told.iter().filter(|(part, _)| part.has_tests()).peekable();
    if filtered.peek().is_some() && filtered.all(unmatched) {
        bail!("no test matched {}", args.filter.join(" "));
    }
    Ok(ExitCode::SUCCESS)
}

impl Part {
    /// Whether it has tests with names.
    const fn has_tests(self) -> bool {
        matches!(self, Self::Unit | Self::Host | Self::Guest)
    }
}

/// The parts to run: those that are named, those that have the files that are named, or all.
fn wanted(args: &Args) -> Result<Vec<Part>> {
    let is_named = |part: &Part| args.only.is_empty() || args.only.contains(part);
    let mut parts: Vec<Part> = Part::value_variants().to_vec();
    parts.retain(is_named);
    if args.test.is_empty() {
        return Ok(parts);
    }
    let mut there = Vec::new();
    let mut having = Vec::new();
    for part in parts {
        if matches!(part, Part::Host | Part::Guest) {
            let programs = programs(part)?;
            if programs.iter().any(|program| args.test.contains(program)) {
                having.push(part);
            }
            there.extend(programs);
        }
    }
    if let Some(missing) = args.test.iter().find(|name| !there.contains(name)) {
        bail!(
            "--test {missing}: no such file of tests; there are {}",
            there.join(", ")
        );
    }
    Ok(having)
}

/// Runs one part. Gives what became of it, if it didn't pass.
fn run(part: Part, args: &Args) -> Result<Option<Outcome>> {
    let filter = args.filter.as_slice();
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
            // The black-box tests' own helpers, without the black-box tests.
            let helpers = ["--package", "tests", "--lib", "--bins"];
            let ours = ["--workspace", "--exclude", "tests"];
            let mut found = filter.is_empty();
            for which in [&ours[..], &helpers] {
                found |= any_test(&mut tests(which, filter), filter)?;
            }
            if !found {
                return Ok(Some(Outcome::Unmatched));
            }
            say::step("Running the unit tests", || {
                shown(&mut tests(&ours, filter))?;
                shown(&mut tests(&helpers, filter))
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
            return black_box(part, &found, args);
        }
        Part::Guest => {
            if let Err(error) = vm::prepare() {
                return unable(&format!("the guest cannot be had: {error:#}"));
            }
            return black_box(part, &[], args);
        }
    }
    Ok(None)
}

/// What can't run is a failure in CI, where nobody reads a skip.
fn unable(why: &str) -> Result<Option<Outcome>> {
    if env::var("CI").is_ok_and(|value| value == "true" || value == "1") {
        bail!("{why} (CI=true: no skips)");
    }
    eprintln!("*** SKIPPED: {why}");
    Ok(Some(Outcome::Skipped(why.to_owned())))
}

/// `cargo test` of these packages or programs.
fn tests(which: &[&str], filter: &[String]) -> Command {
    let mut cargo = command::cargo();
    cargo.args(["test", "--quiet"]).args(which);
    cargo.arg("--").args(filter);
    cargo
}

/// Whether a test is left by the filter that the command ends with; without one nobody asks.
fn any_test(cargo: &mut Command, filter: &[String]) -> Result<bool> {
    Ok(filter.is_empty() || lists_any(&command::output(cargo.arg("--list"))?))
}

/// Whether a list of the test programs', which they give instead of running, has a test.
fn lists_any(list: &str) -> bool {
    list.lines().any(|line| line.ends_with(": test"))
}

fn black_box(part: Part, found: &[(&str, PathBuf)], args: &Args) -> Result<Option<Outcome>> {
    let filter = args.filter.as_slice();
    let mut programs = programs(part)?;
    programs.retain(|program| args.test.is_empty() || args.test.contains(program));
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
    let which: Vec<&str> = programs.iter().flat_map(|p| ["--test", p]).collect();
    let which = [&["--package", "tests"][..], &which].concat();
    if !any_test(&mut tests(&which, filter), filter)? {
        return Ok(Some(Outcome::Unmatched));
    }
    let place = if part == Part::Guest {
        "in the guest"
    } else {
        "on this machine"
    };
    say::step(&format!("Running the black-box tests {place}"), || {
        let mut cargo = command::cargo();
        cargo.arg("test").args(&which);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_benchmarks_or_of_nothing_has_no_test() {
        for (list, want) in [
            ("", false),
            ("0 tests, 0 benchmarks\n", false),
            ("speed: benchmark\n", false),
            ("\n0 tests, 0 benchmarks\n\nthreads::wander: test\n", true),
        ] {
            assert_eq!(lists_any(list), want, "{list:?}");
        }
    }

    fn args(only: &[Part], test: &[&str]) -> Args {
        Args {
            only: only.to_vec(),
            test: test.iter().map(ToString::to_string).collect(),
            filter: Vec::new(),
        }
    }

    #[test]
    fn a_file_of_tests_chooses_its_part() {
        for (only, test, want) in [
            (&[][..], &["guest_launch"][..], &[Part::Guest][..]),
            (&[], &["launch"], &[Part::Host]),
            (&[], &["launch", "guest_launch"], &[Part::Host, Part::Guest]),
            (&[Part::Unit], &[], &[Part::Unit]),
        ] {
            let found = wanted(&args(only, test)).unwrap();
            assert_eq!(found, want, "{only:?} {test:?}");
        }
        assert_eq!(wanted(&args(&[], &[])).unwrap(), Part::value_variants());
    }

    #[test]
    fn a_file_that_is_not_there_is_told_with_those_that_are() {
        for (only, test) in [(&[][..], "lunch"), (&[Part::Host], "guest_launch")] {
            let error = wanted(&args(only, &[test])).unwrap_err().to_string();
            let start = format!("--test {test}: no such file of tests; there are check, ");
            assert!(error.starts_with(&start), "{error}");
        }
    }
}
