//! The loads, each on one CPU.

use anyhow::{Context as _, Result};
use std::io::{Error, Read as _, Write as _};
use std::time::{Duration, Instant};

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

    /// So many context switches.
    pub(crate) fn run(&mut self, switches: u64) -> Result<Duration> {
        let mut byte = [0];
        let began = Instant::now();
        for _ in 0..switches / 2 {
            self.there.write_all(&byte)?;
            self.back.read_exact(&mut byte)?;
        }
        Ok(began.elapsed())
    }
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

/// Touches this many fresh pages of private memory, in rounds.
pub(crate) fn faults(pages: u64) -> Result<Duration> {
    const PAGE: usize = 4096;
    let bytes = usize::try_from(ROUND)? * PAGE;
    let began = Instant::now();
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
    Ok(began.elapsed())
}
