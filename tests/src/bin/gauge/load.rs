//! The loads, each on one CPU. A turn's time is CPU time: on a CPU that others use too, the wall clock counts them.

use anyhow::{Context as _, Result};
use std::io::{Error, Read as _, Write as _};

/// Two processes that wake each other through pipes: each turn is two context switches. The second one is a child.
pub(crate) struct PingPong {
    child: libc::pid_t,
    there: std::io::PipeWriter,
    back: std::io::PipeReader,
}

impl PingPong {
    /// Starts the second process. Both run where the caller does.
    pub(crate) fn start() -> Result<Self> {
        let (mut from_parent, there) = std::io::pipe()?;
        let (back, mut to_parent) = std::io::pipe()?;
        // SAFETY: this program has one thread; the child only reads and writes, then leaves.
        let child = unsafe { libc::fork() };
        if child < 0 {
            return Err(Error::last_os_error()).context("fork");
        }
        if child == 0 {
            drop((there, back));
            let mut byte = [0];
            while from_parent.read_exact(&mut byte).is_ok() && to_parent.write_all(&byte).is_ok() {}
            // SAFETY: ends the child without running the parent's destructors.
            unsafe { libc::_exit(0) };
        }
        Ok(Self { child, there, back })
    }

    /// The second process.
    pub(crate) fn partner(&self) -> u32 {
        self.child.cast_unsigned()
    }

    /// So many context switches: the CPU time of both.
    pub(crate) fn run(&mut self, switches: u64) -> Result<u64> {
        let mut byte = [0];
        let began = cpu_ns(0) + cpu_ns(self.child);
        for _ in 0..switches / 2 {
            self.there.write_all(&byte)?;
            self.back.read_exact(&mut byte)?;
        }
        Ok(cpu_ns(0) + cpu_ns(self.child) - began)
    }
}

/// CPU time of a process (0: the caller), nanoseconds.
fn cpu_ns(pid: libc::pid_t) -> u64 {
    let mut at = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // As clock_getcpuclockid makes it: the complement of the pid, and the kernel's CPUCLOCK_SCHED (2).
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime((!pid << 3) | 2, &raw mut at) };
    at.tv_sec.cast_unsigned() * 1_000_000_000 + at.tv_nsec.cast_unsigned()
}

impl Drop for PingPong {
    fn drop(&mut self) {
        // SAFETY: our own child, not yet waited for.
        unsafe {
            libc::kill(self.child, libc::SIGKILL);
            libc::waitpid(self.child, std::ptr::null_mut(), 0);
        }
    }
}

/// Pages that a round of faults touches before it gives them back: 4 MiB.
const ROUND: u64 = 1024;

/// Touches this many fresh pages of private memory, in rounds: its CPU time.
pub(crate) fn faults(pages: u64) -> Result<u64> {
    const PAGE: usize = 4096;
    let bytes = usize::try_from(ROUND)? * PAGE;
    let began = cpu_ns(0);
    for _ in 0..pages / ROUND {
        // SAFETY: a new mapping, touched within its bounds and unmapped again.
        unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if start == libc::MAP_FAILED {
                return Err(Error::last_os_error()).context("mmap");
            }
            libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE);
            for at in (0..bytes).step_by(PAGE) {
                start.cast::<u8>().add(at).write_volatile(1);
            }
            libc::munmap(start, bytes);
        }
    }
    Ok(cpu_ns(0) - began)
}
