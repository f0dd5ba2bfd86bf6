//! Plays sessions of workloads under numawatch, and prints one JSON line for each: in the guest, or on any machine of two nodes.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program prints"
)]

mod swap;

use clap::Parser;
use model::signal::{Mechanism, SignalName};
use std::process::ExitCode;
use tests::findings;
use tests::launch;
use tests::leftovers;
use tests::matrix;
use tests::matrix::places::Machine;
use tests::play::{Tools, play, play_on};
use tests::self_test;
use tests::session::Nodes;
use tests::sessions::{ALL, SWAP, SWAP_IN_MEMORY};
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
    /// Hold numawatch to this rung.
    #[arg(long, requires = "matrix", value_parser = rung)]
    forced: Option<Mechanism>,
}

fn rung(text: &str) -> Result<Mechanism, String> {
    Mechanism::ALL
        .into_iter()
        .find(|rung| rung.as_str() == text)
        .ok_or_else(|| "no such rung".to_owned())
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
        .chain([leftovers::NAME, launch::NAME, findings::NAME])
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
        let _swap = swap_for(session.name);
        print(&play(session, &tools));
    }
    if wanted(leftovers::NAME) {
        print(&leftovers::play(&tools));
    }
    // These have a guest of their own, with a GPU.
    if options.sessions.iter().any(|name| name == launch::NAME) {
        print(&launch::play(&tools, options.gpu));
    }
    if options.sessions.iter().any(|name| name == findings::NAME) {
        print(&findings::play(&tools));
    }
    ExitCode::SUCCESS
}

fn play_self_test(nodes: &Nodes, broken: &[SignalName]) {
    match Settings::apply(self_test::SETTINGS, nodes) {
        Ok(_settings) => print(&self_test::play(&Tools::on_path(), broken)),
        Err(error) => eprintln!("scenario: {}: {error:#}", self_test::NAME),
    }
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
        let full = matrix::sessions::has_no_row(session.name);
        let needs_two = full || session.name == matrix::sessions::BALANCING.name;
        let needs_gpu = session.name == matrix::sessions::DRIVER.name;
        let wanted = options.sessions.is_empty()
            || options.sessions.iter().any(|wanted| wanted == session.name);
        let has_all = (nodes.other.is_some() || !needs_two) && (options.gpu || !needs_gpu);
        // On a forced rung it would be the same program again, or none.
        if !wanted || !has_all || full && options.forced.is_some() {
            continue;
        }
        let _swap = swap_for(session.name);
        print(&play_on(session, &Tools::on_path(), &nodes, options.forced));
    }
    let wanted =
        options.sessions.is_empty() || options.sessions.iter().any(|name| name == self_test::NAME);
    // On a forced rung the same probes would be tested again.
    if wanted && options.forced.is_none() {
        let _swap = swap_for(self_test::NAME);
        // Layouts differ in what passes, not in what fails.
        let broken: &[SignalName] = if options.gpu { &SignalName::ALL } else { &[] };
        play_self_test(&nodes, broken);
    }
}

/// A swap that is on, for the sessions that need one.
fn swap_for(session: &str) -> Option<swap::Swap> {
    let swap = if session == SWAP_IN_MEMORY.name {
        swap::Swap::in_memory()
    } else if [SWAP.name, matrix::sessions::SWAP.name, self_test::NAME].contains(&session) {
        swap::Swap::on_disk()
    } else {
        return None;
    };
    swap.inspect_err(|error| {
        eprintln!("scenario: no swap for session {session}: {error:#}");
    })
    .ok()
}

fn print(report: &impl serde::Serialize) {
    match serde_json::to_string(report) {
        Ok(line) => println!("{line}"),
        Err(error) => eprintln!("scenario: {error}"),
    }
}
