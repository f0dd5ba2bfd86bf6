//! The table of the ladder: each signal's rungs, best first, each with its programs and the kernel functions or
//! tracepoints that they attach to.
//!
//! A target is written with the prototype that its program expects, as [`super::layout`] writes what the running kernel's
//! BTF says; `...` stands for arguments that the program doesn't look at.

use model::signal::{Mechanism, SignalName};

/// Where a program attaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// A function's entry, by fentry or kprobe as the rung says.
    Entry,
    /// A function's entry, by kprobe on whatever rung: fentry can't read its arguments.
    EntryByKprobe,
    /// A function's exit, by fexit or kretprobe.
    Exit,
    /// A tracepoint, BTF-typed or raw.
    Tracepoint,
}

/// A program, its twin on the rung below, and where they can attach: the first target that this kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hook {
    /// The program's name in the object: fentry, fexit or BTF-typed tracepoint.
    pub(crate) typed: &'static str,
    /// The same as kprobe, kretprobe or raw tracepoint.
    pub(crate) untyped: &'static str,
    /// Where.
    pub(crate) at: At,
    /// Prototypes of kernel functions or tracepoints, by the kernels' ages.
    pub(crate) targets: &'static [&'static str],
    /// What is not seen without it (empty when another hook sees it); `None` when the rung can't stand without it.
    pub(crate) else_blind: Option<&'static str>,
}

/// One way to measure a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rung {
    /// By which mechanism.
    pub(crate) mechanism: Mechanism,
    /// All of its programs.
    pub(crate) hooks: &'static [Hook],
    /// What this rung never sees; `None` when it is exact.
    pub(crate) blind: Option<&'static str>,
}

const fn rung(mechanism: Mechanism, hooks: &'static [Hook]) -> Rung {
    Rung {
        mechanism,
        hooks,
        blind: None,
    }
}

const fn blind(mechanism: Mechanism, hooks: &'static [Hook], blind: &'static str) -> Rung {
    Rung {
        mechanism,
        hooks,
        blind: Some(blind),
    }
}

macro_rules! must {
    ($at:ident $typed:literal, $untyped:literal, $($target:literal),+) => {
        Hook { typed: $typed, untyped: $untyped, at: At::$at, targets: &[$($target),+], else_blind: None }
    };
}

macro_rules! may {
    ($at:ident $typed:literal, $untyped:literal, $($target:literal),+; $blind:expr) => {
        Hook { typed: $typed, untyped: $untyped, at: At::$at, targets: &[$($target),+], else_blind: Some($blind) }
    };
}

use Mechanism::{Fentry, Kprobe, RawTp, TpBtf};

/// Which processes are watched follows from these; they belong to no signal.
pub(crate) const LIFECYCLE: &[Rung] = &[rung(TpBtf, LIFE), rung(RawTp, LIFE)];

const LIFE: &[Hook] = &[
    must!(Tracepoint "sched_process_fork", "raw_sched_process_fork", "sched_process_fork(task_struct *, task_struct *)"),
    must!(Tracepoint "sched_process_exec", "raw_sched_process_exec", "sched_process_exec(task_struct *, i32, ...)"),
    must!(Tracepoint "sched_process_exit", "raw_sched_process_exit", "sched_process_exit(task_struct *, ...)"),
];

const SCHED: &[Rung] = &[rung(TpBtf, SWITCH), rung(RawTp, SWITCH)];

const SWITCH: &[Hook] = &[must!(
    Tracepoint "sched_switch", "raw_sched_switch",
    "sched_switch(i8, task_struct *, task_struct *, ...)", "sched_switch(i8, task_struct *, task_struct *)"
)];

const FIRST_TOUCH: &[Rung] = &[
    rung(Fentry, ANON),
    rung(Kprobe, ANON),
    blind(TpBtf, FAULTS, NOT_ALLOCATED),
    blind(RawTp, FAULTS, NOT_ALLOCATED),
];

const NOT_ALLOCATED: &str = "hugetlb memory and pages from the swap cache are not seen";

