//! Checks and the self-test's counts as text. Pure.

use super::check::{Check, Outcome};
use crate::wrap::Wrap;
use model::selftest::{Report, Row, Verdict};
use std::fmt::Write;

/// Each check in aligned columns; what doesn't fit goes on below, indented.
pub(crate) fn checks(checks: &[Check], wrap: Wrap) -> String {
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
        text.push_str(&wrap.text(&start, &check.what, indent));
    }
    text
}

/// What was expected and seen, signal by signal.
pub(crate) fn self_test(report: &Report, wrap: Wrap) -> String {
    const MIB: f64 = 1_048_576.0;
    let mut text = format!("self-test: {} ms", report.took_ms);
    if let Some(bytes) = report.memory_bytes {
        let _ = write!(text, ", {:.1} MiB", bytes as f64 / MIB);
    }
    text.push('\n');
    let _ = writeln!(
        text,
        "  {:<12}  {:<14}  {:>11}  {:>11}  {:>15}",
        "SIGNAL", "OF", "EXPECTED", "SEEN", "ALLOWED"
    );
    for test in &report.tests {
        let name = test.signal.as_str();
        if test.verdict == Verdict::NotTested {
            text.push_str(&wrap.text(&format!("  {name:<12}  "), &test.summary(), 16));
        }
        for counted in &test.rows {
            row(&mut text, name, counted);
        }
    }
    let full = &report.full_map;
    match &full.row {
        Some(full) => row(&mut text, "full map", full),
        None => text.push_str(&wrap.text("  full map      ", &full.summary(), 16)),
    }
    text
}

fn row(text: &mut String, name: &str, row: &Row) {
    let mark = if row.ok { "" } else { "  FAIL" };
    let line = format!(
        "  {name:<12}  {:<14}  {:>11}  {:>11}  {:>15}{mark}",
        row.of,
        row.amount(Some(row.expected)),
        row.amount(row.seen),
        row.allowed(),
    );
    let _ = writeln!(text, "{}", line.trim_end());
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
        let text = checks(
            &[
                check("host.kernel", "Linux"),
                check("signal.first_touch", what),
            ],
            Wrap::of(None),
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "WARN  host.kernel         Linux");
        assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
        assert!(
            lines.len() > 2 && lines[2].starts_with(&" ".repeat(26)),
            "{text}"
        );
        assert!(!lines[2].starts_with(&" ".repeat(27)), "{text}");
    }

    #[test]
    fn counts_say_their_unit() {
        let row = |unit: &str, expected, seen: Option<u64>| Row {
            of: "0 touches 1".to_owned(),
            unit: unit.to_owned(),
            expected,
            seen,
            at_least: expected,
            at_most: Some(expected * 3 / 2),
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
        let text = self_test(&report, Wrap::of(None));
        assert!(text.starts_with("self-test: 412 ms, 14.0 MiB\n"), "{text}");
        for part in [
            "512 pages    512 pages       512 to 768\n",
            "9.5 ms     10.0 to 15.0  FAIL",
            "4 KiB         none           4 to 6  FAIL\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
