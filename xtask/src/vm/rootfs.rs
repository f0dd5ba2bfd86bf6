//! What is in the guest: busybox, numawatch, the workload, and what was added.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::cpio::Archive;
use super::modules::Module;
use crate::{apt, command, say, workspace};

/// What a guest is made of besides busybox.
pub(crate) struct Contents<'a> {
    /// Programs for its PATH.
    pub(crate) programs: &'a [PathBuf],
    /// Kernel modules, in the order to load them in.
    pub(crate) modules: &'a [Module],
    /// Marks the end of a command's output.
    pub(crate) token: &'a str,
    /// Whether there is a disk to mount.
    pub(crate) disk: bool,
}

/// The initramfs.
pub(crate) fn build(contents: &Contents<'_>) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for dir in [
        "dev",
        "proc",
        "sys",
        "tmp",
        "run",
        "root",
        "etc",
        "usr/local/bin",
    ] {
        archive.directory(dir);
    }
    // The first process has its messages somewhere before devtmpfs is mounted.
    archive.device("dev/console", (5, 1));
    archive.file("init", include_bytes!("init.sh"));
    archive.file("etc/token", format!("{}\n", contents.token).as_bytes());
    archive.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n");
    archive.file("etc/group", b"root:x:0:\n");
    if contents.disk {
        archive.file("etc/disk", b"");
    }
    let busybox = busybox()?;
    archive.copy("bin/busybox", &busybox)?;
    for applet in command::output(Command::new(&busybox).arg("--list"))?.lines() {
        if applet != "busybox" {
            archive.symlink(&format!("bin/{applet}"), "busybox");
        }
    }
    for (number, module) in contents.modules.iter().enumerate() {
        // Numbered: the shell's * sorts, and dependencies come first.
        let path = format!("lib/guest-modules/{number:03}-{}.ko", module.name);
        archive.file(&path, &module.bytes);
    }
    let mut libraries = Vec::new();
    for program in contents.programs {
        let name = program
            .file_name()
            .context("--add needs a file")?
            .to_string_lossy();
        archive.copy(&format!("usr/local/bin/{name}"), program)?;
        libraries.extend(shared_libraries(program));
    }
    libraries.sort();
    libraries.dedup();
    for library in libraries {
        archive.copy(&library, Path::new(&library))?;
    }
    Ok(archive.finish())
}

/// Paths of the shared libraries that a program is loaded with; none for scripts and static ones.
fn shared_libraries(program: &Path) -> Vec<String> {
    command::output(Command::new("ldd").arg(program))
        .map(|text| parse_ldd(&text))
        .unwrap_or_default()
}

fn parse_ldd(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(str::to_owned)
        .collect()
}

/// A static busybox: the host's, or one unpacked into the cache. It is not installed, for it would
/// replace a dynamic one that the host may count on.
fn busybox() -> Result<PathBuf> {
    let cached = workspace::cache()?.join("busybox/bin/busybox");
    let root = workspace::cache()?.join("busybox");
    let usr = root.join("usr/bin/busybox");
    let candidates = command::find_all("busybox")
        .into_iter()
        .chain([cached, usr]);
    if let Some(found) = candidates.into_iter().find(|path| is_static(path)) {
        return Ok(found);
    }
    say::step("Fetching busybox-static for the guest", || {
        let deb = apt::download("busybox-static", &root, None)?;
        apt::unpack_and_remove(&deb, &root)
    })?;
    let unpacked = [root.join("bin/busybox"), root.join("usr/bin/busybox")];
    match unpacked.into_iter().find(|path| is_static(path)) {
        Some(found) => Ok(found),
        None => bail!(
            "busybox-static brought no static busybox: remove {}",
            root.display()
        ),
    }
}

/// Whether a program needs no dynamic linker, the `.interp` section naming one.
fn is_static(path: &Path) -> bool {
    use object::Object;
    fs::read(path).is_ok_and(|bytes| {
        object::File::parse(&*bytes).is_ok_and(|file| file.section_by_name(".interp").is_none())
    })
}

/// `dir` as an ext4 image at `image`.
pub(crate) fn disk_image(dir: &Path, image: &Path) -> Result<()> {
    if !dir.is_dir() {
        bail!("--disk {}: no such directory", dir.display());
    }
    let mke2fs = match command::find("mke2fs") {
        Some(found) => found,
        None => apt::provide(&["e2fsprogs"], "mke2fs, for --disk")?.join("sbin/mke2fs"),
    };
    let used = command::output(Command::new("du").args(["-s", "-B", "1048576"]).arg(dir))?;
    let used: u64 = used
        .split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0);
    // Room for the inodes, and for what a command may write.
    let size = used + used / 8 + 64;
    let mut make = Command::new(mke2fs);
    // No journal: the image lives for one boot. -d fills it without mounting, so without root.
    make.args(["-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0"]);
    make.arg("-d").arg(dir).arg(image).arg(format!("{size}M"));
    command::output(&mut make).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ldd_names_libraries_and_the_loader() {
        let text = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x2)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x3)\n\tlibgone.so => not found\n";
        assert_eq!(
            parse_ldd(text),
            [
                "/lib/x86_64-linux-gnu/libc.so.6",
                "/lib64/ld-linux-x86-64.so.2"
            ]
        );
    }
}
