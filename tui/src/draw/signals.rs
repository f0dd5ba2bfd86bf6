//! The signals in full: what each is measured by, what is missing and why, and the proof beside.

use super::page::rule;
use super::text;
use super::theme::{Theme, state_glyph, state_tone};
use crate::app::{App, Tone, format};
use model::signal::{Signal, SignalState};
use model::snapshot::Snapshot;
use ratatui::text::{Line, Span};
use std::fmt::Write as _;

/// Signals, coverage, losses, and the agent's own cost.
pub(crate) fn lines(app: &App, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let Some(pair) = app.feed.shown() else {
        return vec![Line::from("  There is no snapshot yet.")];
    };
    let snapshot = &pair.now;
    let mut lines = vec![rule("signals of this host", width, theme)];
    for signal in &snapshot.signals {
        lines.extend(one(signal, theme, width));
    }
    lines.extend(coverage(snapshot, theme, width));
    lines.extend(cost(snapshot, theme, width));
    lines
}

/// `◐ map: degraded: …`, beside numbers that stand on it; nothing where it is simply attached.
pub(crate) fn mark(signal: &Signal, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    if signal.state == SignalState::Attached {
        return Vec::new();
    }
    let tone = state_tone(signal.state);
    let mut said = format!("{} is {}", signal.name.as_str(), signal.state.as_str());
    if let Some(reason) = &signal.reason {
        let _ = write!(said, ": {}", text::clean(reason));
    }
    indented(&said, 4, width, tone, theme, state_glyph(signal.state))
}

fn one(signal: &Signal, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let tone = state_tone(signal.state);
    let mechanism = signal
        .mechanism
        .map_or("", model::signal::Mechanism::as_str);
    let mut lines = vec![Line::from(vec![
        theme.span(format!("  {} ", state_glyph(signal.state)), tone),
        theme.span(text::left(signal.name.as_str(), 13), Tone::Strong),
        theme.span(text::left(signal.state.as_str(), 12), tone),
        Span::raw(mechanism.to_owned()),
    ])];
    if let Some(target) = &signal.target {
        lines.extend(indented(
            &text::clean(target),
            17,
            width,
            Tone::Faint,
            theme,
            "",
        ));
    }
    if let Some(reason) = &signal.reason {
        lines.extend(indented(
            &text::clean(reason),
            17,
            width,
            Tone::Plain,
            theme,
            "",
        ));
    }
    lines
}

/// Wrapped at an indent, with a glyph before the first line.
fn indented(
    said: &str,
    indent: usize,
    width: usize,
    tone: Tone,
    theme: &Theme,
    glyph: &str,
) -> Vec<Line<'static>> {
    text::wrap(said, width.saturating_sub(indent))
        .into_iter()
        .enumerate()
        .map(|(at, line)| {
            let before = if at == 0 && !glyph.is_empty() {
                text::left(&format!("  {glyph}"), indent)
            } else {
                " ".repeat(indent)
            };
            Line::from(theme.span(format!("{before}{line}"), tone))
        })
        .collect()
}

fn coverage(snapshot: &Snapshot, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let title = "coverage: the host's own counters since the agent's start";
    let mut lines = vec![rule(title, width, theme)];
    lines.push(Line::from(theme.span(
        format!(
            "  {}{}{}{}",
            text::left("", 20),
            text::right("HOST", 10),
            text::right("ATTRIBUTED", 13),
            text::right("SHARE", 8),
        ),
        Tone::Strong,
    )));
    let (host, ours) = (&snapshot.coverage.host, &snapshot.coverage.attributed);
    for (name, all, attributed) in [
        ("hint faults", host.hint_faults, ours.hint_faults),
        (
            "local hint faults",
            host.hint_faults_local,
            ours.hint_faults_local,
        ),
        ("migrated pages", host.migrated_pages, ours.migrated_pages),
    ] {
        let share = match (attributed, all) {
            (Some(part), Some(whole)) if whole > 0 => Some(part as f64 / whole as f64),
            _ => None,
        };
        lines.push(Line::from(format!(
            "  {}{}{}{}",
            text::left(name, 20),
            text::right(&format::or_dash(all, format::count), 10),
            text::right(&format::or_dash(attributed, format::count), 13),
            text::right(&format::or_dash(share, format::share), 8),
        )));
    }
    let said = "What is missing belongs to processes that are not watched: with --all it is 100 %.";
    lines.extend(indented(said, 2, width, Tone::Faint, theme, ""));
    lines
}

fn cost(snapshot: &Snapshot, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let agent = &snapshot.host.agent;
    let lost = &snapshot.host.lost;
    let tone = |lost: Option<u64>| match lost {
        Some(1..) => Tone::Bad,
        _ => Tone::Plain,
    };
    let mut lines = vec![rule("the agent itself", width, theme)];
    let mut say = |name: &str, value: String, tone: Tone| {
        lines.push(Line::from(vec![
            Span::raw(format!("  {}", text::left(name, 22))),
            theme.span(value, tone),
        ]));
    };
    say("PID", agent.pid.to_string(), Tone::Plain);
    let time = format::or_dash(agent.cpu_time_ns, format::duration);
    say("CPU time since start", time, Tone::Plain);
    let probes = agent.probes_time_ns.map(format::duration);
    let probes = probes.map_or_else(|| "-".to_owned(), |time| format!("~ {time}"));
    say("probes' CPU time", probes, Tone::Plain);
    let resident = format::or_dash(agent.resident_bytes, format::bytes);
    say("resident memory", resident, Tone::Plain);
    let kernel = format::or_dash(agent.kernel_memory_bytes, format::bytes);
    say("kernel memory (maps)", kernel, Tone::Plain);
    let rows = format::or_dash(lost.rows, format::count);
    say("lost, maps full", rows, tone(lost.rows));
    let news = format::or_dash(lost.news, format::count);
    say("lost, ring full", news, tone(lost.news));
    let events = match (lost.events, &lost.events_reason) {
        (None, Some(why)) => format!(
            "{}: {}",
            format::or_dash(None, format::count),
            text::clean(why)
        ),
        (events, _) => format::or_dash(events, format::count),
    };
    say("missed by probes", events, tone(lost.events));
    // The one that will be full first.
    let fullest = snapshot
        .host
        .maps
        .iter()
        .max_by_key(|map| (map.percent(), map.used));
    if let Some(map) = fullest {
        let value = format!(
            "{} of {} in {}",
            format::count(map.used),
            format::count(map.max),
            text::clean(&map.name)
        );
        let tone = if map.used >= map.max {
            Tone::Bad
        } else {
            Tone::Plain
        };
        say("rows in use", value, tone);
    }
    lines
}
