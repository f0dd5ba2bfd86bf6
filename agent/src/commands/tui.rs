//! `numawatch tui`: the dashboard over a running sampler.

use super::{runtime, sampler, say_what_is_missing};
use crate::cli::Tui as Options;
use crate::logging;
use crate::sampler::feed::Feed;
use anyhow::Result;
use std::io::IsTerminal;
use std::process::ExitCode;

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    anyhow::ensure!(
        std::io::stdin().is_terminal() && std::io::stdout().is_terminal(),
        "the dashboard needs a terminal; for a script use numawatch snapshot --json"
    );
    logging::to_file(options.log_file.as_deref())?;
    // Taken back when it is done: a refusal then stands alone in its line.
    logging::write("numawatch: attaching probes");
    let sampler = sampler(&options.watch, false);
    logging::write("\r\x1b[K");
    let sampler = sampler?;
    // It is there again when the screen is given back.
    say_what_is_missing(&sampler);
    let feed = Feed::start(sampler, options.watch.interval)?;
    let shown = tui::Options {
        selection: options.watch.words(),
        ..tui::Options::default()
    };
    let ended = runtime()?.block_on(tui::run(feed.snapshots(), shown))?;
    drop(feed);
    Ok(match ended {
        tui::Ended::ByUser => ExitCode::SUCCESS,
        tui::Ended::BySignal(number) => {
            ExitCode::from(u8::try_from(128 + number).unwrap_or(u8::MAX))
        }
    })
}
