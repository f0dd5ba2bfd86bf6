//! The system calls that bind a thread and its memory to nodes, and say where things are.

use anyhow::{Context as _, Result, bail};
use model::topology::NodeId;
use std::io::{Error, ErrorKind};
use std::path::Path;

/// Bytes of a base page: x86-64 only, as the guests are.
pub(crate) const PAGE: usize = 4096;
/// Base pages of a PMD-sized huge page.
pub(crate) const HUGE_PAGES: usize = 512;

/// Where a thread's pages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The node it runs on; NUMA balancing may move pages.
    Default,
    /// This node only; NUMA balancing leaves such memory alone.
    Bind(NodeId),
}

/// CPUs of a node.
pub(crate) fn cpus_of(node: NodeId) -> Result<Vec<u32>> {
    let path = format!("/sys/devices/system/node/node{node}/cpulist");
    let list = std::fs::read_to_string(&path)
        .map_err(|_| anyhow::anyhow!("node {node} does not exist here"))?;
    let cpus = parse_list(list.trim()).with_context(|| format!("{path}: {list}"))?;
    if cpus.is_empty() {
        bail!("node {node} has no CPUs");
    }
    Ok(cpus)
}

fn parse_list(list: &str) -> Result<Vec<u32>> {
    let mut out = Vec::new();
    for part in list.split(',').filter(|part| !part.is_empty()) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        out.extend(low.parse::<u32>()?..=high.parse::<u32>()?);
    }
    Ok(out)
}

/// Fails unless the node exists and has memory.
pub(crate) fn need_memory_node(node: NodeId) -> Result<()> {
    let list = std::fs::read_to_string("/sys/devices/system/node/has_memory")
        .context("/sys/devices/system/node/has_memory")?;
    if parse_list(list.trim())?.contains(&node) {
        Ok(())
    } else {
        bail!(
            "node {node} has no memory here (has_memory: {})",
            list.trim()
        )
    }
}

/// Lets a thread (0: the caller) run on these CPUs only; when this returns, it does.
pub(crate) fn pin(tid: u32, cpus: &[u32]) -> Result<()> {
    // SAFETY: an all-zero cpu_set_t is the empty set, and the kernel only reads it.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus {
            libc::CPU_SET(*cpu as usize, &mut set);
        }
        libc::sched_setaffinity(tid.cast_signed(), size_of_val(&set), &raw const set)
    };
    if done == 0 {
        Ok(())
    } else {
        Err(Error::last_os_error()).context(format!("sched_setaffinity to CPUs {cpus:?}"))
    }
}

/// CPUs that the caller may run on.
pub(crate) fn allowed() -> Result<Vec<u32>> {
    // SAFETY: an all-zero cpu_set_t is the empty set, and the kernel writes within it.
    let (done, set) = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let done = libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
        (done, set)
    };
    if done != 0 {
        return Err(Error::last_os_error()).context("sched_getaffinity");
    }
    let cpus = 0..libc::CPU_SETSIZE.cast_unsigned();
    // SAFETY: below the set's size.
    Ok(cpus
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu as usize, &set) })
        .collect())
}

/// Lets the caller run on a node's CPUs only.
pub(crate) fn pin_to_node(node: NodeId) -> Result<()> {
    pin(0, &cpus_of(node)?)
}

/// The node that the caller runs on now.
pub(crate) fn current_node() -> NodeId {
    let mut node: u32 = 0;
    // SAFETY: the kernel writes one u32; the null arguments are allowed.
    unsafe {
        libc::syscall(
            libc::SYS_getcpu,
            std::ptr::null_mut::<u32>(),
            &raw mut node,
            std::ptr::null_mut::<u32>(),
        );
    }
    node
}

/// Sets the caller's memory policy.
pub(crate) fn set_policy(policy: Policy) -> Result<()> {
    let mut mask = [0u64; 16];
    let mode = match policy {
        Policy::Default => libc::MPOL_DEFAULT,
        Policy::Bind(node) => {
            mask[node as usize / 64] |= 1 << (node % 64);
            libc::MPOL_BIND
        }
    };
    let (pointer, bits) = match policy {
        Policy::Default => (std::ptr::null(), 0),
        Policy::Bind(_) => (mask.as_ptr(), 64 * mask.len()),
    };
    // SAFETY: the kernel reads `bits` bits at `pointer`.
    let done = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, pointer, bits) };
    if done == 0 {
        Ok(())
    } else {
        Err(Error::last_os_error()).context(format!("set_mempolicy {policy:?}"))
    }
}

/// The caller's thread id.
pub(crate) fn tid() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::gettid() }.cast_unsigned()
}

/// CPU time of the calling thread, nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the calling process, its dead threads included, nanoseconds.
pub(crate) fn process_cpu_ns() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of any thread of the calling process, nanoseconds: its `CLOCK_THREAD_CPUTIME_ID`, read by another.
pub(crate) fn cpu_ns_of(tid: u32) -> u64 {
    // As pthread_getcpuclockid makes it: the kernel's CPUCLOCK_PERTHREAD (4) and CPUCLOCK_SCHED (2).
    clock((!tid.cast_signed() << 3) | 4 | 2)
}

/// Returns once a thread of the calling process sleeps: until then its CPU time grows.
pub(crate) fn wait_until_asleep(tid: u32) {
    let path = format!("/proc/self/task/{tid}/stat");
    while let Ok(stat) = std::fs::read_to_string(&path) {
        // The state follows the name, which may have parentheses of its own.
        if stat
            .rsplit_once(") ")
            .is_none_or(|(_, rest)| rest.starts_with('S'))
        {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Nanoseconds since boot, the same for every process and across exec.
pub(crate) fn monotonic_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

fn clock(id: libc::clockid_t) -> u64 {
    let mut at = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(id, &raw mut at) };
    at.tv_sec.cast_unsigned() * 1_000_000_000 + at.tv_nsec.cast_unsigned()
}

/// A counter of `/proc/vmstat`; `None` where this kernel has none of that name.
pub(crate) fn vmstat(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// A number in a file of sysfs or procfs; `None` where there is no such file.
pub(crate) fn number_in(path: impl AsRef<Path>) -> Result<Option<u64>> {
    let path = path.as_ref();
    match std::fs::read_to_string(path) {
        Ok(text) => text
            .trim()
            .parse()
            .map(Some)
            .with_context(|| path.display().to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// Kills the caller when the process that started it ends, and after `seconds` in any case.
pub(crate) fn die_with_parent(seconds: u32) {
    // SAFETY: neither call touches memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::alarm(seconds);
    }
}
