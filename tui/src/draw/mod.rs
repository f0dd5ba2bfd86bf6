//! Paints the state; decides nothing.

mod cells;
mod classes;
mod detail;
mod findings;
mod footer;
mod header;
mod help;
mod matrix;
mod page;
mod placing;
mod signals;
mod strip;
mod table;
mod text;
mod theme;
mod threads;
mod topology;

#[cfg(test)]
mod tests;

pub(crate) use crate::app::Extent;
pub(crate) use theme::Theme;

use crate::app::{App, MIN_HEIGHT, MIN_WIDTH, Picture, View, regions};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

/// Paints one frame, and tells how long the scrollable view is.
pub(crate) fn draw(frame: &mut Frame<'_>, app: &App, theme: &Theme) -> Extent {
    let area = frame.area();
    if area.width < MIN_WIDTH || area.height < MIN_HEIGHT {
        let text = format!("terminal too small (need {MIN_WIDTH}x{MIN_HEIGHT})");
        let lines = text::wrap(&text, usize::from(area.width).max(1));
        let lines: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
        paint(frame, area, &lines);
        return Extent::default();
    }
    if app.view == View::Table {
        main_screen(frame, area, app, theme);
        return Extent::default();
    }
    let [top, body, keys] = Layout::vertical([
        Constraint::Length(header::LINES),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    paint(frame, top, &header::lines(app, theme, top.width));
    let width = usize::from(body.width);
    let lines = match app.view {
        View::Detail => detail::lines(app, theme, width),
        View::Findings => findings::lines(app, theme, width),
        View::Topology => topology::lines(app, theme, width),
        View::Signals => signals::lines(app, theme, width),
        View::Help | View::Table => help::lines(app, theme, width),
    };
    let extent = page::paint(frame, body, lines, app.scroll, theme);
    paint(frame, keys, &[footer::keys(app, theme, keys.width)]);
    extent
}

fn main_screen(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    let pair = app.feed.shown();
    let nodes = pair.map_or(0, |p| p.now.topology.nodes.len());
    let regions = regions(area.width, area.height, nodes);
    let [top, strip, rows, sentence, keys] = Layout::vertical([
        Constraint::Length(regions.header),
        Constraint::Length(regions.strip + u16::from(regions.strip_title)),
        Constraint::Fill(1),
        Constraint::Length(regions.sentence),
        Constraint::Length(1),
    ])
    .areas(area);
    paint(frame, top, &header::lines(app, theme, top.width));
    if let Some(pair) = pair {
        let picture = Picture {
            pair,
            history: &app.history,
        };
        paint(
            frame,
            strip,
            &strip::lines(pair, &regions, theme, strip.width),
        );
        paint(frame, rows, &table::lines(app, &picture, theme, rows));
        let said = footer::sentence(app, pair, theme, sentence.width, regions.sentence);
        paint(frame, sentence, &said);
    } else {
        paint(frame, rows, &table::waiting(app, theme, rows.width));
    }
    paint(frame, keys, &[footer::keys(app, theme, keys.width)]);
}

/// Lines from the top of an area; what is more is left out.
fn paint(frame: &mut Frame<'_>, area: Rect, lines: &[Line<'_>]) {
    for (line, row) in lines.iter().zip(area.rows()) {
        frame.render_widget(line, row);
    }
}
