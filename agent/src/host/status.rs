//! The few lines of `/proc/PID/status` that numawatch uses.

use model::process::MemoryKind;
use std::collections::BTreeMap;

/// What `status` tells; a line that the kernel doesn't write is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// The thread group, which differs from the pid asked for if that was a thread's.
    pub(crate) tgid: Option<u32>,
    /// The real user id.
    pub(crate) uid: Option<u32>,
    /// CPUs that the leader thread may run on, as the kernel's list.
    pub(crate) cpus_allowed: Option<String>,
    /// Nodes that its memory may come from, as the kernel's list.
    pub(crate) memory_allowed: Option<String>,
    /// The largest resident set that it had, bytes.
    pub(crate) most_resident_bytes: Option<u64>,
    /// Memory locked by `mlock`, bytes: it can be moved by hand, not by NUMA balancing's faults.
    pub(crate) locked_bytes: Option<u64>,
    /// Memory pinned for devices, bytes: it can't move at all.
    pub(crate) pinned_bytes: Option<u64>,
    /// The size of its address space, bytes.
    pub(crate) address_space_bytes: Option<u64>,
    /// Its resident set by kind, bytes, as the kernel accounts for it; empty for kernel threads and zombies.
    pub(crate) resident_by_kind: BTreeMap<MemoryKind, u64>,
    /// How often the leader, or the thread whose file it is, has left a CPU, of its own accord or not.
    pub(crate) switches: Option<u64>,
    /// Its pids, from this procfs's pid namespace inwards; the last is its own view.
    pub(crate) pids_by_namespace: Vec<u32>,
}

/// The lines that tell the resident set, and the kind of memory that each counts.
const RESIDENT: [(&str, MemoryKind); 4] = [
    ("RssAnon", MemoryKind::Anonymous),
    ("RssFile", MemoryKind::File),
    ("RssShmem", MemoryKind::Shared),
    ("HugetlbPages", MemoryKind::Huge),
];

/// Picks the lines; unknown ones are skipped.
pub(crate) fn parse(text: &str) -> Status {
    let mut status = Status::default();
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        let first = || value.split_ascii_whitespace().next()?.parse::<u64>().ok();
        let first_u32 = || first().and_then(|n| u32::try_from(n).ok());
        if let Some((_, kind)) = RESIDENT.iter().find(|(line, _)| *line == name) {
            let bytes = first().map(|kib| kib * 1024);
            status.resident_by_kind.extend(bytes.map(|b| (*kind, b)));
            continue;
        }
        match name {
            "VmSize" => status.address_space_bytes = first().map(|kib| kib * 1024),
            "Tgid" => status.tgid = first_u32(),
            "Uid" => status.uid = first_u32(),
            "Cpus_allowed_list" => status.cpus_allowed = Some(value.to_owned()),
            "Mems_allowed_list" => status.memory_allowed = Some(value.to_owned()),
            "VmHWM" => status.most_resident_bytes = first().map(|kib| kib * 1024),
            "VmLck" => status.locked_bytes = first().map(|kib| kib * 1024),
            "VmPin" => status.pinned_bytes = first().map(|kib| kib * 1024),
            "voluntary_ctxt_switches" | "nonvoluntary_ctxt_switches" => {
                status.switches = first().map(|n| n + status.switches.unwrap_or(0));
            }
            "NSpid" => {
                status.pids_by_namespace = value
                    .split_ascii_whitespace()
                    .filter_map(|pid| pid.parse().ok())
                    .collect();
            }
            _ => {}
        }
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_container_process() {
        let text = "Name:\tpython3: serve\nTgid:\t4242\nPid:\t4242\nUid:\t1000\t0\t0\t0\n\
                    NSpid:\t4242\t17\t1\nVmSize:\t    2048 kB\nRssAnon:\t     256 kB\nRssFile:\t     128 kB\n\
                    RssShmem:\t       0 kB\nHugetlbPages:\t    4096 kB\nVmHWM:\t     512 kB\nVmLck:\t     128 kB\nVmPin:\t    4096 kB\n\
                    Cpus_allowed:\tff\nCpus_allowed_list:\t0-3,64-67\nMems_allowed_list:\t0-1\n\
                    voluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(
            parse(text),
            Status {
                tgid: Some(4242),
                uid: Some(1000),
                cpus_allowed: Some("0-3,64-67".into()),
                memory_allowed: Some("0-1".into()),
                most_resident_bytes: Some(512 * 1024),
                locked_bytes: Some(128 * 1024),
                pinned_bytes: Some(4096 * 1024),
                address_space_bytes: Some(2048 * 1024),
                resident_by_kind: BTreeMap::from([
                    (MemoryKind::Anonymous, 256 * 1024),
                    (MemoryKind::File, 128 * 1024),
                    (MemoryKind::Shared, 0),
                    (MemoryKind::Huge, 4096 * 1024),
                ]),
                switches: Some(42),
                pids_by_namespace: vec![4242, 17, 1],
            }
        );
    }

    #[test]
    fn a_kernel_thread_has_no_memory_lines() {
        let status = parse("Name:\tkthreadd\nTgid:\t2\nUid:\t0\t0\t0\t0\nNSpid:\t2\n");
        assert_eq!((status.locked_bytes, status.pinned_bytes), (None, None));
    }
}
