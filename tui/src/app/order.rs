//! Which processes the table shows, and in which order.

use super::columns::{COLUMNS, Column, ColumnId};
use super::feed::Pair;
use super::row::Row;
use model::process::Process;
use std::cmp::Ordering;

/// What a column sorts by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SortKey {
    Number(f64),
    Text(String),
    /// No signal: last in either direction, it is neither the most nor the least.
    Missing,
}

impl SortKey {
    pub(crate) fn number(value: Option<f64>) -> Self {
        value.map_or(Self::Missing, Self::Number)
    }

    pub(crate) fn text(value: Option<String>) -> Self {
        value.map_or(Self::Missing, |t| Self::Text(t.to_lowercase()))
    }
}

/// A column and a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sort {
    pub(crate) column: ColumnId,
    pub(crate) descending: bool,
}

impl Default for Sort {
    /// Who pays most comes first.
    fn default() -> Self {
        Self {
            column: ColumnId::Remote,
            descending: true,
        }
    }
}

impl Sort {
    /// By a column in its usual direction.
    pub(crate) fn by(column: &Column) -> Self {
        Self {
            column: column.id,
            descending: column.descending,
        }
    }

    fn compare(self, a: &SortKey, b: &SortKey) -> Ordering {
        let ordering = match (a, b) {
            (SortKey::Missing, SortKey::Missing) => return Ordering::Equal,
            (SortKey::Missing, _) => return Ordering::Greater,
            (_, SortKey::Missing) => return Ordering::Less,
            (SortKey::Number(a), SortKey::Number(b)) => a.total_cmp(b),
            (SortKey::Text(a), SortKey::Text(b)) => a.cmp(b),
            (SortKey::Number(_), SortKey::Text(_)) => Ordering::Less,
            (SortKey::Text(_), SortKey::Number(_)) => Ordering::Greater,
        };
        if self.descending {
            ordering.reverse()
        } else {
            ordering
        }
    }
}

/// The processes to show, as indices into the snapshot; ties by pid.
pub(crate) fn ordered(pair: &Pair, sort: Sort, filter: &str) -> Vec<usize> {
    let key = COLUMNS
        .iter()
        .find(|c| c.id == sort.column)
        .and_then(|c| c.sort);
    let key = |row: &Row<'_>| key.map_or(SortKey::Missing, |key| key(row, pair));
    let mut rows: Vec<(SortKey, u32, usize)> = pair
        .now
        .processes
        .iter()
        .enumerate()
        .filter(|(_, p)| matches(p, filter))
        .map(|(at, p)| (key(&pair.row(p)), p.pid, at))
        .collect();
    rows.sort_by(|a, b| sort.compare(&a.0, &b.0).then(a.1.cmp(&b.1)));
    rows.into_iter().map(|(_, _, at)| at).collect()
}

/// Whether every word of the filter is somewhere in the process's names, in any case.
fn matches(process: &Process, filter: &str) -> bool {
    let mut text = format!("{} {} {}", process.pid, process.name, process.command);
    for part in [&process.engine, &process.role, &process.model]
        .into_iter()
        .flatten()
    {
        text.push(' ');
        text.push_str(part);
    }
    let text = text.to_lowercase();
    filter
        .to_lowercase()
        .split_whitespace()
        .all(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up;
    use std::sync::Arc;

    #[test]
    fn no_signal_is_last_in_both_directions() {
        let mut snapshot = made_up::many_processes(5);
        let shares = [Some(0.2), None, Some(0.9), None, Some(0.0)];
        for (process, share) in snapshot.processes.iter_mut().zip(shares) {
            process.remote_share.value = share;
        }
        let pair = Pair::new(None, Arc::new(snapshot));
        let by = |descending| {
            let sort = Sort {
                column: ColumnId::Remote,
                descending,
            };
            ordered(&pair, sort, "")
        };
        assert_eq!(by(true), [2, 0, 4, 1, 3]);
        assert_eq!(by(false), [4, 0, 2, 1, 3]);
    }

    #[test]
    fn all_words_of_the_filter_must_be_there() {
        let pair = Pair::new(None, Arc::new(made_up::two_nodes(1)));
        let found = |filter: &str| ordered(&pair, Sort::default(), filter).len();
        let all = pair.now.processes.len();
        let pid = pair.now.processes[0].pid.to_string();
        assert_eq!(found(""), all);
        assert_eq!(found("  "), all);
        assert_eq!(found(&pid), 1);
        assert!(found("VLLM") > 0 && found("VLLM") < all);
        assert_eq!(found(&format!("vllm {pid}x")), 0);
    }

    #[test]
    fn every_column_sorts_made_up_and_empty_hosts() {
        for snapshot in [made_up::two_nodes(1), made_up::nothing_known()] {
            let pair = Pair::new(None, Arc::new(snapshot));
            for column in COLUMNS {
                let rows = ordered(&pair, Sort::by(column), "");
                assert_eq!(rows.len(), pair.now.processes.len());
            }
        }
    }
}
