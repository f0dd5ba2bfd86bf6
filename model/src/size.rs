//! Sizes in bytes, as people write and read them.

/// Bytes of a size such as `60G`, `512MiB`, `1.5T` or `0`: bare letters and those with `iB` count by 1024, those with
/// `B` alone (`60GB`) by 1000. `None` if it is no size.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.parse().ok()?;
    let unit = unit.trim_start().to_ascii_lowercase();
    let (power, base) = match unit.as_str() {
        "" | "b" => (0, 1024.0_f64),
        _ => {
            let letter = unit.chars().next()?;
            let power = "kmgtp".find(letter)? + 1;
            let base = match &unit[1..] {
                "" | "ib" => 1024.0,
                "b" => 1000.0,
                _ => return None,
            };
            (power, base)
        }
    };
    let bytes = number * base.powi(i32::try_from(power).ok()?);
    // More than an address space has is a slip of the hand.
    (bytes < 1e18).then(|| whole(bytes))
}

/// Bytes for people: `482.0 GiB`.
#[must_use]
pub fn format(bytes: u64) -> String {
    for (unit, shift) in [
        ("PiB", 50),
        ("TiB", 40),
        ("GiB", 30),
        ("MiB", 20),
        ("KiB", 10),
    ] {
        if bytes >= 1 << shift {
            return format!("{:.1} {unit}", bytes as f64 / (1u64 << shift) as f64);
        }
    }
    format!("{bytes} B")
}

/// Bytes, whole; 0 of what is below 0.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast keeps what is beyond at the range's end"
)]
pub(crate) fn whole(bytes: f64) -> u64 {
    bytes.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, want) in [
            ("0", Some(0)),
            ("512", Some(512)),
            ("60G", Some(60 << 30)),
            ("60g", Some(60 << 30)),
            ("60GiB", Some(60 << 30)),
            ("60GB", Some(60_000_000_000)),
            ("512MiB", Some(512 << 20)),
            ("1.5T", Some(3 << 39)),
            ("1P", Some(1 << 50)),
            ("1PiB", Some(1 << 50)),
            ("1PB", Some(1_000_000_000_000_000)),
            ("4 KiB", Some(4096)),
            ("", None),
            ("G", None),
            ("-1", None),
            ("1.2.3", None),
            ("60Gi", None),
            ("60X", None),
            ("60 apples", None),
            ("9999999999T", None),
        ] {
            assert_eq!(parse(text), want, "{text:?}");
        }
    }

    #[test]
    fn sizes_as_people_read_them() {
        for (bytes, want) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1 << 20, "1.0 MiB"),
            (3 << 29, "1.5 GiB"),
            (1 << 50, "1.0 PiB"),
        ] {
            assert_eq!(format(bytes), want);
        }
    }
}
