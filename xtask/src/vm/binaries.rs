//! The guest's own programs, linked statically: one file each runs with any kernel and no libraries.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use anyhow::Result;

use crate::{command, ebpf, say, workspace};

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Brings numawatch and the programs of `tests` up to date, with the eBPF object that numawatch includes.
pub(crate) fn build() -> Result<()> {
    ebpf::build()?;
    say::step("Building numawatch and the workloads for the guest", || {
        let mut cargo = command::cargo();
        cargo.args(["build", "--quiet", "--release", "--target", TARGET]);
        cargo.args(["--package", "numawatch", "--package", "tests", "--bins"]);
        // Its own directory: other flags for the same crates would rebuild the host's each time.
        cargo
            .arg("--target-dir")
            .arg(workspace::target().join("guest"));
        // glibc, not musl: rustup's musl target may not be there, and nothing else is needed.
        cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
        // Nobody ships these, and whoever waits for a test is better served without.
        cargo.env("CARGO_PROFILE_RELEASE_LTO", "off");
        cargo.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
        command::run(&mut cargo)
    })
}

/// Those that are there: the executables among what cargo left.
pub(crate) fn built() -> Vec<PathBuf> {
    let dir = workspace::target()
        .join("guest")
        .join(TARGET)
        .join("release");
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            entry
                .metadata()
                .is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
