//! Runs other programs, and says in one line what went wrong with them.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs `command` with its output shown on stderr; an error unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    // A task's stdout belongs to what the user asked for, not to the tools that got there.
    let status = command
        .stdout(std::io::stderr())
        .status()
        .with_context(|| format!("cannot start {}", line(command)))?;
    if !status.success() {
        bail!("{} failed ({status}): its output is above", line(command));
    }
    Ok(())
}

/// Runs `command` quietly; what it printed is shown in the error only.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", line(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .unwrap_or("no message");
        bail!(
            "{} failed ({}): {}",
            line(command),
            output.status,
            last.trim()
        );
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("{} printed something that isn't text", line(command)))
}

/// The command as one would type it.
pub(crate) fn line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        let _ = write!(line, " {}", arg.to_string_lossy());
    }
    line
}

/// The first executable of this name on PATH.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    find_all(name).into_iter().next()
}

/// Every executable of this name, in PATH's order. `/usr/sbin` is searched too: users who are not
/// root often lack it, and mke2fs lives there.
pub(crate) fn find_all(name: &str) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(name))
        .filter(|file| file.is_file())
        .collect();
    found.dedup();
    found
}

/// PATH with `dir` in front.
pub(crate) fn path_with(dir: &Path) -> Result<std::ffi::OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::join_paths(
        [dir.to_path_buf()]
            .into_iter()
            .chain(env::split_paths(&path)),
    )
    .with_context(|| format!("{} cannot be put on PATH", dir.display()))
}

/// The cargo that runs this task.
pub(crate) fn cargo() -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| OsStr::new("cargo").to_owned());
    let mut command = Command::new(program);
    command.current_dir(crate::workspace::root());
    command
}

/// Whether this process is root, and so may install packages.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // /proc/self belongs to the effective user: no libc needed for one question.
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}
