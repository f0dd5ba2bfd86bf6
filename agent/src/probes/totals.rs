//! What was counted from the CPUs of one node: one thread's rows together, or a whole process's.

use agent_ebpf::{BalanceRow, DeviceRow, SLOTS, SchedRow, Thread, TouchRow};

/// Counts by slot of the other node.
pub(crate) type BySlot = [u64; SLOTS];

/// All counters of one CPU node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// On-CPU nanoseconds.
    pub(crate) on_cpu_ns: u64,
    /// Moves to this node, by the slot of the node before.
    pub(crate) moves_from: BySlot,
    /// Pages that came back from swap.
    pub(crate) swap_in: u64,
    /// Pages first touched, by the slot of their node.
    pub(crate) first_touch: BySlot,
    /// Pages mapped, by the slot of their node.
    pub(crate) map: BySlot,
    /// Hinting faults.
    pub(crate) hint_faults: u64,
    /// Local ones.
    pub(crate) hint_faults_local: u64,
    /// Pages of hinting faults, by the slot of their node before migration.
    pub(crate) hint_pages: BySlot,
    /// Pages migrated to this node, by the slot of the node before.
    pub(crate) migrated_from: BySlot,
    /// Pages that should have migrated.
    pub(crate) failed_pages: u64,
    /// Pages pinned for long, by the slot of their node.
    pub(crate) pinned: BySlot,
    /// Pages that a device's driver allocated, by the slot of their node.
    pub(crate) driver_allocated: BySlot,
}

impl Totals {
    /// Takes over what a scheduling row says now; that of the home node has moves only.
    pub(crate) fn set_sched(&mut self, row: &SchedRow) {
        self.on_cpu_ns = self.on_cpu_ns.max(row.on_cpu_ns);
        self.moves_from = row.moves_from;
    }

    /// Takes over what a thread says now of its home node.
    pub(crate) fn set_home(&mut self, thread: &Thread) {
        self.on_cpu_ns = self.on_cpu_ns.max(thread.on_cpu_ns);
    }

    /// Takes over what a page-fault row says now.
    pub(crate) fn set_touch(&mut self, row: &TouchRow) {
        self.swap_in = row.swap_in;
        self.first_touch = row.first_touch;
        self.map = row.map;
    }

    /// Takes over what a balancing row says now. Its counts never fall, and two rows of one thread may tell of different
    /// signals: probes of hinting faults, procfs of migrations.
    pub(crate) fn set_balance(&mut self, row: &BalanceRow) {
        self.raise(&Self {
            hint_faults: row.hint_faults,
            hint_faults_local: row.hint_faults_local,
            hint_pages: row.hint_pages,
            migrated_from: row.migrated_from,
            failed_pages: row.failed_pages,
            ..Self::default()
        });
    }

    /// Takes over what a row of memory for devices says now.
    pub(crate) fn set_device(&mut self, row: &DeviceRow) {
        self.pinned = row.pinned;
        self.driver_allocated = row.driver_allocated;
    }

    /// Adds another's counts.
    pub(crate) fn add(&mut self, other: &Self) {
        self.combine(other, u64::saturating_add);
    }

    /// Raises each count to another's, so that what was once published never falls.
    pub(crate) fn raise(&mut self, other: &Self) {
        self.combine(other, std::cmp::max);
    }

    fn combine(&mut self, other: &Self, f: impl Fn(u64, u64) -> u64) {
        let each = |a: &mut BySlot, b: &BySlot| {
            for (a, b) in a.iter_mut().zip(b) {
                *a = f(*a, *b);
            }
        };
        self.on_cpu_ns = f(self.on_cpu_ns, other.on_cpu_ns);
        each(&mut self.moves_from, &other.moves_from);
        self.swap_in = f(self.swap_in, other.swap_in);
        each(&mut self.first_touch, &other.first_touch);
        each(&mut self.map, &other.map);
        self.hint_faults = f(self.hint_faults, other.hint_faults);
        self.hint_faults_local = f(self.hint_faults_local, other.hint_faults_local);
        each(&mut self.hint_pages, &other.hint_pages);
        each(&mut self.migrated_from, &other.migrated_from);
        self.failed_pages = f(self.failed_pages, other.failed_pages);
        each(&mut self.pinned, &other.pinned);
        each(&mut self.driver_allocated, &other.driver_allocated);
    }
}
