//! Makes exact, known NUMA events and prints what it did, so that a test can lay a snapshot beside it.
#![allow(
    clippy::print_stderr,
    reason = "errors of a command line program belong on stderr"
)]

mod again;
mod balance;
mod children;
mod drm;
mod exec;
mod fork;
mod inherited;
mod late;
mod moves;
mod pin;
mod place;
mod region;
mod shared;
mod spin;
mod stage;
mod swap;
mod sys;
mod tenant;
mod threads;
mod touch;
mod write_child;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

const EXAMPLES: &str = "\
It prints {\"ready\":true,\"pid\":N}, begins on a line (or the end) of stdin, prints one JSON line of what it did, \
and ends on another line.

Examples:
  # 16,384 pages of node 0, first touched from node 1, then watched by NUMA balancing for 10 s
  workload touch --pages 16384 --cpu-node 1 --memory-node 0 --again 10 --no-wait --hold 0
  # 1,000 moves of a thread that never sleeps
  workload moves --count 1000 --never-sleep
  # 2 s of CPU time on node 0, and 2 s on node 1
  workload spin --seconds 2 --cpu-nodes 0,1 --no-wait --hold 0
  # 1,000 threads that come and go
  workload threads --count 1000 --pages 8 --cpu-node 1 --memory-node 0
Where the pages lie is asked of move_pages, which CPU time of CLOCK_THREAD_CPUTIME_ID.";

#[derive(Parser)]
#[command(name = "workload", about = "Makes exact, known NUMA events and prints what it did.", after_help = EXAMPLES)]
struct Options {
    #[command(flatten)]
    stage: stage::Stage,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// One thread touches pages under a policy for a node.
    Touch(touch::Touch),
    /// Threads that change node.
    Moves(moves::Moves),
    /// A thread that there is no room for at first.
    Late(late::Late),
    /// Threads that compute on a node.
    Spin(spin::Spin),
    /// Threads that are born, touch and compute, and die.
    Threads(threads::Threads),
    /// A child that copies its parent's pages.
    Fork(fork::Fork),
    /// A program that replaces itself, from its leader or from another thread.
    Exec(exec::Exec),
    /// Two processes that map the same memory.
    Shared(shared::Shared),
    /// Pages that go to swap and come back.
    Swap(swap::Swap),
    /// A process that touches pages in another one's memory.
    WriteChild(write_child::WriteChild),
    /// Children and grandchildren, all at work.
    Children(children::Children),
    /// Threads on given nodes that keep touching memory of another, under NUMA balancing.
    Balance(balance::Balance),
    /// Pages that io_uring pins.
    Pin(pin::Pin),
    /// Memory of several kinds that stays on its nodes.
    Place(place::Place),
    /// Pages that a GPU's driver allocates.
    Drm(drm::Drm),
    /// Pages touched under the policy that it was started with.
    Inherited(inherited::Inherited),
    /// A process as findings see one: a device, memory, weights, a thread at work.
    Tenant(tenant::Tenant),
}

fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) if is_help(error.kind()) => error.exit(),
        Err(error) => return refuse(&one_line(&error.to_string())),
    };
    sys::die_with_parent(options.stage.limit);
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&format!("{error:#}")),
    }
}

fn run(options: &Options) -> Result<()> {
    let stage = &options.stage;
    match &options.command {
        Command::Touch(command) => command.run(stage),
        Command::Moves(command) => command.run(stage),
        Command::Late(command) => command.run(stage),
        Command::Spin(command) => command.run(stage),
        Command::Threads(command) => command.run(stage),
        Command::Fork(command) => command.run(stage),
        Command::Exec(command) => command.run(stage),
        Command::Shared(command) => command.run(stage),
        Command::Swap(command) => command.run(stage),
        Command::WriteChild(command) => command.run(stage),
        Command::Children(command) => command.run(stage),
        Command::Balance(command) => command.run(stage),
        Command::Pin(command) => command.run(stage),
        Command::Place(command) => command.run(stage),
        Command::Drm(command) => command.run(stage),
        Command::Inherited(command) => command.run(),
        Command::Tenant(command) => command.run(),
    }
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("workload: {why}");
    ExitCode::from(2)
}

fn is_help(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// clap's message without the usage below it.
fn one_line(message: &str) -> String {
    let told = message.split("Usage:").next().unwrap_or_default();
    let told = told
        .split("For more information")
        .next()
        .unwrap_or_default();
    let words: Vec<&str> = told.split_whitespace().collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}
