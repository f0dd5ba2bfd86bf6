//! When to say that exporting fails: at once, then seldom, and when it works again.

use std::time::{Duration, Instant};

/// Between two lines about the same trouble.
const SELDOM: Duration = Duration::from_mins(5);

/// The trouble so far; `None` while exports arrive.
#[derive(Debug, Default)]
pub(super) struct Complaints(Option<Trouble>);

#[derive(Debug)]
struct Trouble {
    failures: u64,
    said_at: Instant,
}

impl Complaints {
    /// An export failed; gives the line to log, if it is time for one.
    pub(super) fn failed(&mut self, now: Instant, why: &str) -> Option<String> {
        let Some(trouble) = &mut self.0 else {
            self.0 = Some(Trouble {
                failures: 1,
                said_at: now,
            });
            return Some(format!(
                "{why}; sampling goes on, the next export has it all"
            ));
        };
        trouble.failures += 1;
        if now.duration_since(trouble.said_at) < SELDOM {
            return None;
        }
        trouble.said_at = now;
        Some(format!("{why}; {} exports failed by now", trouble.failures))
    }

    /// An export arrived; gives the line to log if the one before didn't.
    pub(super) fn arrived(&mut self, processes_given_up: u64) -> Option<String> {
        let failures = self.0.take()?.failures;
        Some(match processes_given_up {
            0 => format!("works again, {failures} exports had failed"),
            n => format!(
                "works again, {failures} exports had failed; the last counts of {n} processes are lost"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_and_the_recovery_are_said_and_the_rest_seldom() {
        let mut complaints = Complaints::default();
        let start = Instant::now();
        assert_eq!(complaints.arrived(0), None);
        assert!(complaints.failed(start, "why").unwrap().starts_with("why"));
        for second in 1..300 {
            let now = start + Duration::from_secs(second);
            assert_eq!(complaints.failed(now, "why"), None, "{second}");
        }
        let said = complaints.failed(start + SELDOM, "why").unwrap();
        assert_eq!(said, "why; 301 exports failed by now");
        assert_eq!(complaints.failed(start + SELDOM * 3 / 2, "why"), None);
        assert!(complaints.arrived(0).unwrap().contains("302"));
        assert_eq!(complaints.arrived(0), None);
        assert!(complaints.failed(start, "why").is_some());
    }
}
