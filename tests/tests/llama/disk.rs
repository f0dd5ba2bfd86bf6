//! A directory for a guest's disk: llama.cpp's server with all that it needs, and its model.

use crate::engine::{self, PYTHON};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The model, in the guest.
pub(crate) const MODEL: &str = "/disk/model.gguf";

/// Removed on drop.
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// Makes it of what is in the cache, beside which it is: what is large is linked, not copied.
    pub(crate) fn create() -> Self {
        let home = engine::provide();
        let disk = Self(home.join(format!("disk-{}", std::process::id())));
        fs::create_dir_all(&disk.0).expect("a directory in the cache");
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/llama");
        let mut pack = Command::new(home.join(PYTHON));
        engine::run(pack.arg(scripts.join("pack.py")).arg(&disk.0));
        fs::copy(scripts.join("serve.py"), disk.0.join("serve.py")).expect("a copy");
        fs::hard_link(home.join(engine::MODEL), disk.0.join("model.gguf")).expect("a link");
        disk
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
