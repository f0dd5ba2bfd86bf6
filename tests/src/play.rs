//! Plays a session: starts the workloads, has numawatch watch them, lets them work, and collects what everybody said.

use crate::forced::force;
use crate::process::Running;
use crate::session::{Nodes, Report, Session, Watch, WorkloadReport};
use crate::settings::Settings;
use crate::truth::{Ready, Truth};
use anyhow::{Context as _, Result, ensure};
use model::signal::Mechanism;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

/// The programs that take part.
#[derive(Clone, Debug)]
pub struct Tools {
    /// `numawatch`.
    pub numawatch: PathBuf,
    /// `workload`.
    pub workload: PathBuf,
}

impl Tools {
    /// As the guest has them.
    #[must_use]
    pub fn on_path() -> Self {
        Self {
            numawatch: "numawatch".into(),
            workload: "workload".into(),
        }
    }
}

/// Plays it on a machine of two nodes. What goes wrong is in the report, beside what went well before.
#[must_use]
pub fn play(session: &Session, tools: &Tools) -> Report {
    play_on(session, tools, &Nodes::TWO, None)
}

/// As [`play`], on these nodes and at best on this rung; workloads that need a node which isn't there are left out.
#[must_use]
pub fn play_on(
    session: &Session,
    tools: &Tools,
    nodes: &Nodes,
    forced: Option<Mechanism>,
) -> Report {
    let mut report = Report {
        session: session.name.to_owned(),
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_or_else(|_| String::new(), |release| release.trim().to_owned()),
        ..Report::default()
    };
    let killed = oom_kills();
    if let Err(error) = play_into(session, tools, nodes, forced, &mut report) {
        report.error = Some(format!("{error:#}"));
    }
    // Whatever else went wrong then, went wrong because of it.
    let killed = oom_kills().saturating_sub(killed);
    if killed > 0 {
        let then = report.error.take();
        let then = then.as_deref().unwrap_or("nothing else went wrong");
        report.error = Some(format!(
            "memory ran out, and the kernel killed processes ({killed}): give the guest more (--memory); then: {then}"
        ));
    }
    report
}

/// Processes that the kernel has killed for want of memory, since boot.
fn oom_kills() -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok())
        .unwrap_or(0)
}

fn play_into(
    session: &Session,
    tools: &Tools,
    nodes: &Nodes,
    forced: Option<Mechanism>,
    report: &mut Report,
) -> Result<()> {
    // `/proc/vmstat` would count hint faults of this process and of numawatch, most of them while nobody watches: when
    // numawatch starts and prints, and this one reads that.
    set_policy(LEFT_OUT).context("set_mempolicy")?;
    let _settings = Settings::apply(session.settings, nodes)?;
    let mut workloads = Vec::new();
    for (name, arguments) in session.workloads {
        let Some(arguments) = nodes.fill(arguments) else {
            continue;
        };
        let mut command = Command::new(&tools.workload);
        command.args(arguments.split_ascii_whitespace());
        // SAFETY: a system call between fork and exec, on the child alone.
        unsafe { command.pre_exec(|| set_policy(BALANCED)) };
        let mut running = Running::start(&mut command)?;
        let ready: Ready = running
            .json_line()
            .with_context(|| format!("workload {name}"))?;
        workloads.push((*name, ready.pid, running));
    }

    let mut command = Command::new(&tools.numawatch);
    command.args(["snapshot", "--json", "--for", "600s"]);
    command.args(session.options.split_ascii_whitespace());
    match session.watch {
        Watch::All => {
            command.arg("--all");
        }
        Watch::Pids => {
            for (_, pid, _) in &workloads {
                command.args(["--pid", &pid.to_string()]);
            }
        }
    }
    if let Some(rung) = forced {
        force(&mut command, rung);
    }
    let born = vmstat()?;
    let mut numawatch = Running::start(&mut command)?;
    let played = watch(&mut numawatch, &mut workloads, report);
    report.stderr = numawatch.stderr_so_far();
    let began = played?;
    let so_far = |pid| on_cpu_ns(pid).saturating_sub(began.get(&pid).copied().unwrap_or(0));
    for workload in report.workloads.values_mut() {
        workload.watched_cpu_ns = so_far(workload.pid);
    }
    numawatch.interrupt();
    let ended = numawatch.wait();
    report.vmstat_at_most = grown(&born, &vmstat()?);
    for workload in report.workloads.values_mut() {
        workload.printed_cpu_ns = so_far(workload.pid);
    }
    report.stderr = numawatch.stderr_so_far();
    let (status, stdout) = ended.context("numawatch snapshot")?;
    report.exit_code = status.code();
    let document = serde_json::from_str(&stdout);
    report.snapshot = Some(document.with_context(|| format!("numawatch's stdout: {stdout:.400}"))?);
    for (name, _, mut running) in workloads {
        let last = end(&mut running).with_context(|| format!("workload {name}"))?;
        if let Some(workload) = report.workloads.get_mut(name) {
            workload.last_truth = last;
        }
    }
    Ok(())
}

