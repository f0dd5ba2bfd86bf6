//! bpf-linker: found on PATH, or built once into the cache against the compiler's LLVM.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{apt, command, compiler::Compiler, say, workspace};

/// The release that was tried with the compilers that `compiler` finds.
const VERSION: &str = "0.13.0";

/// The folder that has bpf-linker for this compiler.
pub(crate) fn provide(compiler: &Compiler) -> Result<PathBuf> {
    if let Some(bin) = command::find("bpf-linker")
        .as_deref()
        .and_then(Path::parent)
    {
        return Ok(bin.to_path_buf());
    }
    let major = compiler.llvm_major;
    // One for each LLVM: a linker cannot read the bitcode of a newer one.
    let root = workspace::cache()?.join(format!("bpf-linker-{VERSION}-llvm-{major}"));
    let bin = root.join("bin");
    if !bin.join("bpf-linker").is_file() {
        build(major, &root)
            .with_context(|| format!("or type: cargo install bpf-linker --version {VERSION}"))?;
    }
    Ok(bin)
}

fn build(major: u32, root: &Path) -> Result<()> {
    let prefix = llvm(major)?;
    say::step(
        &format!("Building bpf-linker {VERSION} for LLVM {major} (once)"),
        || {
            let mut cargo = command::cargo();
            cargo.args(["install", "--quiet", "bpf-linker", "--version", VERSION]);
            cargo.args(["--locked", "--no-default-features", "--features"]);
            cargo.arg(format!("llvm-{major}")).arg("--root").arg(root);
            // Without it the build script takes /usr/lib for LLVM's libraries and fails to link.
            cargo.env("LLVM_PREFIX", &prefix).env_remove("RUSTFLAGS");
            // Not below the workspace's target: it would be built again after each `cargo clean`.
            cargo.env("CARGO_TARGET_DIR", root.join("build"));
            command::run(&mut cargo)?;
            std::fs::remove_dir_all(root.join("build")).context("cannot tidy up bpf-linker's build")
        },
    )
}

/// LLVM's prefix, fetched where it is missing.
fn llvm(major: u32) -> Result<PathBuf> {
    if let Some(prefix) = installed_llvm(Path::new("/"), major) {
        return Ok(prefix);
    }
    let (llvm, polly) = (format!("llvm-{major}-dev"), format!("libpolly-{major}-dev"));
    let packages = [&*llvm, &*polly, "zlib1g-dev", "libzstd-dev", "libxml2-dev"];
    let root = apt::provide(&packages, &format!("LLVM {major}, to build bpf-linker"))?;
    match installed_llvm(&root, major) {
        Some(prefix) => Ok(prefix),
        None => bail!("{llvm} brought no llvm-config: install LLVM {major} by hand"),
    }
}

/// LLVM's prefix below `root`, with Polly, which bpf-linker links too.
fn installed_llvm(root: &Path, major: u32) -> Option<PathBuf> {
    let prefix = root.join(format!("usr/lib/llvm-{major}"));
    let complete = [
        "bin/llvm-config",
        "lib/libPolly.a",
        "include/llvm/Config/llvm-config.h",
    ]
    .iter()
    .all(|file| prefix.join(file).exists());
    complete.then_some(prefix)
}
