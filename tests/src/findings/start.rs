//! Starts a tenant with the CPUs and the memory policy that somebody gave it.

use super::Told;
use crate::process::Running;
use anyhow::{Context as _, Result};
use std::io::Error;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// What a process is started with, as `numactl` would.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given<'a> {
    /// The CPUs that it may run on; empty for all.
    pub(super) cpus: &'a [usize],
    /// Its memory policy's mode and node.
    pub(super) policy: Option<(i32, u32)>,
}

/// A tenant, and what it said when all of it was there.
#[derive(Debug)]
pub(super) struct Tenant {
    pub(super) running: Running,
    pub(super) told: Told,
}

impl Tenant {
    /// Starts a shell's command as it is given.
    pub(super) fn start(given: Given<'_>, script: &str) -> Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut set: libc::cpu_set_t = {
            // SAFETY: all zeros are the empty set.
            unsafe { std::mem::zeroed() }
        };
        for cpu in given.cpus {
            // SAFETY: below the set's size.
            unsafe { libc::CPU_SET(*cpu, &mut set) };
        }
        let cpus = (!given.cpus.is_empty()).then_some(set);
        let policy = given.policy;
        // SAFETY: system calls between fork and exec, on the child alone.
        unsafe {
            command.pre_exec(move || {
                if let Some(set) = &cpus
                    && libc::sched_setaffinity(0, size_of_val(set), set) != 0
                {
                    return Err(Error::last_os_error());
                }
                let Some((mode, node)) = policy else {
                    return Ok(());
                };
                let mask = 1u64 << node;
                match libc::syscall(libc::SYS_set_mempolicy, mode, &raw const mask, 64) {
                    0 => Ok(()),
                    _ => Err(Error::last_os_error()),
                }
            });
        }
        let mut running = Running::start(&mut command)?;
        let told = running.json_line().with_context(|| script.to_owned())?;
        Ok(Self { running, told })
    }

    /// Its pid.
    pub(super) fn pid(&self) -> u32 {
        self.told.pid
    }

    /// Ends it; what it said last, if it said more.
    pub(super) fn end(mut self) -> Result<Option<Told>> {
        self.running.close_stdin();
        let (status, stdout) = self.running.wait()?;
        anyhow::ensure!(status.success(), "process {}: {status}", self.told.pid);
        let last = stdout.lines().next_back();
        last.map(serde_json::from_str).transpose().context(stdout)
    }
}
