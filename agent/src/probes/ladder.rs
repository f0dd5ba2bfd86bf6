//! The ladder's decisions: which rungs of [`super::rungs`] the running kernel can have, and what to say of those that it
//! can't. Pure.

use super::layout::Layout;
use super::rungs::{At, Hook, Rung, name_of};
use model::balancing::Balancing;
use model::signal::{Mechanism, Signal, SignalName};
use model::snapshot::Host;

/// How a program attaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// BTF-typed raw tracepoint.
    TpBtf,
    /// Raw tracepoint.
    RawTp,
    /// A kernel function's entry.
    Fentry,
    /// A kernel function's exit.
    Fexit,
    /// A breakpoint at a kernel function's entry.
    Kprobe,
    /// The same at its return.
    Kretprobe,
}

impl Kind {
    /// As the sections of an object are called.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::TpBtf => "tp_btf",
            Self::RawTp => "raw_tp",
            Self::Fentry => "fentry",
            Self::Fexit => "fexit",
            Self::Kprobe => "kprobe",
            Self::Kretprobe => "kretprobe",
        }
    }
}

/// The program that a hook stands for on a rung, and how it attaches.
pub(crate) fn program(hook: &Hook, mechanism: Mechanism) -> (&'static str, Kind) {
    match (hook.at, mechanism) {
        (At::Entry, Mechanism::Kprobe) | (At::EntryByKprobe, _) => (hook.untyped, Kind::Kprobe),
        (At::Exit, Mechanism::Kprobe) => (hook.untyped, Kind::Kretprobe),
        (At::Tracepoint, Mechanism::RawTp) => (hook.untyped, Kind::RawTp),
        (At::Entry, _) => (hook.typed, Kind::Fentry),
        (At::Exit, _) => (hook.typed, Kind::Fexit),
        (At::Tracepoint, _) => (hook.typed, Kind::TpBtf),
    }
}

/// Where a hook attaches on this kernel.
///
/// # Errors
/// Why nowhere: the kernel has none of the targets, or has it with other arguments than the program expects, which would
/// make it count something else.
pub(crate) fn target(hook: &Hook, layout: &Layout) -> Result<&'static str, String> {
    let known = match hook.at {
        At::Tracepoint => &layout.tracepoints,
        At::Entry | At::EntryByKprobe | At::Exit => &layout.functions,
    };
    let mut other = None;
    for target in hook.targets {
        let name = name_of(target);
        match known.get(name) {
            Some(arguments) if fits(target, arguments) => return Ok(name),
            Some(arguments) => other = Some((name, arguments)),
            None => {}
        }
    }
    if let Some((name, arguments)) = other {
        return Err(format!(
            "{name}({}) of this kernel has other arguments than {}",
            arguments.join(", "),
            hook.targets.join(" or ")
        ));
    }
    let mut names: Vec<_> = hook.targets.iter().map(|target| name_of(target)).collect();
    names.dedup();
    Err(format!("this kernel's BTF has no {}", names.join(" or ")))
}

/// Whether a function's arguments are those of a prototype, as far as that names them.
fn fits(prototype: &str, arguments: &[String]) -> bool {
    let expected = prototype
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .unwrap_or_default();
    let mut arguments = arguments.iter().map(String::as_str);
    for word in expected.split(", ").filter(|word| !word.is_empty()) {
        if word == "..." {
            return true;
        }
        let fits =
            |argument: &str| argument == word || (word == "struct *" && argument.ends_with(" *"));
        if !arguments.next().is_some_and(fits) {
            return false;
        }
    }
    arguments.next().is_none()
}

