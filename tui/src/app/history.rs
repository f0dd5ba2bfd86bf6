//! The recent past of each process's remote share, for the trend.

use super::feed::Id;
use model::snapshot::Snapshot;
use std::collections::{HashMap, VecDeque};

/// Samples kept for a process; more than any trend column shows.
const SAMPLES: usize = 64;
/// Processes kept; beyond, newcomers have no trend.
const PROCESSES: usize = 4096;

/// The share at one time (monotonic nanoseconds), `None` where it was unknown.
type Sample = (u64, Option<f64>);

/// Bounded by [`SAMPLES`] and [`PROCESSES`]; who is gone from the snapshots is forgotten.
#[derive(Debug, Default)]
pub(crate) struct History {
    shares: HashMap<Id, VecDeque<Sample>>,
}

impl History {
    pub(crate) fn record(&mut self, snapshot: &Snapshot) {
        let mut kept = HashMap::with_capacity(self.shares.len());
        for process in snapshot.processes.iter().take(PROCESSES) {
            let id = Id::of(process);
            let mut samples = self.shares.remove(&id).unwrap_or_default();
            if samples.len() == SAMPLES {
                samples.pop_front();
            }
            samples.push_back((snapshot.monotonic_ns, process.remote_share.value));
            kept.insert(id, samples);
        }
        self.shares = kept;
    }

    /// The last `n` shares up to a time: a held picture's trend doesn't move on.
    pub(crate) fn trend(&self, id: Id, until_ns: u64, n: usize) -> Vec<Option<f64>> {
        let Some(samples) = self.shares.get(&id) else {
            return Vec::new();
        };
        let mut last: Vec<Option<f64>> = samples
            .iter()
            .rev()
            .filter(|(at, _)| *at <= until_ns)
            .take(n)
            .map(|(_, share)| *share)
            .collect();
        last.reverse();
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up;

    #[test]
    fn it_is_bounded_keyed_by_identity_and_stops_at_a_time() {
        let mut history = History::default();
        let mut last = made_up::two_nodes(0);
        for tick in 0..200 {
            last = made_up::two_nodes(tick);
            history.record(&last);
        }
        let id = Id::of(&last.processes[0]);
        assert_eq!(history.trend(id, u64::MAX, 1000).len(), SAMPLES);
        assert_eq!(history.trend(id, u64::MAX, 8).len(), 8);
        assert!(history.trend(id, 0, 8).is_empty());
        let reused = Id {
            start_time: id.start_time + 1,
            ..id
        };
        assert!(history.trend(reused, u64::MAX, 8).is_empty());

        last.processes.clear();
        history.record(&last);
        assert!(history.shares.is_empty());
    }
}
