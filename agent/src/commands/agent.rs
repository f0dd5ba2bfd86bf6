//! `numawatch agent`: watches until stopped, and exports over OTLP.

use super::{Stop, announce, runtime, sampler};
use crate::cli::Agent as Options;
use crate::export::otlp::{OtlpExporter, OtlpOptions};
use crate::logging;
use crate::sampler::feed::Feed;
use anyhow::{Result, bail};
use model::snapshot::Snapshot;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::watch::Receiver;

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    logging::to_stderr();
    let otlp = OtlpOptions {
        endpoint: options.otlp_endpoint.clone(),
        protocol: options.otlp_protocol,
        interval: options.otlp_interval,
    };
    OtlpExporter::check(&otlp)?;
    let sampler = sampler(&options.watch, false)?;
    announce(&sampler);
    let feed = Feed::start(sampler, options.watch.interval)?;
    let exporter = OtlpExporter::start(feed.snapshots(), &otlp)?;
    logging::say(&format!("exporting to {}", exporter.endpoint()));
    let ended = runtime()?.block_on(follow(feed.snapshots(), options.json));
    // The last export needs the last snapshot, and no probe.
    exporter.shutdown();
    drop(feed);
    ended.map(|()| ExitCode::SUCCESS)
}

/// Waits for a signal, printing each snapshot where that is asked for.
async fn follow(mut snapshots: Receiver<Option<Arc<Snapshot>>>, json: bool) -> Result<()> {
    let mut stop = Stop::new()?;
    loop {
        tokio::select! {
            () = stop.asked() => return Ok(()),
            changed = snapshots.changed() => if changed.is_err() {
                bail!("sampling has stopped; the log above says why");
            },
        }
        let snapshot = snapshots.borrow_and_update().clone();
        if let Some(snapshot) = snapshot.filter(|_| json) {
            let mut line = serde_json::to_vec(&*snapshot).map_err(std::io::Error::from)?;
            line.push(b'\n');
            let mut out = std::io::stdout().lock();
            out.write_all(&line)?;
            out.flush()?;
        }
    }
}