/// Why a rung can't stand on this kernel, before anything is tried; `None` when it may.
pub(crate) fn refused(rung: &Rung, layout: &Layout) -> Option<String> {
    rung.hooks
        .iter()
        .filter(|hook| hook.else_blind.is_none())
        .find_map(|hook| target(hook, layout).err())
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
/// stand on another rung.
pub(crate) fn may_count(signals: &[Signal]) -> u32 {
    use agent_ebpf::may_count::{FIRST_TOUCH, MAP, MIGRATION};
    let tracepoint = |m| matches!(m, Mechanism::TpBtf | Mechanism::RawTp);
    let second = |s: &&Signal| s.is_live() && s.mechanism.is_some_and(tracepoint);
    signals.iter().filter(second).fold(0, |bits, signal| {
        bits | match signal.name {
            SignalName::FirstTouch => FIRST_TOUCH,
            SignalName::Map => MAP,
            SignalName::Migration => MIGRATION,
            _ => 0,
        }
    })
}

/// Why a live signal has nothing to measure with this setting of `kernel.numa_balancing`; `None` when it may have.
pub(crate) fn idle(signal: SignalName, host: &Host) -> Option<&'static str> {
    let (SignalName::Hint | SignalName::Migration | SignalName::Scan) = signal else {
        return None;
    };
    match host.balancing() {
        Balancing::NotInKernel => Some("this kernel has no NUMA balancing (CONFIG_NUMA_BALANCING)"),
        Balancing::Off => {
            Some("kernel.numa_balancing=0: the kernel takes no hint faults and moves no pages")
        }
        _ => None,
    }
}

