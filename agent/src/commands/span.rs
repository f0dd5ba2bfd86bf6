//! Watching for a span of time, for commands that print at its end.

use super::{Stop, announce};
use crate::sampler::Sampler;
use anyhow::{Context, Result};
use model::snapshot::Snapshot;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The snapshots at the beginning and at the end of a span.
pub(super) struct Span {
    pub(super) first: Snapshot,
    pub(super) last: Snapshot,
}

/// Ticks until the time is over or a signal comes. The ticks in between follow processes that come and go, and what is
/// concluded at the end rests on them too.
pub(super) async fn watch(
    sampler: &mut Sampler,
    span: Duration,
    interval: Duration,
) -> Result<Span> {
    let mut stop = Stop::new()?;
    // Whoever waits for this line may signal at once.
    announce(sampler);
    let began = Instant::now();
    let end = began.checked_add(span).context("--for is too long")?;
    let mut first = None;
    loop {
        let now = sampler.tick()?;
        let first = first.get_or_insert(now);
        let next = (Instant::now() + interval).min(end);
        let stopped = tokio::select! {
            () = sleep_until(next) => false,
            () = stop.asked() => true,
        };
        if stopped || Instant::now() >= end {
            return Ok(Span {
                first: first.clone(),
                last: sampler.finish()?,
            });
        }
    }
}
