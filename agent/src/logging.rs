//! The agent's own log, the kernel side's messages included: on stderr, or in a file while the dashboard has the screen.

use anyhow::{Context, Result};
use std::fs::{File, OpenOptions, create_dir_all};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tracing_subscriber::EnvFilter;

/// Sets what is logged, as `RUST_LOG` does: `debug`, `numawatch=debug`.
const VARIABLE: &str = "NUMAWATCH_LOG";

/// A line on stderr. One that nobody takes, as on a full disk, ends nothing. What was typed, and other people's names, are
/// not to talk to the terminal, nor to make it two lines.
pub(crate) fn say(line: &str) {
    let line = line.replace(char::is_control, "?");
    write(&format!("numawatch: {line}\n"));
}

/// The same of what is no line.
pub(crate) fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Logs to stderr.
pub(crate) fn to_stderr() {
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter())
        .with_target(false)
        .without_time()
        // It would say on stderr that stderr can't be written.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    // A second call would be a test's; the first one's choice stands.
    let _ = log.try_init();
}

/// Logs to a file, by default `numawatch/tui.log` in the user's state directory where that can be
/// written.
///
/// # Errors
/// If the file can't be opened.
pub(crate) fn to_file(path: Option<&Path>) -> Result<()> {
    let is_default = path.is_none();
    let path = path.map_or_else(default_path, Path::to_path_buf);
    let opened = open(&path);
    if opened.is_err() && is_default {
        // Nobody asked for this file: the dashboard is worth more than its log.
        return Ok(());
    }
    let file = opened.with_context(|| {
        format!(
            "cannot write the log {}; name another with --log-file",
            path.display()
        )
    })?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter())
        .with_ansi(false)
        .with_writer(std::sync::Mutex::new(file));
    let _ = log.try_init();
    Ok(())
}

fn open(path: &Path) -> std::io::Result<File> {
    if let Some(parent) = path.parent() {
        create_dir_all(parent)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}

fn default_path() -> PathBuf {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    state
        .filter(|p| p.is_absolute())
        .or_else(home)
        .unwrap_or_else(std::env::temp_dir)
        .join("numawatch/tui.log")
}

fn filter() -> EnvFilter {
    EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new("warn"))
}
