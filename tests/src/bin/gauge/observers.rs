//! Those that watch the load beside each other: numawatch, and bpftrace with a script.

use crate::programs;
use ::tests::process::Running;
use anyhow::{Context as _, Result, bail};
use model::snapshot::Snapshot;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// What is compared between two that count the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// Nanoseconds on a CPU.
    OnCpu,
    /// Pages touched first.
    FirstTouch,
}

/// numawatch at work.
pub(crate) struct Numawatch(Running);

impl Numawatch {
    /// Starts it, and waits until it watches.
    pub(crate) fn start(program: &Path, pid: Option<u32>, options: &[String]) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["snapshot", "--json", "--for", "1h", "--interval", "1s"]);
        match pid {
            Some(pid) => command.args(["--pid", &pid.to_string()]),
            None => command.arg("--all"),
        };
        let mut running = Running::start(command.args(options))?;
        running
            .stderr_line(|line| line.starts_with("numawatch: watching"))
            .context("numawatch")?;
        Ok(Self(running))
    }

    /// Its programs.
    pub(crate) fn programs(&self) -> Result<BTreeSet<u32>> {
        programs::held_by(self.0.pid())
    }

    /// Ends it: what it counted of these processes.
    pub(crate) fn end(mut self, count: Count, pids: &[u32]) -> Result<u64> {
        self.0.interrupt();
        let (status, text) = self.0.wait()?;
        if !status.success() {
            bail!("numawatch: {status}: {}", self.0.stderr_so_far());
        }
        let snapshot: Snapshot = serde_json::from_str(&text).context("numawatch's snapshot")?;
        let processes = snapshot.processes.iter().filter(|p| pids.contains(&p.pid));
        Ok(processes
            .map(|process| match count {
                Count::OnCpu => process
                    .cpu_time_ns_by_node
                    .iter()
                    .flat_map(|by_node| by_node.values())
                    .sum(),
                Count::FirstTouch => process.touches.first_touch.pages.unwrap_or(0),
            })
            .sum())
    }
}

/// bpftrace at work. Its script adds what it counts to `@counted[pid, …]`.
pub(crate) struct Bpftrace(Running);

impl Bpftrace {
    /// Starts it, and waits until each of its programs has run: it tells that it attaches before it does. Needs the
    /// statistics.
    pub(crate) fn start(program: &Path, script: &Path, argument: u32) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .args(["-q", "-B", "none"])
            .arg(script)
            .arg(argument.to_string());
        let mut running = Running::start(&mut command)?;
        let own = programs::held_by(std::process::id())?;
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let mut held = programs::held_by(running.pid()).unwrap_or_default();
            // Until it has become bpftrace, it is a copy of this process.
            held.retain(|id| !own.contains(id));
            let have_run = held
                .iter()
                .all(|&id| programs::read(id).is_ok_and(|program| program.runs > 0));
            if !held.is_empty() && have_run {
                return Ok(Self(running));
            }
            if Instant::now() > end {
                bail!(
                    "bpftrace does not begin to count: {}",
                    running.stderr_so_far()
                );
            }
            // On a quiet machine nobody else has the kernel fault on user memory: this page is fresh, since malloc
            // reuses no block above its largest threshold (32 MiB).
            let mut fresh = vec![0; 64 << 20];
            let _ = File::open("/dev/zero")?.read(&mut fresh[..4096])?;
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Its programs.
    pub(crate) fn programs(&self) -> Result<BTreeSet<u32>> {
        programs::held_by(self.0.pid())
    }

    /// Ends it: what it counted of these processes.
    pub(crate) fn end(mut self, pids: &[u32]) -> Result<u64> {
        self.0.interrupt();
        let (status, text) = self.0.wait()?;
        if !status.success() {
            bail!("bpftrace: {status}: {}", self.0.stderr_so_far());
        }
        Ok(counted(&text, pids))
    }
}

/// Sums the lines `@counted[PID, …]: N` of these processes.
fn counted(text: &str, pids: &[u32]) -> u64 {
    text.lines()
        .filter_map(|line| {
            let (key, n) = line.strip_prefix("@counted[")?.split_once("]: ")?;
            let pid = key.split(',').next()?;
            pids.contains(&pid.parse().ok()?)
                .then(|| n.trim().parse::<u64>().ok())?
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bpftrace_says_what_it_counted() {
        let text = "\n@counted[17]: 5\n@counted[18, 1]: 70\n@counted[99]: 800\n@since[17]: 9000\n";
        assert_eq!(counted(text, &[17, 18]), 75);
    }
}
