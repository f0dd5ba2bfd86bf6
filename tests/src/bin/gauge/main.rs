//! Puts a load under observation and prints, turn by turn, what the kernel's statistics say of each program.
#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a command line program says what it measured on stdout and errors on stderr"
)]

mod empty;
mod load;
mod observers;
mod programs;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Parser, Subcommand, ValueEnum};
use empty::Place;
use observers::{Bpftrace, Count, Numawatch};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;
use tests::process::Running;

const EXAMPLES: &str = "\
It prints lines:
  turn TURN NANOSECONDS UNITS              the CPU time of a turn of so many units (of --run: the time)
  program TURN OWNER NAME NANOSECONDS RUNS what a program did in it; OWNER is numawatch, bpftrace or empty
  count OWNER N                            what it counted of the load, over all turns

Examples:
  # How long a context switch takes with nobody watching
  gauge measure --load ping-pong --units 400000
  # What numawatch's programs cost beside empty ones
  gauge measure --load ping-pong --units 400000 --statistics --numawatch ./numawatch --watch load \\
    --object numawatch-empty --empty tp_btf:sched_switch
  # A load of another program's, in the guest
  gauge measure --run 'workload touch --pages 4096 --no-wait --hold 0' --statistics --numawatch numawatch --watch all";

#[derive(Parser)]
#[command(name = "gauge", about = "Measures what watching costs.", after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Runs a load so many times under observation.
    Measure(Measure),
    /// The load itself: a turn for each line on stdin.
    Load(Load),
}

#[derive(Args)]
struct Load {
    /// Which.
    #[arg(value_enum)]
    kind: Kind,
    /// Context switches or pages in a turn.
    #[arg(long)]
    units: u64,
    /// The CPU that it runs on.
    #[arg(long)]
    cpu: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Two processes that wake each other.
    PingPong,
    /// A process that touches fresh memory.
    Faults,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Watch {
    /// The load.
    Load,
    /// A process that does nothing.
    Other,
    /// All processes.
    All,
}

#[derive(Args)]
struct Measure {
    /// A load of this program's.
    #[arg(long, value_enum, required_unless_present = "run")]
    load: Option<Kind>,
    /// A command, run once a turn.
    #[arg(long, conflicts_with = "load")]
    run: Option<String>,
    /// Context switches or pages in a turn.
    #[arg(long, default_value_t = 400_000)]
    units: u64,
    /// Turns.
    #[arg(long, default_value_t = 5)]
    turns: u32,
    /// Turns before those, which are not told.
    #[arg(long, default_value_t = 1)]
    warm_up: u32,
    /// The CPU that the load runs on; everything else keeps off it where there is another.
    #[arg(long, default_value_t = 0)]
    cpu: usize,
    /// Have the kernel keep statistics, and tell them.
    #[arg(long)]
    statistics: bool,
    /// Attach an empty program; can be repeated.
    #[arg(long, value_name = "TYPE:TARGET", requires = "object")]
    empty: Vec<Place>,
    /// The object of empty programs.
    #[arg(long)]
    object: Option<PathBuf>,
    /// Have numawatch watch.
    #[arg(long, value_name = "PROGRAM")]
    numawatch: Option<PathBuf>,
    /// Which processes it watches.
    #[arg(long, value_enum, default_value_t = Watch::Load)]
    watch: Watch,
    /// Start it, and attach the empty programs, anew for each turn, and tell of a turn without them before the first and
    /// after each: the same load, that is the same pages, and nearly the same moment.
    #[arg(long, conflicts_with = "statistics")]
    alternate: bool,
    /// A further option of its; can be repeated.
    #[arg(long, value_name = "SIGNAL=RUNG")]
    mechanism: Vec<String>,
    /// Have bpftrace count beside it.
    #[arg(long, value_name = "PROGRAM", requires_all = ["script", "statistics"])]
    bpftrace: Option<PathBuf>,
    /// bpftrace's script; its argument is the load's pid.
    #[arg(long)]
    script: Option<PathBuf>,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Action::Measure(measure) => measure.run(),
        Action::Load(load) => load.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gauge: {error:#}");
            ExitCode::from(2)
        }
    }
}

impl Load {
    fn run(&self) -> Result<()> {
        pin(&[self.cpu])?;
        let mut ping_pong = None;
        let mut pids = vec![std::process::id()];
        if self.kind == Kind::PingPong {
            let started = load::PingPong::start()?;
            pids.push(started.partner());
            ping_pong = Some(started);
        }
        println!("{}", serde_json::to_string(&pids)?);
        for line in std::io::stdin().lines() {
            line?;
            let took = match &mut ping_pong {
                Some(ping_pong) => ping_pong.run(self.units)?,
                None => load::faults(self.units)?,
            };
            println!("{took}");
        }
        Ok(())
    }
}

/// A load, whoever does it.
enum Work {
    Own { running: Running, pids: Vec<u32> },
    Command(String),
}

impl Work {
    fn turn(&mut self) -> Result<u64> {
        match self {
            Self::Own { running, .. } => {
                running.say_go()?;
                running.json_line().context("the load")
            }
            Self::Command(command) => {
                let began = Instant::now();
                let output = Command::new("sh").args(["-c", command]).output()?;
                ensure!(
                    output.status.success(),
                    "{command}: {}: {}",
                    output.status,
                    String::from_utf8_lossy(&output.stderr)
                );
                Ok(u64::try_from(began.elapsed().as_nanos())?)
            }
        }
    }

