//! Exports the newest snapshot's metrics over OTLP, on a thread of its own.
//!
//! Nothing here can hold up sampling: a snapshot is taken from the watch channel whenever the thread comes to it, and a
//! collector that is absent, slow or hanging costs that thread's time only. Counters are cumulative, so what one export
//! missed is in the next; a process that ended is exported once more, as soon as an export arrives.
//!
//! The official crates do the protocol, with the SDK's manual reader instead of its periodic one: that one has no time
//! limit for an export, can't tell us that one arrived, and doesn't work with the clients that both protocols share.

mod client;
mod complaints;
mod instruments;
mod settings;
mod view;
mod worker;

pub(crate) use settings::{OtlpOptions, Protocol};

use anyhow::{Context as _, Result, anyhow};
use model::snapshot::Snapshot;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use tokio::sync::{oneshot, watch};
use worker::Worker;

/// A running export; it ends when dropped, without a last export.
#[derive(Debug)]
pub(crate) struct OtlpExporter {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    endpoint: String,
}

impl OtlpExporter {
    /// Starts to export what `snapshots` shows, the first one at once. Reads the `OTEL_*` variables.
    ///
    /// # Errors
    /// One line for an option or a variable that can't be followed. Whether a collector answers shows later, in the log.
    pub(crate) fn start(
        snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
        options: &OtlpOptions,
    ) -> Result<Self> {
        let settings = settings::resolve(options, |name| std::env::var(name).ok())?;
        for warning in &settings.warnings {
            tracing::warn!("{warning}");
        }
        let endpoint = settings.endpoint.clone();
        let (stop, stopped) = oneshot::channel();
        let (started, is_started) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("otlp".into())
            .spawn(move || {
                let runtime = match runtime() {
                    Ok(runtime) => runtime,
                    Err(error) => return drop(started.send(Err(error))),
                };
                let guard = runtime.enter();
                match Worker::new(snapshots, settings) {
                    Ok(worker) => {
                        let _ = started.send(Ok(()));
                        runtime.block_on(worker.run(stopped));
                    }
                    Err(error) => drop(started.send(Err(error))),
                }
                drop(guard);
                // A name that is being looked up can't be cancelled, and nobody waits for it.
                runtime.shutdown_background();
            })
            .context("can't start the OTLP export's thread")?;
        is_started
            .recv()
            .map_err(|_| anyhow!("the OTLP export ended while it started"))??;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
            endpoint,
        })
    }

    /// Whether an export could be started, before anything else is.
    ///
    /// # Errors
    /// One line for an option or a variable that can't be followed.
    pub(crate) fn check(options: &OtlpOptions) -> Result<()> {
        settings::resolve(options, |name| std::env::var(name).ok()).map(drop)
    }

    /// The whole URL that it exports to.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Exports the newest snapshot once more and ends. Waits for it, 5 s at most: call it from where blocking is allowed.
    pub(crate) fn shutdown(mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the OTLP export's thread panicked");
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("can't start the OTLP export")
}

#[cfg(test)]
mod tests;
