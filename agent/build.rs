//! Finds the kernel side's object, which `cargo xtask build-ebpf` makes, for the binary to include.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo:rustc-check-cfg=cfg(kernel_object)");
    println!("cargo:rerun-if-env-changed=NUMAWATCH_EBPF_OBJECT");
    println!("cargo:rerun-if-env-changed=CARGO_TARGET_DIR");
    let object = env::var_os("NUMAWATCH_EBPF_OBJECT").map_or_else(default_object, PathBuf::from);
    println!("cargo:rerun-if-changed={}", object.display());
    if object.is_file() {
        println!("cargo:rustc-cfg=kernel_object");
        println!("cargo:rustc-env=NUMAWATCH_EBPF_OBJECT={}", object.display());
    }
}

/// `<target>/numawatch-ebpf.o`; the target folder is the workspace's unless the environment says otherwise.
fn default_object() -> PathBuf {
    let workspace = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("..");
    let target = env::var_os("NUMAWATCH_TARGET_DIR")
        .or_else(|| env::var_os("CARGO_TARGET_DIR"))
        .map_or_else(|| workspace.join("target"), PathBuf::from);
    target.join("numawatch-ebpf.o")
}
