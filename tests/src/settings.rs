//! Kernel settings that a test changes, and gives back.

use crate::session::{Nodes, Setting};
use anyhow::{Context as _, Result};
use std::path::Path;

/// Settings as they were; written back on drop, the last first.
#[derive(Debug, Default)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// Applies them, with the nodes in their paths.
    ///
    /// # Errors
    /// When a setting that isn't optional can't be read or written; those before are given back.
    pub fn apply(settings: &[Setting], nodes: &Nodes) -> Result<Self> {
        let mut before = Self::default();
        for setting in settings {
            let Some(path) = nodes.fill(setting.path) else {
                continue;
            };
            if path.starts_with("/sys/kernel/debug/") {
                mount_debugfs()?;
            }
            if setting.optional && !Path::new(&path).exists() {
                continue;
            }
            let old = std::fs::read_to_string(&path).with_context(|| path.clone())?;
            std::fs::write(&path, setting.value)
                .with_context(|| format!("{path} = {}", setting.value))?;
            before.0.push((path, chosen(&old)));
        }
        Ok(before)
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        for (path, value) in self.0.iter().rev() {
            // Nothing better can be done in a drop; the next session says so when it can't write.
            let _ = std::fs::write(path, value);
        }
    }
}

/// The value of a file that is either the value itself or a list with the chosen one in brackets.
fn chosen(text: &str) -> String {
    let choice = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    choice.map_or(text.trim(), |(value, _)| value).to_owned()
}

fn mount_debugfs() -> Result<()> {
    if Path::new("/sys/kernel/debug/sched").exists() {
        return Ok(());
    }
    // SAFETY: all arguments are C strings or null, which means none.
    let done = unsafe {
        libc::mount(
            c"none".as_ptr(),
            c"/sys/kernel/debug".as_ptr(),
            c"debugfs".as_ptr(),
            0,
            std::ptr::null(),
        )
    };
    let error = std::io::Error::last_os_error();
    // It may be there without its `sched`, which 5.13 brought.
    if done == 0 || error.raw_os_error() == Some(libc::EBUSY) {
        Ok(())
    } else {
        Err(error).context("mount of debugfs")
    }
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn the_chosen_value_is_the_one_in_brackets() {
        assert_eq!(chosen("always [madvise] never\n"), "madvise");
        assert_eq!(chosen("1\n"), "1");
    }
}
