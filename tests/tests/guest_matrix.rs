//! The matrix: every signal with every kind of memory on every kernel and layout, one boot each; it writes
//! `docs/kernels.md` when `NUMAWATCH_WRITE_DOCS=1`, and holds it against what it finds otherwise.
//!
//! `NUMAWATCH_MATRIX_KEPT=DIR` keeps each place's reports there and takes those that are there: for work on the matrix.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tests::compare::BESIDES;
use tests::matrix::cells::cells;
use tests::matrix::document::{Matrix, Measured, rows, skeleton, text, write};
use tests::matrix::exceptions::{EXCEPTIONS, reason};
use tests::matrix::places::{Machine, PLACES, Place};
use tests::matrix::sessions::has_no_row;
use tests::vm::Guest;

/// Each test at each kernel of the machine of two nodes, given what `$played` makes of the place's number.
macro_rules! on_each_kernel {
    ($played:path, $($test:ident),* $(,)?) => {
        on_each_kernel!(@ $played, kernel_5_10 = 0, $($test)*);
        on_each_kernel!(@ $played, kernel_6_1 = 1, $($test)*);
        on_each_kernel!(@ $played, kernel_6_12 = 2, $($test)*);
        on_each_kernel!(@ $played, kernel_6_18 = 3, $($test)*);
        on_each_kernel!(@ $played, kernel_7 = 4, $($test)*);
    };
    (@ $played:path, $kernel:ident = $number:literal, $($test:ident)*) => {
        mod $kernel {
            $(#[test] fn $test() { super::$test(&$played($number)); })*
        }
    };
}

#[path = "guest_matrix/full_sched.rs"]
mod full_sched;
#[path = "guest_matrix/full_threads.rs"]
mod full_threads;
#[path = "guest_matrix/self_test.rs"]
mod self_test;

/// A test for each place, named after it.
macro_rules! places {
    ($($test:ident = $number:literal),* $(,)?) => {
        $(#[test] fn $test() { counts_are_exact_at(&PLACES[$number]); })*
    };
}

places!(
    matrix_at_5_10_2n = 0,
    matrix_at_6_1_2n = 1,
    matrix_at_6_12_2n = 2,
    matrix_at_6_18_2n = 3,
    matrix_at_7_2n = 4,
    matrix_at_6_12_1n = 5,
    matrix_at_6_12_4n2s = 6,
    matrix_at_6_12_memory_only = 7,
    matrix_at_6_12_cpu_only = 8,
    matrix_at_6_12_asymmetric = 9,
    matrix_at_6_12_sparse = 10,
    matrix_at_5_10_by_kprobe = 11,
    matrix_at_6_12_by_kprobe = 12,
    matrix_at_6_12_by_tp_btf = 13,
    matrix_at_6_12_by_raw_tp = 14,
    matrix_at_6_12_by_procfs = 15,
);

/// The place's guest; booted once.
fn guest(place: &Place) -> &'static Guest {
    static GUESTS: [OnceLock<Guest>; PLACES.len()] = [const { OnceLock::new() }; PLACES.len()];
    let number = PLACES.iter().position(|other| other == place).unwrap_or(0);
    GUESTS[number].get_or_init(|| Guest::play_at(place, Path::new(env!("CARGO_BIN_EXE_scenario"))))
}

/// What a guest's sessions measured; those that failed are told about, and have no cells.
fn measured(place: &Place) -> (Measured, String) {
    let guest = guest(place);
    let mut measured = Measured::default();
    let mut trouble = String::new();
    for report in guest
        .sessions()
        .filter(|report| !has_no_row(&report.session))
    {
        measured.release.clone_from(&report.kernel);
        match &report.error {
            None => measured.cells.extend(cells(report)),
            Some(_) => {
                let _ = writeln!(trouble, "session {}: {}", report.session, report.trouble());
            }
        }
    }
    if guest.sessions().count() == 0 {
        trouble += guest.trouble();
    }
    (measured, trouble)
}

fn counts_are_exact_at(place: &Place) {
    let (measured, trouble) = measured(place);
    assert_eq!(
        guest(place).machine(),
        Some(&Machine::of(place.layout)),
        "the machine isn't what the layout promises\n{trouble}"
    );
    let mut wrong = Vec::new();
    for cell in &measured.cells {
        // Such a cell is not measured at this place, and must not look as if it were; a page of the program's own may be.
        let excepted = reason(place, cell.signal, &cell.kind).is_some();
        let empty = excepted && cell.seen.is_none_or(|seen| seen <= BESIDES);
        if !cell.holds() && !empty {
            wrong.push(format!("{cell:?}"));
        }
    }
    // The rows of the table as it is: a kind that gave no cell here would not be missed otherwise.
    for ((signal, kind, head), _) in skeleton(&document()) {
        let mine = head == place.head();
        let found = measured
            .cells
            .iter()
            .any(|cell| cell.signal == signal && cell.kind == kind);
        if mine && !found && reason(place, &signal, &kind).is_none() {
            wrong.push(format!("{signal}, {kind}: nothing was measured"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}:\n{}\n{trouble}",
        place.name(),
        wrong.join("\n")
    );
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/kernels.md")
}

fn document() -> String {
    std::fs::read_to_string(path()).unwrap_or_default()
}

/// Comes last by its name: it needs all the others' guests.
#[test]
fn matrix_is_what_the_document_says() {
    let matrix: Matrix = PLACES
        .iter()
        .map(|place| (place.name(), measured(place).0))
        .collect();
    let mut empty = Vec::new();
    let mut unused: BTreeMap<&str, bool> = EXCEPTIONS.iter().map(|e| (e.reason, true)).collect();
    for row in rows(&matrix) {
        for place in &PLACES {
            let text = text(&matrix, place, &row);
            if text.is_empty() {
                empty.push(format!("{}: {}, {}", place.name(), row.0, row.1));
            } else if text.starts_with('–') {
                unused.extend(reason(place, row.0, &row.1).map(|reason| (reason, false)));
            }
        }
    }
    let written = write(&matrix);
    if std::env::var("NUMAWATCH_WRITE_DOCS").is_ok_and(|value| value == "1") {
        let done = std::fs::write(path(), &written);
        assert!(done.is_ok(), "{}: {done:?}", path().display());
    }
    assert!(
        empty.is_empty(),
        "cells that are empty, and not listed in tests/src/matrix/exceptions.rs:\n{}",
        empty.join("\n")
    );
    let unused: Vec<&str> = unused
        .into_iter()
        .filter_map(|(reason, unused)| unused.then_some(reason))
        .collect();
    assert!(
        unused.is_empty(),
        "exceptions that nothing needs: {unused:?}"
    );
    let (now, before) = (skeleton(&written), skeleton(&document()));
    let differ: Vec<String> = now
        .iter()
        .filter(|(cell, what)| before.get(cell) != Some(what))
        .map(|(cell, what)| format!("{cell:?} is {what:?}, not {:?}", before.get(cell)))
        .chain(
            before
                .keys()
                .filter(|cell| !now.contains_key(cell))
                .map(|cell| format!("{cell:?} is gone")),
        )
        .collect();
    assert!(
        differ.is_empty(),
        "docs/kernels.md says otherwise; NUMAWATCH_WRITE_DOCS=1 writes it anew:\n{}",
        differ.join("\n")
    );
}
