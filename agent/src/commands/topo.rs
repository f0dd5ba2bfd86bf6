//! `numawatch topo`: sockets, nodes, GPUs and NICs, and what lies between them.

use super::terminal;
use crate::cli::Topo as Options;
use crate::host::root::Root;
use crate::logging;
use crate::topo::Report;
use crate::topo::text::{self, Paint};
use anyhow::Result;
use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    logging::to_stderr();
    let root = match &options.root {
        Some(folder) => Root::new(folder.join("proc"), folder.join("sys")),
        None => Root::system(),
    };
    let report = Report::read(&root, options.nvml.path.as_deref());
    let mut out = std::io::stdout().lock();
    if options.json {
        serde_json::to_writer_pretty(&mut out, &report).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        let plain = text::report(&report, Paint { colour: false });
        let colour = out.is_terminal()
            && wants_colour(std::env::var_os("NO_COLOR"), std::env::var_os("TERM"))
            && terminal::columns(&out).is_some_and(|columns| fits(&plain, columns));
        let text = if colour {
            text::report(&report, Paint { colour })
        } else {
            plain
        };
        out.write_all(text.as_bytes())?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn wants_colour(no_color: Option<OsString>, term: Option<OsString>) -> bool {
    no_color.is_none_or(|value| value.is_empty()) && term.is_none_or(|term| term != "dumb")
}

/// Colours across broken lines only confuse.
fn fits(text: &str, columns: usize) -> bool {
    text.lines().all(|line| line.chars().count() <= columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        for (no_color, term, want) in [
            (None, Some("xterm-256color"), true),
            (Some(""), None, true),
            (Some("1"), Some("xterm"), false),
            (None, Some("dumb"), false),
        ] {
            let given = wants_colour(no_color.map(OsString::from), term.map(OsString::from));
            assert_eq!(given, want, "{no_color:?} {term:?}");
        }
    }

    #[test]
    fn columns_are_characters() {
        assert!(fits("└─ node 0\n", 9));
        assert!(!fits("└─ node 0\n", 8));
    }
}
