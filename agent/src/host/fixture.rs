//! A small `/proc` and `/sys` in a temporary directory, for tests.

use crate::host::root::Root;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory with `proc` and `sys`, removed when dropped.
pub(crate) struct Fixture {
    base: PathBuf,
}

impl Fixture {
    /// An empty one.
    pub(crate) fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let base =
            std::env::temp_dir().join(format!("numawatch-host-{}-{number}", std::process::id()));
        fs::create_dir_all(base.join("proc")).unwrap();
        fs::create_dir_all(base.join("sys")).unwrap();
        Self { base }
    }

    /// One with these files; a path starts with `proc/` or `sys/`.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let fixture = Self::new();
        for (path, content) in files {
            fixture.file(path, content);
        }
        fixture
    }

    /// Writes a file and the directories above it.
    pub(crate) fn file(&self, path: &str, content: &str) {
        let path = self.directory_of(path);
        fs::write(path, content).unwrap();
    }

    /// The same of what is no text.
    pub(crate) fn bytes(&self, path: &str, content: &[u8]) {
        let path = self.directory_of(path);
        fs::write(path, content).unwrap();
    }

    /// Puts a folder where a file was, so that no reader can read it, root neither.
    pub(crate) fn unreadable(&self, path: &str) {
        let path = self.base.join(path);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
    }

    /// Makes a symbolic link, which may lead nowhere, as those in `/proc/PID/fd` do.
    pub(crate) fn link(&self, path: &str, target: &str) {
        let path = self.directory_of(path);
        let _ = fs::remove_file(&path);
        symlink(target, path).unwrap();
    }

    /// Writes `/proc/PID` with the files that a scan reads.
    pub(crate) fn process(&self, pid: u32, start_time: u64, comm: &str, argv: &[&str]) {
        self.process_at(&format!("proc/{pid}"), pid, start_time, comm, argv);
    }

    /// Replaces `/proc/PID` by another process's with a new inode, as the kernel does.
    pub(crate) fn reuse_pid(&self, pid: u32, start_time: u64, comm: &str, argv: &[&str]) {
        self.process_at("new", pid, start_time, comm, argv);
        let target = self.base.join(format!("proc/{pid}"));
        fs::rename(&target, self.base.join("old")).unwrap();
        fs::rename(self.base.join("new"), target).unwrap();
        fs::remove_dir_all(self.base.join("old")).unwrap();
    }

    /// Removes a process.
    pub(crate) fn end(&self, pid: u32) {
        fs::remove_dir_all(self.base.join(format!("proc/{pid}"))).unwrap();
    }

    /// The root to hand to readers.
    pub(crate) fn root(&self) -> Root {
        Root::new(self.base.join("proc"), self.base.join("sys"))
    }

    fn process_at(&self, directory: &str, pid: u32, start_time: u64, comm: &str, argv: &[&str]) {
        self.file(&format!("{directory}/stat"), &stat(pid, start_time, comm));
        self.file(&format!("{directory}/comm"), &format!("{comm}\n"));
        let cmdline: String = argv.iter().flat_map(|a| [*a, "\0"]).collect();
        self.file(&format!("{directory}/cmdline"), &cmdline);
        fs::create_dir_all(self.base.join(directory).join("fd")).unwrap();
    }

    fn directory_of(&self, path: &str) -> PathBuf {
        let path = self.base.join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        path
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// A line of `/proc/PID/stat`: child of 1, one thread, 4 MiB of address space.
pub(crate) fn stat(pid: u32, start_time: u64, comm: &str) -> String {
    format!(
        "{pid} ({comm}) S 1 {pid} {pid} 0 -1 4194304 0 0 0 0 3 2 0 0 20 0 1 0 {start_time} \
         4194304 100 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )
}

/// The same of a kernel thread: the kernel's flag, and no address space.
pub(crate) fn kernel_thread_stat(pid: u32, start_time: u64, comm: &str) -> String {
    format!(
        "{pid} ({comm}) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 {start_time} \
         0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )
}
