//! From facts to checks: the kernel side, its room, its signals, and how their self-test came out. Pure.

use super::check::{Check, Outcome, check};
use super::facts::Facts;
use crate::probes::bounds::BUDGET;
use model::selftest::{self, FullMap, Verdict};
use model::signal::{Mechanism, Signal, SignalName, SignalState};

/// In the order in which they are shown.
pub(super) fn of(facts: &Facts) -> Vec<Check> {
    let mut checks = vec![load(facts), bounds(facts), rows(facts), events(facts)];
    checks.extend(facts.signals.iter().map(signal));
    if let Some(report) = &facts.self_test {
        checks.extend(report.tests.iter().map(self_test));
        let FullMap { verdict, .. } = &report.full_map;
        checks.push(tested("full_map", *verdict, report.full_map.summary()));
    }
    checks
}

fn load(facts: &Facts) -> Check {
    match &facts.refused {
        None => check(
            "probes.load",
            Outcome::Pass,
            "the kernel accepts the eBPF object",
        ),
        Some(why) => check("probes.load", Outcome::Fail, why.clone()),
    }
}

fn bounds(facts: &Facts) -> Check {
    const MIB: f64 = 1_048_576.0;
    let Some(bytes) = facts.map_bytes else {
        return check("bounds.memory", Outcome::Pass, "no map is loaded");
    };
    let what = format!(
        "{:.1} MiB of kernel memory in all maps, of at most {} MiB",
        bytes as f64 / MIB,
        BUDGET >> 20
    );
    let outcome = if bytes <= BUDGET {
        Outcome::Pass
    } else {
        Outcome::Warn
    };
    check("bounds.memory", outcome, what)
}

/// How many threads and rows there is room for, and what found none.
fn rows(facts: &Facts) -> Check {
    let id = "bounds.rows";
    if facts.maps.is_empty() {
        return check(id, Outcome::Pass, "no map is loaded");
    }
    let room: Vec<String> = facts
        .maps
        .iter()
        .map(|map| format!("{} {} of {}", map.name, map.used, map.max))
        .collect();
    let room = format!("entries in use: {}", room.join(", "));
    match facts.lost.rows {
        Some(0) => check(id, Outcome::Pass, room),
        Some(n) => {
            let what =
                format!("counts that found no room, so that others are too low: {n}; {room}");
            check(id, Outcome::Fail, what)
        }
        None => check(
            id,
            Outcome::Warn,
            format!("what found no room can't be read; {room}"),
        ),
    }
}

/// What the kernel says that the probes missed.
fn events(facts: &Facts) -> Check {
    let id = "probes.missed";
    match (facts.lost.events, &facts.lost.events_reason) {
        (Some(0), _) => check(id, Outcome::Pass, "no probe missed an event"),
        (Some(n), _) => check(
            id,
            Outcome::Warn,
            format!(
                "{n} events came while a probe was running on the same CPU, and are not counted"
            ),
        ),
        (None, why) => {
            let what = why.as_deref().unwrap_or("unknown");
            check(id, Outcome::Warn, what)
        }
    }
}

/// A signal by its state; what a setting switches off is a warning, what the host can't do too.
fn signal(signal: &Signal) -> Check {
    let outcome = match signal.state {
        SignalState::Attached => Outcome::Pass,
        SignalState::Unreliable => Outcome::Fail,
        // Without the scheduler's signal there is next to nothing to show.
        SignalState::Unavailable if signal.name == SignalName::Sched => Outcome::Fail,
        SignalState::Degraded | SignalState::Unavailable => Outcome::Warn,
    };
    let by = signal.mechanism.map_or_else(String::new, |mechanism| {
        let preposition = if mechanism == Mechanism::Procfs {
            "from"
        } else {
            "at"
        };
        let target = signal.target.as_deref().unwrap_or_default();
        format!(" by {} {preposition} {target}", mechanism.as_str())
    });
    let reason = signal
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(": {reason}"));
    check(
        format!("signal.{}", signal.name.as_str()),
        outcome,
        format!("{}{by}{reason}", signal.state.as_str()),
    )
}

fn self_test(test: &selftest::Test) -> Check {
    tested(test.signal.as_str(), test.verdict, test.summary())
}

fn tested(what: &str, verdict: Verdict, summary: String) -> Check {
    let outcome = match verdict {
        Verdict::Passed => Outcome::Pass,
        Verdict::Failed => Outcome::Fail,
        Verdict::NotTested => Outcome::Warn,
    };
    check(format!("self_test.{what}"), outcome, summary)
}
