//! Checks and the self-test's counts as text of 80 columns. Pure.

use super::checks::{Check, Outcome};
use model::selftest::{Report, Row, Verdict};
use std::fmt::Write;

/// How wide a line may be.
const WIDTH: usize = 80;

/// Each check in aligned columns; what doesn't fit goes on below, indented.
pub(crate) fn checks(checks: &[Check]) -> String {
    let ids = checks.iter().map(|c| c.id.len()).max().unwrap_or(0);
    let indent = "PASS".len() + 2 + ids + 2;
    let mut text = String::new();
    for check in checks {
        let mark = match check.outcome {
            Outcome::Pass => "PASS",
            Outcome::Warn => "WARN",
            Outcome::Fail => "FAIL",
        };
        let start = format!("{mark}  {:<ids$}  ", check.id);
        text.push_str(&wrapped(&start, &check.what, indent));
    }
    text
}

/// What was expected and seen, signal by signal.
pub(crate) fn self_test(report: &Report) -> String {
    const MIB: f64 = 1_048_576.0;
    let mut text = format!("self-test: {} ms", report.took_ms);
    if let Some(bytes) = report.memory_bytes {
        let _ = write!(text, ", {:.1} MiB", bytes as f64 / MIB);
    }
    text.push('\n');
    let _ = writeln!(
        text,
        "  {:<12}  {:<20}  {:>11}  {:>11}  {:>10}",
        "SIGNAL", "OF", "EXPECTED", "SEEN", "DIFFERENCE"
    );
    for test in &report.tests {
        let name = test.signal.as_str();
        if test.verdict == Verdict::NotTested {
            text.push_str(&wrapped(&format!("  {name:<12}  "), &test.summary(), 16));
        }
        for counted in &test.rows {
            row(&mut text, name, counted);
        }
    }
    let full = &report.full_map;
    match &full.row {
        Some(full) => row(&mut text, "full map", full),
        None => text.push_str(&wrapped("  full map      ", &full.summary(), 16)),
    }
    text
}

fn row(text: &mut String, name: &str, row: &Row) {
    let mark = if row.ok { "" } else { "  <- FAIL" };
    let line = format!(
        "  {name:<12}  {:<20}  {:>11}  {:>11}  {:>10}{mark}",
        row.of,
        row.amount(Some(row.expected)),
        row.amount(row.seen),
        difference(row),
    );
    let _ = writeln!(text, "{}", line.trim_end());
}

fn difference(row: &Row) -> String {
    match (row.difference, row.unit.as_str()) {
        (None, _) => "-".to_owned(),
        (Some(ns), "ns") => format!("{:+.1} ms", ns as f64 / 1e6),
        (Some(bytes), "bytes") => format!("{:+} KiB", bytes / 1024),
        (Some(n), _) => format!("{n:+}"),
    }
}

/// Words after `start`, on as many lines as they need; a word that is longer than a line has one of its own.
pub(crate) fn wrapped(start: &str, words: &str, indent: usize) -> String {
    let mut text = String::new();
    let mut line = start.to_owned();
    let mut has_word = false;
    for word in words.split_whitespace() {
        let length = line.chars().count() + usize::from(has_word) + word.chars().count();
        if has_word && length > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(indent);
            has_word = false;
        }
        if has_word {
            line.push(' ');
        }
        line.push_str(word);
        has_word = true;
    }
    text.push_str(line.trim_end());
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &str, what: &str) -> Check {
        Check {
            id: id.to_owned(),
            outcome: Outcome::Warn,
            what: what.to_owned(),
        }
    }

    #[test]
    fn long_reasons_hang_below_their_own_column() {
        let what = "a reason that is so long that it needs more than one line of eighty columns, and then some";
        let text = checks(&[
            check("host.kernel", "Linux"),
            check("signal.first_touch", what),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "WARN  host.kernel         Linux");
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{text}");
        assert!(
            lines.len() > 2 && lines[2].starts_with(&" ".repeat(26)),
            "{text}"
        );
        assert!(!lines[2].starts_with(&" ".repeat(27)), "{text}");
    }

    #[test]
    fn a_word_longer_than_a_line_is_not_lost() {
        let word = "x".repeat(100);
        let text = wrapped("WARN  ", &format!("a {word} b"), 6);
        assert_eq!(text, format!("WARN  a\n      {word}\n      b\n"));
    }

    #[test]
    fn counts_say_their_unit() {
        let row = |unit: &str, expected, seen: Option<u64>| Row {
            of: "0 touches 1".to_owned(),
            unit: unit.to_owned(),
            expected,
            seen,
            difference: seen.map(|s| s.cast_signed() - expected.cast_signed()),
            ok: seen == Some(expected),
        };
        let report = Report {
            tests: vec![model::selftest::Test {
                signal: model::signal::SignalName::FirstTouch,
                verdict: Verdict::Failed,
                reason: Some("x".to_owned()),
                rows: vec![
                    row("pages", 512, Some(512)),
                    row("ns", 10_000_000, Some(9_500_000)),
                    row("bytes", 4096, None),
                ],
            }],
            full_map: model::selftest::full_map(256, Some(256)),
            took_ms: 412,
            memory_bytes: Some(14 << 20),
        };
        let text = self_test(&report);
        assert!(text.starts_with("self-test: 412 ms, 14.0 MiB\n"), "{text}");
        for part in [
            "512 pages    512 pages          +0\n",
            "9.5 ms     -0.5 ms  <- FAIL",
            "4 KiB         none",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
