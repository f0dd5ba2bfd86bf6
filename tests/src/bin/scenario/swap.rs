//! A swap that is on for as long as it is needed: a file on the guest's disk, or a disk in memory (brd), which the kernel
//! reads at once and without its swap cache.

use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the guest has a disk: tmpfs can hold no swap file.
const DISK: &str = "/disk";
const BYTES: usize = 24 << 20;

/// The module brd's first.
const IN_MEMORY: &str = "/dev/ram0";

/// Off on drop, and the file gone.
#[derive(Debug)]
pub(crate) struct Swap(PathBuf);

impl Swap {
    /// Makes the file and switches it on.
    pub(crate) fn on_disk() -> Result<Self> {
        let swap = Self(Path::new(DISK).join("workload.swap"));
        // All of it written: the kernel takes no file with holes.
        std::fs::write(&swap.0, vec![0u8; BYTES]).with_context(|| swap.0.display().to_string())?;
        swap.switch_on()
    }

    /// Switches the disk in memory on.
    pub(crate) fn in_memory() -> Result<Self> {
        Self(IN_MEMORY.into()).switch_on()
    }

    fn switch_on(self) -> Result<Self> {
        run("mkswap", &self.0)?;
        run("swapon", &self.0)?;
        Ok(self)
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let _ = run("swapoff", &self.0);
        if self.0 != Path::new(IN_MEMORY) {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

fn run(tool: &str, file: &Path) -> Result<()> {
    let output = Command::new(tool)
        .arg(file)
        .output()
        .with_context(|| tool.to_owned())?;
    ensure!(
        output.status.success(),
        "{tool}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
