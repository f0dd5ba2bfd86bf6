//! The two lines at the top: the host and its time; the signals and what watching costs.

use super::text;
use super::theme::{Theme, state_glyph, state_tone};
use crate::app::{App, Pair, Tone, balancing_words, format, gpus};
use model::rates;
use model::signal::Signal;
use ratatui::text::{Line, Span};

/// How many lines it has.
pub(crate) const LINES: u16 = 2;
/// Between parts.
const GAP: &str = "  ";

/// Below this width the right side is shortened too.
const ROOMY: usize = 80;

/// From this width on the time that probes take, by estimate, is there too; the page of signals has it always.
const WIDE: usize = 180;

/// One piece, and what it means.
type Part = (String, Tone);

/// Both lines.
pub(crate) fn lines(app: &App, theme: &Theme, width: u16) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let pair = app.feed.shown();
    let host = (0..6).map(|terse| host(app, pair, terse)).collect();
    let signals = (0..4).map(|terse| signals(pair, terse)).collect();
    vec![
        line(host, &state(app, pair, width), width, theme),
        line(signals, &cost(pair, width), width, theme),
    ]
}

/// The fullest left side that fits beside the right one, which stays.
fn line(forms: Vec<Vec<Part>>, right: &[Part], width: usize, theme: &Theme) -> Line<'static> {
    let wide = |parts: &[Part]| parts.iter().map(|p| text::width(&p.0)).sum::<usize>();
    let right_width = wide(right);
    let free = width.saturating_sub(right_width + GAP.len());
    let last = forms.last().cloned().unwrap_or_default();
    let chosen = forms.into_iter().find(|f| wide(f) <= free).unwrap_or(last);
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut used = 0;
    for (part, tone) in chosen {
        let shown = text::fit(&part, free.saturating_sub(used));
        used += text::width(&shown);
        spans.push(theme.span(shown, tone));
    }
    spans.push(Span::raw(
        " ".repeat(width.saturating_sub(used + right_width)),
    ));
    spans.extend(
        right
            .iter()
            .map(|(part, tone)| theme.span(part.as_str(), *tone)),
    );
    Line::from(spans)
}

/// The host's parts; `terse` leaves out more and more, and never the label or the balancing mode.
fn host(app: &App, pair: Option<&Pair>, terse: usize) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut say = |text: String, tone: Tone| {
        let gap = if parts.is_empty() { "" } else { GAP };
        parts.push((format!("{gap}{text}"), tone));
    };
    if terse < 3 {
        say("numawatch".to_owned(), Tone::Strong);
    }
    if let Some(label) = &app.options.label {
        say(format!("[{}]", text::clean(label)), Tone::Warn);
    }
    let Some(pair) = pair else {
        return parts;
    };
    let host = &pair.now.host;
    say(text::clean(&host.name), Tone::Strong);
    let kernel = text::clean(&host.kernel);
    match terse {
        0 => say(format!("Linux {kernel}"), Tone::Plain),
        // `6.8.0-45-generic` is Linux 6.8 to most.
        1..4 => {
            let short = kernel.split('.').take(2).collect::<Vec<_>>().join(".");
            say(format!("Linux {short}"), Tone::Plain);
        }
        _ => {}
    }
    let mut machine = Vec::new();
    if terse < 2
        && let Some(sockets) = pair.now.topology.sockets()
    {
        machine.push(format::plural(sockets, "socket", "sockets"));
    }
    if terse < 5 {
        let nodes = pair.now.topology.nodes.len();
        machine.push(match pair.now.topology.hides_nodes() {
            Some(_) => "? nodes".to_owned(),
            None => format::plural(nodes, "node", "nodes"),
        });
    }
    let gpus = gpus::count(&pair.now.topology);
    if terse < 2 && gpus > 0 {
        machine.push(format::plural(gpus, "GPU", "GPUs"));
    }
    if let Some(cpus) = host.cpus.filter(|_| terse == 0) {
        machine.push(format!("{cpus} CPUs"));
    }
    if !machine.is_empty() {
        say(machine.join(", "), Tone::Plain);
    }
    say(balancing_words(host), Tone::Plain);
    parts
}

