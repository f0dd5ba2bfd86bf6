//! Text in columns as wide as their widest cell. In a narrow terminal the least important give way.

use crate::wrap::Wrap;
use std::fmt::Write as _;

/// The space between columns.
const GAP: usize = 2;

/// One column.
pub(super) struct Column {
    pub(super) title: &'static str,
    /// 0 stays at any width; else the lower number comes first.
    pub(super) priority: u8,
    pub(super) cells: Vec<String>,
}

impl Column {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(String::as_str);
        let all = cells.chain([self.title]).map(|cell| cell.chars().count());
        all.max().unwrap_or(0)
    }
}

/// The columns that fit, each row on a line, and below them the titles of those that don't. `None` has room for all.
pub(super) fn aligned(columns: &[Column], room: Option<usize>) -> String {
    let shown = fitting(columns, room);
    let (shown, left_out): (Vec<usize>, Vec<usize>) =
        (0..columns.len()).partition(|at| shown.contains(at));
    let shown: Vec<(&Column, usize)> = shown
        .iter()
        .map(|at| (&columns[*at], columns[*at].width()))
        .collect();
    let rows = columns.iter().map(|c| c.cells.len()).max().unwrap_or(0);
    let mut text = String::new();
    for row in 0..=rows {
        let mut line = String::new();
        for (column, width) in &shown {
            let cell = match row.checked_sub(1) {
                None => column.title,
                Some(at) => column.cells.get(at).map_or("", String::as_str),
            };
            let _ = write!(line, "{cell:<width$}{:GAP$}", "");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if !left_out.is_empty() {
        let titles: Vec<&str> = left_out.iter().map(|at| columns[*at].title).collect();
        text.push_str(&Wrap::of(room).text(
            "",
            &format!(
                "no room for {}: a wider terminal, a file or --json has them",
                titles.join(", ")
            ),
            0,
        ));
    }
    text
}

/// Which of them, ascending: those that stay, and of the others each that fits beside the more important.
fn fitting(columns: &[Column], room: Option<usize>) -> Vec<usize> {
    let mut by_priority: Vec<usize> = (0..columns.len()).collect();
    by_priority.sort_by_key(|at| columns[*at].priority);
    let mut used = 0;
    let mut shown = Vec::new();
    for at in by_priority {
        let gap = if shown.is_empty() { 0 } else { GAP };
        let wanted = used + gap + columns[at].width();
        if columns[at].priority == 0 || room.is_none_or(|room| wanted <= room) {
            used = wanted;
            shown.push(at);
        }
    }
    shown.sort_unstable();
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(title: &'static str, priority: u8, cell: &str) -> Column {
        Column {
            title,
            priority,
            cells: vec![cell.to_owned()],
        }
    }

    /// 3 + 2 + 6 + 2 + 6 + 2 + 5.
    fn columns() -> [Column; 4] {
        [
            column("PID", 0, "42"),
            column("GPU", 1, "0@0 1@"),
            column("POLICY", 2, "bind:0"),
            column("LAST", 0, "local"),
        ]
    }

    #[test]
    fn each_is_as_wide_as_its_widest_cell() {
        let all = "PID  GPU     POLICY  LAST\n42   0@0 1@  bind:0  local\n";
        assert_eq!(aligned(&columns(), None), all);
        assert_eq!(aligned(&columns(), Some(26)), all);
    }

    #[test]
    fn the_least_important_give_way_and_are_named() {
        for (room, want) in [
            (
                25,
                "PID  GPU     LAST\n42   0@0 1@  local\nno room for POLICY: ",
            ),
            (17, "PID  LAST\n42   local\nno room for GPU, POLICY: "),
            (1, "PID  LAST\n42   local\nno room for GPU, POLICY: "),
        ] {
            let text = aligned(&columns(), Some(room));
            assert!(text.starts_with(want), "{room}: {text}");
        }
    }

    #[test]
    fn what_is_less_important_and_narrower_may_still_fit() {
        let columns = [
            column("PID", 0, "42"),
            column("GPU", 1, "0-3@0 4-7@1"),
            column("HINT", 2, "7"),
        ];
        let text = aligned(&columns, Some(10));
        assert!(
            text.starts_with("PID  HINT\n42   7\nno room for GPU: "),
            "{text}"
        );
    }
}
