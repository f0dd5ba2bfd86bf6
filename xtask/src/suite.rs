//! Packages of another Debian suite, from the machine's own mirror, without touching its apt.
//!
//! A private apt configuration in the cache: the machine's sources with only the suite changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{apt, command, say, workspace};

/// Downloads one package of `suite` into `dir`, and gives its file.
pub(crate) fn download(package: &str, suite: &str, dir: &Path) -> Result<PathBuf> {
    let config = configure(suite)?;
    apt::download(package, dir, Some(&config)).with_context(|| format!("suite {suite}"))
}

/// An apt configuration for `suite`, with its lists up to date.
pub(crate) fn configure(suite: &str) -> Result<PathBuf> {
    let root = workspace::cache()?.join("apt").join(suite);
    for dir in ["sources", "lists/partial", "archives/partial"] {
        fs::create_dir_all(root.join(dir))
            .with_context(|| format!("cannot create {}", root.display()))?;
    }
    let codename = codename()?;
    let mut found = false;
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let deb822 = file
            .extension()
            .is_some_and(|extension| extension == "sources");
        let moved = if deb822 {
            stanzas_for(&text, &codename, suite)
        } else {
            lines_for(&text, &codename, suite)
        };
        if let (false, Some(name)) = (moved.is_empty(), file.file_name()) {
            fs::write(root.join("sources").join(name), moved)?;
            found = true;
        }
    }
    if !found {
        bail!("none of the machine's apt sources has the suite {codename}");
    }
    let config = root.join("apt.conf");
    let place = root.display();
    let text = format!(
        "Dir::Etc::SourceList \"/dev/null\";\n\
         Dir::Etc::SourceParts \"{place}/sources\";\n\
         Dir::State::Lists \"{place}/lists\";\n\
         Dir::Cache \"{place}\";\n\
         Dir::Cache::Archives \"{place}/archives\";\n\
         // apt's own user may not enter the cache of this one.\n\
         APT::Sandbox::User \"\";\n\
         Acquire::Languages \"none\";\n"
    );
    fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
    say::note(&format!("reading the package list of suite {suite}"));
    let mut update = Command::new("apt-get");
    command::output(update.env("APT_CONFIG", &config).args(["-qq", "update"]))?;
    Ok(config)
}

fn codename() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    text.lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .context("/etc/os-release names no VERSION_CODENAME: this is no Debian")
}

/// The machine's files of apt sources, in both formats.
fn sources() -> Vec<PathBuf> {
    let parts = fs::read_dir("/etc/apt/sources.list.d")
        .into_iter()
        .flatten()
        .flatten();
    let mut files: Vec<PathBuf> = parts.map(|entry| entry.path()).collect();
    files.push("/etc/apt/sources.list".into());
    files.retain(|file| file.is_file());
    files
}

/// One-line sources of the suite `from`, moved to `to`.
fn lines_for(text: &str, from: &str, to: &str) -> String {
    let moved = text
        .lines()
        .filter(|line| line.trim_start().starts_with("deb "))
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            // Other hosts' sources have suites of their own.
            words.contains(&from).then(|| {
                words
                    .iter()
                    .map(|word| if *word == from { to } else { word })
                    .collect::<Vec<_>>()
                    .join(" ")
            })
        });
    moved.map(|line| line + "\n").collect()
}

/// Stanzas that have the suite `from`, moved to `to` alone.
fn stanzas_for(text: &str, from: &str, to: &str) -> String {
    let suites = |line: &str| line.strip_prefix("Suites:").map(str::to_owned);
    let stanzas = text.split("\n\n").filter(|stanza| {
        stanza
            .lines()
            .filter_map(suites)
            .any(|list| list.split_whitespace().any(|s| s == from))
    });
    let moved = stanzas.map(|stanza| {
        let lines = stanza.lines().map(|line| match suites(line) {
            Some(_) => format!("Suites: {to}\n"),
            None => format!("{line}\n"),
        });
        lines.collect::<String>() + "\n"
    });
    moved.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sources_of_the_machines_suite_are_moved() {
        let text = "Types: deb\nURIs: http://mirror/debian\nSuites: bookworm bookworm-updates\n\
            Components: main\n\nTypes: deb\nURIs: http://mirror/security\nSuites: bookworm-security\n";
        assert_eq!(
            stanzas_for(text, "bookworm", "sid"),
            "Types: deb\nURIs: http://mirror/debian\nSuites: sid\nComponents: main\n\n"
        );
        let text = "deb http://mirror/debian bookworm main\ndeb http://other cloud main\n# deb x bookworm\n";
        assert_eq!(
            lines_for(text, "bookworm", "sid"),
            "deb http://mirror/debian sid main\n"
        );
    }
}