const ANON: &[Hook] = &[
    must!(
        Entry "touch_anon", "kprobe_touch_anon",
        "folio_add_new_anon_rmap(folio *, vm_area_struct *, ...)",
        "page_add_new_anon_rmap(page *, vm_area_struct *, ...)"
    ),
    may!(
        Entry "touch_hugetlb", "kprobe_touch_hugetlb",
        "hugetlb_add_new_anon_rmap(folio *, vm_area_struct *, ...)",
        "hugepage_add_new_anon_rmap(folio *, vm_area_struct *, ...)",
        "hugepage_add_new_anon_rmap(page *, vm_area_struct *, ...)";
        "private hugetlb memory is not seen"
    ),
    must!(Entry "swap_enter", "kprobe_swap_enter", "do_swap_page(vm_fault *)"),
    must!(Exit "swap_leave", "kretprobe_swap_leave", "do_swap_page(vm_fault *)"),
    // One of the two, by the kernel's age.
    may!(
        Entry "swap_anon_ptes", "kprobe_swap_anon_ptes",
        "folio_add_anon_rmap_ptes(folio *, page *, i32, vm_area_struct *, ...)"; ""
    ),
    may!(
        Entry "swap_anon_page", "kprobe_swap_anon_page",
        "page_add_anon_rmap(page *, vm_area_struct *, ...)"; ""
    ),
    // On 5.10 that one is a shell around this one, which is what a swap fault calls.
    may!(
        Entry "swap_anon_page_5_10", "kprobe_swap_anon_page_5_10",
        "do_page_add_anon_rmap(page *, vm_area_struct *, i64, i32)"; ""
    ),
];

/// The account of RSS that fires for each fault has two arguments; with three it is batched, and tells nothing.
const FAULTS: &[Hook] = &[
    must!(Tracepoint "rss_stat", "raw_rss_stat", "rss_stat(mm_struct *, i32)"),
    must!(Tracepoint "page_fault_user", "raw_page_fault_user", "page_fault_user(i64, struct *, i64)"),
    must!(Tracepoint "page_fault_kernel", "raw_page_fault_kernel", "page_fault_kernel(i64, struct *, i64)"),
    must!(Tracepoint "mm_page_alloc", "raw_mm_page_alloc", "mm_page_alloc(page *, i32, i32, i32)"),
];

const MAP: &[Rung] = &[
    rung(Fentry, FILE_PTES),
    rung(Fentry, FILE_RANGE),
    // Where one of the functions above is, these see only a part: they come later.
    rung(Fentry, FILE_PAGE),
    blind(Fentry, FILE_PAGE_5_10, UNCHECKED),
    rung(Kprobe, FILE_PTES),
    rung(Kprobe, FILE_RANGE),
    rung(Kprobe, FILE_PAGE),
    blind(Kprobe, FILE_PAGE_5_10, UNCHECKED),
    blind(TpBtf, FAULTS, BROUGHT_IN),
    blind(RawTp, FAULTS, BROUGHT_IN),
];

const UNCHECKED: &str = "maps that a process causes in another's memory are counted to it";
const BROUGHT_IN: &str = "only pages that the mapping fault itself brought in are seen, \
     not those already in page cache or shared memory, nor those that read-ahead brought in";
const SHARED_HUGETLB: &str = "shared hugetlb memory is not seen";

macro_rules! map_hooks {
    ($($own:expr),+) => {
        &[
            $($own),+,
            must!(
                Entry "migration_enter", "kprobe_migration_enter",
                "remove_migration_pte(folio *, vm_area_struct *, ...)",
                "remove_migration_pte(page *, vm_area_struct *, ...)"
            ),
            must!(
                Exit "migration_leave", "kretprobe_migration_leave",
                "remove_migration_pte(folio *, vm_area_struct *, ...)",
                "remove_migration_pte(page *, vm_area_struct *, ...)"
            ),
            may!(
                Entry "map_hugetlb", "kprobe_map_hugetlb",
                "hugetlb_add_to_page_cache(folio *, ...)", "hugetlb_add_to_page_cache(page *, ...)";
                SHARED_HUGETLB
            ),
        ]
    };
}

