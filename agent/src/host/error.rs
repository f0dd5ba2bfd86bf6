//! What can go wrong while the host is read.

use std::io;
use std::path::{Path, PathBuf};

/// A failed read below `/proc` or `/sys`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The process ended, before or while it was read. Expected, and no failure of the agent.
    #[error("process {pid} has ended")]
    Gone {
        /// The process.
        pid: u32,
    },
    /// The kernel refuses this reader.
    #[error("{}: permission denied (run as root, or with CAP_SYS_PTRACE)", path.display())]
    Denied {
        /// The file.
        path: PathBuf,
    },
    /// Any other failed read.
    #[error("can't read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file doesn't say what its format promises.
    #[error("{}: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is missing or unexpected.
        what: String,
    },
}

impl Error {
    /// A failed read of one of the host's own files.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied { path },
            _ => Self::Io { path, source },
        }
    }

    /// A failed read of a process's file: not found and ESRCH mean that the process ended.
    pub(crate) fn process_io(pid: u32, path: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::NotFound || source.raw_os_error() == Some(libc::ESRCH) {
            return Self::Gone { pid };
        }
        Self::io(path, source)
    }

    /// A file that doesn't say what its format promises.
    pub(crate) fn format(path: &Path, what: impl Into<String>) -> Self {
        Self::Format {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    /// Whether it only means that the process ended.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Gone { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ends_is_gone_whichever_way_the_kernel_says_it() {
        let path = Path::new("/proc/7/stat");
        for code in [libc::ENOENT, libc::ESRCH] {
            let error = Error::process_io(7, path, io::Error::from_raw_os_error(code));
            assert!(error.is_gone(), "{error}");
        }
    }

    #[test]
    fn a_refused_read_is_not_an_ended_process() {
        let error = Error::process_io(
            7,
            Path::new("/proc/7/numa_maps"),
            io::Error::from_raw_os_error(libc::EACCES),
        );
        assert!(matches!(error, Error::Denied { .. }), "{error}");
    }
}
