//! A cgroup with a cpuset, for a workload to be confined to.

use anyhow::{Context as _, Result};
use std::path::Path;

/// Where the guest has the unified hierarchy.
const CGROUPS: &str = "/sys/fs/cgroup";

/// A cgroup with a cpuset; gone on drop.
#[derive(Debug)]
pub struct Cgroup(String);

impl Cgroup {
    /// Makes it, with these settings.
    ///
    /// # Errors
    /// When it is there already, or a setting is refused.
    pub fn create(name: &str, settings: &[(&str, &str)]) -> Result<Self> {
        write(&format!("{CGROUPS}/cgroup.subtree_control"), "+cpuset")?;
        let path = format!("{CGROUPS}/{name}");
        std::fs::create_dir(&path).with_context(|| path.clone())?;
        let cgroup = Self(path);
        cgroup.set(settings)?;
        Ok(cgroup)
    }

    /// Changes settings.
    ///
    /// # Errors
    /// When one is refused.
    pub fn set(&self, settings: &[(&str, &str)]) -> Result<()> {
        settings
            .iter()
            .try_for_each(|(file, value)| write(&format!("{}/{file}", self.0), value))
    }

    /// A shell's words to enter it.
    #[must_use]
    pub fn join(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Whoever was in it may still be on the way out.
        for _ in 0..100 {
            if !Path::new(&self.0).exists() || std::fs::remove_dir(&self.0).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let _ = std::fs::write(format!("{CGROUPS}/cgroup.subtree_control"), "-cpuset");
    }
}

fn write(file: &str, value: &str) -> Result<()> {
    std::fs::write(file, value).with_context(|| format!("{file} = {value}"))
}
