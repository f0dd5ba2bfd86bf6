//! Writes an initramfs: the kernel's "newc" archive, uncompressed.
//!
//! Uncompressed on purpose: under emulation the guest unpacks gzip slower than QEMU copies bytes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

const DIRECTORY: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;
const SYMLINK: u32 = 0o120_777;
const CHARACTER: u32 = 0o020_600;

/// An archive in the making.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    directories: BTreeSet<String>,
}

impl Archive {
    /// A folder and those above it.
    pub(crate) fn directory(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || self.directories.contains(path) {
            return;
        }
        self.parents(path);
        self.directories.insert(path.to_owned());
        self.entry(path, DIRECTORY, (0, 0), &[]);
    }

    /// A file that may be executed.
    pub(crate) fn file(&mut self, path: &str, bytes: &[u8]) {
        self.parents(path);
        self.entry(path, EXECUTABLE, (0, 0), bytes);
    }

    /// A copy of the host's file.
    pub(crate) fn copy(&mut self, path: &str, from: &Path) -> Result<()> {
        let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.file(path, &bytes);
        Ok(())
    }

    /// A symbolic link.
    pub(crate) fn symlink(&mut self, path: &str, to: &str) {
        self.parents(path);
        self.entry(path, SYMLINK, (0, 0), to.as_bytes());
    }

    /// A character device.
    pub(crate) fn device(&mut self, path: &str, number: (u32, u32)) {
        self.parents(path);
        self.entry(path, CHARACTER, number, &[]);
    }

    /// The finished archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn parents(&mut self, path: &str) {
        if let Some((parent, _)) = path.trim_start_matches('/').rsplit_once('/') {
            self.directory(parent);
        }
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), data: &[u8]) {
        let name = path.trim_start_matches('/');
        self.entries += 1;
        // ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
        let size = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let name_size = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            device.0,
            device.1,
            name_size,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_made_once_and_before_what_is_in_them() {
        let mut archive = Archive::default();
        archive.file("/bin/a", b"1");
        archive.file("/bin/b", b"22");
        let bytes = archive.finish();
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(text.matches("070701").count(), 4);
        assert!(text.find("bin\0") < text.find("bin/a\0"));
        assert_eq!(bytes.len() % 4, 0);
    }
}
