//! How long memory is touched again after its first touch, while NUMA balancing watches.

use crate::sys;
use anyhow::{Result, bail};
use clap::Args;
use std::time::{Duration, Instant};

/// Until when.
#[derive(Args, Clone, Debug)]
pub(crate) struct Again {
    /// Touch all pages again and again for this long; with a condition below, at most this long.
    #[arg(long = "again", id = "again", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: Option<u64>,
    /// Touch again until the machine has counted this many more `numa_hint_faults`.
    #[arg(long, value_name = "FAULTS", requires = "again")]
    until_hint_faults: Option<u64>,
    /// Touch again until the machine has counted this many more `numa_pages_migrated`.
    #[arg(long, value_name = "PAGES", requires = "again")]
    until_migrated: Option<u64>,
}

/// Says when it is enough.
#[derive(Debug)]
pub(crate) struct Deadline {
    end: Instant,
    conditions: Vec<(&'static str, u64)>,
}

impl Again {
    /// Whether anything is touched again.
    pub(crate) fn is_wanted(&self) -> bool {
        self.seconds.is_some()
    }

    /// Refuses conditions that can't come true.
    pub(crate) fn check(&self) -> Result<()> {
        let balancing = sys::number_in("/proc/sys/kernel/numa_balancing")?.unwrap_or(0);
        if balancing == 0 && (self.until_hint_faults.is_some() || self.until_migrated.is_some()) {
            bail!(
                "there are no hint faults with kernel.numa_balancing=0: sysctl -w kernel.numa_balancing=1"
            );
        }
        Ok(())
    }

    /// Counted from now.
    pub(crate) fn deadline(&self) -> Deadline {
        let goal = |name, more: Option<u64>| Some((name, sys::vmstat(name)? + more?));
        Deadline {
            end: Instant::now() + Duration::from_secs(self.seconds.unwrap_or(0)),
            conditions: [
                goal("numa_hint_faults", self.until_hint_faults),
                goal("numa_pages_migrated", self.until_migrated),
            ]
            .into_iter()
            .flatten()
            .collect(),
        }
    }
}

impl Deadline {
    /// Whether it is time to stop; fails when the time is up before the conditions hold.
    pub(crate) fn has_come(&self) -> Result<bool> {
        if let Some((name, goal)) = self
            .conditions
            .iter()
            .find(|(name, goal)| sys::vmstat(name) < Some(*goal))
        {
            if Instant::now() >= self.end {
                bail!(
                    "{name} is {:?} at the end of --again, not {goal}",
                    sys::vmstat(name)
                );
            }
            return Ok(false);
        }
        Ok(!self.conditions.is_empty() || Instant::now() >= self.end)
    }
}
