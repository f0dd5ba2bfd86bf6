//! What the agent itself costs: CPU time, memory, and the kernel's memory for its maps.

use crate::host::process::{ProcessDir, own_pid};
use crate::host::root::{Root, read};
use model::snapshot::AgentCost;
use std::fs;

/// Reads the agent's own cost. What can't be read is `None`.
pub(crate) fn read_self_cost(root: &Root) -> AgentCost {
    let pid = own_pid(root);
    AgentCost {
        pid,
        cpu_time_ns: own_cpu_time_ns(),
        resident_bytes: ProcessDir::open(root, pid)
            .and_then(|process| process.resident_bytes())
            .ok()
            .flatten(),
        kernel_memory_bytes: map_bytes(root),
        probes_time_ns: None,
    }
}

/// The kernel memory of all eBPF maps that the agent has open, bytes (`memlock` in their fdinfo).
fn map_bytes(root: &Root) -> Option<u64> {
    let open = fs::read_dir(root.proc("self/fdinfo")).ok()?;
    // A file that is closed meanwhile is no map: maps are open as long as the agent runs.
    let maps = open.filter_map(|entry| read(&entry.ok()?.path()).ok());
    Some(maps.filter_map(|info| memlock(&info)).sum())
}

fn memlock(info: &str) -> Option<u64> {
    info.lines().find(|line| line.starts_with("map_id:"))?;
    let memlock = info
        .lines()
        .find_map(|line| line.strip_prefix("memlock:"))?;
    memlock.trim().parse().ok()
}

/// CPU time of all the agent's threads. The clock has nanoseconds; `/proc/self/stat` has ticks of
/// 10 ms, too coarse for one tick's share.
fn own_cpu_time_ns() -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock's id is valid, and `time` is a timespec that lives through the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    if result != 0 {
        return None;
    }
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    const MAP: &str = "pos:\t0\nflags:\t02000002\nmap_type:\t1\nmemlock:\t8192\nmap_id:\t5\n";

    #[test]
    fn maps_are_summed_and_other_files_are_not() {
        let fixture = Fixture::with(&[
            ("proc/self/fdinfo/5", MAP),
            (
                "proc/self/fdinfo/7",
                "pos:\t0\nflags:\t02\nmemlock:\t4096\n",
            ),
            ("proc/self/fdinfo/9", MAP),
        ]);
        let cost = read_self_cost(&fixture.root());
        assert_eq!(cost.kernel_memory_bytes, Some(16384));
    }

    #[test]
    fn an_unreadable_list_of_files_makes_the_sum_unknown() {
        let fixture = Fixture::new();
        assert_eq!(read_self_cost(&fixture.root()).kernel_memory_bytes, None);
    }

    #[test]
    fn the_machine_tells_cpu_time_and_memory() {
        let cost = read_self_cost(&Root::system());
        assert!(cost.cpu_time_ns.is_some() && cost.resident_bytes.is_some());
    }
}
