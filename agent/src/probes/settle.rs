//! Makes a reading whole for those who came on a CPU or left one while it was taken. Pure, but for what [`Live`] reads.
//!
//! Rows are read one after another, and whoever reads them is preempted too. A slice that ends meanwhile is in a row that
//! was read before it ended, and one that begins is in none; either may be long. So those threads' rows are read again,
//! until nobody watched has come or gone in between, and no CPU is in the middle of a switch: a hypervisor may stop it
//! there, when the scheduler has closed the slice and no row has it yet.

use super::ledger::{Reading, Running};
use agent_ebpf::{Cpu, RowKey, SchedRow, Thread};
use anyhow::Result;
use std::collections::HashSet;

/// The kernel side as it is at this moment.
pub(crate) trait Live {
    /// Who is on each CPU.
    fn cpus(&self) -> Result<Vec<Cpu>>;
    /// Who of the watched runs, by the CPU's index, given `cpus` and the threads' rows.
    fn running(&self, cpus: &[Cpu], threads: &[(u32, Thread)]) -> Vec<(usize, Running)>;
    /// The rows of a thread; `None` if nobody watches it.
    fn rows(&self, tid: u32) -> Option<(Thread, Vec<(RowKey, SchedRow)>)>;
    /// Gives a CPU that is in the middle of a switch the time to end it.
    fn pause(&self);
}

/// Further turns after which a reading is taken as it is: threads that switch that often have short slices.
const TURNS: usize = 4;

/// Pauses after which it is taken as it is though a CPU is still in the middle of a switch.
const PAUSES: usize = 50;

/// Fills in who runs, and reads again the rows of those who came or left since `before`, which is who was on each CPU when
/// the reading began.
pub(crate) fn settle(reading: &mut Reading, mut before: Vec<Cpu>, live: &impl Live) -> Result<()> {
    let (mut turns, mut pauses) = (TURNS, PAUSES);
    loop {
        let running = live.running(&before, &reading.threads);
        let now = live.cpus()?;
        let settled = |cpu: usize| {
            before.get(cpu) == now.get(cpu) && now.get(cpu).is_some_and(|c| !c.thread().1)
        };
        let unsettled = (0..now.len()).filter(|cpu| !settled(*cpu));
        let came_or_left: HashSet<u32> = unsettled
            .flat_map(|cpu| [before.get(cpu), now.get(cpu)])
            .flatten()
            .map(|record| record.thread().0)
            .collect();
        let again: HashSet<u32> = came_or_left
            .into_iter()
            .filter(|tid| *tid != 0 && read_again(reading, *tid, live))
            .collect();
        // A thread may have been told of on two CPUs; its slice counts from the rows that were read last.
        reading.running = running
            .into_iter()
            .filter(|(cpu, running)| settled(*cpu) && !again.contains(&running.id.tid))
            .map(|(_, running)| running)
            .collect();
        let leaves = |record: &Cpu| {
            let (tid, leaving) = record.thread();
            leaving && again.contains(&tid)
        };
        if now.iter().any(leaves) && pauses > 0 {
            pauses -= 1;
            live.pause();
        } else if again.is_empty() || turns == 0 {
            return Ok(());
        } else {
            turns -= 1;
        }
        before = now;
    }
}

fn read_again(reading: &mut Reading, tid: u32, live: &impl Live) -> bool {
    let Some((thread, sched)) = live.rows(tid) else {
        return false;
    };
    replace(&mut reading.threads, tid, thread);
    for (key, row) in sched {
        replace(&mut reading.sched, key, row);
    }
    true
}

