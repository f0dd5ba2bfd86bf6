//! Development tasks: one command each to build, run and test numawatch.

mod apt;
mod bench;
mod command;
mod compiler;
mod ebpf;
mod linker;
mod product;
mod programs;
mod python;
mod receivers;
mod say;
mod suite;
mod test;
mod vm;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Builds, runs and tests numawatch.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    BuildEbpf(ebpf::Args),
    Run(product::RunArgs),
    Test(test::Args),
    Bench(bench::Args),
    Vm(vm::Args),
    Dist(product::DistArgs),
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::BuildEbpf(args) => ebpf::main(&args),
        Task::Run(args) => product::run(&args),
        Task::Dist(args) => product::dist(&args),
        Task::Test(args) => test::main(&args),
        Task::Bench(args) => bench::main(&args),
        Task::Vm(args) => Ok(vm::main(&args)),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            // `{:#}` puts the whole chain on one line.
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