/// What a live signal can't be read as with this setting; `None` when all is plain.
pub(crate) fn caveat(signal: SignalName, host: &Host) -> Option<String> {
    match (signal, host.balancing()) {
        (SignalName::Hint, Balancing::Tiering { .. }) => Some(
            "kernel.numa_balancing has memory tiering (2): hint faults are no remote share"
                .to_owned(),
        ),
        (SignalName::Hint, Balancing::Other(mode)) => Some(format!(
            "kernel.numa_balancing={mode} is a mode that numawatch doesn't know: hint faults are no remote share"
        )),
        (SignalName::Hint | SignalName::Migration | SignalName::Scan, Balancing::Unknown(why)) => {
            Some(format!("{why}; 0 may mean that it is off"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::rungs::rungs;

    fn layout(functions: &[&str], tracepoints: &[&str]) -> Layout {
        let table = |all: &[&str]| {
            all.iter()
                .map(|text| {
                    let (name, rest) = text.split_once('(').unwrap();
                    let arguments = rest.trim_end_matches(')').split(", ");
                    let arguments = arguments.filter(|a| !a.is_empty()).map(str::to_owned);
                    (name.to_owned(), arguments.collect())
                })
                .collect()
        };
        Layout {
            functions: table(functions),
            tracepoints: table(tracepoints),
            ..Layout::default()
        }
    }

    fn standing(signal: SignalName, layout: &Layout) -> Vec<Mechanism> {
        rungs(signal)
            .iter()
            .filter(|rung| refused(rung, layout).is_none())
            .map(|rung| rung.mechanism)
            .collect()
    }

    const FAULTS: [&str; 3] = [
        "page_fault_user(i64, pt_regs *, i64)",
        "page_fault_kernel(i64, pt_regs *, i64)",
        "mm_page_alloc(page *, i32, i32, i32)",
    ];
    const ANON: [&str; 2] = [
        "folio_add_new_anon_rmap(folio *, vm_area_struct *, i64, i32)",
        "do_swap_page(vm_fault *)",
    ];

    #[test]
    fn a_current_kernel_has_every_rung_of_first_touch() {
        let mut tracepoints = FAULTS.to_vec();
        tracepoints.push("rss_stat(mm_struct *, i32)");
        let l = layout(&ANON, &tracepoints);
        assert_eq!(
            standing(SignalName::FirstTouch, &l),
            [
                Mechanism::Fentry,
                Mechanism::Kprobe,
                Mechanism::TpBtf,
                Mechanism::RawTp
            ]
        );
    }

    #[test]
    fn batched_rss_accounting_refuses_the_tracepoint_rungs() {
        let mut tracepoints = FAULTS.to_vec();
        tracepoints.push("rss_stat(mm_struct *, i32, i64)");
        let l = layout(&ANON, &tracepoints);
        assert_eq!(
            standing(SignalName::FirstTouch, &l),
            [Mechanism::Fentry, Mechanism::Kprobe]
        );
        let why = refused(&rungs(SignalName::FirstTouch)[2], &l);
        assert_eq!(
            why.as_deref(),
            Some(
                "rss_stat(mm_struct *, i32, i64) of this kernel has other arguments than \
                 rss_stat(mm_struct *, i32)"
            )
        );
    }

    #[test]
    fn a_function_that_changed_its_arguments_is_not_traced() {
        for (argument, want) in [
            (
                "folio_add_new_anon_rmap(folio *, vm_area_struct *, i64)",
                true,
            ),
            ("folio_add_new_anon_rmap(folio *, vm_area_struct *)", true),
            (
                "folio_add_new_anon_rmap(page *, vm_area_struct *, i64)",
                false,
            ),
            (
                "folio_add_new_anon_rmap(folio *, i64, vm_area_struct *)",
                false,
            ),
            ("folio_add_new_anon_rmap(folio *)", false),
        ] {
            let l = layout(&[argument, ANON[1]], &[]);
            let rung = &rungs(SignalName::FirstTouch)[0];
            assert_eq!(refused(rung, &l).is_none(), want, "{argument}");
        }
    }

    #[test]
    fn without_dots_the_number_of_arguments_counts() {
        let is = |text: &str, argument: &[&str]| {
            let arguments: Vec<_> = argument.iter().map(|a| (*a).to_owned()).collect();
            fits(text, &arguments)
        };
        assert!(is("f(i32, i32)", &["i32", "i32"]));
        assert!(!is("f(i32, i32)", &["i32"]));
        assert!(!is("f(i32, i32)", &["i32", "i32", "i32"]));
        assert!(is("f()", &[]));
        assert!(!is("f()", &["i32"]));
        assert!(is("f(...)", &["i32"]));
    }

    #[test]
    fn the_targets_follow_the_kernels_age() {
        let hook = &rungs(SignalName::FirstTouch)[0].hooks[0];
        for (function, want) in [
            (
                "folio_add_new_anon_rmap(folio *, vm_area_struct *)",
                Some("folio_add_new_anon_rmap"),
            ),
            (
                "page_add_new_anon_rmap(page *, vm_area_struct *, i64, i8)",
                Some("page_add_new_anon_rmap"),
            ),
            ("something_else()", None),
        ] {
            assert_eq!(target(hook, &layout(&[function], &[])).ok(), want);
        }
    }

    #[test]
    fn a_rung_decides_how_its_hooks_attach() {
        let hooks = rungs(SignalName::Scan)[0].hooks;
        for (hook, mechanism, want) in [
            (&hooks[0], Mechanism::Fentry, ("scan_enter", Kind::Fentry)),
            (&hooks[1], Mechanism::Fentry, ("scan_leave", Kind::Fexit)),
            (
                &hooks[0],
                Mechanism::Kprobe,
                ("kprobe_scan_enter", Kind::Kprobe),
            ),
            (
                &hooks[1],
                Mechanism::Kprobe,
                ("kretprobe_scan_leave", Kind::Kretprobe),
            ),
        ] {
            assert_eq!(program(hook, mechanism), want);
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

    fn balancing(mode: Option<u32>) -> Host {
        Host {
            numa_balancing: mode,
            ..Host::default()
        }
    }

    #[test]
    fn where_balancing_is_not_known_a_zero_is_no_answer() {
        let host = Host {
            numa_balancing_reason: Some("masked".to_owned()),
            ..balancing(None)
        };
        assert_eq!(idle(SignalName::Hint, &host), None);
        let caveat = |signal| caveat(signal, &host);
        let hint = caveat(SignalName::Hint).unwrap();
        assert_eq!(hint, "masked; 0 may mean that it is off");
        assert_eq!(caveat(SignalName::Sched), None);
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
            let idle = idle(signal, &balancing(mode)).is_some();
            assert_eq!(idle, want, "{signal:?} {mode:?}");
        }
        assert!(caveat(SignalName::Hint, &balancing(Some(2))).is_some());
        assert!(caveat(SignalName::Hint, &balancing(Some(1))).is_none());
    }
}
