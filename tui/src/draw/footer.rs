//! The bottom of the screen: the selected process's sentence, its first finding, and the keys.

use super::text;
use super::theme::{Theme, severity_tone};
use crate::app::keymap::{BINDINGS, Command};
use crate::app::{App, Pair, Tone, sentence as evidence};
use model::process::Process;
use ratatui::text::{Line, Span};

/// Between two keys.
const GAP: &str = "  ";

/// Who is selected, its verdict, and the evidence in whole words; then its first finding, where there is room.
pub(crate) fn sentence(
    app: &App,
    pair: &Pair,
    theme: &Theme,
    width: u16,
    lines: u16,
) -> Vec<Line<'static>> {
    let process = app.rows.get(app.selected).copied();
    let Some(process) = process.and_then(|at| pair.now.processes.get(at)) else {
        return Vec::new();
    };
    let row = pair.row(process);
    let word = crate::app::word(process);
    let who = format!("▸ {} {word}: ", process.pid);
    let said = text::clean(&evidence(&row, &pair.now));
    let all = format!("{who}{said}");
    let tone = if process.alive {
        Tone::of(process.verdict)
    } else {
        Tone::Faint
    };
    let (width, lines) = (usize::from(width), usize::from(lines));
    // Whole, it is one line or two.
    let most = if text::width(&all) <= width { 1 } else { 2 };
    let mut said: Vec<Line<'static>> = text::wrap_into(&all, width, most.min(lines))
        .into_iter()
        .enumerate()
        .map(|(at, line)| {
            // The verdict's word is the only coloured one.
            match line.split_once(word).filter(|_| at == 0) {
                Some((before, after)) => Line::from(vec![
                    Span::raw(before.to_owned()),
                    theme.span(word, tone),
                    Span::raw(after.to_owned()),
                ]),
                None => Line::from(Span::raw(format!("  {line}"))),
            }
        })
        .collect();
    let room = lines.saturating_sub(said.len());
    said.extend(finding(process, theme, width, room));
    said
}

/// `  FAIL 92 % of its memory is away from GPU4 on node 1; 2 more: Enter`.
fn finding(process: &Process, theme: &Theme, width: usize, lines: usize) -> Vec<Line<'static>> {
    let Some(first) = process.findings.first() else {
        return Vec::new();
    };
    let mark = first.severity.mark();
    let more = match process.findings.len() - 1 {
        0 => String::new(),
        more => format!("; {more} more: Enter"),
    };
    let indent = mark.len() + 3;
    let room = width.saturating_sub(indent);
    // How many more there are stays when the words have to be shortened.
    let summary = text::clean(&first.summary);
    let whole = format!("{summary}{more}");
    let said = if text::wrap(&whole, room).len() <= lines {
        text::wrap(&whole, room)
    } else {
        let shown = text::fit(&summary, room.saturating_sub(text::width(&more)));
        text::wrap_into(&format!("{shown}{more}"), room, lines)
    };
    said.into_iter()
        .enumerate()
        .map(|(at, line)| {
            let before = if at == 0 { mark } else { "" };
            let before = format!("  {before:<width$}", width = indent - 2);
            Line::from(vec![
                theme.span(before, severity_tone(first.severity)),
                Span::raw(line),
            ])
        })
        .collect()
}

/// As many keys as fit, whole; help and quit before all others.
pub(crate) fn keys(app: &App, theme: &Theme, width: u16) -> Line<'static> {
    if app.filtering {
        let hint = "type to filter   Enter keep   Esc drop";
        return Line::from(theme.span(text::fit(hint, width.into()), Tone::Plain));
    }
    let here = BINDINGS.iter().filter(|b| b.holds(app.place()));
    let hints: Vec<(&str, Command)> = here
        .filter_map(|b| b.hint.map(|hint| (hint, b.command)))
        .collect();
    let wide = |hint: &str| text::width(hint) + GAP.len();
    let mut order: Vec<usize> = (0..hints.len()).collect();
    order.sort_by_key(|at| rank(hints[*at].1));
    let mut free = usize::from(width) + GAP.len();
    let mut chosen = vec![false; hints.len()];
    for at in order {
        let needs = wide(hints[at].0);
        if needs <= free {
            free -= needs;
            chosen[at] = true;
        }
    }
    let hints = hints.into_iter().zip(chosen).filter(|(_, chosen)| *chosen);
    let mut spans = Vec::new();
    for ((hint, command), _) in hints {
        if !spans.is_empty() {
            spans.push(Span::raw(GAP));
        }
        let (key, what) = hint.split_once(' ').unwrap_or((hint, ""));
        let what = match command {
            Command::Pause if app.feed.paused() => "go on",
            _ => what,
        };
        spans.push(Span::styled(key.to_owned(), theme.key()));
        spans.push(Span::raw(format!(" {what}")));
    }
    Line::from(spans)
}

/// What to leave out last: the way out, then what nobody guesses; arrows explain themselves.
fn rank(command: Command) -> u8 {
    match command {
        Command::Help | Command::Quit | Command::Back => 0,
        Command::Reverse => 3,
        Command::Down => 2,
        _ => 1,
    }
}
