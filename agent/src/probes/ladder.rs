//! The ladder: which rungs each signal has, best first, and which of them the running kernel can have.

use super::layout::Layout;
use model::signal::{Mechanism, Signal, SignalName};

/// How a program attaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// BTF-typed raw tracepoint.
    TpBtf,
    /// A kernel function's entry.
    Fentry,
    /// A kernel function's exit.
    Fexit,
}

/// One program and where it can attach: the first target that this kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hook {
    /// The program's name in the object.
    pub(crate) program: &'static str,
    /// How it attaches.
    pub(crate) kind: Kind,
    /// Kernel functions or tracepoints, by the kernels' ages.
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
    /// What this rung never sees; `None` for a best rung.
    pub(crate) blind: Option<&'static str>,
    /// A tracepoint's number of arguments that this rung's reading of it supposes.
    pub(crate) supposes: Option<(&'static str, usize)>,
}

const fn must(program: &'static str, kind: Kind, targets: &'static [&'static str]) -> Hook {
    Hook {
        program,
        kind,
        targets,
        else_blind: None,
    }
}

const fn may(
    program: &'static str,
    kind: Kind,
    targets: &'static [&'static str],
    blind: &'static str,
) -> Hook {
    Hook {
        program,
        kind,
        targets,
        else_blind: Some(blind),
    }
}

const fn fentry(hooks: &'static [Hook]) -> Rung {
    Rung {
        mechanism: Mechanism::Fentry,
        hooks,
        blind: None,
        supposes: None,
    }
}

/// Which processes are watched follows from these; they belong to no signal.
pub(crate) const LIFECYCLE: Rung = Rung {
    mechanism: Mechanism::TpBtf,
    hooks: &[
        must("sched_process_fork", Kind::TpBtf, &["sched_process_fork"]),
        must("sched_process_exec", Kind::TpBtf, &["sched_process_exec"]),
        must("sched_process_exit", Kind::TpBtf, &["sched_process_exit"]),
    ],
    blind: None,
    supposes: None,
};

/// An account of RSS that fires for each fault has two arguments; with three it is batched, and tells nothing.
const UNBATCHED_RSS: Option<(&str, usize)> = Some(("rss_stat", 2));

const FAULT_TRACEPOINTS: &[Hook] = &[
    must("page_fault_user", Kind::TpBtf, &["page_fault_user"]),
    must("page_fault_kernel", Kind::TpBtf, &["page_fault_kernel"]),
    must("mm_page_alloc", Kind::TpBtf, &["mm_page_alloc"]),
    must("rss_stat", Kind::TpBtf, &["rss_stat"]),
    must("sys_enter", Kind::TpBtf, &["sys_enter"]),
    must("sys_exit", Kind::TpBtf, &["sys_exit"]),
];

const MIGRATION_ENTER: Hook = must("migration_enter", Kind::Fentry, &["remove_migration_pte"]);
const MIGRATION_LEAVE: Hook = must("migration_leave", Kind::Fexit, &["remove_migration_pte"]);

const MAP_HUGETLB: Hook = may(
    "map_hugetlb",
    Kind::Fentry,
    &["hugetlb_add_to_page_cache"],
    "shared hugetlb memory is not seen",
);

const HINT_CHECK: &str =
    "the page's node before a migration is not known, so remote pages have no pair";

const HINT_HOOKS: &[Hook] = &[
    must("hint_fault", Kind::Fentry, &["task_numa_fault"]),
    Hook {
        program: "hint_check",
        kind: Kind::Fentry,
        targets: &["numa_migrate_check"],
        else_blind: Some(HINT_CHECK),
    },
];
const HINT_HOOKS_6_1: &[Hook] = &[
    must("hint_fault", Kind::Fentry, &["task_numa_fault"]),
    must("hint_prep", Kind::Fentry, &["numa_migrate_prep"]),
];

const SCHED: &[Rung] = &[Rung {
    mechanism: Mechanism::TpBtf,
    hooks: &[must("sched_switch", Kind::TpBtf, &["sched_switch"])],
    blind: None,
    supposes: None,
}];

