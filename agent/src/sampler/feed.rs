//! Runs a sampler on a thread of its own and hands its snapshots to whoever watches.

use super::Sampler;
use anyhow::{Context, Result};
use model::snapshot::Snapshot;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How many snapshots in a row may fail: a CPU that goes offline in the middle of a read makes one fail.
const MOST_FAILURES: u32 = 10;

/// A running sampler. Dropping it stops the thread and detaches the probes.
pub(crate) struct Feed {
    snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Feed {
    /// Starts ticking every `interval`.
    pub(crate) fn start(sampler: Sampler, interval: Duration) -> Result<Self> {
        let (sender, snapshots) = watch::channel(None);
        let (stop, stopped) = channel();
        let run = move || {
            let mut sampler = sampler;
            let mut next = Instant::now();
            let mut failures = 0;
            loop {
                match sampler.tick() {
                    Ok(snapshot) => {
                        failures = 0;
                        // Nobody may be watching; the counters go on all the same.
                        sender.send_replace(Some(Arc::new(snapshot)));
                    }
                    Err(error) if failures < MOST_FAILURES => {
                        failures += 1;
                        tracing::warn!("no snapshot this time: {error:#}");
                    }
                    Err(error) => {
                        tracing::error!("sampling stopped: {error:#}");
                        break;
                    }
                }
                // A tick that took too long is followed by the next whole interval, not by a burst.
                let now = Instant::now();
                next += interval;
                if next < now {
                    next = now + interval;
                }
                match stopped.recv_timeout(next.saturating_duration_since(now)) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        };
        let thread = thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(run)
            .context("cannot start the sampling thread")?;
        Ok(Self {
            snapshots,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The newest snapshot, `None` before the first; the channel closes when sampling ends.
    pub(crate) fn snapshots(&self) -> watch::Receiver<Option<Arc<Snapshot>>> {
        self.snapshots.clone()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the sampling thread panicked");
        }
    }
}
