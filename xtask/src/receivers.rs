//! A real Prometheus 3.x for the OTLP tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::{apt, command, say, suite, workspace};

/// Suite that has 3.x while the machine's own may have 2.x. It is one Go program: it runs anywhere.
const SUITE: &str = "sid";

/// A Prometheus 3.x: on PATH, in the cache, or fetched into it.
pub(crate) fn provide() -> Result<PathBuf> {
    let root = workspace::cache()?.join("prometheus");
    let cached = root.join("usr/bin/prometheus");
    let candidates = command::find_all("prometheus")
        .into_iter()
        .chain([cached.clone()]);
    if let Some(found) = candidates.into_iter().find(|program| is_3(program)) {
        return Ok(found);
    }
    say::step("Fetching Prometheus 3 for the OTLP tests", || {
        let deb = suite::download("prometheus", SUITE, &root)?;
        apt::unpack(&deb, &root)
    })?;
    if !is_3(&cached) {
        bail!("suite {SUITE} brought no Prometheus 3 that runs here: put one on PATH");
    }
    Ok(cached)
}

fn is_3(program: &Path) -> bool {
    program.is_file()
        && command::output(Command::new(program).arg("--version"))
            .is_ok_and(|text| text.starts_with("prometheus, version 3."))
}
