//! The figures as text: a table, and what became of each target.

use super::figures::Spread;

/// One line of the table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) what: String,
    pub(crate) spread: Spread,
    pub(crate) unit: Unit,
    /// At most this; `None` where nothing is asked.
    pub(crate) target: Option<f64>,
}

/// What a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Milliseconds.
    Milliseconds,
    /// How many.
    Number,
    /// A ratio.
    Times,
    /// A ratio, in percent.
    Share,
    /// A difference of two such.
    Points,
    /// More than without, in percent.
    Percent,
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            Self::Nanoseconds => format!("{value:.0} ns"),
            Self::Milliseconds => format!("{value:.2} ms"),
            Self::Number => format!("{value:.0}"),
            Self::Times => format!("{value:.2}"),
            Self::Share => format!("{value:.1} %"),
            Self::Points => format!("{value:.2} points"),
            Self::Percent => format!("{value:+.1} %"),
        }
    }
}

impl Line {
    /// Whether the target is met; `None` where nothing is asked.
    pub(crate) fn passes(&self) -> Option<bool> {
        self.target.map(|target| self.spread.median <= target)
    }
}

/// The table in Markdown, which is as good to read in a terminal.
pub(crate) fn markdown(lines: &[Line]) -> String {
    let header = ["what", "min", "median", "max", "at most", ""].map(str::to_owned);
    let rows = lines.iter().map(|line| {
        let Spread { min, median, max } = line.spread;
        let text = |value| line.unit.text(value);
        [
            line.what.clone(),
            text(min),
            text(median),
            text(max),
            line.target.map_or_else(String::new, text),
            line.passes().map_or("", verdict).to_owned(),
        ]
    });
    let rows: Vec<[String; 6]> = std::iter::once(header).chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            let padding = " ".repeat(width(column) - cell.chars().count());
            // Figures stand below each other at their right end.
            let cell = match column {
                0 | 5 => format!("{cell}{padding}"),
                _ => format!("{padding}{cell}"),
            };
            text.push_str("| ");
            text.push_str(&cell);
            text.push(' ');
        }
        text.push_str("|\n");
        if number == 0 {
            for column in 0..row.len() {
                let end = if matches!(column, 0 | 5) { "-" } else { ":" };
                text.push('|');
                text.push_str(&"-".repeat(width(column) + 1));
                text.push_str(end);
            }
            text.push_str("|\n");
        }
    }
    text
}

fn verdict(passes: bool) -> &'static str {
    if passes { "PASS" } else { "FAIL" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(what: &str, median: f64, unit: Unit, target: Option<f64>) -> Line {
        let spread = Spread {
            min: median - 1.0,
            median,
            max: median + 1.0,
        };
        Line {
            what: what.to_owned(),
            spread,
            unit,
            target,
        }
    }

    #[test]
    fn the_median_decides() {
        assert_eq!(line("", 8.0, Unit::Percent, Some(8.0)).passes(), Some(true));
        assert_eq!(
            line("", 8.1, Unit::Percent, Some(8.0)).passes(),
            Some(false)
        );
        assert_eq!(line("", 8.1, Unit::Percent, None).passes(), None);
    }

    #[test]
    fn columns_stand_below_each_other() {
        let lines = [
            line("a switch", 19.4, Unit::Nanoseconds, None),
            line("slower", 9.0, Unit::Percent, Some(8.0)),
        ];
        assert_eq!(
            markdown(&lines),
            "| what     |    min | median |     max | at most |      |\n\
             |----------|-------:|-------:|--------:|--------:|------|\n\
             | a switch |  18 ns |  19 ns |   20 ns |         |      |\n\
             | slower   | +8.0 % | +9.0 % | +10.0 % |  +8.0 % | FAIL |\n"
        );
    }
}
