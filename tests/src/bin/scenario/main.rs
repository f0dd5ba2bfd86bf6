//! Plays sessions of workloads under numawatch, and prints one JSON line for each: in the guest, or on any machine of two nodes.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program prints"
)]

mod swap;

use clap::Parser;
use std::process::ExitCode;
use tests::launch;
use tests::leftovers;
use tests::matrix;
use tests::matrix::places::Machine;
use tests::play::{Tools, play, play_on};
use tests::self_test;
use tests::session::{Nodes, Session};
use tests::sessions::{ALL, SWAP};
use tests::settings::Settings;

const EXAMPLES: &str = "\
Examples:
  cargo xtask vm --kernel 6.1 --add target/debug/scenario -- scenario
  cargo xtask vm --add target/debug/scenario -- scenario counts balancing
numawatch and workload must be on PATH; kernel settings are changed, and given back.";

#[derive(Parser)]
#[command(name = "scenario", about = "Plays sessions of workloads under numawatch, and prints one JSON line for each.", after_help = EXAMPLES)]
struct Options {
    /// Only these.
    sessions: Vec<String>,
    /// Print their names.
    #[arg(long)]
    list: bool,
    /// Play the matrix's sessions instead, on the nodes below.
    #[arg(long)]
    matrix: bool,
    /// The node whose CPUs do the matrix's work.
    #[arg(long, requires = "matrix", default_value_t = 1)]
    cpu_node: u32,
    /// The node whose memory it is done on.
    #[arg(long, requires = "matrix", default_value_t = 0)]
    memory_node: u32,
    /// Another node with CPUs; without it, what needs two is left out.
    #[arg(long, requires = "matrix")]
    other_node: Option<u32>,
    /// There is a GPU whose driver allocates pages; on node 1, without --matrix.
    #[arg(long)]
    gpu: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.matrix {
        play_matrix(&options);
        return ExitCode::SUCCESS;
    }
    let names: Vec<&str> = ALL
        .iter()
        .map(|session| session.name)
        .chain([leftovers::NAME, self_test::NAME, launch::NAME])
        .collect();
    if options.list {
        println!("{}", names.join("\n"));
        return ExitCode::SUCCESS;
    }
    if let Some(unknown) = options
        .sessions
        .iter()
        .find(|name| !names.contains(&name.as_str()))
    {
        eprintln!(
            "scenario: no session {unknown}; there are: {}",
            names.join(", ")
        );
        return ExitCode::from(2);
    }
    let tools = Tools::on_path();
    let wanted =
        |name: &str| options.sessions.is_empty() || options.sessions.iter().any(|w| w == name);
    for session in ALL.iter().filter(|session| wanted(session.name)) {
        let _swap = swap_for(session);
        print(&play(session, &tools));
    }
    if wanted(leftovers::NAME) {
        print(&leftovers::play(&tools));
    }
    // It has a guest of its own.
    if options.sessions.iter().any(|name| name == launch::NAME) {
        print(&launch::play(&tools, options.gpu));
    }
    if wanted(self_test::NAME) {
        match Settings::apply(self_test::SETTINGS, &Nodes::TWO) {
            Ok(_settings) => print(&self_test::play(&tools, "")),
            Err(error) => eprintln!("scenario: {}: {error:#}", self_test::NAME),
        }
    }
    ExitCode::SUCCESS
}

/// The machine as it is, then a report for each of the matrix's sessions that can be played here.
fn play_matrix(options: &Options) {
    print(&Machine::here());
    let nodes = Nodes {
        cpu: options.cpu_node,
        memory: options.memory_node,
        other: options.other_node,
    };
    for session in &matrix::sessions::ALL {
        let needs_two = session.name == matrix::sessions::BALANCING.name;
        let needs_gpu = session.name == matrix::sessions::DRIVER.name;
        let wanted = options.sessions.is_empty()
            || options.sessions.iter().any(|wanted| wanted == session.name);
        if !wanted || needs_two && nodes.other.is_none() || needs_gpu && !options.gpu {
            continue;
        }
        let _swap = swap_for(session);
        print(&play_on(session, &Tools::on_path(), &nodes));
    }
}

/// A swap that is on, for the sessions that need one.
fn swap_for(session: &Session) -> Option<swap::Swap> {
    if ![SWAP.name, matrix::sessions::SWAP.name].contains(&session.name) {
        return None;
    }
    swap::Swap::on()
        .inspect_err(|error| {
            eprintln!("scenario: no swap for session {}: {error:#}", session.name);
        })
        .ok()
}

fn print(report: &impl serde::Serialize) {
    match serde_json::to_string(report) {
        Ok(line) => println!("{line}"),
        Err(error) => eprintln!("scenario: {error}"),
    }
}
