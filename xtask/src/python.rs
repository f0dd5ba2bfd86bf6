//! A Python that can make environments, for the tests with a real inference engine.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{apt, command};

/// What Debian has in a package of its own.
const PACKAGE: &str = "python3-venv";

/// Installs what `python3 -m venv` needs, where it is missing.
pub(crate) fn provide() -> Result<()> {
    let makes_environments = || {
        let mut python = Command::new("python3");
        command::output(python.args(["-c", "import ensurepip, venv"])).is_ok()
    };
    if makes_environments() {
        return Ok(());
    }
    if !command::is_root() {
        bail!("python3 makes no environments: type sudo apt-get install {PACKAGE}");
    }
    apt::provide(&[PACKAGE], "Python, for the tests with llama.cpp")?;
    if !makes_environments() {
        bail!(
            "{PACKAGE} is installed, and python3 makes no environments all the same: put Debian's first on PATH"
        );
    }
    Ok(())
}
