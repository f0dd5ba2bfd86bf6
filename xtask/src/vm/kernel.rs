//! The guest's kernels: Debian's packages, fetched once into the cache and unpacked, not installed.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{apt, say, suite, workspace};

/// Where a kernel comes from: package names change with every update, so two ends of the name are
/// given and the newest package between them is taken.
pub(crate) struct Source {
    /// What `--kernel` calls it.
    pub(crate) name: &'static str,
    /// The Debian suite that has it; none where the machine's own sources do.
    suite: Option<&'static str>,
    /// Start of the packages' names.
    prefix: &'static str,
    /// Starts of the names of packages that have the rest, each of the same version and flavour.
    companions: &'static [&'static str],
    /// End of the name of the cloud flavour: smaller, and boots fastest.
    cloud_suffix: &'static str,
    /// End of the name of the plain flavour, which has GPU drivers.
    plain_suffix: &'static str,
}

/// All of them; the first is the default.
pub(crate) const SOURCES: &[Source] = &[
    Source {
        name: "6.12",
        suite: None,
        prefix: "linux-image-6.12.",
        companions: &[],
        cloud_suffix: "-cloud-amd64-unsigned",
        plain_suffix: "-amd64-unsigned",
    },
    Source {
        name: "5.10",
        suite: Some("bullseye"),
        prefix: "linux-image-5.10.0-",
        companions: &[],
        cloud_suffix: "-cloud-amd64",
        plain_suffix: "-amd64",
    },
    Source {
        name: "6.1",
        suite: None,
        prefix: "linux-image-6.1.0-",
        companions: &[],
        cloud_suffix: "-cloud-amd64",
        plain_suffix: "-amd64",
    },
    Source {
        name: "6.18",
        suite: Some("trixie-backports"),
        prefix: "linux-image-6.18.",
        companions: &[],
        cloud_suffix: "-cloud-amd64",
        plain_suffix: "-amd64",
    },
    // The newest 7.x that there is on the day when it is fetched. Its image, its modules and their
    // lists are packages of their own.
    Source {
        name: "7",
        suite: Some("trixie-backports"),
        prefix: "linux-binary-7.",
        companions: &["linux-modules-7.", "linux-base-7."],
        cloud_suffix: "-cloud-amd64",
        plain_suffix: "-amd64",
    },
];

/// An unpacked kernel.
pub(crate) struct Kernel {
    /// The bootable image.
    pub(crate) image: PathBuf,
    /// Its folder of modules, `…/lib/modules/VERSION`.
    pub(crate) modules: PathBuf,
}

/// The kernel called `name`, with GPU drivers if `plain`; fetched if the cache lacks it.
pub(crate) fn provide(name: &str, plain: bool) -> Result<Kernel> {
    let Some(source) = SOURCES.iter().find(|source| source.name == name) else {
        bail!("there is no kernel {name}: see cargo xtask vm --help");
    };
    let (flavour, suffix) = if plain {
        ("plain", source.plain_suffix)
    } else {
        ("cloud", source.cloud_suffix)
    };
    let cache = workspace::cache()?.join("kernels");
    let root = cache.join(format!("{name}-{flavour}"));
    if !root.is_dir() {
        say::step(
            &format!(
                "Fetching kernel {name} ({flavour}) into {}",
                cache.display()
            ),
            || fetch(source, suffix, &cache, &root),
        )
        .with_context(|| {
            format!(
                "or put a {}*{suffix} package into {}",
                source.prefix,
                cache.display()
            )
        })?;
    }
    locate(&root).with_context(|| format!("remove {} and try again", root.display()))
}

