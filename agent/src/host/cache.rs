//! The size of the largest cache that a CPU shares with its neighbours.

use crate::host::root::{Root, read};

/// Bytes of CPU 0's highest cache; `None` where sysfs doesn't tell, as in many guests.
pub(crate) fn read_largest_cache(root: &Root) -> Option<u64> {
    let sizes = (0..8).filter_map(|index| {
        let path = format!("devices/system/cpu/cpu0/cache/index{index}/size");
        parse(read(&root.sys(path)).ok()?.trim())
    });
    sizes.max()
}

fn parse(size: &str) -> Option<u64> {
    let (number, unit) = size.split_at(size.len().checked_sub(1)?);
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return size.parse().ok(),
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let cases = [
            ("48K", Some(48 << 10)),
            ("32M", Some(32 << 20)),
            ("512", Some(512)),
            ("", None),
            ("K", None),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse(text), bytes, "{text}");
        }
    }
}