/// Whether the picture is live, and its time.
fn state(app: &App, pair: Option<&Pair>, width: usize) -> Vec<Part> {
    let mut parts = Vec::new();
    if app.feed.paused() {
        parts.push((format!("PAUSED{GAP}"), Tone::Warn));
    }
    if app.feed.ended {
        parts.push((format!("SAMPLING ENDED{GAP}"), Tone::Bad));
    }
    if let Some(pair) = pair {
        let clock = format::clock(pair.now.taken_at.0);
        let clock = if width < ROOMY {
            clock.replace(" UTC", "Z")
        } else {
            clock
        };
        parts.push((clock, Tone::Plain));
    }
    parts
}

fn signals(pair: Option<&Pair>, terse: usize) -> Vec<Part> {
    let Some(pair) = pair else {
        return Vec::new();
    };
    let mut parts = vec![("signals ".to_owned(), Tone::Plain)];
    for signal in &pair.now.signals {
        let dot = (
            state_glyph(signal.state).to_owned(),
            state_tone(signal.state),
        );
        match terse {
            0 => {
                parts.push(dot);
                parts.push((format!(" {}{GAP}", with_rung(signal)), Tone::Plain));
            }
            1 => {
                parts.push(dot);
                parts.push((format!(" {}{GAP}", signal.name.as_str()), Tone::Plain));
            }
            _ => parts.push(dot),
        }
    }
    let healthy = pair
        .now
        .signals
        .iter()
        .all(|s| s.state == model::signal::SignalState::Attached);
    if terse == 2 && !healthy {
        parts.push((format!("{GAP}i: why"), Tone::Faint));
    }
    parts
}

fn with_rung(signal: &Signal) -> String {
    let name = signal.name.as_str();
    match signal.mechanism {
        Some(mechanism) => format!("{name} {}", mechanism.as_str()),
        None => name.to_owned(),
    }
}

/// What watching costs, what was lost, and how often it looks.
fn cost(pair: Option<&Pair>, width: usize) -> Vec<Part> {
    let Some(pair) = pair else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    let lost = pair.now.host.lost.sum();
    if lost > 0 {
        parts.push((format!("{} LOST{GAP}", format::count(lost)), Tone::Bad));
    }
    let agent = &pair.now.host.agent;
    let before = pair.before.as_ref().and_then(|b| b.host.agent.cpu_time_ns);
    let cpu = rates::per_second(before, agent.cpu_time_ns, pair.elapsed_ns().unwrap_or(0));
    let cpu = format::or_dash(cpu, |ns_per_s| format::cpu(ns_per_s / 1e9));
    let resident = format::or_dash(agent.resident_bytes, format::bytes);
    let kernel = format::or_dash(agent.kernel_memory_bytes, format::bytes);
    let before = pair
        .before
        .as_ref()
        .and_then(|b| b.host.agent.probes_time_ns);
    let probes = rates::per_second(before, agent.probes_time_ns, pair.elapsed_ns().unwrap_or(0));
    let probes = probes.filter(|_| width >= WIDE);
    let probes = probes.map_or_else(String::new, |ns_per_s| {
        let cpu = format::cpu(ns_per_s / 1e9);
        // `<0.1 %` says by itself that it is no exact number.
        let about = if cpu.starts_with('<') { "" } else { "~" };
        format!(" {about}{cpu} CPU")
    });
    let cost = if width < ROOMY {
        format!("self {cpu} CPU, {resident}")
    } else {
        format!("self {cpu} CPU {resident}, kernel{probes} {kernel}")
    };
    parts.push((cost, Tone::Plain));
    if let Some(elapsed) = pair.elapsed_ns() {
        // Ticks drift by milliseconds; a tenth of a second is what matters.
        let tenth = 100_000_000;
        let rounded = elapsed.saturating_add(tenth / 2) / tenth * tenth;
        let interval = format::duration(rounded.max(elapsed.min(tenth)));
        parts.push((format!("{GAP}every {interval}"), Tone::Plain));
    }
    parts
}