fn fetch(source: &Source, suffix: &str, cache: &Path, root: &Path) -> Result<()> {
    fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let here = packages_in(cache)?;
    let found = newest(here.clone(), source.prefix, suffix, |(name, _)| name).pop();
    let mut config = None;
    let mut apt_config = || -> Result<Option<PathBuf>> {
        if let (None, Some(suite)) = (&config, source.suite) {
            config = Some(suite::configure(suite)?);
        }
        Ok(config.clone())
    };
    let image = if let Some((_, deb)) = found {
        deb
    } else {
        apt::download_newest(source.prefix, cache, apt_config()?.as_deref(), |names| {
            newest(names, source.prefix, suffix, String::as_str)
        })?
    };
    let version = package_name(&image)
        .and_then(|name| name.strip_prefix(source.prefix).map(str::to_owned))
        .with_context(|| format!("{} has an odd name", image.display()))?;
    let mut debs = vec![image];
    for companion in source.companions {
        let wanted = format!("{companion}{version}");
        debs.push(match here.iter().find(|(name, _)| *name == wanted) {
            Some((_, deb)) => deb.clone(),
            None => apt::download(&wanted, cache, apt_config()?.as_deref())?,
        });
    }
    // Under another name first: an interrupted unpacking must not look like a kernel, and another
    // guest may be starting at the same time.
    let partial = cache.join(format!("partial-{}", std::process::id()));
    for deb in &debs {
        say::note(&format!("unpacking {}", deb.display()));
        apt::unpack(deb, &partial)?;
    }
    if fs::rename(&partial, root).is_err() && !root.is_dir() {
        bail!("cannot rename {} to {}", partial.display(), root.display());
    }
    // The one that lost the race.
    let _ = fs::remove_dir_all(&partial);
    Ok(())
}

/// Package files that are in the cache already, by package name.
fn packages_in(cache: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(cache)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb")
            && let Some(name) = package_name(&path)
        {
            found.push((name.to_owned(), path.clone()));
        }
    }
    Ok(found)
}

/// `NAME_VERSION_ARCHITECTURE.deb` gives the name.
fn package_name(deb: &Path) -> Option<&str> {
    let (name, _) = deb.file_name()?.to_str()?.split_once('_')?;
    Some(name)
}

/// Those between `prefix` and `suffix`, the newest last.
fn newest<T>(mut all: Vec<T>, prefix: &str, suffix: &str, name: impl Fn(&T) -> &str) -> Vec<T> {
    let middle = |item: &T| -> Option<String> {
        let middle = name(item).strip_prefix(prefix)?.strip_suffix(suffix)?;
        // A dash would be another flavour: `117+deb12-rt`.
        (!middle.contains('-')).then(|| middle.to_owned())
    };
    all.retain(|item| middle(item).is_some());
    all.sort_by_key(|item| middle(item).map(|text| numbers(&text)));
    all
}

/// The numbers in a version, so that 9 sorts before 10.
fn numbers(version: &str) -> Vec<u64> {
    version
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|part| part.parse().ok())
        .collect()
}

fn locate(root: &Path) -> Result<Kernel> {
    // Packages of merged-/usr suites have their modules below usr.
    let modules = [root.join("lib/modules"), root.join("usr/lib/modules")]
        .iter()
        .find_map(|dir| only_child(dir, ""))
        .with_context(|| format!("{} has no modules", root.display()))?;
    let image = only_child(&root.join("boot"), "vmlinuz")
        .or_else(|| only_child(&modules, "vmlinuz"))
        .with_context(|| format!("{} has no kernel image", root.display()))?;
    Ok(Kernel { image, modules })
}

fn only_child(dir: &Path, prefix: &str) -> Option<PathBuf> {
    let mut children: Vec<PathBuf> = fs::read_dir(dir)
        .ok()?
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    children.sort_by_key(|path| Reverse(path.clone()));
    children.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_the_flavour_is_last() {
        let names = [
            "linux-image-6.12.9+deb12-cloud-amd64-unsigned",
            "linux-image-6.12.117+deb12-cloud-amd64-unsigned",
            "linux-image-6.12.117+deb12-amd64-unsigned",
            "linux-image-6.12.118+deb12-rt-amd64-unsigned",
        ];
        let pick = |suffix| newest(names.to_vec(), "linux-image-6.12.", suffix, |name| name).pop();
        assert_eq!(pick("-cloud-amd64-unsigned"), Some(names[1]));
        assert_eq!(pick("-amd64-unsigned"), Some(names[2]));
        assert_eq!(pick("-arm64"), None);
        let names = [
            "linux-binary-7.10.1+deb13-amd64",
            "linux-binary-7.3.4+deb13-amd64",
            "linux-binary-7.11.2+deb13-rt-amd64",
        ];
        let pick = newest(names.to_vec(), "linux-binary-7.", "-amd64", |name| name).pop();
        assert_eq!(pick, Some(names[0]));
    }

    #[test]
    fn a_package_file_tells_its_name() {
        let file = "cache/linux-image-5.10.0-32-cloud-amd64_5.10.223-1_amd64.deb";
        assert_eq!(
            package_name(Path::new(file)),
            Some("linux-image-5.10.0-32-cloud-amd64")
        );
        assert_eq!(package_name(Path::new("notes.txt")), None);
    }
}