const FILE_PTES: &[Hook] = map_hooks!(
    must!(
        Entry "map_file_ptes", "kprobe_map_file_ptes",
        "folio_add_file_rmap_ptes(folio *, page *, i32, vm_area_struct *)"
    ),
    must!(
        Entry "map_file_pmd", "kprobe_map_file_pmd",
        "folio_add_file_rmap_pmd(folio *, page *, vm_area_struct *)"
    )
);
const FILE_RANGE: &[Hook] = map_hooks!(must!(
    Entry "map_file_range", "kprobe_map_file_range",
    "folio_add_file_rmap_range(folio *, page *, i32, vm_area_struct *, i8)"
));
const FILE_PAGE: &[Hook] = map_hooks!(must!(
    Entry "map_file_page", "kprobe_map_file_page",
    "page_add_file_rmap(page *, vm_area_struct *, i8)"
));
const FILE_PAGE_5_10: &[Hook] = map_hooks!(must!(
    Entry "map_file_page_5_10", "kprobe_map_file_page_5_10",
    "page_add_file_rmap(page *, i8)"
));

const HINT: &[Rung] = &[
    rung(Fentry, HINT_6_1),
    rung(Fentry, HINT_5_10),
    rung(Fentry, HINT_6_12),
    rung(Kprobe, HINT_6_1),
    rung(Kprobe, HINT_5_10),
    rung(Kprobe, HINT_6_12),
];

const MIGRATION: &[Rung] = &[
    rung(Fentry, HINT_6_1),
    rung(Fentry, HINT_5_10),
    rung(Fentry, HINT_6_12),
    rung(Kprobe, HINT_6_1),
    rung(Kprobe, HINT_5_10),
    rung(Kprobe, HINT_6_12),
    blind(TpBtf, MIGRATE_PAGES_7, NO_NODES),
    blind(TpBtf, MIGRATE_PAGES_8, NO_NODES),
    blind(RawTp, MIGRATE_PAGES_7, NO_NODES),
    blind(RawTp, MIGRATE_PAGES_8, NO_NODES),
];

const NO_NODES: &str = "pages are counted without their nodes";
const NODE_BEFORE: &str =
    "the page's node before a migration is not known, so remote pages have no pair";

macro_rules! hint_hooks {
    ($($own:expr),+) => {
        &[must!(Entry "hint_fault", "kprobe_hint_fault", "task_numa_fault(i32, i32, i32, i32)"), $($own),+]
    };
}

const HINT_6_12: &[Hook] = hint_hooks!(may!(
    Entry "hint_check", "kprobe_hint_check", "numa_migrate_check(folio *, ...)"; NODE_BEFORE
));
const HINT_6_1: &[Hook] = hint_hooks!(must!(
    Entry "hint_prep", "kprobe_hint_prep", "numa_migrate_prep(page *, vm_area_struct *, i64, i32, ...)"
));
const HINT_5_10: &[Hook] = hint_hooks!(
    must!(
        Entry "hint_misplaced", "kprobe_hint_misplaced",
        "migrate_misplaced_page(page *, vm_area_struct *, i32)"
    ),
    may!(
        EntryByKprobe "kprobe_hint_misplaced_huge", "kprobe_hint_misplaced_huge",
        "migrate_misplaced_transhuge_page(mm_struct *, vm_area_struct *, struct *, struct, i64, page *, i32)";
        "huge pages that move have no pair"
    )
);

const MIGRATE_PAGES_7: &[Hook] = &[must!(
    Tracepoint "mm_migrate_pages_7", "raw_mm_migrate_pages_7",
    "mm_migrate_pages(i64, i64, i64, i64, i64, i32, i32)"
)];
const MIGRATE_PAGES_8: &[Hook] = &[must!(
    Tracepoint "mm_migrate_pages_8", "raw_mm_migrate_pages_8",
    "mm_migrate_pages(i64, i64, i64, i64, i64, i64, i32, i32)"
)];

const SCAN: &[Rung] = &[rung(Fentry, NUMA_WORK), rung(Kprobe, NUMA_WORK)];

const NUMA_WORK: &[Hook] = &[
    must!(Entry "scan_enter", "kprobe_scan_enter", "task_numa_work(callback_head *)"),
    must!(Exit "scan_leave", "kretprobe_scan_leave", "task_numa_work(callback_head *)"),
];

