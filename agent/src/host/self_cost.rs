//! What the agent itself costs: CPU time, memory, and the kernel's memory for its maps.

use crate::host::own_bpf::OwnBpf;
use crate::host::process::{ProcessDir, own_pid};
use crate::host::root::Root;
use model::snapshot::AgentCost;

/// Reads the agent's own cost. What can't be read is `None`.
pub(crate) fn read_self_cost(root: &Root, own: &OwnBpf) -> AgentCost {
    let pid = own_pid(root);
    AgentCost {
        pid,
        cpu_time_ns: own_cpu_time_ns(),
        resident_bytes: ProcessDir::open(root, pid)
            .and_then(|process| process.resident_bytes())
            .ok()
            .flatten(),
        kernel_memory_bytes: own.map_bytes,
        probes_time_ns: None,
    }
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

/// CPU time of the calling thread, nanoseconds.
pub(crate) fn cpu_time_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_machine_tells_cpu_time_and_memory() {
        let cost = read_self_cost(&Root::system(), &OwnBpf::default());
        assert!(cost.cpu_time_ns.is_some() && cost.resident_bytes.is_some());
    }
}