/// Memory policies that take no nodes: both put pages where the task runs, but the kernel's scans for NUMA balancing
/// leave out a task that has one of its own.
const BALANCED: libc::c_int = libc::MPOL_DEFAULT;
const LEFT_OUT: libc::c_int = libc::MPOL_LOCAL;

/// Of the calling thread, and of those that it makes from now on.
fn set_policy(mode: libc::c_int) -> std::io::Result<()> {
    // SAFETY: these policies take no nodes.
    let done = unsafe {
        libc::syscall(
            libc::SYS_set_mempolicy,
            mode,
            std::ptr::null::<libc::c_ulong>(),
            0,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// From the moment when numawatch says that it watches, to the last workload's report. Gives what the scheduler had
/// counted for each at the first moment.
fn watch(
    numawatch: &mut Running,
    workloads: &mut [(&str, u32, Running)],
    report: &mut Report,
) -> Result<BTreeMap<u32, u64>> {
    numawatch
        .stderr_line(|line| line.starts_with("numawatch: watching "))
        .context("numawatch snapshot")?;
    let began = workloads
        .iter()
        .map(|(_, pid, _)| (*pid, on_cpu_ns(*pid)))
        .collect();
    let before = vmstat()?;
    for (name, pid, running) in workloads {
        running.say_go()?;
        let truth: Truth = running
            .json_line()
            .with_context(|| format!("workload {name}"))?;
        ensure!(truth.done, "workload {name} reported too early");
        let done = WorkloadReport {
            pid: *pid,
            truth,
            last_truth: None,
            watched_cpu_ns: 0,
            printed_cpu_ns: 0,
        };
        report.workloads.insert((*name).to_owned(), done);
    }
    report.vmstat = grown(&before, &vmstat()?);
    Ok(began)
}

/// What the kernel's scheduler says of a process's live threads; a tick old for those that run.
fn on_cpu_ns(pid: u32) -> u64 {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return 0;
    };
    let ns = |thread: std::fs::DirEntry| -> Option<u64> {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_ascii_whitespace().next()?.parse().ok()
    };
    threads.flatten().filter_map(ns).sum()
}

/// Lets a workload go; the last report that it makes then, if it does.
fn end(running: &mut Running) -> Result<Option<Truth>> {
    running.say_go()?;
    running.close_stdin();
    let (status, stdout) = running.wait()?;
    ensure!(status.success(), "{status}");
    stdout
        .lines()
        .next_back()
        .map(serde_json::from_str)
        .transpose()
        .context("its last line")
}

fn grown(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let grown = |(name, after): (&String, &u64)| {
        (
            name.clone(),
            after.saturating_sub(before.get(name).copied().unwrap_or(0)),
        )
    };
    after.iter().map(grown).collect()
}

fn vmstat() -> Result<BTreeMap<String, u64>> {
    let text = std::fs::read_to_string("/proc/vmstat").context("/proc/vmstat")?;
    let numbers = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    Ok(numbers
        .filter(|(name, _)| name.starts_with("numa_") || name.starts_with("pg"))
        .collect())
}
