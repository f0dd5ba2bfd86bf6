//! Where tracepoints are listed: bpftrace and classic tracepoint programs need it mounted.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;

const PLACE: &str = "/sys/kernel/tracing";

/// Mounted while this lives, and unmounted if it wasn't before.
pub(crate) struct Tracefs {
    is_ours: bool,
}

impl Tracefs {
    /// Mounts it where it is missing.
    pub(crate) fn provide() -> Result<Self> {
        let is_ours = !Path::new(PLACE).join("events").exists();
        if is_ours {
            let mut mount = Command::new("mount");
            command::output(mount.args(["-t", "tracefs", "none", PLACE]))
                .context("bpftrace needs tracefs")?;
        }
        Ok(Self { is_ours })
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = command::output(Command::new("umount").arg(PLACE));
        }
    }
}
