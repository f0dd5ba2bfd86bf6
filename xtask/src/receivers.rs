//! Real OTLP receivers for the black-box tests: Prometheus 3.x, and Victoria Metrics' agent.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::{apt, command, say, suite, workspace};

/// Suite that has them while the machine's own may have older ones. Both are Go programs: they run
/// anywhere.
const SUITE: &str = "sid";

/// A program that receives OTLP.
pub(crate) struct Receiver {
    /// Environment variable by which the tests find it.
    pub(crate) variable: &'static str,
    name: &'static str,
    package: &'static str,
    /// What its `--version` has to contain; nothing where it says nothing.
    version: &'static str,
}

/// Both.
pub(crate) const RECEIVERS: [Receiver; 2] = [
    Receiver {
        variable: "NUMAWATCH_PROMETHEUS",
        name: "prometheus",
        package: "prometheus",
        version: "prometheus, version 3.",
    },
    Receiver {
        variable: "NUMAWATCH_VMAGENT",
        name: "vmagent",
        package: "victoria-metrics",
        version: "",
    },
];

impl Receiver {
    /// The program: on PATH, in the cache, or fetched into it.
    pub(crate) fn provide(&self) -> Result<PathBuf> {
        let root = workspace::cache()?.join(self.package);
        let cached = root.join("usr/bin").join(self.name);
        let mut candidates = command::find_all(self.name)
            .into_iter()
            .chain([cached.clone()]);
        if let Some(found) = candidates.find(|program| self.fits(program)) {
            return Ok(found);
        }
        say::step(
            &format!("Fetching {} for the OTLP tests", self.package),
            || {
                let deb = suite::download(self.package, SUITE, &root)?;
                apt::unpack_and_remove(&deb, &root)
            },
        )?;
        if !self.fits(&cached) {
            bail!(
                "suite {SUITE} brought no {} that runs here: put one on PATH",
                self.name
            );
        }
        Ok(cached)
    }

    fn fits(&self, program: &Path) -> bool {
        program.is_file()
            && command::output(Command::new(program).arg("--version"))
                .is_ok_and(|text| text.contains(self.version))
    }
}
