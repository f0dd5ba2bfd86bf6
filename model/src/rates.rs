//! What happened between two snapshots: counters are the kernel's, rates are the reader's.

use crate::process::Process;
use crate::snapshot::Snapshot;

/// The same process in the snapshot before; a reused pid is another process.
#[must_use]
pub fn previous<'a>(before: &'a Snapshot, now: &Process) -> Option<&'a Process> {
    before
        .processes
        .iter()
        .find(|p| p.pid == now.pid && p.start_time == now.start_time)
}

/// Growth of a counter per second. `None` when either end is missing, no time went by, or it fell.
#[must_use]
pub fn per_second(before: Option<u64>, now: Option<u64>, elapsed_ns: u64) -> Option<f64> {
    let grown = now?.checked_sub(before?)?;
    if elapsed_ns == 0 {
        None
    } else {
        Some(grown as f64 * 1e9 / elapsed_ns as f64)
    }
}

/// Nanoseconds between two snapshots; `None` when they are out of order.
#[must_use]
pub fn elapsed_ns(before: &Snapshot, now: &Snapshot) -> Option<u64> {
    now.monotonic_ns
        .checked_sub(before.monotonic_ns)
        .filter(|ns| *ns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_needs_both_ends_and_time() {
        for (before, now, elapsed, want) in [
            (Some(10), Some(30), 2_000_000_000, Some(10.0)),
            (Some(10), Some(10), 1_000_000_000, Some(0.0)),
            (None, Some(10), 1_000_000_000, None),
            (Some(10), None, 1_000_000_000, None),
            (Some(30), Some(10), 1_000_000_000, None),
            (Some(10), Some(30), 0, None),
        ] {
            assert_eq!(
                per_second(before, now, elapsed),
                want,
                "{before:?} {now:?} {elapsed}"
            );
        }
    }
}
