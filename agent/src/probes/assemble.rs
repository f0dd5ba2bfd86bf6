//! From the ledger's accounts, kept by slot, to the numbers that a snapshot shows, by node and locality. Pure.

use super::ledger::{ByCpuNode, ProcessAccount, sum};
use super::slots::{Slot, Slots};
use super::totals::{BySlot, Totals};
use model::locality::Locality;
use model::process::{
    ByNode, HintCounter, MigrationPair, Migrations, MovePair, Moves, NodePages, TouchCounter,
    TouchPair, Touches,
};
use model::signal::{Mechanism, Signal, SignalName};
use model::topology::{NodeId, Topology};

/// What the kernel side's slots mean, and which signals give numbers.
pub(crate) struct Meaning<'a> {
    pub(crate) slots: &'a Slots,
    pub(crate) topology: &'a Topology,
    pub(crate) signals: &'a [Signal],
}

impl Meaning<'_> {
    fn signal(&self, name: SignalName) -> Option<&Signal> {
        self.signals.iter().find(|s| s.name == name && s.is_live())
    }

    fn live(&self, name: SignalName) -> bool {
        self.signal(name).is_some()
    }

    /// Whether conclusions may rest on a signal.
    pub(crate) fn trusts(&self, name: SignalName) -> bool {
        self.signal(name).is_some_and(Signal::is_trusted)
    }

    /// On-CPU time of every node that has CPUs; `None` without the signal.
    pub(crate) fn cpu_time(&self, by_node: &ByCpuNode) -> Option<ByNode> {
        if !self.live(SignalName::Sched) {
            return None;
        }
        let with_cpus = self.topology.nodes.iter().filter(|n| !n.cpus.is_empty());
        let mut times: ByNode = with_cpus.map(|n| (n.id, 0)).collect();
        for (node, totals) in by_node {
            if totals.on_cpu_ns > 0 {
                times.insert(*node, totals.on_cpu_ns);
            }
        }
        Some(times)
    }

    /// All moves of a thread or process; `None` without the signal.
    pub(crate) fn move_count(&self, by_node: &ByCpuNode) -> Option<u64> {
        self.sees_moves()
            .then(|| by_node.values().map(|t| sum(&t.moves_from)).sum())
    }

    /// procfs knows CPU time, and no moves.
    fn sees_moves(&self) -> bool {
        self.signal(SignalName::Sched)
            .is_some_and(|s| s.mechanism != Some(Mechanism::Procfs))
    }

    /// Moves by pair and locality.
    pub(crate) fn moves(&self, by_node: &ByCpuNode) -> Moves {
        // Between nodes that can't be read nobody sees a move.
        if !self.sees_moves() || self.topology.hides_nodes().is_some() {
            return Moves::default();
        }
        let spread = self.spread(by_node, |t| &t.moves_from);
        let pair = |(to, from, count)| MovePair { from, to, count };
        Moves {
            total: self.move_count(by_node),
            cross_socket: Some(spread.of(Locality::CrossSocket)),
            by_pair: Some(spread.pairs.into_iter().map(pair).collect()),
        }
    }

    /// Touches of every kind.
    pub(crate) fn touches(&self, by_node: &ByCpuNode) -> Touches {
        Touches {
            first_touch: self.touch(SignalName::FirstTouch, by_node, |t| &t.first_touch),
            map: self.touch(SignalName::Map, by_node, |t| &t.map),
            hint: HintCounter {
                counter: self.touch(SignalName::Hint, by_node, |t| &t.hint_pages),
                faults: self
                    .live(SignalName::Hint)
                    .then(|| by_node.values().map(|t| t.hint_faults).sum()),
                local_faults: self
                    .live(SignalName::Hint)
                    .then(|| by_node.values().map(|t| t.hint_faults_local).sum()),
            },
            swap_in_pages: self.swap_in(by_node),
        }
    }

    /// The tracepoints see no page that was in the swap cache still.
    fn swap_in(&self, by_node: &ByCpuNode) -> Option<u64> {
        let pages: u64 = by_node.values().map(|t| t.swap_in).sum();
        let known = pages > 0 || !self.sees_some(SignalName::FirstTouch);
        (known && self.live(SignalName::FirstTouch)).then_some(pages)
    }

    /// Whether a signal stands on the tracepoints, whose counts of some pages are a lower bound: nothing counted is
    /// nothing known then.
    fn sees_some(&self, name: SignalName) -> bool {
        let mechanism = self.signal(name).and_then(|s| s.mechanism);
        matches!(mechanism, Some(Mechanism::TpBtf | Mechanism::RawTp))
    }

    fn touch(
        &self,
        name: SignalName,
        by_node: &ByCpuNode,
        pick: fn(&Totals) -> &BySlot,
    ) -> TouchCounter {
        if !self.live(name) {
            return TouchCounter::default();
        }
        let pages = by_node.values().map(|t| sum(pick(t))).sum();
        if name == SignalName::Map && pages == 0 && self.sees_some(name) {
            return TouchCounter::default();
        }
        let spread = self.spread(by_node, pick);
        let pair = |(cpu_node, memory_node, pages)| TouchPair {
            cpu_node,
            memory_node,
            pages,
        };
        TouchCounter {
            pages: Some(pages),
            local_pages: Some(spread.of(Locality::Local)),
            same_socket_pages: Some(spread.of(Locality::SameSocket)),
            cross_socket_pages: Some(spread.of(Locality::CrossSocket)),
            unknown_node_pages: Some(spread.unknown),
            by_pair: Some(spread.pairs.iter().copied().map(pair).collect()),
        }
    }

    /// Pages that NUMA balancing migrated.
    pub(crate) fn migrations(&self, by_node: &ByCpuNode) -> Migrations {
        let Some(signal) = self.signal(SignalName::Migration) else {
            return Migrations::default();
        };
        let spread = self.spread(by_node, |t| &t.migrated_from);
        let pair = |(to, from, pages)| MigrationPair { from, to, pages };
        let tells_nodes = matches!(
            signal.mechanism,
            Some(Mechanism::Fentry | Mechanism::Kprobe)
        );
        Migrations {
            pages: Some(by_node.values().map(|t| sum(&t.migrated_from)).sum()),
            failed_pages: (signal.mechanism != Some(Mechanism::Procfs))
                .then(|| by_node.values().map(|t| t.failed_pages).sum()),
            by_pair: tells_nodes.then(|| spread.pairs.into_iter().map(pair).collect()),
        }
    }

    /// Long-term pins that it made, by node.
    pub(crate) fn pins_made(&self, by_node: &ByCpuNode) -> NodePages {
        self.node_pages(SignalName::Pin, by_node, |t| &t.pinned)
    }

    /// Pages that a device's driver allocated for it, by node.
    pub(crate) fn driver_allocated(&self, by_node: &ByCpuNode) -> NodePages {
        self.node_pages(SignalName::DriverAlloc, by_node, |t| &t.driver_allocated)
    }

    fn node_pages(
        &self,
        name: SignalName,
        by_node: &ByCpuNode,
        pick: fn(&Totals) -> &BySlot,
    ) -> NodePages {
        if !self.live(name) {
            return NodePages::default();
        }
        let mut by_memory_node = ByNode::new();
        for (_, node, pages) in self.spread(by_node, pick).pairs {
            *by_memory_node.entry(node).or_default() += pages;
        }
        NodePages {
            pages: Some(by_node.values().map(|t| sum(pick(t))).sum()),
            by_node: Some(by_memory_node),
        }
    }

    /// Scan time of an account: (elapsed, on-CPU) nanoseconds.
    pub(crate) fn scan(&self, account: &ProcessAccount) -> (Option<u64>, Option<u64>) {
        let live = self.live(SignalName::Scan);
        // The CPU time of a scan is measured by the context switches within it.
        let cpu = live && self.live(SignalName::Sched);
        (
            live.then_some(account.scan_ns),
            cpu.then_some(account.scan_cpu_ns),
        )
    }

    /// Elapsed scan time of one thread, nanoseconds.
    pub(crate) fn thread_scan(&self, scan_ns: u64) -> Option<u64> {
        self.live(SignalName::Scan).then_some(scan_ns)
    }

    fn spread(&self, by_node: &ByCpuNode, pick: fn(&Totals) -> &BySlot) -> Spread {
        let mut spread = Spread::default();
        for (cpu_node, totals) in by_node {
            for (index, count) in pick(totals)
                .iter()
                .enumerate()
                .filter(|(_, count)| **count > 0)
            {
                match self.slots.slot(index) {
                    Slot::Node(other) => {
                        spread.pairs.push((*cpu_node, other, *count));
                        spread.add(self.topology.locality(*cpu_node, other), *count);
                    }
                    Slot::Others(locality) => spread.add(locality, *count),
                    Slot::Unknown => spread.unknown += count,
                }
            }
        }
        spread.pairs.sort_unstable();
        spread
    }
}

