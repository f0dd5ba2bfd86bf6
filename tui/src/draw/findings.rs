//! What is wrong, how one knows, what to type, and when that would be wrong: of one process, and of all.

use super::page::rule;
use super::text;
use super::theme::{Theme, severity_tone};
use crate::app::{App, Pair, Tone, format, title, word};
use model::finding::{Cleared, Finding};
use model::process::Process;
use ratatui::text::{Line, Span};

/// What stands before a finding's words.
const MARK: usize = 8;
/// What stands before what is said about it.
const FIELD: usize = 8;
/// On the page of all, a command line may be this many lines long; the process's own page has all of it.
const COMMAND: usize = 4;

/// How much is told of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// What it is and what to type.
    Short,
    /// The evidence and the exceptions too.
    Whole,
}

/// The section on a process's own page.
pub(super) fn of_process(process: &Process, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let count = match process.findings.len() {
        0 => "no finding".to_owned(),
        n => format::plural(n, "finding", "findings"),
    };
    let mut lines = vec![rule(&count, width, theme)];
    for finding in &process.findings {
        lines.extend(told(finding, Depth::Whole, theme, width));
    }
    if process.findings.is_empty() {
        let said = if process.alive {
            "Nothing speaks for moving it, as far as the signals here tell; `numawatch check` says what they can't."
        } else {
            "Nothing is concluded on a process that has ended."
        };
        lines.extend(indented(said, 2, Tone::Faint, theme, width));
    }
    lines.extend(cleared(&process.findings_cleared, theme, width));
    lines
}

/// The page of all: a section for each process that has any, whoever is worst first, then the machine's.
pub(crate) fn lines(app: &App, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let Some(pair) = app.feed.shown() else {
        return vec![Line::from("  There is no snapshot yet.")];
    };
    let snapshot = &pair.now;
    let mut found: Vec<&Process> = snapshot
        .processes
        .iter()
        .filter(|p| !p.findings.is_empty())
        .collect();
    // Theirs are sorted, the worst first.
    found.sort_by_key(|p| {
        (
            p.findings.first().map(|f| std::cmp::Reverse(f.severity)),
            p.pid,
        )
    });
    let mut lines = Vec::new();
    for process in found {
        lines.push(rule(&heading(process), width, theme));
        lines.extend(all(&process.findings, theme, width));
        lines.extend(cleared(&process.findings_cleared, theme, width));
    }
    if !snapshot.findings.is_empty() || !snapshot.findings_cleared.is_empty() {
        lines.push(rule("the machine", width, theme));
        lines.extend(all(&snapshot.findings, theme, width));
        lines.extend(cleared(&snapshot.findings_cleared, theme, width));
    }
    lines.extend(without(pair, theme, width));
    lines
}

/// Who has none, so that everybody is on the page.
fn without(pair: &Pair, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let none: Vec<&Process> = pair
        .now
        .processes
        .iter()
        .filter(|p| p.findings.is_empty())
        .collect();
    let mut lines = vec![rule("no finding", width, theme)];
    for process in &none {
        let mut said = heading(process);
        let reason = process.verdict_reason.as_ref().filter(|_| process.alive);
        if let Some(reason) = reason {
            said = format!("{said}: {}", text::clean(reason));
        }
        lines.extend(indented(&said, 2, Tone::Plain, theme, width));
        lines.extend(cleared(&process.findings_cleared, theme, width));
    }
    if pair.now.processes.is_empty() {
        lines.extend(indented("Nobody is watched.", 2, Tone::Plain, theme, width));
    } else if none.is_empty() {
        lines.extend(indented("Everybody has one.", 2, Tone::Plain, theme, width));
    }
    lines
}

fn heading(process: &Process) -> String {
    format!(
        "{} {}, {}",
        process.pid,
        text::clean(&title(process)),
        word(process)
    )
}

fn all(findings: &[Finding], theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let told = |finding| told(finding, Depth::Short, theme, width);
    findings.iter().flat_map(told).collect()
}

fn told(finding: &Finding, depth: Depth, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let mark = theme.span(
        format!("  {}", text::left(finding.severity.mark(), MARK - 2)),
        severity_tone(finding.severity),
    );
    let mut first = vec![mark, theme.span(text::clean(&finding.id), Tone::Strong)];
    if depth == Depth::Whole {
        let sure = format!("  {} confidence", finding.confidence.as_str());
        first.push(theme.span(sure, Tone::Faint));
    }
    let mut lines = vec![Line::from(first)];
    let summary = text::clean(&finding.summary);
    lines.extend(indented(&summary, MARK, Tone::Plain, theme, width));
    if depth == Depth::Whole && !finding.evidence.is_empty() {
        let seen: Vec<String> = finding.evidence.iter().map(ToString::to_string).collect();
        let seen = text::clean(&seen.join("; "));
        lines.extend(field("seen", &seen, usize::MAX, theme, width));
    }
    let most = match depth {
        Depth::Short => COMMAND,
        Depth::Whole => usize::MAX,
    };
    for line in &finding.advice {
        lines.extend(field("type", &text::clean(line), most, theme, width));
    }
    for line in &finding.hints {
        lines.extend(field("do", &text::clean(line), most, theme, width));
    }
    // The machine has no page of its own for it.
    if depth == Depth::Whole || finding.pid.is_none() {
        let unless = text::clean(&finding.unless);
        lines.extend(field("unless", &unless, usize::MAX, theme, width));
    }
    lines
}

/// What was found before, by the severity that it had then.
fn cleared(cleared: &[Cleared], theme: &Theme, width: usize) -> Vec<Line<'static>> {
    if cleared.is_empty() {
        return Vec::new();
    }
    let word = |c: &Cleared| format!("{} ({})", text::clean(&c.id), c.severity.mark());
    let words: Vec<String> = cleared.iter().map(word).collect();
    let said = format!("not any more: {}", words.join(", "));
    indented(&said, MARK, Tone::Faint, theme, width)
}

/// A word, and what belongs to it wrapped beside it.
fn field(name: &str, said: &str, most: usize, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let wrapped = text::wrap_into(said, width.saturating_sub(MARK + FIELD), most);
    let mut name = Some(name);
    wrapped
        .into_iter()
        .map(|line| {
            let name = text::left(name.take().unwrap_or_default(), FIELD);
            Line::from(vec![
                Span::raw(" ".repeat(MARK)),
                theme.span(name, Tone::Faint),
                Span::raw(line),
            ])
        })
        .collect()
}

fn indented(said: &str, by: usize, tone: Tone, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    text::wrap(said, width.saturating_sub(by))
        .into_iter()
        .map(|line| Line::from(theme.span(format!("{}{line}", " ".repeat(by)), tone)))
        .collect()
}
