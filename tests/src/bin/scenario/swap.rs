//! A swap file that is on for as long as it is needed.

use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the guest has a disk: tmpfs can hold no swap file.
const DISK: &str = "/disk";
const BYTES: usize = 24 << 20;

/// A swap file; off and gone on drop.
#[derive(Debug)]
pub(crate) struct Swap(PathBuf);

impl Swap {
    /// Makes the file and switches it on.
    pub(crate) fn on() -> Result<Self> {
        let swap = Self(Path::new(DISK).join("workload.swap"));
        // All of it written: the kernel takes no file with holes.
        std::fs::write(&swap.0, vec![0u8; BYTES]).with_context(|| swap.0.display().to_string())?;
        run("mkswap", &swap.0)?;
        run("swapon", &swap.0)?;
        Ok(swap)
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let _ = run("swapoff", &self.0);
        let _ = std::fs::remove_file(&self.0);
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
