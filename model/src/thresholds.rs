//! From when on a number is worth a word: every threshold that the user may change.

use crate::verdict::{EVIDENCE_PAGES, MIXED_FROM, REMOTE_FROM};
use serde::{Deserialize, Serialize};

/// The thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thresholds {
    /// A share of this is `remote`, and fails.
    pub remote_from: f64,
    /// A share of this is `mixed`, and warns.
    pub mixed_from: f64,
    /// Pages of 4 KiB below which nothing is concluded.
    pub evidence_pages: u64,
    /// Seconds below which no rate is concluded from.
    pub evidence_seconds: f64,
    /// Moves of a process's threads between sockets, a second, from which they wander.
    pub moves_per_second: f64,
    /// Share of its CPU time that a process spends in scanning for NUMA balancing, from which that is dear.
    pub scan_share: f64,
    /// Pages a second that balancing moves there and back again, from which it moves them to and fro.
    pub to_and_fro_per_second: f64,
    /// Share of a node's memory that is free, below which it is full.
    pub free_share: f64,
    /// Allocations a second that a node could not serve, from which it is full too.
    pub foreign_per_second: f64,
    /// CPUs' worth of time from which a server is at work; share of its CPUs' time below half of which a node idles.
    pub busy_share: f64,
}

impl Thresholds {
    /// Refuses thresholds that can't be meant.
    ///
    /// # Errors
    /// In words, which one and why.
    pub fn check(&self) -> Result<(), String> {
        let shares = [
            ("remote_from", self.remote_from),
            ("mixed_from", self.mixed_from),
            ("scan_share", self.scan_share),
            ("free_share", self.free_share),
        ];
        if let Some((name, value)) = shares.iter().find(|(_, v)| !(0.0..=1.0).contains(v)) {
            return Err(format!("{name} is a share, 0 to 1, and not {value}"));
        }
        if self.mixed_from > self.remote_from {
            return Err(format!(
                "mixed_from ({}) is above remote_from ({})",
                self.mixed_from, self.remote_from
            ));
        }
        Ok(())
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            remote_from: REMOTE_FROM,
            mixed_from: MIXED_FROM,
            evidence_pages: EVIDENCE_PAGES,
            evidence_seconds: 1.0,
            moves_per_second: 1.0,
            scan_share: 0.05,
            to_and_fro_per_second: 100.0,
            free_share: 0.02,
            foreign_per_second: 16.0,
            busy_share: 0.2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_0_to_1_and_mixed_comes_before_remote() {
        let usual = Thresholds::default();
        assert_eq!(usual.check(), Ok(()));
        let wrong = Thresholds {
            free_share: 7.0,
            ..usual
        };
        assert!(wrong.check().unwrap_err().contains("free_share"));
        let wrong = Thresholds {
            remote_from: 0.05,
            ..usual
        };
        assert!(wrong.check().unwrap_err().contains("mixed_from (0.1)"));
    }
}
