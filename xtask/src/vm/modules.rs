//! Kernel modules for the guest: found in the kernel's package with all that they depend on.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use object::{Object, ObjectSection};

/// A module that is ready to be loaded.
pub(crate) struct Module {
    /// Its name, with underscores.
    pub(crate) name: String,
    /// The uncompressed file.
    pub(crate) bytes: Vec<u8>,
}

/// Modules that others ask for by an alias, which no `depends` line shows: who asks, and for what,
/// where the kernel has it.
const BY_ALIAS: &[(&str, &str)] = &[("ext4", "crc32c_generic")];

/// `wanted` and their dependencies, in the order in which they can be loaded. What the kernel has
/// built in is left out.
pub(crate) fn resolve(dir: &Path, wanted: &[String]) -> Result<Vec<Module>> {
    let mut resolver = Resolver {
        builtin: builtin(dir)?,
        files: HashMap::new(),
        done: HashSet::new(),
        order: Vec::new(),
    };
    index(&dir.join("kernel"), &mut resolver.files)?;
    for name in wanted {
        resolver.add(name)?;
    }
    Ok(resolver.order)
}

struct Resolver {
    builtin: HashSet<String>,
    files: HashMap<String, PathBuf>,
    done: HashSet<String>,
    order: Vec<Module>,
}

impl Resolver {
    fn add(&mut self, name: &str) -> Result<()> {
        let name = canonical(name);
        if self.builtin.contains(&name) || !self.done.insert(name.clone()) {
            return Ok(());
        }
        let Some(path) = self.files.get(&name) else {
            bail!("this kernel has no module {name}: take another --kernel, or leave it out");
        };
        let bytes = read(path)?;
        for dependency in dependencies(&bytes)
            .with_context(|| format!("{} is no kernel module", path.display()))?
        {
            self.add(&dependency)?;
        }
        for (_, asked) in BY_ALIAS.iter().filter(|(who, _)| *who == name) {
            if self.files.contains_key(*asked) {
                self.add(asked)?;
            }
        }
        self.order.push(Module { name, bytes });
        Ok(())
    }
}

/// The kernel takes `-` and `_` in module names for the same.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

/// `kernel/fs/ext4/ext4.ko.xz` gives `ext4`.
fn stem(file: &str) -> Option<String> {
    let base = file.rsplit('/').next()?;
    base.split_once(".ko").map(|(stem, _)| canonical(stem))
}

fn builtin(dir: &Path) -> Result<HashSet<String>> {
    let list = dir.join("modules.builtin");
    let text =
        fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    Ok(text.lines().filter_map(stem).collect())
}

fn index(dir: &Path, files: &mut HashMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            index(&entry.path(), files)?;
        } else if let Some(name) = stem(&entry.file_name().to_string_lossy()) {
            files.insert(name, entry.path());
        }
    }
    Ok(())
}

/// The module's bytes, uncompressed: busybox's insmod cannot be relied on to do that.
fn read(path: &Path) -> Result<Vec<u8>> {
    let tool = match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return fs::read(path).with_context(|| format!("cannot read {}", path.display())),
    };
    let output = Command::new(tool)
        .arg("-dc")
        .arg(path)
        .output()
        .with_context(|| format!("cannot start {tool} to unpack a kernel module: install it"))?;
    if !output.status.success() {
        bail!("{tool} cannot unpack {}", path.display());
    }
    Ok(output.stdout)
}

/// The names in the module's own `depends=` line.
fn dependencies(bytes: &[u8]) -> Result<Vec<String>> {
    let file = object::File::parse(bytes)?;
    let Some(info) = file.section_by_name(".modinfo") else {
        return Ok(Vec::new());
    };
    Ok(depends(info.data()?))
}

fn depends(modinfo: &[u8]) -> Vec<String> {
    modinfo
        .split(|byte| *byte == 0)
        .filter_map(|field| field.strip_prefix(b"depends="))
        .flat_map(|names| names.split(|byte| *byte == b','))
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_come_from_modinfo() {
        let info = b"license=GPL\0depends=drm,drm_kms_helper\0name=virtio_gpu\0";
        assert_eq!(depends(info), ["drm", "drm_kms_helper"]);
        assert!(depends(b"license=GPL\0depends=\0").is_empty());
    }

    #[test]
    fn file_names_give_canonical_names() {
        assert_eq!(
            stem("kernel/drivers/gpu/virtio-gpu.ko.xz").as_deref(),
            Some("virtio_gpu")
        );
        assert_eq!(stem("brd.ko").as_deref(), Some("brd"));
        assert_eq!(stem("modules.dep"), None);
    }
}
