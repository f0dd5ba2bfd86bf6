//! The model's files among a command's arguments, and how large they are together.

use model::launch::Needs;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Formats whose files are the model's memory, byte for byte.
const FORMATS: [&str; 2] = ["gguf", "safetensors"];

/// What all model files of the command take; `None` for a command without any.
///
/// An argument counts where it names a file or a directory of one of the formats, by itself or behind a `=`. Of a model in
/// several parts one is named and all are loaded; of a directory's models one is loaded, and the largest is assumed.
pub(crate) fn needs(command: &[OsString]) -> Option<Needs> {
    let mut models: BTreeMap<PathBuf, u64> = BTreeMap::new();
    // The program itself is no model.
    for argument in command.iter().skip(1) {
        let bytes = argument.as_bytes();
        let value = bytes
            .iter()
            .position(|b| *b == b'=')
            .map(|at| &bytes[at + 1..]);
        let paths = [Some(bytes), value];
        let found = paths
            .into_iter()
            .flatten()
            .find_map(|path| model_at(Path::new(OsStr::from_bytes(path))));
        models.extend(found);
    }
    let why: Vec<String> = models
        .keys()
        .map(|path| path.display().to_string())
        .collect();
    (!models.is_empty()).then(|| Needs {
        bytes: models.values().sum(),
        why: why.join(" and "),
    })
}

/// The model that a path names, and its size.
fn model_at(path: &Path) -> Option<(PathBuf, u64)> {
    // Links are followed: a hub's cache has its files behind them.
    let metadata = fs::metadata(path).ok()?;
    if metadata.is_dir() {
        let largest = sets(path, |_| true).into_values().max()?;
        return Some((path.to_owned(), largest));
    }
    let set = set_of(path)?;
    let parts = path.parent().filter(|p| !p.as_os_str().is_empty());
    let parts = sets(parts.unwrap_or(Path::new(".")), |other| *other == set);
    let size = parts.get(&set).copied().unwrap_or(metadata.len());
    Some((path.to_owned(), size))
}

/// Bytes of each model in a directory that is wanted.
fn sets(directory: &Path, wanted: impl Fn(&String) -> bool) -> BTreeMap<String, u64> {
    let mut sets: BTreeMap<String, u64> = BTreeMap::new();
    let names: BTreeSet<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect();
    for path in names {
        if let Some(set) = set_of(&path).filter(&wanted)
            && let Ok(metadata) = fs::metadata(&path)
        {
            *sets.entry(set).or_default() += metadata.len();
        }
    }
    sets
}

/// The name that all parts of a model share: `big-00001-of-00003.gguf` and its like are parts of `big.gguf`. `None` for
/// other files.
fn set_of(path: &Path) -> Option<String> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    if !FORMATS.contains(&extension.as_str()) {
        return None;
    }
    let stem = path.file_stem()?.to_str()?;
    let is_number = |text: &str| text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit());
    let whole = stem
        .rsplit_once("-of-")
        .filter(|(_, of)| is_number(of))
        .and_then(|(front, _)| front.rsplit_once('-'))
        .filter(|(_, part)| is_number(part))
        .map_or(stem, |(name, _)| name);
    Some(format!("{whole}.{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    /// Files of so many bytes, below the fixture's `proc`.
    fn files(sizes: &[(&str, usize)]) -> (Fixture, PathBuf) {
        let fixture = Fixture::new();
        for (name, size) in sizes {
            fixture.file(&format!("proc/{name}"), &"x".repeat(*size));
        }
        let base = fixture.root().proc("");
        (fixture, base)
    }

    fn bytes(base: &Path, command: &[&str]) -> Option<u64> {
        let base = base.to_str().unwrap().trim_end_matches('/');
        let command: Vec<OsString> = command
            .iter()
            .map(|word| word.replace("DIR", base).into())
            .collect();
        needs(&command).map(|needs| needs.bytes)
    }

    #[test]
    fn which_arguments_are_models() {
        let (_fixture, base) = files(&[
            ("a.gguf", 10),
            ("draft.GGUF", 3),
            ("big-00001-of-00002.gguf", 20),
            ("big-00002-of-00002.gguf", 7),
            ("hf/model-00001-of-00002.safetensors", 100),
            ("hf/model-00002-of-00002.safetensors", 50),
            ("hf/consolidated.safetensors", 149),
            ("hf/config.json", 9),
            ("notes.txt", 5),
            ("empty/readme", 1),
        ]);
        for (command, want) in [
            (&["llama-server", "-m", "DIR/a.gguf"][..], Some(10)),
            (&["llama-server", "--model=DIR/a.gguf"], Some(10)),
            // The draft is loaded too; the same file twice is one.
            (&["x", "DIR/a.gguf", "-md", "DIR/draft.GGUF"], Some(13)),
            (&["x", "DIR/a.gguf", "--again=DIR/a.gguf"], Some(10)),
            (&["x", "-m", "DIR/big-00001-of-00002.gguf"], Some(27)),
            // The same weights in two forms: one of them is loaded.
            (&["vllm", "serve", "DIR/hf"], Some(150)),
            (&["vllm", "serve", "DIR/hf/"], Some(150)),
            (&["x", "DIR/notes.txt", "DIR/empty", "DIR/none.gguf"], None),
            (&["vllm", "serve", "org/model"], None),
            (&["DIR/a.gguf"], None),
            (&[], None),
        ] {
            assert_eq!(bytes(&base, command), want, "{command:?}");
        }
    }

    #[test]
    fn the_model_is_named() {
        let (_fixture, base) = files(&[("a.gguf", 10)]);
        let model = base.join("a.gguf");
        let needs = needs(&["x".into(), model.clone().into()]).unwrap();
        assert_eq!(needs.why, model.display().to_string());
    }

    #[test]
    fn links_are_followed() {
        let (fixture, base) = files(&[("blobs/1", 33)]);
        fixture.link("proc/snapshot/model.safetensors", "../blobs/1");
        assert_eq!(bytes(&base, &["x", "DIR/snapshot"]), Some(33));
    }
}
