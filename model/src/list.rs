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

/// CPUs in words: `CPU 0`, `CPUs 0-3`.
#[must_use]
pub fn cpus(numbers: &[u32]) -> String {
    counted("CPU", &format(numbers))
}

/// Nodes in words: `node 0`, `nodes 0-1`.
#[must_use]
pub fn nodes(numbers: &[u32]) -> String {
    counted("node", &format(numbers))
}

/// A list as the kernel writes it behind its noun, which is singular before one number: `CPU 0`, `CPUs 0-3`.
#[must_use]
pub fn counted(noun: &str, list: &str) -> String {
    let one = !list.is_empty() && list.bytes().all(|b| b.is_ascii_digit());
    let s = if one { "" } else { "s" };
    format!("{noun}{s} {list}")
}

/// As [`format`] with every part a range, `2-2,4-7`: what Triton reads.
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
    fn one_number_is_no_plural() {
        for (numbers, want) in [
            (&[0][..], ("CPU 0", "node 0")),
            (&[12], ("CPU 12", "node 12")),
            (&[0, 1], ("CPUs 0-1", "nodes 0-1")),
            (&[0, 2], ("CPUs 0,2", "nodes 0,2")),
        ] {
            assert_eq!((&*cpus(numbers), &*nodes(numbers)), want);
        }
        assert_eq!(counted("CPU", "-"), "CPUs -");
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
