//! A child that makes events: started, spoken to in lines, and reaped on every way out.

use super::child::{Ready, Task};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The hidden subcommand that runs [`super::child::run`].
pub(crate) const SUBCOMMAND: &str = "self-test-events";

/// See the module's doc.
pub(super) struct Process {
    child: Child,
    stdout: ChildStdout,
    heard: Vec<u8>,
    /// Its pid in the host's `/proc`.
    pub(super) pid: u32,
}

impl Process {
    /// Starts one and waits until it is ready. It ends with the thread that calls this.
    pub(super) fn start(task: &Task, at_most: Duration) -> Result<Self> {
        let mut child = Command::new("/proc/self/exe")
            .arg(SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The dashboard may have the terminal.
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start numawatch once more")?;
        let Some(stdout) = child.stdout.take() else {
            bail!("the child has no stdout");
        };
        let mut process = Self {
            child,
            stdout,
            heard: Vec::new(),
            pid: 0,
        };
        process.tell(task)?;
        let ready: Ready = process.answer(Instant::now() + at_most)?;
        process.pid = ready.pid;
        Ok(process)
    }

    /// Lets it begin.
    pub(super) fn go(&mut self) -> Result<()> {
        self.tell(&())
    }

    fn tell(&mut self, what: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_vec(what)?;
        text.push(b'\n');
        let stdin = self
            .child
            .stdin
            .as_mut()
            .context("the child has no stdin")?;
        stdin.write_all(&text).context("the child does not listen")
    }

    /// Its next line.
    pub(super) fn answer<T: DeserializeOwned>(&mut self, until: Instant) -> Result<T> {
        loop {
            if let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.heard.drain(..=end).collect();
                return serde_json::from_slice(&line).context("the child's answer");
            }
            let left = until.saturating_duration_since(Instant::now());
            let mut poll = libc::pollfd {
                fd: self.stdout.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            let millis = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
            // SAFETY: one pollfd, whose descriptor is open.
            let ready = unsafe { libc::poll(&raw mut poll, 1, millis) };
            if ready == 0 {
                bail!("the process that makes events does not answer");
            }
            let mut bytes = [0; 4096];
            match self.stdout.read(&mut bytes) {
                Ok(0) => bail!("the process that makes events has ended: {}", self.end()),
                Ok(n) => self.heard.extend_from_slice(&bytes[..n]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("the child's answer"),
            }
        }
    }

    fn end(&mut self) -> String {
        self.child
            .wait()
            .map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It ends with its stdin, and has by then waited for what it forked; else that ends with it.
        drop(self.child.stdin.take());
        let end = Instant::now() + Duration::from_millis(500);
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
