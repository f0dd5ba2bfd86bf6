//! How busy each node's CPUs are, from two readings of `/proc/stat`.

use crate::host::error::Error;
use crate::host::root::{Root, read};
use model::topology::{NodeId, Topology};
use std::collections::BTreeMap;

/// One CPU's time since boot, clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    /// Neither idle nor waiting for I/O; time that a hypervisor took away is busy.
    pub(crate) busy: u64,
    /// All of it.
    pub(crate) total: u64,
}

/// Reads every online CPU's time since boot.
///
/// # Errors
/// If `/proc/stat` can't be read.
pub(crate) fn read_cpu_times(root: &Root) -> Result<BTreeMap<u32, CpuTime>, Error> {
    Ok(parse(&read(&root.proc("stat"))?))
}

/// The share of each node's CPU time between two readings that was busy, 0 to 1.
///
/// A node has none if it has no CPUs, or none that is in both readings and advanced.
pub(crate) fn busy_by_node(
    topology: &Topology,
    before: &BTreeMap<u32, CpuTime>,
    after: &BTreeMap<u32, CpuTime>,
) -> BTreeMap<NodeId, f64> {
    let share = |cpus: &[u32]| {
        let mut sum = CpuTime::default();
        for (from, to) in cpus
            .iter()
            .filter_map(|cpu| before.get(cpu).zip(after.get(cpu)))
        {
            // The kernel's idle and iowait can step back a little.
            let total = to.total.saturating_sub(from.total);
            sum.busy += to.busy.saturating_sub(from.busy).min(total);
            sum.total += total;
        }
        (sum.total > 0).then(|| sum.busy as f64 / sum.total as f64)
    };
    topology
        .nodes
        .iter()
        .filter_map(|node| Some((node.id, share(&node.cpus)?)))
        .collect()
}

fn parse(stat: &str) -> BTreeMap<u32, CpuTime> {
    stat.lines()
        .take_while(|line| line.starts_with("cpu"))
        .filter_map(cpu_line)
        .collect()
}

/// `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`; the first line, `cpu`
/// without a number, is the sum and has no id. Guest time is part of user time.
fn cpu_line(line: &str) -> Option<(u32, CpuTime)> {
    let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
    let id = fields.next().filter(|_| !line.starts_with("cpu "))?;
    let ticks: Vec<u64> = fields.map_while(|f| f.parse().ok()).take(8).collect();
    let total = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    Some((
        id.parse().ok()?,
        CpuTime {
            busy: total - idle,
            total,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::topology::Node;

    fn topology() -> Topology {
        let node = |id, cpus: &[u32]| Node {
            id,
            cpus: cpus.to_vec(),
            ..Node::default()
        };
        Topology {
            nodes: vec![node(0, &[0, 1]), node(1, &[2]), node(8, &[])],
            ..Topology::default()
        }
    }

    fn times(entries: &[(u32, u64, u64)]) -> BTreeMap<u32, CpuTime> {
        entries
            .iter()
            .map(|&(cpu, busy, total)| (cpu, CpuTime { busy, total }))
            .collect()
    }

    #[test]
    fn guest_time_is_not_counted_twice() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 40 50 6 7 8 1 2\ncpu12 0 0 0 5 0 0 0 0 0 0\n\
                    intr 1 2\n";
        assert_eq!(parse(stat), times(&[(0, 27, 117), (12, 0, 5)]));
    }

    #[test]
    fn a_node_is_as_busy_as_its_cpus_together() {
        let before = times(&[(0, 100, 1000), (1, 100, 1000), (2, 7, 10)]);
        let after = times(&[(0, 200, 1100), (1, 100, 1100), (2, 7, 110)]);
        assert_eq!(
            busy_by_node(&topology(), &before, &after),
            BTreeMap::from([(0, 0.5), (1, 0.0)])
        );
    }

    #[test]
    fn a_cpu_that_came_or_went_is_left_out() {
        let before = times(&[(0, 0, 100), (2, 0, 100)]);
        let after = times(&[(0, 50, 200), (1, 900, 900)]);
        assert_eq!(
            busy_by_node(&topology(), &before, &after),
            BTreeMap::from([(0, 0.5)])
        );
    }

    #[test]
    fn counters_that_step_back_give_no_share() {
        let before = times(&[(2, 50, 100)]);
        let after = times(&[(2, 40, 100)]);
        assert_eq!(busy_by_node(&topology(), &before, &after), BTreeMap::new());
    }
}