fn replace<K: PartialEq, V>(rows: &mut Vec<(K, V)>, key: K, row: V) {
    match rows.iter_mut().find(|(known, _)| *known == key) {
        Some((_, known)) => *known = row,
        None => rows.push((key, row)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::ledger::ThreadId;
    use crate::probes::reader::registered;
    use agent_ebpf::SWITCHING;
    use std::cell::Cell;

    const COOKIE: u64 = 5;
    const WATCHED: u32 = 7;

    #[derive(Clone, Copy)]
    enum Who {
        Runs(u32),
        Leaves(u32),
    }
    use Who::{Leaves, Runs};

    /// One CPU, on which a thread runs or leaves. At each look at it, and so between any two readings, the next of `looks` is the case: the CPU's record,
    /// and of thread 7 what its row says and what it has run in all.
    struct Script {
        looks: Vec<(Cpu, u64, u64)>,
        at: Cell<usize>,
    }

    impl Script {
        fn new(looks: &[(u64, Who, u64, u64)]) -> Self {
            let look = |(switches, who, in_row, in_all): &(u64, Who, u64, u64)| {
                let cpu = Cpu {
                    switches: *switches,
                    tid: match who {
                        Runs(tid) => u64::from(*tid),
                        Leaves(tid) => u64::from(*tid) | SWITCHING,
                    },
                };
                (cpu, *in_row, *in_all)
            };
            Self {
                looks: looks.iter().map(look).collect(),
                at: Cell::new(0),
            }
        }

        fn look(&self) -> (Cpu, u64, u64) {
            self.looks[self.at.get().min(self.looks.len() - 1)]
        }

        /// What the reading has of thread 7: (in its row, in its slice under way).
        fn settled(&self) -> (u64, Option<u64>) {
            let before = vec![self.look().0];
            let mut reading = Reading::default();
            let (thread, sched) = self.rows(WATCHED).unwrap();
            reading.threads.push((WATCHED, thread));
            reading.sched = sched;
            settle(&mut reading, before, self).unwrap();
            assert!(reading.running.len() <= 1);
            let slice = reading.running.first().map(|r| r.on_cpu_ns);
            assert_eq!(reading.sched.len(), 1);
            (reading.sched[0].1.on_cpu_ns, slice)
        }
    }

    impl Live for Script {
        fn cpus(&self) -> Result<Vec<Cpu>> {
            self.at.set(self.at.get() + 1);
            Ok(vec![self.look().0])
        }

        fn running(&self, cpus: &[Cpu], threads: &[(u32, Thread)]) -> Vec<(usize, Running)> {
            if cpus[0].tid != u64::from(WATCHED) {
                return Vec::new();
            }
            let running = Running {
                id: ThreadId {
                    tid: WATCHED,
                    cookie: COOKIE,
                },
                tgid: WATCHED,
                node: 0,
                moved_from: None,
                on_cpu_ns: self.look().2 - threads[0].1.run_time_ns,
            };
            vec![(0, running)]
        }

        fn pause(&self) {}

        fn rows(&self, tid: u32) -> Option<(Thread, Vec<(RowKey, SchedRow)>)> {
            let (_, in_row, _) = self.look();
            let row = SchedRow {
                cookie: COOKIE,
                tgid: u64::from(tid),
                on_cpu_ns: in_row,
                moves_from: [0; agent_ebpf::SLOTS],
            };
            let key = RowKey { tid, node: 0 };
            (tid == WATCHED).then(|| (registered(COOKIE, tid, in_row), vec![(key, row)]))
        }
    }

    #[test]
    fn who_runs_throughout_has_its_slice_beside_its_row() {
        let script = Script::new(&[(1, Runs(7), 300, 900)]);
        assert_eq!(script.settled(), (300, Some(600)));
    }

    #[test]
    fn a_slice_that_ends_meanwhile_is_in_the_row() {
        let script = Script::new(&[(1, Runs(7), 300, 900), (2, Runs(80), 950, 950)]);
        assert_eq!(script.settled(), (950, None));
    }

    #[test]
    fn a_slice_that_begins_meanwhile_counts() {
        let script = Script::new(&[(1, Runs(80), 300, 300), (2, Runs(7), 300, 500)]);
        assert_eq!(script.settled(), (300, Some(200)));
    }

    #[test]
    fn who_was_interrupted_and_runs_on_loses_nothing() {
        let script = Script::new(&[(1, Runs(7), 300, 900), (3, Runs(7), 950, 990)]);
        assert_eq!(script.settled(), (950, Some(40)));
    }

    #[test]
    fn who_never_settles_has_what_its_row_says() {
        let looks: Vec<_> = (1..20)
            .map(|n| (n, Runs(7), 100 * n, 100 * n + 50))
            .collect();
        let (in_row, slice) = Script::new(&looks).settled();
        assert_eq!((in_row, slice), (600, None));
    }

    #[test]
    fn strangers_that_come_and_go_are_let_alone() {
        let script = Script::new(&[(1, Runs(80), 300, 300), (2, Runs(81), 300, 300)]);
        assert_eq!(script.settled(), (300, None));
        assert_eq!(script.at.get(), 1);
    }

    #[test]
    fn a_switch_that_a_hypervisor_stops_halfway_is_waited_for() {
        let script = Script::new(&[
            (1, Leaves(7), 300, 900),
            (1, Leaves(7), 300, 900),
            (2, Runs(80), 900, 900),
        ]);
        assert_eq!(script.settled(), (900, None));
    }
}
