//! The kernel's list format of CPUs and nodes, `0-3,8,10-11`.

/// The numbers in a list, ascending; an empty list has none. `None` if it is no such list.
pub(crate) fn parse(list: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in list.trim().split(',').filter(|p| !p.is_empty()) {
        match part.split_once('-') {
            None => numbers.push(part.parse().ok()?),
            Some((from, to)) => numbers.extend(from.parse().ok()?..=to.parse::<u32>().ok()?),
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

/// Ascending numbers as such a list.
pub(crate) fn write(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let texts: Vec<String> = ranges
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            _ => format!("{first}-{last}"),
        })
        .collect();
    texts.join(",")
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
        ] {
            assert_eq!(parse(list), want, "{list:?}");
        }
    }

    #[test]
    fn a_list_is_written_as_it_is_read() {
        for list in ["", "0", "0-3", "0-1,8", "0-63,128-191", "3,5,7-8"] {
            assert_eq!(write(&parse(list).unwrap()), list);
        }
    }
}
