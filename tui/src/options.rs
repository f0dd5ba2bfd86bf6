//! What the caller may tell the dashboard.

/// How the dashboard presents itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is looked for, as an object: `inference engines, and whoever has a GPU device open`.
    /// The empty screen says it.
    pub selection: String,
    /// Shown in the header where the snapshots are not this host's, live: `demo`, `replay of FILE`.
    pub label: Option<String>,
    /// Whether to use colours; every screen is legible without.
    pub colour: bool,
}

impl Default for Options {
    /// Detected engines, no label, colours unless `NO_COLOR` is set and not empty.
    fn default() -> Self {
        Self {
            selection: "inference engines, and whoever has a GPU device open".to_owned(),
            label: None,
            colour: std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        }
    }
}
