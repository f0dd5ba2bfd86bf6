//! `docs/kernels.md`: the matrix as tables that a person reads, and what they hold apart from the numbers.

use super::cells::{Cell, LIMITS};
use super::exceptions::reason;
use super::places::{PLACES, Place};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A row of the table: a signal's number, and a kind of memory or work.
pub type Row = (&'static str, String);

/// What was measured at a place.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// `uname -r`.
    pub release: String,
    /// The cells.
    pub cells: Vec<Cell>,
}

/// All places' cells, by [`Place::name`].
pub type Matrix = BTreeMap<String, Measured>;

/// The table's rows, in order: those that were measured anywhere.
#[must_use]
pub fn rows(matrix: &Matrix) -> Vec<Row> {
    let found: BTreeSet<(&str, &str)> = matrix
        .values()
        .flat_map(|measured| &measured.cells)
        .map(|cell| (cell.signal, cell.kind.as_str()))
        .collect();
    LIMITS
        .iter()
        .flat_map(|(signal, _, _)| {
            found
                .iter()
                .filter(move |(found, _)| found == signal)
                .map(|(_, kind)| (*signal, (*kind).to_owned()))
        })
        .collect()
}

/// What a cell says: its rung and error, or `–` and the number of the reason why there is none, or nothing at all.
#[must_use]
pub fn text(matrix: &Matrix, place: &Place, row: &Row) -> String {
    let measured = matrix.get(&place.name());
    let cell = measured.and_then(|measured| {
        measured
            .cells
            .iter()
            .find(|cell| cell.signal == row.0 && cell.kind == row.1)
    });
    // An exception covers what is wrong, and no more: a cell that holds is shown.
    let excepted = reason(place, row.0, &row.1);
    if let (false, Some(reason)) = (cell.is_some_and(Cell::holds), excepted) {
        return format!("– [{}]", number(reason));
    }
    let told = cell.and_then(|cell| {
        // Less than half a tenth is not shown of errors either.
        let bounds = if cell.bounds_percent < 0.05 {
            String::new()
        } else {
            format!(" (bounds {:.1} %)", cell.bounds_percent)
        };
        let error = percent(cell.error_percent?);
        Some(format!("{} {error}{bounds}", cell.rung?.as_str()))
    });
    told.unwrap_or_default()
}

/// To a tenth, and no sign where that is nothing.
fn percent(error: f64) -> String {
    let tenths = (error * 10.0).round() / 10.0;
    if tenths == 0.0 {
        "0.0 %".to_owned()
    } else {
        format!("{tenths:+.1} %")
    }
}

/// The reasons' numbers: their places in the list.
fn number(reason: &str) -> usize {
    super::exceptions::EXCEPTIONS
        .iter()
        .position(|exception| exception.reason == reason)
        .map_or(0, |at| at + 1)
}

/// The whole document.
#[must_use]
pub fn write(matrix: &Matrix) -> String {
    let mut out = HEAD.to_owned();
    let (forced, best): (Vec<Place>, Vec<Place>) =
        PLACES.iter().partition(|place| place.forced.is_some());
    let (kernels, layouts): (Vec<Place>, Vec<Place>) =
        best.iter().partition(|place| place.layout == "2n");
    out.push_str("\n## Kernels, on a machine of two nodes\n\n");
    for place in &kernels {
        let release = matrix
            .get(&place.name())
            .map_or("", |measured| measured.release.as_str());
        let _ = writeln!(out, "- {}: `{release}`", place.kernel);
    }
    out.push('\n');
    table(&mut out, matrix, &kernels);
    out.push_str("\n## Layouts, on 6.12\n\n");
    table(&mut out, matrix, &layouts);
    out.push_str("\n## Lower rungs, on the machine of two nodes\n\n");
    out.push_str(LOWER);
    table(&mut out, matrix, &forced);
    out.push_str("\n## Cells that can't be\n\n");
    for (at, exception) in super::exceptions::EXCEPTIONS.iter().enumerate() {
        let _ = writeln!(out, "{}. {}.", at + 1, exception.reason);
    }
    out
}

const HEAD: &str = "\
# What is exact where

