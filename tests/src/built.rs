//! The programs under test on this machine: as xtask built them, or as cargo does now.

use crate::play::Tools;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Both programs; `workload` is the one that cargo built with the tests.
///
/// # Panics
/// When numawatch can't be built.
#[must_use]
pub fn tools(workload: &str) -> Tools {
    Tools {
        numawatch: numawatch(),
        workload: PathBuf::from(workload),
    }
}

/// `NUMAWATCH_BIN`, or what `cargo build` makes now: an old one would be tested otherwise.
///
/// # Panics
/// When it can't be built.
#[must_use]
pub fn numawatch() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT
        .get_or_init(|| std::env::var_os("NUMAWATCH_BIN").map_or_else(build, PathBuf::from))
        .clone()
}

fn build() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--package", "numawatch"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(
        status.as_ref().is_ok_and(std::process::ExitStatus::success),
        "cannot build numawatch: {status:?}"
    );
    // Beside the directory of this test program.
    let own = std::env::current_exe().ok();
    match own.as_deref().and_then(|own| own.parent()?.parent()) {
        Some(directory) => directory.join("numawatch"),
        None => panic!("no directory for numawatch: {own:?}"),
    }
}

/// Debian's `nobody`: a user with no privileges.
pub const NOBODY: u32 = 65534;

/// A copy of a program that [`NOBODY`] may run, wherever it was built; gone on drop.
#[derive(Debug)]
pub struct PublicCopy(PathBuf);

impl PublicCopy {
    /// Makes it.
    ///
    /// # Panics
    /// When the directory for temporary files takes no more.
    #[must_use]
    pub fn of(program: &Path) -> Self {
        let own = format!(
            "numawatch-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        );
        let copy = Self(std::env::temp_dir().join(own));
        // By a process of its own: what another test forks meanwhile would keep the file open for writing, and nobody may
        // run it then.
        let mut install = std::process::Command::new("install");
        let copied = install.arg("-m755").arg(program).arg(&copy.0).status();
        assert!(
            copied.as_ref().is_ok_and(std::process::ExitStatus::success),
            "{} -> {}: {copied:?}",
            program.display(),
            copy.0.display()
        );
        copy
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PublicCopy {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
