//! Where `/proc` and `/sys` are: the machine's, a container's mount of the host's, or a test's.

use crate::host::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The two file systems that everything about the host is read from.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    proc: PathBuf,
    sys: PathBuf,
}

impl Root {
    /// The machine that the agent runs on.
    pub(crate) fn system() -> Self {
        Self::new("/proc", "/sys")
    }

    /// Other mount points, as in a container that has the host's `/proc` on `/host/proc`.
    pub(crate) fn new(proc: impl Into<PathBuf>, sys: impl Into<PathBuf>) -> Self {
        Self {
            proc: proc.into(),
            sys: sys.into(),
        }
    }

    /// A path below `/proc`.
    pub(crate) fn proc(&self, below: impl AsRef<Path>) -> PathBuf {
        self.proc.join(below)
    }

    /// A path below `/sys`.
    pub(crate) fn sys(&self, below: impl AsRef<Path>) -> PathBuf {
        self.sys.join(below)
    }

    /// The directory of a process.
    pub(crate) fn process(&self, pid: u32) -> PathBuf {
        self.proc.join(pid.to_string())
    }
}

/// A whole small file as text, bytes that are no UTF-8 replaced.
///
/// # Errors
/// [`Error::Denied`] or [`Error::Io`].
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(text(bytes)),
        Err(source) => Err(Error::io(path, source)),
    }
}

/// As [`read`]; `None` where the kernel has no such file.
///
/// # Errors
/// [`Error::Denied`] or [`Error::Io`], but not for a file that isn't there.
pub(crate) fn read_if_present(path: &Path) -> Result<Option<String>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(text(bytes))),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::io(path, source)),
    }
}

/// Bytes as text without a copy where they are UTF-8, which they nearly always are.
pub(crate) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