Every signal with every kind of memory, on each kernel and node layout: the rung that it stood on, and how far its count
was from the truth, in percent. The truth is the workload's own: `move_pages` for pages, the thread's own clock for CPU
time; for hint faults and migrated pages it is the growth of `/proc/vmstat`, which is the machine's. Pages are compared by
pair of nodes, so a page in a wrong pair is an error. Of `/proc/vmstat` two readings are known, when numawatch said that it
watched and when it had ended: a count between these bounds is no error, and in brackets is how far apart they were, where a
tenth of a percent or more. numawatch and who starts it have a memory policy meanwhile that keeps them from hint faults, for
`/proc/vmstat` counts these too. All of it ran under emulation: times mean nothing, counts do.

This table is written by the test that takes it: `NUMAWATCH_WRITE_DOCS=1 cargo xtask test --only guest -- matrix`. Without
that variable the test fails where a rung here is not the one that it finds, where a cell is empty, and where an error or the
distance of two bounds is over its limit: 1 %, for CPU time and a driver's pages 2 %. The scan's time and the placement have
no rows: the first has no other clock to be held against, the second is the kernel's own answer.
";

const LOWER: &str = "\
Here numawatch is held to rungs that it takes where better ones are refused: every signal by `--mechanism` (but context
switches have no kprobe), and by `procfs` in that it runs without CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN. A footnote says what a
rung can't know.

";

fn table(out: &mut String, matrix: &Matrix, places: &[Place]) {
    let heads: Vec<String> = places.iter().map(Place::head).collect();
    let _ = writeln!(out, "| signal | kind | {} |", heads.join(" | "));
    let _ = writeln!(out, "| --- | --- |{}", " --- |".repeat(places.len()));
    for row in rows(matrix) {
        let texts: Vec<String> = places
            .iter()
            .map(|place| text(matrix, place, &row))
            .collect();
        let _ = writeln!(out, "| {} | {} | {} |", row.0, row.1, texts.join(" | "));
    }
}

/// What a document says apart from the numbers: of each row and column the rung, or the reason.
#[must_use]
pub fn skeleton(document: &str) -> BTreeMap<(String, String, String), String> {
    let mut out = BTreeMap::new();
    let mut heads: Vec<String> = Vec::new();
    for line in document.lines() {
        let Some(inner) = line.strip_prefix('|') else {
            heads.clear();
            continue;
        };
        let texts: Vec<String> = inner
            .trim_end_matches('|')
            .split('|')
            .map(|text| text.trim().to_owned())
            .collect();
        if texts.len() < 3 || texts[0] == "---" {
            continue;
        }
        if heads.is_empty() {
            heads = texts;
            continue;
        }
        for (head, text) in heads.iter().zip(&texts).skip(2) {
            let what = text
                .split_ascii_whitespace()
                .next()
                .filter(|word| *word != "–")
                .map_or_else(|| text.clone(), str::to_owned);
            out.insert((texts[0].clone(), texts[1].clone(), head.clone()), what);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::signal::Mechanism;

    fn matrix() -> Matrix {
        let cell = |kind: &str, error| Cell {
            signal: "first touch",
            kind: kind.to_owned(),
            rung: Some(Mechanism::Fentry),
            expected: 1000,
            seen: Some(1000),
            error_percent: Some(error),
            limit_percent: 1.0,
            bounds_percent: 0.0,
        };
        let measured = Measured {
            release: "6.12.1".to_owned(),
            cells: vec![cell("mTHP 64 KiB", 0.04), cell("stack", -0.31)],
        };
        [("6.12 2n".to_owned(), measured)].into()
    }

    #[test]
    fn a_cell_is_a_rung_and_an_error_or_a_reason_or_empty() {
        let matrix = matrix();
        let place = |name: &str| *PLACES.iter().find(|place| place.name() == name).unwrap();
        let row = |kind: &str| ("first touch", kind.to_owned());
        let said = |at: &str, kind: &str| text(&matrix, &place(at), &row(kind));
        assert_eq!(said("6.12 2n", "mTHP 64 KiB"), "fentry 0.0 %");
        assert_eq!(said("6.12 2n", "stack"), "fentry -0.3 %");
        assert_eq!(said("5.10 2n", "mTHP 64 KiB"), "– [1]");
        assert_eq!(said("5.10 2n", "stack"), "");
    }

    #[test]
    fn the_skeleton_has_no_numbers() {
        let skeleton = skeleton(&write(&matrix()));
        let at = |kind: &str, head: &str| {
            skeleton[&("first touch".to_owned(), kind.to_owned(), head.to_owned())].as_str()
        };
        assert_eq!(at("stack", "6.12"), "fentry");
        assert_eq!(at("mTHP 64 KiB", "6.1"), "– [1]");
        assert_eq!(at("stack", "1n"), "");
    }
}
