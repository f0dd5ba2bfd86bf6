//! Finds a Rust compiler that can build `core` for the BPF target: one with the library's source.
//!
//! What is there is used before anything is fetched: first a rustup toolchain with rust-src, then
//! Debian's; then rustup is asked to add rust-src, and at last Debian's package is fetched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{apt, command, say, workspace};

/// Edition 2024 came with 1.85.
const OLDEST_MINOR: u32 = 85;

/// A compiler with the source of its library.
pub(crate) struct Compiler {
    /// The rustc to run.
    pub(crate) rustc: PathBuf,
    /// Where its shared libraries are, when they were unpacked privately.
    pub(crate) libraries: Option<PathBuf>,
    /// The major version of its LLVM: bpf-linker must read the bitcode that it writes.
    pub(crate) llvm_major: u32,
    /// `rustc 1.96.0, LLVM 22`, for people.
    pub(crate) description: String,
}

/// The compiler for the kernel side; fetched where none is there.
pub(crate) fn provide() -> Result<Compiler> {
    let private = workspace::cache()?.join("debian");
    let toolchains = rustup_compilers();
    let debian = command::find_all("rustc")
        .into_iter()
        .map(|rustc| (rustc, None))
        .chain([(private.join("usr/bin/rustc"), Some(libraries(&private)))]);
    let present = toolchains
        .iter()
        .cloned()
        .map(|rustc| (rustc, None))
        .chain(debian);
    for (rustc, libraries) in present {
        if let Some(compiler) = examine(&rustc, libraries) {
            return Ok(compiler);
        }
    }
    if let Some(rustc) = toolchains.first() {
        match say::step("Asking rustup to add rust-src", add_rust_src) {
            Ok(()) => {
                if let Some(compiler) = examine(rustc, None) {
                    return Ok(compiler);
                }
            }
            Err(error) => say::note(&format!("{error:#}; Debian's compiler instead")),
        }
    }
    let root = apt::provide(
        &["rustc-web", "rust-web-src"],
        "a Rust compiler with rust-src",
    )
    .context("type `rustup component add rust-src`")?;
    let libraries = (root != Path::new("/")).then(|| libraries(&root));
    let rustc = root.join("usr/bin/rustc");
    examine(&rustc, libraries).with_context(|| {
        format!(
            "{} cannot build for BPF: type `rustup component add rust-src`, or remove it",
            rustc.display()
        )
    })
}

fn libraries(root: &Path) -> PathBuf {
    root.join("usr/lib/x86_64-linux-gnu")
}

/// rustup's compilers, the one in force here first.
fn rustup_compilers() -> Vec<PathBuf> {
    if command::find("rustup").is_none() {
        return Vec::new();
    }
    // The folder is read instead of asking `rustup toolchain list`, which takes longer than
    // everything else in a run that has nothing to do.
    let active = command::output(Command::new("rustc").args(["--print", "sysroot"]))
        .map(|sysroot| PathBuf::from(sysroot.trim()));
    let Ok(active) = active else {
        return Vec::new();
    };
    let mut sysroots = vec![active.clone()];
    if let Some(siblings) = active.parent().and_then(|dir| fs::read_dir(dir).ok()) {
        sysroots.extend(
            siblings
                .flatten()
                .map(|entry| entry.path())
                .filter(|dir| *dir != active),
        );
    }
    sysroots
        .into_iter()
        .map(|dir| dir.join("bin/rustc"))
        .filter(|rustc| rustc.is_file())
        .collect()
}

fn add_rust_src() -> Result<()> {
    let mut add = Command::new("rustup");
    command::output(add.args(["component", "add", "rust-src"])).map(drop)
}

/// The compiler, if it has the library's source and is new enough.
fn examine(rustc: &Path, libraries: Option<PathBuf>) -> Option<Compiler> {
    if !rustc.is_file() {
        return None;
    }
    let ask = |args: &[&str]| {
        let mut command = Command::new(rustc);
        command.args(args);
        if let Some(libraries) = &libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command::output(&mut command).ok()
    };
    let sysroot = ask(&["--print", "sysroot"])?;
    if !Path::new(sysroot.trim())
        .join("lib/rustlib/src/rust/library/core")
        .is_dir()
    {
        return None;
    }
    let version = ask(&["-vV"])?;
    let (release, llvm_major) = parse_version(&version)?;
    // rustup's proxy looks at the working directory: the compiler itself doesn't.
    let rustc = Path::new(sysroot.trim()).join("bin/rustc");
    let description = format!("rustc {release}, LLVM {llvm_major}, {}", rustc.display());
    Some(Compiler {
        rustc,
        libraries,
        llvm_major,
        description,
    })
}

/// Release and LLVM's major version out of `rustc -vV`, if the release is new enough.
fn parse_version(text: &str) -> Option<(&str, u32)> {
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    let release = field("release:")?;
    let minor: u32 = release
        .strip_prefix("1.")?
        .split('.')
        .next()?
        .parse()
        .ok()?;
    let llvm = field("LLVM version:")?.split('.').next()?.parse().ok()?;
    (minor >= OLDEST_MINOR).then_some((release, llvm))
}

impl Compiler {
    /// Makes `cargo` use this compiler, with the unstable options that `build-std` needs.
    pub(crate) fn apply(&self, cargo: &mut Command) -> Result<()> {
        // The flags that this task was built with are meant for the host.
        for name in [
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTUP_TOOLCHAIN",
            "RUSTC_WRAPPER",
        ] {
            cargo.env_remove(name);
        }
        // cargo is a stable one, and so is Debian's compiler.
        cargo.env("RUSTC", &self.rustc).env("RUSTC_BOOTSTRAP", "1");
        if let Some(libraries) = &self.libraries {
            if !libraries.is_dir() {
                bail!(
                    "{} has gone: remove the cache and try again",
                    libraries.display()
                );
            }
            cargo.env("LD_LIBRARY_PATH", libraries);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_and_an_old_compiler_refused() {
        let new = "rustc 1.96.0\nrelease: 1.96.0\nLLVM version: 22.1.8\n";
        assert_eq!(parse_version(new), Some(("1.96.0", 22)));
        let nightly = "release: 1.97.0-nightly\nLLVM version: 22.1.2\n";
        assert_eq!(parse_version(nightly), Some(("1.97.0-nightly", 22)));
        assert_eq!(
            parse_version("release: 1.63.0\nLLVM version: 14.0.6\n"),
            None
        );
        assert_eq!(parse_version(""), None);
    }
}