const PIN: &[Rung] = &[
    rung(
        Fentry,
        &[
            must!(Exit "pin_fast", "", "gup_fast_fallback(i64, i64, i32, page **)", "internal_get_user_pages_fast(i64, i64, i32, page **)"),
            must!(Exit "pin_slow", "", "pin_user_pages(i64, i64, i32, page **)"),
        ],
    ),
    rung(
        Fentry,
        &[
            must!(Exit "pin_fast", "", "internal_get_user_pages_fast(i64, i64, i32, page **)"),
            must!(Exit "pin_slow_5_10", "", "pin_user_pages(i64, i64, i32, page **, vm_area_struct **)"),
        ],
    ),
    rung(
        Kprobe,
        &[
            must!(Entry "", "kprobe_pin_fast", "gup_fast_fallback(i64, i64, i32, page **)", "internal_get_user_pages_fast(i64, i64, i32, page **)"),
            must!(Exit "", "kretprobe_pin_fast", "gup_fast_fallback(i64, i64, i32, page **)", "internal_get_user_pages_fast(i64, i64, i32, page **)"),
            must!(Entry "", "kprobe_pin_slow", "pin_user_pages(i64, i64, i32, page **)"),
            must!(Exit "", "kretprobe_pin_slow", "pin_user_pages(i64, i64, i32, page **)"),
        ],
    ),
    rung(
        Kprobe,
        &[
            must!(Entry "", "kprobe_pin_fast", "internal_get_user_pages_fast(i64, i64, i32, page **)"),
            must!(Exit "", "kretprobe_pin_fast", "internal_get_user_pages_fast(i64, i64, i32, page **)"),
            must!(Entry "", "kprobe_pin_slow_5_10", "pin_user_pages(i64, i64, i32, page **, vm_area_struct **)"),
            must!(Exit "", "kretprobe_pin_slow_5_10", "pin_user_pages(i64, i64, i32, page **, vm_area_struct **)"),
        ],
    ),
];

const DRIVER_ALLOC: &[Rung] = &[rung(Fentry, DRIVER_CALLS), rung(Kprobe, DRIVER_CALLS)];

const DRIVER_CALLS: &[Hook] = &[
    must!(
        Entry "driver_ioctl", "kprobe_driver_ioctl",
        "security_file_ioctl(file *, i32, i64)"
    ),
    must!(
        Exit "driver_ioctl_ends", "kretprobe_driver_ioctl_ends",
        "__x64_sys_ioctl(struct *)", "__arm64_sys_ioctl(struct *)"
    ),
    must!(Entry "driver_mmap", "kprobe_driver_mmap", "security_mmap_file(file *, i64, i64)"),
    must!(Exit "driver_mmap_ends", "kretprobe_driver_mmap_ends", "vm_mmap_pgoff(file *, ...)"),
    must!(
        Tracepoint "driver_page_alloc", "raw_driver_page_alloc",
        "mm_page_alloc(page *, i32, i32, i32)"
    ),
];

/// The rungs of a signal that a probe measures, best first; none for those that have no probe.
pub(crate) const fn rungs(signal: SignalName) -> &'static [Rung] {
    match signal {
        SignalName::Sched => SCHED,
        SignalName::FirstTouch => FIRST_TOUCH,
        SignalName::Map => MAP,
        SignalName::Hint => HINT,
        SignalName::Migration => MIGRATION,
        SignalName::Scan => SCAN,
        SignalName::Pin => PIN,
        SignalName::DriverAlloc => DRIVER_ALLOC,
        SignalName::Placement => &[],
    }
}

/// Names of all targets: what must be looked up in a kernel's BTF.
pub(crate) fn target_names() -> impl Iterator<Item = &'static str> {
    let rungs = SignalName::ALL.into_iter().flat_map(rungs).chain(LIFECYCLE);
    let targets = rungs
        .flat_map(|rung| rung.hooks)
        .flat_map(|hook| hook.targets);
    targets.map(|target| name_of(target))
}

/// A target's name, without its arguments.
pub(crate) fn name_of(target: &'static str) -> &'static str {
    target.split_once('(').map_or(target, |(name, _)| name)
}
