//! Events that were made on purpose, and what the live probes saw of them.

use crate::process::{ByNode, Migrations, Moves, Touches};
use crate::signal::SignalName;
use crate::topology::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts by (from, to): (CPU node, memory node) of touches, (node before, node now) of moves and migrations.
pub type Pairs = Vec<Pair>;

/// One count of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Node of the CPU, or the node before.
    pub from: NodeId,
    /// Node of the memory, or the node now.
    pub to: NodeId,
    /// Pages of 4 KiB, or moves.
    pub count: u64,
}

/// What was done, by whoever did it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// On-CPU nanoseconds by node.
    pub cpu_time_ns_by_node: ByNode,
    /// Nanoseconds of these during which the thread was under way from one node to another.
    pub under_way_ns: u64,
    /// Moves.
    pub moves: Pairs,
    /// Pages that were allocated by a touch.
    pub first_touch: Pairs,
    /// Pages of shared memory that a touch brought into being.
    pub map_new: Pairs,
    /// Pages of shared memory that were there already, and were mapped by a touch.
    pub map_old: Pairs,
    /// Pages that were pinned, by node.
    pub pinned_pages: ByNode,
    /// Pages that a device's driver allocated for it, by node.
    pub driver_allocated: ByNode,
    /// Pages that were touched again after they had gone to swap.
    pub swapped_in: u64,
    /// Bytes that became resident and stayed, by node.
    pub resident_bytes: ByNode,
    /// Pages that NUMA balancing brought from one node to another.
    pub migrated: Pairs,
    /// The largest resident set of the process that did it, bytes.
    pub memory_bytes: Option<u64>,
    /// Kinds of events that could not be made, and why.
    pub not_made: BTreeMap<SignalName, String>,
}

impl Truth {
    /// Takes over what another process did.
    pub fn add(&mut self, other: Self) {
        for (mine, theirs) in [
            (&mut self.cpu_time_ns_by_node, other.cpu_time_ns_by_node),
            (&mut self.pinned_pages, other.pinned_pages),
            (&mut self.driver_allocated, other.driver_allocated),
            (&mut self.resident_bytes, other.resident_bytes),
        ] {
            for (node, n) in theirs {
                *mine.entry(node).or_default() += n;
            }
        }
        for (mine, theirs) in [
            (&mut self.moves, other.moves),
            (&mut self.first_touch, other.first_touch),
            (&mut self.map_new, other.map_new),
            (&mut self.map_old, other.map_old),
            (&mut self.migrated, other.migrated),
        ] {
            for pair in theirs {
                count(mine, pair.from, pair.to, pair.count);
            }
        }
        self.swapped_in += other.swapped_in;
        self.under_way_ns += other.under_way_ns;
        self.memory_bytes = self.memory_bytes.max(other.memory_bytes);
        self.not_made.extend(other.not_made);
    }
}

/// Adds to a pair.
pub fn count(pairs: &mut Pairs, from: NodeId, to: NodeId, count: u64) {
    match pairs.iter_mut().find(|p| (p.from, p.to) == (from, to)) {
        Some(pair) => pair.count += count,
        None => pairs.push(Pair { from, to, count }),
    }
}

/// What the probes saw of the same processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// On-CPU nanoseconds by node.
    pub cpu_time_ns_by_node: Option<ByNode>,
    /// Moves.
    pub moves: Moves,
    /// Touches.
    pub touches: Touches,
    /// Migrations and hint touches are those of the process that was balanced.
    pub hint: Touches,
    /// As above.
    pub migrations: Migrations,
    /// Nanoseconds of the scan, of the same process.
    pub scan_time_ns: Option<u64>,
    /// Pins made, pages by node.
    pub pinned_pages: Option<ByNode>,
    /// Pages that a device's driver allocated, by node.
    pub driver_allocated: Option<ByNode>,
    /// Growth of the placement, bytes by node.
    pub resident_bytes: Option<ByNode>,
}
