//! The kernel's list format of CPUs and nodes, `0-3,8,10-11`.

use std::fmt::Write as _;

/// No list of CPUs or nodes has more; a wrong one shall not fill the memory.
const MOST: u32 = 1 << 16;

/// The numbers in a list, ascending; an empty list has none. `None` if it is no such list.
#[must_use]
pub fn parse(list: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in list.trim().split(',').filter(|p| !p.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.parse().ok()?, to.parse::<u32>().ok()?);
        if to >= MOST {
            return None;
        }
        numbers.extend(from..=to);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

/// Ascending numbers as the kernel writes them.
#[must_use]
pub fn format(numbers: &[u32]) -> String {
    ranges(numbers, |text, from, to| {
        let _ = if from == to {
            write!(text, "{from}")
        } else {
            write!(text, "{from}-{to}")
        };
    })
}

/// The same with every part a range, `2-2,4-7`: what Triton reads.
#[must_use]
pub fn format_ranges(numbers: &[u32]) -> String {
    ranges(numbers, |text, from, to| {
        let _ = write!(text, "{from}-{to}");
    })
}

fn ranges(numbers: &[u32], write: impl Fn(&mut String, u32, u32)) -> String {
    let mut text = String::new();
    let mut numbers = numbers.iter().copied().peekable();
    while let Some(from) = numbers.next() {
        let mut to = from;
        while let Some(next) = numbers.next_if(|next| *next == to + 1) {
            to = next;
        }
        if !text.is_empty() {
            text.push(',');
        }
        write(&mut text, from, to);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_as_the_kernel_writes_them() {
        for (list, want) in [
            ("0\n", Some(vec![0])),
            ("0-1,8\n", Some(vec![0, 1, 8])),
            ("0-1,64-65,3", Some(vec![0, 1, 3, 64, 65])),
            ("\n", Some(vec![])),
            ("zero", None),
            ("0-", None),
            ("0-4294967295", None),
        ] {
            assert_eq!(parse(list), want, "{list:?}");
        }
    }

    #[test]
    fn numbers_are_written_as_the_kernel_does() {
        for (numbers, want, ranges) in [
            (&[][..], "", ""),
            (&[2], "2", "2-2"),
            (&[0, 1, 3, 64, 65, 66], "0-1,3,64-66", "0-1,3-3,64-66"),
        ] {
            assert_eq!(format(numbers), want);
            assert_eq!(format_ranges(numbers), ranges);
        }
    }
}