const FIRST_TOUCH: &[Rung] = &[
    fentry(&[
        must(
            "touch_anon",
            Kind::Fentry,
            &["folio_add_new_anon_rmap", "page_add_new_anon_rmap"],
        ),
        may(
            "touch_hugetlb",
            Kind::Fentry,
            &["hugetlb_add_new_anon_rmap", "hugepage_add_new_anon_rmap"],
            "private hugetlb memory is not seen",
        ),
        must("swap_enter", Kind::Fentry, &["do_swap_page"]),
        must("swap_leave", Kind::Fexit, &["do_swap_page"]),
        // One of the two, by the kernel's age.
        may(
            "swap_anon_ptes",
            Kind::Fentry,
            &["folio_add_anon_rmap_ptes"],
            "",
        ),
        may("swap_anon_page", Kind::Fentry, &["page_add_anon_rmap"], ""),
    ]),
    Rung {
        mechanism: Mechanism::TpBtf,
        hooks: FAULT_TRACEPOINTS,
        blind: Some("hugetlb memory is not seen"),
        supposes: UNBATCHED_RSS,
    },
];

const MAP: &[Rung] = &[
    fentry(&[
        must("map_file_ptes", Kind::Fentry, &["folio_add_file_rmap_ptes"]),
        must("map_file_pmd", Kind::Fentry, &["folio_add_file_rmap_pmd"]),
        MIGRATION_ENTER,
        MIGRATION_LEAVE,
        MAP_HUGETLB,
    ]),
    fentry(&[
        must(
            "map_file_range",
            Kind::Fentry,
            &["folio_add_file_rmap_range"],
        ),
        MIGRATION_ENTER,
        MIGRATION_LEAVE,
        MAP_HUGETLB,
    ]),
    // Where one of the functions above is, this one sees only a part: it comes last.
    fentry(&[
        must("map_file_page", Kind::Fentry, &["page_add_file_rmap"]),
        MIGRATION_ENTER,
        MIGRATION_LEAVE,
        MAP_HUGETLB,
    ]),
    Rung {
        mechanism: Mechanism::TpBtf,
        hooks: FAULT_TRACEPOINTS,
        blind: Some(
            "only pages that the process itself brought in are seen, \
             not those already in page cache or shared memory",
        ),
        supposes: UNBATCHED_RSS,
    },
];

const HINT: &[Rung] = &[fentry(HINT_HOOKS_6_1), fentry(HINT_HOOKS)];

const MIGRATION: &[Rung] = &[
    fentry(HINT_HOOKS_6_1),
    fentry(HINT_HOOKS),
    migrate_pages(
        &[must(
            "mm_migrate_pages_7",
            Kind::TpBtf,
            &["mm_migrate_pages"],
        )],
        7,
    ),
    migrate_pages(
        &[must(
            "mm_migrate_pages_8",
            Kind::TpBtf,
            &["mm_migrate_pages"],
        )],
        8,
    ),
];

const fn migrate_pages(hooks: &'static [Hook], arguments: usize) -> Rung {
    Rung {
        mechanism: Mechanism::TpBtf,
        hooks,
        blind: Some("pages are counted without their nodes"),
        supposes: Some(("mm_migrate_pages", arguments)),
    }
}

const SCAN: &[Rung] = &[fentry(&[
    must("scan_enter", Kind::Fentry, &["task_numa_work"]),
    must("scan_leave", Kind::Fexit, &["task_numa_work"]),
])];

/// The rungs of a signal that a probe measures, best first; none for placement, which has no probe.
pub(crate) const fn rungs(signal: SignalName) -> &'static [Rung] {
    match signal {
        SignalName::Sched => SCHED,
        SignalName::FirstTouch => FIRST_TOUCH,
        SignalName::Map => MAP,
        SignalName::Hint => HINT,
        SignalName::Migration => MIGRATION,
        SignalName::Scan => SCAN,
        SignalName::Pin | SignalName::DriverAlloc | SignalName::Placement => &[],
    }
}

