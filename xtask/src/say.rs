//! How a long job tells what it does: numbered prose on stderr, each step with its time.
//!
//! stdout is left to the commands that a task runs, so that their JSON stays JSON.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

static STEP: AtomicUsize = AtomicUsize::new(1);

/// Says what is about to happen, does it, and says how long it took.
pub(crate) fn step<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let number = STEP.fetch_add(1, Ordering::Relaxed);
    eprintln!("{number}. {what} …");
    let start = Instant::now();
    let result = work();
    let took = seconds(start.elapsed());
    match &result {
        Ok(_) => eprintln!("   {number} done in {took}"),
        Err(_) => eprintln!("   {number} failed after {took}"),
    }
    result
}

/// One remark that belongs to the step under way.
pub(crate) fn note(what: &str) {
    eprintln!("   {what}");
}

/// A duration as people say it: `0.4 s`, `12 s`, `3 min 05 s`.
pub(crate) fn seconds(duration: Duration) -> String {
    let whole = duration.as_secs();
    match whole {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{whole} s"),
        _ => format!("{} min {:02} s", whole / 60, whole % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_like_speech() {
        assert_eq!(seconds(Duration::from_millis(440)), "0.4 s");
        assert_eq!(seconds(Duration::from_secs(12)), "12 s");
        assert_eq!(seconds(Duration::from_secs(185)), "3 min 05 s");
    }
}
