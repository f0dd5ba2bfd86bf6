//! NUMA balancing's own counters, from `/proc/vmstat`.

use crate::host::error::Error;
use crate::host::root::{Root, read};
use model::snapshot::BalancingCounters;

/// Reads the counters since boot; a counter that the kernel doesn't have is `None`.
///
/// # Errors
/// If `/proc/vmstat` can't be read.
pub(crate) fn read_balancing(root: &Root) -> Result<BalancingCounters, Error> {
    Ok(parse(&read(&root.proc("vmstat"))?))
}

/// Page faults of the whole host since it booted, `pgfault`; `None` if it can't be read.
pub(crate) fn read_page_faults(root: &Root) -> Option<u64> {
    value(&read(&root.proc("vmstat")).ok()?, "pgfault")
}

fn value(vmstat: &str, name: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        (key == name).then(|| value.trim().parse().ok())?
    })
}

fn parse(vmstat: &str) -> BalancingCounters {
    let value = |name: &str| value(vmstat, name);
    BalancingCounters {
        hint_faults: value("numa_hint_faults"),
        hint_faults_local: value("numa_hint_faults_local"),
        migrated_pages: value("numa_pages_migrated"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    #[test]
    fn similar_names_are_kept_apart() {
        let fixture = Fixture::with(&[(
            "proc/vmstat",
            "nr_free_pages 9\nnuma_pte_updates 8\nnuma_hint_faults 30\nnuma_hint_faults_local 20\n\
             numa_pages_migrated 10\npgmigrate_success 11\n",
        )]);
        assert_eq!(
            read_balancing(&fixture.root()).unwrap(),
            BalancingCounters {
                hint_faults: Some(30),
                hint_faults_local: Some(20),
                migrated_pages: Some(10)
            }
        );
    }

    #[test]
    fn a_kernel_without_balancing_has_no_counters() {
        let fixture = Fixture::with(&[("proc/vmstat", "nr_free_pages 9\n")]);
        assert_eq!(
            read_balancing(&fixture.root()).unwrap(),
            BalancingCounters::default()
        );
    }
}
