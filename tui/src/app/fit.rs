//! Which columns fit into a width, and how wide each of them is.

use super::cell::Cell;
use super::columns::{COLUMNS, Column, Picture, Widths, is_of_use};
use unicode_width::UnicodeWidthStr;

/// The space between columns.
const GAP: u16 = 1;
/// The space for the selection's mark before the first.
const MARK: u16 = 2;
/// A finding's id beside the verdict is worth more than longer bars, the end of a long name, and the last columns.
const SENTENCE: u16 = 24;
/// From this priority on a column stands only beside such a sentence.
const LAST: u8 = 7;
/// A name of this width is mostly whole.
const NAME: u16 = 13;

/// The columns that fit, in their order. Pure: the keys and the screen agree on them.
pub(crate) fn fitted(picture: &Picture<'_>, width: u16) -> Vec<(&'static Column, u16)> {
    let mut fit = Fit {
        steps: COLUMNS.iter().map(|c| steps(c, picture)).collect(),
        chosen: vec![None; COLUMNS.len()],
        // The last column needs no gap after it.
        room: width.saturating_add(GAP),
    };
    let (stay, give_way): (Vec<usize>, Vec<usize>) = (0..COLUMNS.len())
        .filter(|at| is_of_use(&COLUMNS[*at], picture, width))
        .partition(|at| COLUMNS[*at].priority == 0);
    for at in &stay {
        fit.chosen[*at] = fit.step(*at, 0);
    }
    for at in &stay {
        fit.grow(*at, 1, 0);
    }
    let mut give_way = give_way;
    give_way.sort_by_key(|at| COLUMNS[*at].priority);
    for at in &give_way {
        let last = COLUMNS[*at].priority >= LAST;
        fit.grow(*at, 0, if last { SENTENCE } else { 0 });
    }
    // Where the sentence has no room anyhow, what is left is for the others.
    for spare in [SENTENCE, 0] {
        if spare == 0 && fit.left() >= SENTENCE {
            break;
        }
        // All grow in turns, so that no bar starves beside a long name.
        for at in give_way.iter().chain(&stay) {
            fit.grow(*at, 1, spare);
        }
        for at in stay.iter().chain(&give_way) {
            fit.grow(*at, 2, spare);
        }
    }
    // What is left belongs to the verdict's sentence.
    let rest = fit.left();
    if let Some(Some(verdict)) = fit.chosen.last_mut() {
        *verdict += rest;
    }
    COLUMNS
        .iter()
        .zip(fit.chosen)
        .filter_map(|(column, width)| width.map(|w| (column, w)))
        .collect()
}

struct Fit {
    /// For each column the widths that it has use for, ascending.
    steps: Vec<Vec<u16>>,
    chosen: Vec<Option<u16>>,
    room: u16,
}

impl Fit {
    fn step(&self, at: usize, step: usize) -> Option<u16> {
        let steps = &self.steps[at];
        steps.get(step).or(steps.last()).copied()
    }

    fn used(&self) -> u16 {
        MARK + self.chosen.iter().flatten().map(|w| w + GAP).sum::<u16>()
    }

    fn left(&self) -> u16 {
        self.room.saturating_sub(self.used())
    }

    /// Takes a step if there is room for it and for `spare` more.
    fn grow(&mut self, at: usize, step: usize, spare: u16) {
        let Some(wanted) = self.step(at, step) else {
            return;
        };
        let has = self.chosen[at].map_or(0, |w| w + GAP);
        let spare = if wanted + GAP > has { spare } else { 0 };
        if self.used() - has + wanted + GAP + spare <= self.room {
            self.chosen[at] = Some(wanted);
        }
    }
}

fn steps(column: &Column, picture: &Picture<'_>) -> Vec<u16> {
    match column.widths {
        Widths::Steps(steps) => steps.to_vec(),
        Widths::Content(least, most) => {
            // Of all processes, and of what they are rather than do: the columns stay put.
            let content = picture
                .pair
                .now
                .processes
                .iter()
                .map(|p| match (column.cell)(&picture.pair.row(p), picture) {
                    Cell::Text { forms, .. } => forms.first().map_or(0, |f| f.as_str().width()),
                    _ => 0,
                })
                .max()
                .unwrap_or(0);
            let ideal = u16::try_from(content).unwrap_or(most).clamp(least, most);
            vec![least, ideal.min(NAME).max(least), ideal]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::columns::ColumnId;
    use crate::app::feed::Pair;
    use crate::app::history::History;
    use crate::made_up;
    use model::snapshot::Snapshot;
    use std::sync::Arc;

    fn names(width: u16) -> Vec<ColumnId> {
        names_of(made_up::two_nodes(1), width)
    }

    fn names_of(snapshot: Snapshot, width: u16) -> Vec<ColumnId> {
        let pair = Pair::new(None, Arc::new(snapshot));
        let history = History::default();
        let picture = Picture {
            pair: &pair,
            history: &history,
        };
        let fitted = fitted(&picture, width);
        let used: u16 = fitted.iter().map(|(_, w)| w + GAP).sum::<u16>() + MARK - GAP;
        assert!(used <= width, "{used} > {width}");
        fitted.iter().map(|(c, _)| c.id).collect()
    }

    #[test]
    fn what_stays_at_any_width_and_all_are_there_at_160() {
        use ColumnId::{Cpu, Engine, Gpu, Memory, Pid, Remote, Verdict};
        assert_eq!(names(60), [Pid, Engine, Cpu, Memory, Remote, Verdict]);
        let seven = [Pid, Engine, Gpu, Cpu, Memory, Remote, Verdict];
        assert_eq!(names(80), seven);
        assert_eq!(names(160).len(), COLUMNS.len());
        for width in 60..400 {
            assert!(names(width).starts_with(&[Pid, Engine]), "{width}");
        }
    }

    #[test]
    fn without_a_gpu_there_is_no_column_of_them() {
        let mut snapshot = made_up::two_nodes(1);
        snapshot.topology.devices.clear();
        assert!(!names_of(snapshot, 160).contains(&ColumnId::Gpu));
    }

    #[test]
    fn titles_leave_room_for_their_marks() {
        let pair = Pair::new(None, Arc::new(made_up::two_nodes(1)));
        let history = History::default();
        let picture = Picture {
            pair: &pair,
            history: &history,
        };
        for column in COLUMNS {
            // Where both marks have no room the sort's arrow gives way; the table's title has it.
            let marked = (column.signal)(&picture).is_some() || column.id == ColumnId::Remote;
            // CPU and MEMORY have a short title for their least width.
            if matches!(column.id, ColumnId::Cpu | ColumnId::Memory) {
                continue;
            }
            let title = (column.title)(&picture).width();
            for width in steps(column, &picture) {
                assert!(
                    title + usize::from(marked) <= usize::from(width),
                    "{:?} at {width}",
                    column.id
                );
            }
        }
    }
}
