//! When a workload begins and ends: it says ready, is released, says what it did, and is let go.

use crate::sys;
use anyhow::{Context as _, Result};
use clap::Args;
use serde::Serialize;
use std::io::Write as _;
use std::time::Duration;
use tests::truth::{ProcessTruth, Ready, ThreadTruth, Truth};

/// How a workload waits; the same for all.
#[derive(Args, Clone, Debug)]
pub(crate) struct Stage {
    /// Begin at once, instead of on a line on stdin.
    #[arg(long, global = true)]
    no_wait: bool,
    /// Stay alive this long after the report, instead of until a line on stdin.
    #[arg(long, global = true, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=3600))]
    hold: Option<u64>,
    /// Be killed after this long, whatever happens.
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) limit: u32,
}

impl Stage {
    /// Says ready and waits for the release. The main thread should be where it will work.
    pub(crate) fn ready(&self) -> Result<()> {
        print(&Ready {
            ready: true,
            pid: std::process::id(),
        })?;
        if !self.no_wait {
            wait_for_line()?;
        }
        Ok(())
    }

    /// Reports, and waits to be let go.
    pub(crate) fn done(
        &self,
        workload: &str,
        began: &Clock,
        processes: Vec<ProcessTruth>,
    ) -> Result<()> {
        print(&Truth {
            done: true,
            workload: workload.to_owned(),
            processes,
            elapsed_ns: sys::monotonic_ns() - began.monotonic,
        })?;
        match self.hold {
            Some(seconds) => std::thread::sleep(Duration::from_secs(seconds)),
            None => wait_for_line()?,
        }
        Ok(())
    }

    /// The flags that say the same to another run of this program.
    pub(crate) fn as_arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--limit".to_owned(), self.limit.to_string()];
        if let Some(hold) = self.hold {
            arguments.extend(["--hold".to_owned(), hold.to_string()]);
        }
        arguments
    }
}

/// The calling thread's clocks at the release, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) monotonic: u64,
    pub(crate) thread_cpu: u64,
    pub(crate) process_cpu: u64,
}

impl Clock {
    /// Now.
    pub(crate) fn start() -> Self {
        Self {
            monotonic: sys::monotonic_ns(),
            thread_cpu: sys::thread_cpu_ns(),
            process_cpu: sys::process_cpu_ns(),
        }
    }

    /// A process's truth with the calling thread as its leader, which has been on `node` since.
    pub(crate) fn process(&self, part: &str, node: u32) -> ProcessTruth {
        let mut truth = ProcessTruth {
            pid: std::process::id(),
            parent_pid: std::os::unix::process::parent_id(),
            part: part.to_owned(),
            ..ProcessTruth::default()
        };
        truth.add_thread(self.thread(node));
        truth.process_cpu_time_ns = sys::process_cpu_ns() - self.process_cpu;
        truth
    }

    /// The calling thread, which has been on `node` since.
    pub(crate) fn thread(&self, node: u32) -> ThreadTruth {
        ThreadTruth {
            tid: sys::tid(),
            name: thread_name(),
            cpu_time_ns_by_node: [(node, sys::thread_cpu_ns() - self.thread_cpu)].into(),
            moves: 0,
        }
    }
}

/// The calling thread's name.
pub(crate) fn thread_name() -> String {
    std::fs::read_to_string("/proc/thread-self/comm")
        .map_or_else(|_| String::new(), |name| name.trim_end().to_owned())
}

fn print(line: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(&text)
        .and_then(|()| stdout.flush())
        .context("stdout")
}

/// Waits for a line or the end of stdin; byte by byte, so that nothing is lost in a buffer at exec.
pub(crate) fn wait_for_line() -> Result<()> {
    let mut byte = 0u8;
    loop {
        // SAFETY: the kernel writes at most one byte.
        let read = unsafe { libc::read(libc::STDIN_FILENO, (&raw mut byte).cast(), 1) };
        match read {
            0 => return Ok(()),
            1 if byte == b'\n' => return Ok(()),
            1 => {}
            _ => {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(error).context("stdin");
                }
            }
        }
    }
}
