//! Names the eBPF programs and maps that an object file holds.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

/// What an object holds.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// `section/function`, sorted.
    pub(crate) programs: Vec<String>,
    /// Names of the maps, sorted.
    pub(crate) maps: Vec<String>,
}

/// Reads the symbols of an object file.
pub(crate) fn read(path: &Path) -> Result<Contents> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = object::File::parse(&*bytes)
        .with_context(|| format!("{} is no ELF object", path.display()))?;
    let mut contents = Contents::default();
    for symbol in file.symbols().filter(ObjectSymbol::is_global) {
        let Some(section) = symbol.section_index() else {
            continue;
        };
        let section = file.section_by_index(section)?;
        let (section, name) = (section.name()?, symbol.name()?);
        match section {
            // Functions that programs call are no programs.
            ".text" => {}
            "maps" | ".maps" => contents.maps.push(name.to_owned()),
            _ if symbol.kind() == SymbolKind::Text => {
                contents.programs.push(format!("{section} ({name})"));
            }
            _ => {}
        }
    }
    contents.programs.sort();
    contents.maps.sort();
    Ok(contents)
}
