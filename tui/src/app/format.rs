//! Numbers as people read them: at most three digits, a unit, and `-` where there is no signal.

/// What stands where no signal gave a number.
pub(crate) const NO_SIGNAL: &str = "-";

/// The text of a number, or [`NO_SIGNAL`].
pub(crate) fn or_dash<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NO_SIGNAL.to_owned(), text)
}

/// A value with the largest unit that leaves it at or above 1: three digits at most.
fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    if !value.is_finite() {
        return NO_SIGNAL.to_owned();
    }
    let mut value = value;
    let mut unit = 0;
    // Below the step, yet printed as the step: 999.7 is 1.0 k and not 1000.
    while value >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let suffix = units.get(unit).copied().unwrap_or_default();
    let digits = if value == 0.0 || value >= 9.95 || (unit == 0 && value.fract() == 0.0) {
        format!("{value:.0}")
    } else if value < 0.05 {
        "<0.1".to_owned()
    } else {
        format!("{value:.1}")
    };
    if suffix.is_empty() {
        digits
    } else {
        format!("{digits} {suffix}")
    }
}

/// Events or pages: `48`, `1.2 k`, `91 k`, `2.2 M`.
pub(crate) fn count(value: u64) -> String {
    scaled(value as f64, 1000.0, &["", "k", "M", "G", "T", "P", "E"])
}

/// Events or pages per second, in the same form; under ten with one decimal.
pub(crate) fn rate(value: f64) -> String {
    scaled(
        value.max(0.0),
        1000.0,
        &["", "k", "M", "G", "T", "P", "E", "Z"],
    )
}

/// Bytes in binary units: `512 B`, `60.9 GiB`, `412 GiB`.
pub(crate) fn bytes(value: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut scaled = value as f64;
    let mut unit = 0;
    while scaled >= 1023.5 && unit + 1 < units.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let suffix = units.get(unit).copied().unwrap_or_default();
    if unit == 0 || scaled >= 99.95 {
        format!("{scaled:.0} {suffix}")
    } else {
        format!("{scaled:.1} {suffix}")
    }
}

/// A share of a whole (0 to 1): `71 %`; what is there but rounds away is `<1 %`.
pub(crate) fn share(value: f64) -> String {
    if !value.is_finite() {
        return NO_SIGNAL.to_owned();
    }
    let percent = value.clamp(0.0, 1.0) * 100.0;
    if percent > 0.0 && percent < 0.5 {
        "<1 %".to_owned()
    } else {
        format!("{percent:.0} %")
    }
}

