//! `numawatch launch`: binds itself to a node and becomes the command, so that every thread and buffer of it inherits that.

use crate::cli::Launch as Options;
use crate::host::bind;
use crate::host::root::Root;
use crate::launch::{asked, contradiction, elsewhere, engine_flags, here};
use crate::logging;
use crate::shell;
use anyhow::{Context, Result, anyhow, bail};
use model::launch::{Gpu, Plan, plan};
use model::list;
use std::io::{ErrorKind, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

/// It is there and can't be run: `env`'s and the shell's code.
const CANNOT_RUN: u8 = 126;
/// There is no such program.
const NOT_FOUND: u8 = 127;

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    let root = Root::system();
    let command = &options.command;
    let here = here(&root);
    let asked = asked(
        &root,
        &here.topology,
        options.node,
        &options.gpus,
        options.needs,
        command,
    )?;
    let plan = plan(&asked, &here)?;
    let enough = plan.has_room(&asked, &here);
    let elsewhere = elsewhere::of(command, &plan);
    let refused = elsewhere.as_ref().filter(|elsewhere| !elsewhere.in_part);
    if options.dry_run {
        print(options, &plan, &as_cuda_numbers(&asked.gpus))?;
    }
    if let Some(elsewhere) = refused {
        bail!("{elsewhere}");
    }
    enough?;
    if options.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let elsewhere = elsewhere.map(|elsewhere| elsewhere.to_string());
    for warning in elsewhere
        .into_iter()
        .chain(contradiction::of(command, &plan))
    {
        logging::say(&warning);
    }
    if plan.cpu_node != plan.memory_node {
        logging::say(&apart(&plan));
    }
    bind_to(&plan)?;
    let (program, arguments) = command.split_first().context("no command")?;
    // Returns only where it fails.
    let error = Command::new(program).args(arguments).exec();
    logging::say(&format!("{}: {error}", program.display()));
    Ok(ExitCode::from(match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_RUN,
    }))
}

fn bind_to(plan: &Plan) -> Result<()> {
    bind::run_on(&plan.cpus).map_err(|error| {
        let cpus = list::cpus(&plan.cpus);
        anyhow!("can't run on {cpus} of node {}: {error}", plan.cpu_node)
    })?;
    bind::allocate_on(Some(plan.memory_node)).map_err(|error| {
        let hint = match error.raw_os_error() {
            Some(libc::EPERM) => {
                "; in a container it takes CAP_SYS_NICE, or a seccomp profile that allows it"
            }
            Some(libc::ENOSYS) => "; this kernel has no NUMA (CONFIG_NUMA)",
            _ => "",
        };
        let node = plan.memory_node;
        anyhow!("can't bind memory to node {node}: set_mempolicy: {error}{hint}")
    })
}

/// The same by numactl, fit for a shell: all else is a comment.
fn print(options: &Options, plan: &Plan, gpus: &[u32]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let elsewhere = elsewhere::of(&options.command, plan);
    if elsewhere
        .as_ref()
        .is_some_and(|elsewhere| !elsewhere.in_part)
    {
        out.write_all(b"# the client alone: ")?;
    }
    out.write_all(b"numactl")?;
    for option in plan.numactl() {
        write!(out, " {option}")?;
    }
    for word in &options.command {
        out.write_all(b" ")?;
        out.write_all(&shell::quoted(word).context("an argument has a zero byte")?)?;
    }
    writeln!(out)?;
    if plan.cpu_node != plan.memory_node {
        writeln!(out, "# {}", apart(plan))?;
    }
    if let Some(elsewhere) = elsewhere {
        writeln!(out, "# {elsewhere}")?;
    }
    if let Some(warning) = contradiction::of(&options.command, plan) {
        writeln!(out, "# {warning}")?;
    }
    match engine_flags::of(&options.command, plan, gpus) {
        Some(own) => match own.flags {
            Some(flags) => writeln!(out, "# {}'s own: {flags} ({})", own.engine, own.remark)?,
            None => writeln!(out, "# {}'s own: {}", own.engine, own.remark)?,
        },
        None => writeln!(out, "# the engine's own: none known")?,
    }
    out.flush()?;
    Ok(())
}

/// Numbers by which the engine will know its GPUs: what it may see is counted from 0.
fn as_cuda_numbers(gpus: &[Gpu]) -> Vec<u32> {
    if std::env::var_os("CUDA_VISIBLE_DEVICES").is_some() {
        return (0..).take(gpus.len()).collect();
    }
    gpus.iter().filter_map(|gpu| gpu.number).collect()
}

fn apart(plan: &Plan) -> String {
    let (memory, cpu) = (plan.memory_node, plan.cpu_node);
    format!("node {memory} has no CPUs: memory there, threads on node {cpu}, the nearest")
}