    fn pids(&self) -> &[u32] {
        match self {
            Self::Own { pids, .. } => pids,
            Self::Command(_) => &[],
        }
    }
}

impl Measure {
    fn run(&self) -> Result<()> {
        let cpus = std::thread::available_parallelism()?.get();
        let others: Vec<usize> = (0..cpus).filter(|&cpu| cpu != self.cpu).collect();
        if !others.is_empty() && self.load.is_some() {
            pin(&others)?;
        }
        let mut work = self.start()?;
        let _statistics = self
            .statistics
            .then(programs::Statistics::enable)
            .transpose()?;
        let attach = || {
            let each = self.empty.iter();
            let each =
                each.map(|place| empty::attach(self.object.as_deref().context("--object")?, place));
            each.collect::<Result<Vec<_>>>()
        };
        let other = (self.watch == Watch::Other)
            .then(|| Running::start(&mut Command::new("cat")))
            .transpose()?;
        let watched_pid = match self.watch {
            Watch::Load => work.pids().first().copied(),
            Watch::Other => other.as_ref().map(Running::pid),
            Watch::All => None,
        };
        let options: Vec<String> = self
            .mechanism
            .iter()
            .flat_map(|choice| ["--mechanism".to_owned(), choice.clone()])
            .collect();
        let watch = |program| Numawatch::start(program, watched_pid, &options);
        let watch = || self.numawatch.as_deref().map(watch).transpose();
        if self.alternate {
            return self.alternate(&mut work, || Ok((watch()?, attach()?)));
        }
        let empties = attach()?;
        let numawatch = watch()?;
        let bpftrace = match (&self.bpftrace, &self.script) {
            (Some(program), Some(script)) => {
                let pid = work.pids().first().copied().unwrap_or(0);
                Some(Bpftrace::start(program, script, pid)?)
            }
            _ => None,
        };

        let mut watched: Vec<(&str, Option<&str>, u32)> = empties
            .iter()
            .map(|empty| ("empty", Some(empty.place.as_str()), empty.id))
            .collect();
        if let Some(numawatch) = &numawatch {
            watched.extend(
                numawatch
                    .programs()?
                    .iter()
                    .map(|&id| ("numawatch", None, id)),
            );
        }
        if let Some(bpftrace) = &bpftrace {
            watched.extend(
                bpftrace
                    .programs()?
                    .iter()
                    .map(|&id| ("bpftrace", None, id)),
            );
        }
        for _ in 0..self.warm_up {
            work.turn()?;
        }
        for turn in 0..self.turns {
            let before = read_all(&watched)?;
            let took = work.turn()?;
            let after = read_all(&watched)?;
            println!("turn {turn} {took} {}", self.units);
            if !self.statistics {
                continue;
            }
            for ((owner, name, _), (before, after)) in watched.iter().zip(before.iter().zip(&after))
            {
                println!(
                    "program {turn} {owner} {} {} {}",
                    name.unwrap_or(&after.name),
                    after.run_time_ns - before.run_time_ns,
                    after.runs - before.runs
                );
            }
        }

        let count = match self.load {
            Some(Kind::Faults) => Count::FirstTouch,
            _ => Count::OnCpu,
        };
        if let Some(bpftrace) = bpftrace {
            println!("count bpftrace {}", bpftrace.end(work.pids())?);
        }
        if let Some(numawatch) = numawatch {
            println!("count numawatch {}", numawatch.end(count, work.pids())?);
        }
        Ok(())
    }

    fn alternate(
        &self,
        work: &mut Work,
        observe: impl Fn() -> Result<(Option<Numawatch>, Vec<empty::Empty>)>,
    ) -> Result<()> {
        for _ in 0..self.warm_up {
            work.turn()?;
        }
        println!("bare 0 {} {}", work.turn()?, self.units);
        for turn in 0..self.turns {
            let (numawatch, empties) = observe()?;
            println!("turn {turn} {} {}", work.turn()?, self.units);
            drop(empties);
            if let Some(numawatch) = numawatch {
                numawatch.end(Count::OnCpu, &[])?;
            }
            println!("bare {} {} {}", turn + 1, work.turn()?, self.units);
        }
        Ok(())
    }

    fn start(&self) -> Result<Work> {
        let Some(load) = self.load else {
            return Ok(Work::Command(self.run.clone().context("--run")?));
        };
        let mut command = Command::new(std::env::current_exe()?);
        let name = load.to_possible_value().context("load")?;
        command.args(["load", name.get_name()]);
        command.args(["--units", &self.units.to_string()]);
        command.args(["--cpu", &self.cpu.to_string()]);
        let mut running = Running::start(&mut command)?;
        let pids: Vec<u32> = running.json_line().context("the load")?;
        Ok(Work::Own { running, pids })
    }
}

fn read_all(watched: &[(&str, Option<&str>, u32)]) -> Result<Vec<programs::Program>> {
    watched
        .iter()
        .map(|&(_, _, id)| programs::read(id))
        .collect()
}

/// Lets this process, and those that it starts, run on these CPUs only.
fn pin(cpus: &[usize]) -> Result<()> {
    // SAFETY: an all-zero cpu_set_t is the empty set, and the kernel only reads it.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    if done != 0 {
        bail!(
            "sched_setaffinity to CPUs {cpus:?}: {}",
            std::io::Error::last_os_error()
        );
    }
    Ok(())
}