/// Where a hook attaches on this kernel; `None` when it has none of the targets.
pub(crate) fn target(hook: &Hook, layout: &Layout) -> Option<&'static str> {
    hook.targets.iter().copied().find(|name| match hook.kind {
        Kind::TpBtf => layout.tracepoints.contains_key(*name),
        Kind::Fentry | Kind::Fexit => layout.functions.contains(*name),
    })
}

/// Why a rung can't stand on this kernel, before anything is tried; `None` when it may.
pub(crate) fn refused(rung: &Rung, layout: &Layout) -> Option<String> {
    if let Some((tracepoint, arguments)) = rung.supposes
        && let Some(found) = layout.tracepoints.get(tracepoint)
        && *found != arguments
    {
        return Some(format!(
            "tracepoint {tracepoint} has {found} arguments on this kernel, not {arguments}"
        ));
    }
    rung.hooks
        .iter()
        .find(|hook| hook.else_blind.is_none() && target(hook, layout).is_none())
        .map(|hook| format!("this kernel's BTF has no {}", hook.targets.join(" or ")))
}

/// Why a rung does not stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The rung's mechanism.
    pub(crate) mechanism: Mechanism,
    /// Whether the kernel was asked; else its BTF told beforehand.
    pub(crate) tried: bool,
    /// The kernel's word, or what its BTF lacks.
    pub(crate) why: String,
}

