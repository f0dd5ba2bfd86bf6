//! Where things lie: the workspace, its target directory, and the cache of what was fetched.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The workspace's root, wherever the task was started from.
pub(crate) fn root() -> &'static Path {
    // xtask is always run through cargo from the tree that it was built in.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// cargo's target directory.
pub(crate) fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The object file of the kernel side: what `agent`'s build script includes.
pub(crate) fn ebpf_object() -> PathBuf {
    target().join("numawatch-ebpf.o")
}

/// `NUMAWATCH_CACHE`, else the user's cache directory: compilers, bpf-linker and kernels.
pub(crate) fn cache() -> Result<PathBuf> {
    if let Some(dir) = env::var_os("NUMAWATCH_CACHE").filter(|dir| !dir.is_empty()) {
        // Relative to the tree, not to the folder that a test happens to be in.
        return Ok(root().join(dir));
    }
    if let Some(dir) = env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
        return Ok(PathBuf::from(dir).join("numawatch"));
    }
    let home = env::var_os("HOME")
        .context("neither HOME nor NUMAWATCH_CACHE is set: set NUMAWATCH_CACHE to a directory")?;
    Ok(PathBuf::from(home).join(".cache/numawatch"))
}
