//! The last half minute of one process: what its counters grew by, as evidence for the verdict.

use crate::process::{ByNode, TouchCounter};
use std::collections::VecDeque;

/// Cumulative counters at one tick.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Monotonic nanoseconds.
    pub monotonic_ns: u64,
    /// Hint touches since tracking began.
    pub hint: Option<TouchCounter>,
    /// On-CPU nanoseconds by node since tracking began.
    pub cpu_time_ns_by_node: Option<ByNode>,
}

/// Samples no older than the window, and one just before it.
#[derive(Clone, Debug, Default)]
pub struct Window {
    samples: VecDeque<Sample>,
    /// Samples have been let go: the first one left is the base, not the beginning.
    full: bool,
}

/// Growth over the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Growth {
    /// Hint touches.
    pub hint: Option<TouchCounter>,
    /// On-CPU nanoseconds by node.
    pub cpu_time_ns_by_node: Option<ByNode>,
    /// Seconds that it spans.
    pub window_s: f64,
}

impl Window {
    /// Adds a sample and lets go of those that the window has left behind.
    pub fn push(&mut self, sample: Sample, window_s: f64) {
        let now = sample.monotonic_ns;
        self.samples.push_back(sample);
        let age = |s: &Sample| now.saturating_sub(s.monotonic_ns) as f64 / 1e9;
        while self.samples.len() > 2 && self.samples.get(1).is_some_and(|s| age(s) >= window_s) {
            self.samples.pop_front();
            self.full = true;
        }
    }

    /// From the oldest sample to the newest; from zero, when tracking began at `since_ns`, until the window is full.
    #[must_use]
    pub fn growth(&self, since_ns: u64) -> Growth {
        let Some(last) = self.samples.back() else {
            return Growth::default();
        };
        let blank = Sample {
            monotonic_ns: since_ns,
            hint: last.hint.as_ref().map(zero),
            cpu_time_ns_by_node: last.cpu_time_ns_by_node.as_ref().map(|_| ByNode::new()),
        };
        let first = self.samples.front().filter(|_| self.full).unwrap_or(&blank);
        Growth {
            hint: last
                .hint
                .as_ref()
                .zip(first.hint.as_ref())
                .map(|(b, a)| touches(a, b)),
            cpu_time_ns_by_node: last
                .cpu_time_ns_by_node
                .as_ref()
                .zip(first.cpu_time_ns_by_node.as_ref())
                .map(|(b, a)| by_node(a, b)),
            window_s: last.monotonic_ns.saturating_sub(first.monotonic_ns) as f64 / 1e9,
        }
    }
}

fn zero(counter: &TouchCounter) -> TouchCounter {
    TouchCounter {
        pages: counter.pages.map(|_| 0),
        local_pages: counter.local_pages.map(|_| 0),
        same_socket_pages: counter.same_socket_pages.map(|_| 0),
        cross_socket_pages: counter.cross_socket_pages.map(|_| 0),
        unknown_node_pages: counter.unknown_node_pages.map(|_| 0),
        by_pair: None,
    }
}

fn touches(before: &TouchCounter, now: &TouchCounter) -> TouchCounter {
    let grown = |f: fn(&TouchCounter) -> Option<u64>| f(now)?.checked_sub(f(before)?);
    TouchCounter {
        pages: grown(|c| c.pages),
        local_pages: grown(|c| c.local_pages),
        same_socket_pages: grown(|c| c.same_socket_pages),
        cross_socket_pages: grown(|c| c.cross_socket_pages),
        unknown_node_pages: grown(|c| c.unknown_node_pages),
        by_pair: None,
    }
}

fn by_node(before: &ByNode, now: &ByNode) -> ByNode {
    now.iter()
        .map(|(node, ns)| {
            (
                *node,
                ns.saturating_sub(before.get(node).copied().unwrap_or(0)),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64, remote: u64) -> Sample {
        Sample {
            monotonic_ns: second * 1_000_000_000,
            hint: Some(TouchCounter {
                local_pages: Some(0),
                same_socket_pages: Some(0),
                cross_socket_pages: Some(remote),
                ..TouchCounter::default()
            }),
            cpu_time_ns_by_node: Some(ByNode::from([(0, second)])),
        }
    }

    #[test]
    fn evidence_older_than_the_window_is_let_go() {
        let mut window = Window::default();
        for second in 0..=100 {
            window.push(sample(second, second * 10), 30.0);
        }
        let growth = window.growth(0);
        assert_eq!(growth.hint.unwrap().cross_socket_pages, Some(300));
        assert!((growth.window_s - 30.0).abs() < 1e-9);
    }

    #[test]
    fn a_single_sample_counts_since_tracking_began() {
        let mut window = Window::default();
        window.push(sample(5, 70), 30.0);
        let growth = window.growth(3_000_000_000);
        assert_eq!(growth.hint.unwrap().cross_socket_pages, Some(70));
        assert!((growth.window_s - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_signal_that_went_away_leaves_no_evidence() {
        let mut window = Window::default();
        window.push(sample(0, 10), 30.0);
        window.push(
            Sample {
                hint: None,
                ..sample(1, 0)
            },
            30.0,
        );
        assert_eq!(window.growth(0).hint, None);
    }
}