/// What to tell of refusals: of each mechanism the kernel's own words. That a rung is made for kernels of another age
/// matters only where none was made for this one.
pub(crate) fn words(refusals: &[Refusal]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for refusal in refusals {
        let asked = |r: &&Refusal| r.mechanism == refusal.mechanism && r.tried;
        if !refusal.tried && refusals.iter().any(|r| asked(&r)) {
            continue;
        }
        let word = if refusal.tried {
            refusal.why.clone()
        } else {
            format!("{}: {}", refusal.mechanism.as_str(), refusal.why)
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// What the second rungs' programs are to count, as [`agent_ebpf::may_count`]: signals share them, and one of those may
/// stand on its first rung.
pub(crate) fn may_count(signals: &[Signal]) -> u32 {
    use agent_ebpf::may_count::{FIRST_TOUCH, MAP, MIGRATION};
    let second = |s: &&Signal| s.is_live() && s.mechanism == Some(Mechanism::TpBtf);
    signals.iter().filter(second).fold(0, |bits, signal| {
        bits | match signal.name {
            SignalName::FirstTouch => FIRST_TOUCH,
            SignalName::Map => MAP,
            SignalName::Migration => MIGRATION,
            _ => 0,
        }
    })
}

/// Why a live signal has nothing to measure with this setting of `kernel.numa_balancing`; `None` when it has.
pub(crate) fn idle(signal: SignalName, numa_balancing: Option<u32>) -> Option<&'static str> {
    match (signal, numa_balancing) {
        (SignalName::Hint | SignalName::Migration | SignalName::Scan, None) => {
            Some("this kernel has no NUMA balancing (CONFIG_NUMA_BALANCING)")
        }
        (SignalName::Hint | SignalName::Migration | SignalName::Scan, Some(0)) => {
            Some("kernel.numa_balancing=0: the kernel takes no hint faults and moves no pages")
        }
        _ => None,
    }
}

/// What a live signal can't be read as with this setting; `None` when all is plain.
pub(crate) fn caveat(signal: SignalName, numa_balancing: Option<u32>) -> Option<&'static str> {
    match (signal, numa_balancing) {
        (SignalName::Hint, Some(mode)) if mode & 2 != 0 => {
            Some("kernel.numa_balancing has memory tiering (2): hint faults are no remote share")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(functions: &[&str], tracepoints: &[(&str, usize)]) -> Layout {
        Layout {
            functions: functions.iter().map(|f| (*f).to_owned()).collect(),
            tracepoints: tracepoints
                .iter()
                .map(|(t, n)| ((*t).to_owned(), *n))
                .collect(),
            ..Layout::default()
        }
    }

    fn standing(signal: SignalName, layout: &Layout) -> Vec<usize> {
        rungs(signal)
            .iter()
            .enumerate()
            .filter(|(_, rung)| refused(rung, layout).is_none())
            .map(|(i, _)| i)
            .collect()
    }

    const FAULTS: [(&str, usize); 5] = [
        ("page_fault_user", 3),
        ("page_fault_kernel", 3),
        ("mm_page_alloc", 4),
        ("sys_enter", 2),
        ("sys_exit", 2),
    ];

    #[test]
    fn a_current_kernel_has_both_rungs_of_first_touch() {
        let mut tracepoints = FAULTS.to_vec();
        tracepoints.push(("rss_stat", 2));
        let l = layout(&["folio_add_new_anon_rmap", "do_swap_page"], &tracepoints);
        assert_eq!(standing(SignalName::FirstTouch, &l), [0, 1]);
    }

    #[test]
    fn batched_rss_accounting_refuses_the_tracepoint_rung() {
        let mut tracepoints = FAULTS.to_vec();
        tracepoints.push(("rss_stat", 3));
        let l = layout(&["page_add_new_anon_rmap", "do_swap_page"], &tracepoints);
        assert_eq!(standing(SignalName::FirstTouch, &l), [0]);
        let why = refused(&rungs(SignalName::FirstTouch)[1], &l);
        assert_eq!(
            why.as_deref(),
            Some("tracepoint rss_stat has 3 arguments on this kernel, not 2")
        );
    }

    #[test]
    fn the_targets_follow_the_kernels_age() {
        let hook = &rungs(SignalName::FirstTouch)[0].hooks[0];
        for (function, want) in [
            ("folio_add_new_anon_rmap", Some("folio_add_new_anon_rmap")),
            ("page_add_new_anon_rmap", Some("page_add_new_anon_rmap")),
            ("something_else", None),
        ] {
            assert_eq!(target(hook, &layout(&[function], &[])), want);
        }
    }

    #[test]
    fn rungs_for_other_kernels_are_not_told_where_one_was_tried() {
        let refusal = |tried, why: &str| Refusal {
            mechanism: Mechanism::Fentry,
            tried,
            why: why.to_owned(),
        };
        let both = [
            refusal(false, "no numa_migrate_prep"),
            refusal(true, "fentry/x: EPERM"),
        ];
        assert_eq!(words(&both), ["fentry/x: EPERM"]);
        assert_eq!(words(&both[..1]), ["fentry: no numa_migrate_prep"]);
    }

    #[test]
    fn a_signal_on_its_first_rung_is_not_counted_by_the_second() {
        use agent_ebpf::may_count::FIRST_TOUCH;
        let on = |name, mechanism| Signal {
            mechanism: Some(mechanism),
            state: model::signal::SignalState::Attached,
            ..Signal::unavailable(name, "")
        };
        let signals = [
            on(SignalName::FirstTouch, Mechanism::TpBtf),
            on(SignalName::Map, Mechanism::Fentry),
            on(SignalName::Sched, Mechanism::TpBtf),
        ];
        assert_eq!(may_count(&signals), FIRST_TOUCH);
    }

    #[test]
    fn balancing_decides_what_there_is_to_measure() {
        for (signal, mode, want) in [
            (SignalName::Hint, Some(0), true),
            (SignalName::Migration, Some(0), true),
            (SignalName::Scan, None, true),
            (SignalName::Hint, Some(1), false),
            (SignalName::Hint, Some(2), false),
            (SignalName::Sched, Some(0), false),
            (SignalName::FirstTouch, None, false),
        ] {
            assert_eq!(idle(signal, mode).is_some(), want, "{signal:?} {mode:?}");
        }
        assert!(caveat(SignalName::Hint, Some(2)).is_some());
        assert!(caveat(SignalName::Hint, Some(1)).is_none());
    }
}
