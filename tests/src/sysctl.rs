//! Every setting below `/proc/sys` and of NUMA balancing in debugfs, to see whether somebody changed one.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// What the kernel itself changes: with every process that starts, and (5.10) as its balancing of load goes.
const VOLATILE: [&str; 2] = ["ns_last_pid", "max_newidle_lb_cost"];

/// Files that can be written, with their values.
#[must_use]
pub fn all() -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    collect(Path::new("/proc/sys"), &mut found);
    collect(
        Path::new("/sys/kernel/debug/sched/numa_balancing"),
        &mut found,
    );
    collect(Path::new("/sys/kernel/mm/transparent_hugepage"), &mut found);
    found
}

/// Settings whose value differs, as `path: before -> after`.
#[must_use]
pub fn changes(
    before: &BTreeMap<PathBuf, String>,
    after: &BTreeMap<PathBuf, String>,
) -> Vec<String> {
    before
        .iter()
        .filter(|(path, _)| path.exists())
        .filter_map(|(path, old)| {
            let new = after.get(path).map_or("", |value| value.trim());
            let old = old.trim();
            (old != new).then(|| format!("{}: {old} -> {new}", path.display()))
        })
        .collect()
}

fn collect(directory: &Path, found: &mut BTreeMap<PathBuf, String>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(metadata) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_dir() {
            collect(&path, found);
        } else if is_setting(&path, metadata.permissions().mode())
            && let Ok(value) = std::fs::read_to_string(&path)
        {
            found.insert(path, value);
        }
    }
}

/// What can't be written is a counter.
fn is_setting(path: &Path, mode: u32) -> bool {
    mode & 0o200 != 0
        && mode & 0o400 != 0
        && !VOLATILE
            .iter()
            .any(|name| path.file_name().is_some_and(|file| file == *name))
}
