//! Debian's packages: installed where this process is root, else unpacked into the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{command, say, workspace};

/// Makes `packages` available. Gives the root under which their files are: `/`, or a folder of
/// the cache where this process may not install.
pub(crate) fn provide(packages: &[&str], purpose: &str) -> Result<PathBuf> {
    let names = packages.join(" ");
    if command::find("apt-get").is_none() {
        bail!("{purpose} is missing and this is no Debian: install {names} or their equivalents");
    }
    if command::is_root() {
        say::step(&format!("Installing {names} ({purpose})"), || {
            install(packages)
        })?;
        return Ok(PathBuf::from("/"));
    }
    let root = workspace::cache()?.join("debian");
    say::step(
        &format!(
            "Unpacking {names} into {} ({purpose}; not root)",
            root.display()
        ),
        || unpack_with_dependencies(packages, &root),
    )
    .with_context(|| format!("or type: sudo apt-get install {names}"))?;
    Ok(root)
}

fn install(packages: &[&str]) -> Result<()> {
    let install = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        // Others may be installing at the same time: wait for dpkg's lock.
        apt.args(["-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Use-Pty=0"]);
        apt.args(["-qq", "-y", "install", "--no-install-recommends"]);
        command::output(apt.args(packages)).map(drop)
    };
    if install().is_ok() {
        return Ok(());
    }
    // The usual reason is a package list that is missing or old.
    update()?;
    install()
}

/// Brings apt's lists up to date.
pub(crate) fn update() -> Result<()> {
    if command::is_root() {
        say::note("apt-get update");
        command::output(Command::new("apt-get").args(["-qq", "update"]))?;
    }
    Ok(())
}

/// Downloads and unpacks `packages` and what they depend on and this machine lacks.
fn unpack_with_dependencies(packages: &[&str], root: &Path) -> Result<()> {
    let mut simulate = Command::new("apt-get");
    simulate
        .args(["-s", "install", "--no-install-recommends"])
        .args(packages);
    let plan = command::output(&mut simulate)?;
    let debs = root.join("debs");
    fs::create_dir_all(&debs).with_context(|| format!("cannot create {}", debs.display()))?;
    // The packages themselves too, should one be installed but not fit.
    let mut names: Vec<&str> = planned(&plan).chain(packages.iter().copied()).collect();
    names.sort_unstable();
    names.dedup();
    let mut download = Command::new("apt-get");
    download
        .current_dir(&debs)
        .args(["-qq", "download"])
        .args(&names);
    command::output(&mut download)?;
    for entry in fs::read_dir(&debs)? {
        let deb = entry?.path();
        unpack_and_remove(&deb, root)?;
    }
    Ok(())
}

/// As `unpack`, for a file that is of no use after that.
pub(crate) fn unpack_and_remove(deb: &Path, root: &Path) -> Result<()> {
    unpack(deb, root)?;
    fs::remove_file(deb).with_context(|| format!("cannot remove {}", deb.display()))
}

/// Downloads one package into `dir`, and gives its file; by a private apt configuration, if told.
pub(crate) fn download(package: &str, dir: &Path, config: Option<&Path>) -> Result<PathBuf> {
    // In a folder of its own: apt names the file, with the version in it.
    let partial = dir.join(format!("download-{}", std::process::id()));
    fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
    let mut apt = Command::new("apt-get");
    apt.current_dir(&partial).args(["-qq", "download", package]);
    if let Some(config) = config {
        apt.env("APT_CONFIG", config);
    }
    let result = command::output(&mut apt).and_then(|_| {
        let file = fs::read_dir(&partial)?
            .next()
            .context("apt-get downloaded nothing")??;
        let deb = dir.join(file.file_name());
        fs::rename(file.path(), &deb)?;
        Ok(deb)
    });
    let _ = fs::remove_dir_all(&partial);
    result.with_context(|| format!("cannot download {package}"))
}

/// Downloads the newest package whose name starts with `prefix`: of those that `sorted` leaves, the
/// last one that can still be had. Lists may name packages that are gone. A private apt configuration
/// has its lists up to date.
pub(crate) fn download_newest(
    prefix: &str,
    dir: &Path,
    config: Option<&Path>,
    sorted: impl Fn(Vec<String>) -> Vec<String>,
) -> Result<PathBuf> {
    if command::find("apt-cache").is_none() {
        bail!("no apt here to fetch {prefix}* with");
    }
    let candidates = || -> Result<Vec<String>> {
        let mut cache = Command::new("apt-cache");
        if let Some(config) = config {
            cache.env("APT_CONFIG", config);
        }
        let names = command::output(cache.args(["pkgnames", prefix]))?;
        Ok(sorted(names.lines().map(str::to_owned).collect()))
    };
    let attempt = |names: Vec<String>| {
        names
            .iter()
            .rev()
            .take(3)
            .find_map(|name| download(name, dir, config).ok())
    };
    if let Some(deb) = attempt(candidates()?) {
        return Ok(deb);
    }
    if config.is_none() {
        update()?;
    }
    match attempt(candidates()?) {
        Some(deb) => Ok(deb),
        None => bail!("apt knows no {prefix}* package that can be downloaded: apt-get update?"),
    }
}

/// The packages that `apt-get -s install` would install.
fn planned(plan: &str) -> impl Iterator<Item = &str> {
    plan.lines()
        .filter_map(|line| line.strip_prefix("Inst ")?.split_whitespace().next())
}

/// Unpacks one package file below `root`; nothing of it is run.
pub(crate) fn unpack(deb: &Path, root: &Path) -> Result<()> {
    command::output(Command::new("dpkg").arg("-x").arg(deb).arg(root)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_names_what_would_be_installed() {
        let plan = "NOTE: This is only a simulation!\n\
            Inst libllvm22 (1:22.1.8-1 Debian:12/stable [amd64])\n\
            Inst llvm-22-dev (1:22.1.8-1 Debian:12/stable [amd64])\n\
            Conf llvm-22-dev (1:22.1.8-1 Debian:12/stable [amd64])\n";
        assert_eq!(
            planned(plan).collect::<Vec<_>>(),
            ["libllvm22", "llvm-22-dev"]
        );
    }
}
