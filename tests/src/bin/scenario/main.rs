//! Plays sessions of workloads under numawatch, and prints one JSON line for each: in the guest, or on any machine of two nodes.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program prints"
)]

mod swap;

use clap::Parser;
use std::process::ExitCode;
use tests::leftovers;
use tests::play::{Tools, play};
use tests::self_test;
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
}

fn main() -> ExitCode {
    let options = Options::parse();
    let names: Vec<&str> = ALL
        .iter()
        .map(|session| session.name)
        .chain([leftovers::NAME, self_test::NAME])
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
        let swap = (session.name == SWAP.name).then(swap::Swap::on);
        if let Some(Err(error)) = &swap {
            eprintln!("scenario: no swap for session {}: {error:#}", session.name);
        }
        print(&play(session, &tools));
    }
    if wanted(leftovers::NAME) {
        print(&leftovers::play(&tools));
    }
    if wanted(self_test::NAME) {
        match Settings::apply(self_test::SETTINGS) {
            Ok(_settings) => print(&self_test::play(&tools, "")),
            Err(error) => eprintln!("scenario: {}: {error:#}", self_test::NAME),
        }
    }
    ExitCode::SUCCESS
}

fn print(report: &impl serde::Serialize) {
    match serde_json::to_string(report) {
        Ok(line) => println!("{line}"),
        Err(error) => eprintln!("scenario: {error}"),
    }
}