/// CPU time per time as top shows it: 1 CPU is `100 %`.
pub(crate) fn cpu(cpus: f64) -> String {
    if !cpus.is_finite() {
        return NO_SIGNAL.to_owned();
    }
    let percent = (cpus * 100.0).clamp(0.0, 999_999.0);
    if percent == 0.0 {
        "0 %".to_owned()
    } else if percent < 0.05 {
        "<0.1 %".to_owned()
    } else if percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// A length of time in nanoseconds: `4.0 ms`, `12 s`, `3 min`, `2 h 5 min`, `4 d 3 h`.
pub(crate) fn duration(ns: u64) -> String {
    let (second, minute) = (1_000_000_000, 60_000_000_000);
    match ns {
        0 => "0 s".to_owned(),
        _ if ns < second => scaled(ns as f64, 1000.0, &["ns", "µs", "ms", "s"]),
        _ if ns < 10 * second => {
            let text = format!("{:.1} s", ns as f64 / second as f64);
            text.replace(".0 s", " s")
        }
        _ if ns < 2 * minute => format!("{} s", ns / second),
        _ if ns < 60 * minute => format!("{} min", ns / minute),
        _ if ns < 48 * 60 * minute => {
            format!("{} h {} min", ns / (60 * minute), ns / minute % 60)
        }
        _ => format!(
            "{} d {} h",
            ns / (24 * 60 * minute),
            ns / (60 * minute) % 24
        ),
    }
}

/// Seconds as given with evidence: `30 s`.
pub(crate) fn seconds(value: f64) -> String {
    if value.is_finite() && value >= 0.0 {
        format!("{value:.0} s")
    } else {
        NO_SIGNAL.to_owned()
    }
}

/// Nanoseconds of work per second of time: `4.0 ms`.
pub(crate) fn ns_per_second(ns: f64) -> String {
    if ns == 0.0 {
        return "0".to_owned();
    }
    scaled(ns.max(0.0), 1000.0, &["ns", "µs", "ms", "s"])
}

/// `1 node`, `2 nodes`.
pub(crate) fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Wall-clock time of day, UTC: `12:04:31 UTC`.
pub(crate) fn clock(time: std::time::SystemTime) -> String {
    // humantime refuses times before 1970; a clock that wrong isn't worth a panic.
    time.duration_since(std::time::UNIX_EPOCH).map_or_else(
        |_| NO_SIGNAL.to_owned(),
        |since| {
            let s = since.as_secs() % 86_400;
            format!("{:02}:{:02}:{:02} UTC", s / 3600, s / 60 % 60, s % 60)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn counts_and_rates_have_three_digits_at_most() {
        for (value, want) in [
            (0, "0"),
            (7, "7"),
            (999, "999"),
            (1_000, "1.0 k"),
            (1_234, "1.2 k"),
            (91_400, "91 k"),
            (999_700, "1.0 M"),
            (u64::MAX, "18 E"),
        ] {
            assert_eq!(count(value), want);
        }
        for (value, want) in [
            (0.0, "0"),
            (0.01, "<0.1"),
            (0.3, "0.3"),
            (1.2, "1.2"),
            (9.97, "10"),
            (48.4, "48"),
            (999.6, "1.0 k"),
            (f64::NAN, "0"),
            (f64::INFINITY, "-"),
            (-1.0, "0"),
        ] {
            assert_eq!(rate(value), want, "{value}");
        }
    }

    #[test]
    fn bytes_never_need_more_than_eight_columns() {
        for (value, want) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (65_390_000_000, "60.9 GiB"),
            (512 << 30, "512 GiB"),
            ((1 << 40) - 1, "1.0 TiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(value), want);
        }
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift).wrapping_sub(1)] {
                assert!(bytes(value).len() <= 8, "{value}: {}", bytes(value));
            }
        }
    }

    #[test]
    fn a_small_share_is_not_zero() {
        for (value, want) in [
            (0.0, "0 %"),
            (0.001, "<1 %"),
            (0.714, "71 %"),
            (1.0, "100 %"),
            (7.0, "100 %"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(share(value), want, "{value}");
        }
        assert_eq!(cpu(0.0), "0 %");
        assert_eq!(cpu(0.0001), "<0.1 %");
        assert_eq!(cpu(0.003), "0.3 %");
        assert_eq!(cpu(128.0), "12800 %");
    }

    #[test]
    fn durations_name_their_unit() {
        for (ns, want) in [
            (0, "0 s"),
            (1_500, "1.5 µs"),
            (4_000_000, "4.0 ms"),
            (1_003_000_000, "1 s"),
            (2_500_000_000, "2.5 s"),
            (30_000_000_000, "30 s"),
            (300_000_000_000, "5 min"),
            (7_500_000_000_000, "2 h 5 min"),
            (360_000_000_000_000, "4 d 4 h"),
        ] {
            assert_eq!(duration(ns), want, "{ns}");
        }
        assert_eq!(ns_per_second(4_000_000.0), "4.0 ms");
        assert_eq!(ns_per_second(0.0), "0");
        assert!(duration(u64::MAX).ends_with('h'));
    }

    #[test]
    fn no_signal_is_a_dash_and_an_odd_clock_too() {
        assert_eq!(or_dash(None, count), "-");
        assert_eq!(or_dash(Some(0), count), "0");
        assert_eq!(
            clock(UNIX_EPOCH + Duration::from_secs(43_471)),
            "12:04:31 UTC"
        );
        assert_eq!(clock(UNIX_EPOCH - Duration::from_secs(1)), "-");
    }
}
