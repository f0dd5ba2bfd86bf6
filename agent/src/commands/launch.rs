//! `numawatch launch`: binds itself to a node and becomes the command, so that every thread and buffer of it inherits that.

use crate::cli::Launch as Options;
use crate::host::bind;
use crate::host::root::Root;
use crate::launch::elsewhere::Elsewhere;
use crate::launch::{asked, contradiction, elsewhere, engine_flags, here};
use crate::logging;
use crate::shell;
use anyhow::{Context, Result, anyhow, bail};
use model::launch::{Gpu, Plan, plan};
use model::list;
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
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
    let elsewhere = elsewhere::of(command, &plan, elsewhere::podman_is_remote());
    let refused = elsewhere.as_ref().filter(|elsewhere| !elsewhere.in_part);
    if options.dry_run {
        let gpus = as_cuda_numbers(&asked.gpus);
        let mut out = std::io::stdout().lock();
        print(&mut out, command, &plan, elsewhere.as_ref(), &gpus)?;
        out.flush()?;
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
        .chain(contradiction::of(command, inherited, &plan))
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
    let remedy = match error.kind() {
        ErrorKind::NotFound => " (write its path, or see that PATH has it)",
        ErrorKind::PermissionDenied => " (it must be a program that this user may run)",
        _ => "",
    };
    logging::say(&format!(
        "{:?} can't be run: {error}{remedy}",
        program.display()
    ));
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

/// The same by numactl, fit for a shell: all else is a comment. A client that is refused has no such line.
fn print(
    out: &mut impl Write,
    command: &[OsString],
    plan: &Plan,
    elsewhere: Option<&Elsewhere>,
    gpus: &[u32],
) -> Result<()> {
    if elsewhere.is_none_or(|elsewhere| elsewhere.in_part) {
        out.write_all(b"numactl")?;
        for option in plan.numactl() {
            write!(out, " {option}")?;
        }
        for word in command {
            out.write_all(b" ")?;
            out.write_all(&shell::quoted(word).context("an argument has a zero byte")?)?;
        }
        writeln!(out)?;
    }
    if plan.cpu_node != plan.memory_node {
        comment(out, &apart(plan))?;
    }
    if let Some(elsewhere) = elsewhere {
        comment(out, &elsewhere.to_string())?;
    }
    if let Some(warning) = contradiction::of(command, inherited, plan) {
        comment(out, &warning)?;
    }
    let own = match engine_flags::of(command, plan, gpus) {
        Some(own) => match own.flags {
            Some(flags) => format!("{}'s own: {flags} ({})", own.engine, own.remark),
            None => format!("{}'s own: {}", own.engine, own.remark),
        },
        None => "the engine's own: none known".to_owned(),
    };
    comment(out, &own)
}

/// One line that a shell skips: a newline of an argument would end it, and the rest would be run.
fn comment(out: &mut impl Write, text: &str) -> Result<()> {
    let line = text.replace(char::is_control, " ");
    Ok(writeln!(out, "# {line}")?)
}

/// Numbers by which the engine will know its GPUs: what it may see is counted from 0.
fn as_cuda_numbers(gpus: &[Gpu]) -> Vec<u32> {
    if std::env::var_os("CUDA_VISIBLE_DEVICES").is_some() {
        return (0..).take(gpus.len()).collect();
    }
    gpus.iter().filter_map(|gpu| gpu.number).collect()
}

/// A variable of the environment that the command inherits.
fn inherited(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn apart(plan: &Plan) -> String {
    let (memory, cpu) = (plan.memory_node, plan.cpu_node);
    format!("node {memory} has no CPUs: memory there, threads on node {cpu}, the nearest")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `--dry-run` prints.
    fn printed(command: &[&str]) -> String {
        let plan = Plan {
            memory_node: 1,
            cpu_node: 1,
            cpus: vec![4, 5],
        };
        let command: Vec<OsString> = command.iter().map(Into::into).collect();
        let elsewhere = elsewhere::of(&command, &plan, false);
        let mut out = Vec::new();
        print(&mut out, &command, &plan, elsewhere.as_ref(), &[]).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_refused_client_is_comments_alone_whatever_its_arguments_are() {
        let text = printed(&["docker", "run", "-e", "A=\nreboot", "i"]);
        assert!(text.contains("# docker: "), "{text}");
        assert!(text.lines().all(|line| line.starts_with("# ")), "{text}");
    }

    #[test]
    fn a_newline_of_an_argument_ends_no_comment() {
        let text = printed(&["numactl", "--membind=0\r\nreboot", "true"]);
        let (line, comments) = text.split_once("\n# ").unwrap();
        let words = ["numactl", "--membind=0\r\nreboot", "true"];
        let read = shlex::split(line).unwrap();
        assert_eq!(read[read.len() - 3..], words, "{line}");
        assert!(comments.starts_with("numactl --membind=0  reboot binds"));
        let after = comments.lines().skip(1);
        assert_eq!(
            after.collect::<Vec<_>>(),
            ["# the engine's own: none known"]
        );
    }
}
