//! Who runs right now, and what no row has of it yet. Pure, but for what [`Threads`] reads.

use super::ledger::{Running, ThreadId, moved_from};
use agent_ebpf::{Cpu, NO_NODE, Thread};
use std::collections::HashMap;

/// Whom a tid belongs to, by the user side's own knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Thread-group id.
    pub(crate) tgid: u32,
    /// The process's cookie.
    pub(crate) cookie: u64,
}

/// What the host tells of threads that the kernel side's rows don't.
pub(crate) trait Threads {
    /// Whose a thread is that the kernel side has not seen yet.
    fn owner(&self, tid: u32) -> Option<Owner>;
    /// The scheduler's account of its run time, nanoseconds.
    fn run_time(&self, pid: u32, tid: u32) -> Option<u64>;
    /// How often it has left a CPU since its birth.
    fn switches(&self, pid: u32, tid: u32) -> Option<u64>;
    /// The CPU that it is running on or waiting for; `None` while it sleeps.
    fn runnable_on(&self, pid: u32, tid: u32) -> Option<usize>;
}

/// Who runs on each CPU, by the CPU's index. What no row has of it counts if the CPU has not switched when the rows and
/// the run time have been read.
pub(crate) fn running(
    cpus: &[Cpu],
    threads: &[(u32, Thread)],
    node_of_cpu: &[Option<u32>],
    slot_of: impl Fn(u32, u32) -> usize,
    host: &impl Threads,
) -> Vec<(usize, Running)> {
    let known: HashMap<u32, &Thread> = threads.iter().map(|(tid, t)| (*tid, t)).collect();
    let node_of = |cpu: usize| node_of_cpu.get(cpu).copied().flatten();
    let on = |cpu: usize, tid: u32| -> Option<(usize, Running)> {
        let node = node_of(cpu)?;
        let (thread, owner) = match (known.get(&tid), host.owner(tid)) {
            // The tid changes hands: the row is its last owner's, and the next one's is not made yet.
            (Some(thread), _) if thread.exited != 0 => return None,
            (Some(thread), Some(owner)) if owner.cookie != thread.cookie => return None,
            (Some(thread), _) => {
                let Thread { tgid, cookie, .. } = **thread;
                (Some(thread), Owner { tgid, cookie })
            }
            (None, owner) => (None, owner?),
        };
        let Owner { tgid, cookie } = owner;
        let counted = thread.map_or(0, |t| t.run_time_ns);
        // If it has run before, those slices found no room, and may have been on other nodes.
        if counted == 0 && host.switches(tgid, tid) != Some(0) {
            return None;
        }
        let last = thread.map_or(NO_NODE, |t| t.last_node);
        let running = Running {
            id: ThreadId { tid, cookie },
            tgid,
            node,
            moved_from: moved_from(last, node, &slot_of),
            on_cpu_ns: host.run_time(tgid, tid)?.saturating_sub(counted),
        };
        Some((cpu, running))
    };
    let told = |(cpu, record): (usize, &Cpu)| {
        let tid = u32::try_from(record.tid).ok().filter(|tid| *tid != 0)?;
        on(cpu, tid)
    };
    let mut found: Vec<_> = cpus.iter().enumerate().filter_map(told).collect();

    // An isolated CPU may not switch for hours, and then nothing has told who is on it: threads that have not switched
    // since they are watched are asked.
    let silent = |cpu: usize| cpus.get(cpu).is_some_and(|c| c.switches == 0);
    let mut left = (0..cpus.len())
        .filter(|cpu| silent(*cpu) && node_of(*cpu).is_some())
        .count();
    for (tid, thread) in threads {
        if left == 0 {
            break;
        }
        if thread.exited != 0 || thread.task != 0 {
            continue;
        }
        let cpu = host.runnable_on(thread.tgid, *tid);
        if let Some(running) = cpu.filter(|c| silent(*c)).and_then(|cpu| on(cpu, *tid)) {
            found.push(running);
            left -= 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::reader::registered;

    const COOKIE: u64 = 5;

    /// Every thread has run for 1,000 ns; tid 7 is on CPU 1, others sleep. Tid 5 is in its second slice, others in their first.
    struct Host;

    impl Threads for Host {
        fn owner(&self, tid: u32) -> Option<Owner> {
            (tid < 10).then_some(Owner {
                tgid: 7,
                cookie: COOKIE,
            })
        }

        fn run_time(&self, _: u32, _: u32) -> Option<u64> {
            Some(1_000)
        }

        fn switches(&self, _: u32, tid: u32) -> Option<u64> {
            Some(u64::from(tid == 5))
        }

        fn runnable_on(&self, _: u32, tid: u32) -> Option<usize> {
            (tid == 7).then_some(1)
        }
    }

    fn found(cpus: &[(u64, u64)], threads: &[(u32, Thread)]) -> Vec<(usize, u32, u64)> {
        let cpus: Vec<Cpu> = cpus
            .iter()
            .map(|(switches, tid)| Cpu {
                switches: *switches,
                tid: *tid,
            })
            .collect();
        let nodes = [Some(0), Some(1)];
        running(&cpus, threads, &nodes, |_, _| 0, &Host)
            .into_iter()
            .map(|(cpu, r)| (cpu, r.id.tid, r.on_cpu_ns))
            .collect()
    }

    #[test]
    fn a_cpus_record_tells_who_runs_and_what_is_not_counted_yet() {
        let thread = registered(COOKIE, 7, 300);
        assert_eq!(found(&[(1, 8), (1, 0)], &[(8, thread)]), [(0, 8, 700)]);
    }

    #[test]
    fn a_new_thread_counts_from_its_birth() {
        assert_eq!(found(&[(1, 8), (1, 0)], &[]), [(0, 8, 1_000)]);
    }

    #[test]
    fn a_thread_that_ran_without_room_has_no_slice() {
        assert_eq!(found(&[(1, 5), (1, 0)], &[]), []);
        // A fault has made its state since, and it has not left the CPU.
        let mut late = registered(COOKIE, 7, 0);
        late.run_time_ns = 0;
        assert_eq!(found(&[(1, 5), (1, 0)], &[(5, late)]), []);
        assert_eq!(found(&[(1, 8), (1, 0)], &[(8, late)]), [(0, 8, 1_000)]);
    }

    #[test]
    fn strangers_do_not_count() {
        assert_eq!(found(&[(1, 80), (1, 0)], &[]), []);
    }

    #[test]
    fn a_thread_on_a_cpu_that_never_switched_is_not_idle() {
        let threads = [
            (6, registered(COOKIE, 7, 300)),
            (7, registered(COOKIE, 7, 300)),
        ];
        assert_eq!(found(&[(1, 0), (0, 0)], &threads), [(1, 7, 700)]);
    }

    #[test]
    fn a_cpu_that_switched_needs_no_asking() {
        let threads = [(7, registered(COOKIE, 7, 300))];
        assert_eq!(found(&[(1, 0), (1, 0)], &threads), []);
    }

    #[test]
    fn a_thread_that_switched_is_not_asked_for() {
        let mut switched = registered(COOKIE, 7, 300);
        switched.task = 1;
        assert_eq!(found(&[(1, 0), (0, 0)], &[(7, switched)]), []);
    }

    #[test]
    fn a_tid_that_changes_hands_is_nobodys() {
        let before = registered(COOKIE - 1, 7, 300);
        assert_eq!(found(&[(1, 8), (1, 0)], &[(8, before)]), []);
    }
}