/// Counts by pair and by locality; (CPU node, other node, count).
#[derive(Default)]
struct Spread {
    pairs: Vec<(NodeId, NodeId, u64)>,
    by_locality: [u64; 3],
    unknown: u64,
}

impl Spread {
    fn add(&mut self, locality: Locality, count: u64) {
        self.by_locality[locality as usize] += count;
    }

    fn of(&self, locality: Locality) -> u64 {
        self.by_locality[locality as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_ebpf::{SLOT_CROSS_SOCKET, SLOT_UNKNOWN};
    use model::signal::SignalState;
    use model::topology::Node;

    fn topology() -> Topology {
        let node = |id| Node {
            id,
            cpus: vec![id],
            socket: Some(id),
            ..Node::default()
        };
        Topology {
            nodes: vec![node(0), node(1)],
            ..Topology::default()
        }
    }

    fn live(name: SignalName, mechanism: Mechanism) -> Signal {
        Signal {
            name,
            state: SignalState::Attached,
            mechanism: Some(mechanism),
            target: None,
            reason: None,
        }
    }

    #[test]
    fn pairs_and_localities_add_up() {
        let topology = topology();
        let slots = Slots::new(&topology);
        let signals = [live(SignalName::FirstTouch, Mechanism::Fentry)];
        let meaning = Meaning {
            slots: &slots,
            topology: &topology,
            signals: &signals,
        };
        let mut totals = Totals::default();
        totals.first_touch[0] = 16_384;
        totals.first_touch[1] = 3;
        totals.first_touch[SLOT_CROSS_SOCKET] = 5;
        totals.first_touch[SLOT_UNKNOWN] = 7;
        let touches = meaning.touches(&ByCpuNode::from([(1, totals)]));
        let first = touches.first_touch;
        assert_eq!(first.pages, Some(16_384 + 3 + 5 + 7));
        assert_eq!(first.local_pages, Some(3));
        assert_eq!(first.cross_socket_pages, Some(16_384 + 5));
        assert_eq!(first.unknown_node_pages, Some(7));
        let pair = TouchPair {
            cpu_node: 1,
            memory_node: 0,
            pages: 16_384,
        };
        assert_eq!(first.by_pair.unwrap()[0], pair);
    }

    #[test]
    fn no_signal_is_null_and_never_zero() {
        let topology = topology();
        let slots = Slots::new(&topology);
        let signals = [Signal::unavailable(
            SignalName::Hint,
            "kernel.numa_balancing=0",
        )];
        let meaning = Meaning {
            slots: &slots,
            topology: &topology,
            signals: &signals,
        };
        let by_node = ByCpuNode::from([(0, Totals::default())]);
        assert_eq!(meaning.touches(&by_node), Touches::default());
        assert_eq!(meaning.moves(&by_node), Moves::default());
        assert_eq!(meaning.migrations(&by_node), Migrations::default());
        assert_eq!(meaning.cpu_time(&by_node), None);
        assert_eq!(meaning.scan(&ProcessAccount::default()), (None, None));
    }

    #[test]
    fn tracepoints_that_saw_no_map_and_no_swap_in_say_null() {
        let topology = topology();
        let slots = Slots::new(&topology);
        for (mechanism, count, want) in [
            (Mechanism::Fentry, 0, Some(0)),
            (Mechanism::TpBtf, 0, None),
            (Mechanism::RawTp, 0, None),
            (Mechanism::TpBtf, 3, Some(3)),
        ] {
            let signals = [SignalName::FirstTouch, SignalName::Map].map(|n| live(n, mechanism));
            let meaning = Meaning {
                slots: &slots,
                topology: &topology,
                signals: &signals,
            };
            let mut totals = Totals {
                swap_in: count,
                ..Totals::default()
            };
            totals.map[0] = count;
            let touches = meaning.touches(&ByCpuNode::from([(0, totals)]));
            let seen = (touches.swap_in_pages, touches.map.pages);
            assert_eq!(seen, (want, want), "{mechanism:?} {count}");
            assert_eq!(touches.first_touch.pages, Some(0));
        }
    }

    #[test]
    fn a_node_that_never_ran_the_process_has_zero_time() {
        let topology = topology();
        let slots = Slots::new(&topology);
        let signals = [live(SignalName::Sched, Mechanism::TpBtf)];
        let meaning = Meaning {
            slots: &slots,
            topology: &topology,
            signals: &signals,
        };
        let totals = Totals {
            on_cpu_ns: 5,
            ..Totals::default()
        };
        let times = meaning.cpu_time(&ByCpuNode::from([(1, totals)]));
        assert_eq!(times, Some(ByNode::from([(0, 0), (1, 5)])));
    }

    #[test]
    fn migrations_without_nodes_have_no_pairs() {
        let topology = topology();
        let slots = Slots::new(&topology);
        let signals = [live(SignalName::Migration, Mechanism::TpBtf)];
        let meaning = Meaning {
            slots: &slots,
            topology: &topology,
            signals: &signals,
        };
        let mut totals = Totals::default();
        totals.migrated_from[SLOT_UNKNOWN] = 9;
        let migrations = meaning.migrations(&ByCpuNode::from([(1, totals)]));
        assert_eq!((migrations.pages, migrations.by_pair), (Some(9), None));
    }
}
