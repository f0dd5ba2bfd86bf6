//! The arithmetic: spreads over turns, and what an empty program reads taken off.

/// Least, middle and most of several turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` of no turns at all.
    pub(crate) fn of(turns: &[f64]) -> Option<Self> {
        let mut sorted = turns.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let upper = sorted.len() / 2;
        let lower = (sorted.len() - 1) / 2;
        Some(Self {
            min,
            median: f64::midpoint(*sorted.get(lower)?, *sorted.get(upper)?),
            max,
        })
    }
}

/// What a program did in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runs {
    pub(crate) nanoseconds: u64,
    pub(crate) runs: u64,
}

impl Runs {
    /// Nanoseconds a run; `None` of a program that did not run.
    pub(crate) fn each(self) -> Option<f64> {
        (self.runs != 0).then(|| self.nanoseconds as f64 / self.runs as f64)
    }
}

/// Nanoseconds a run above the empty program's at the same place, turn by turn. Turns without a run of either are left out.
pub(crate) fn above_empty(program: &[Runs], empty: &[Runs]) -> Vec<f64> {
    let pairs = program.iter().zip(empty);
    pairs
        .filter_map(|(program, empty)| Some(program.each()? - empty.each()?))
        .collect()
}

/// One divided by the other, turn by turn.
pub(crate) fn ratios(costs: &[f64], to: &[f64]) -> Vec<f64> {
    costs.iter().zip(to).map(|(cost, to)| cost / to).collect()
}

/// Sums several, turn by turn.
pub(crate) fn sums(parts: &[Vec<f64>]) -> Vec<f64> {
    let turns = parts.iter().map(Vec::len).min().unwrap_or(0);
    (0..turns)
        .map(|turn| parts.iter().filter_map(|part| part.get(turn)).sum())
        .collect()
}

/// By how many percent two counts of the same differ.
pub(crate) fn difference_percent(one: u64, other: u64) -> f64 {
    if one == other {
        return 0.0;
    }
    one.abs_diff(other) as f64 * 100.0 / one.max(other) as f64
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the expected values are exact in binary")]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_is_between_two() {
        let spread = Spread {
            min: 1.0,
            median: 2.5,
            max: 4.0,
        };
        assert_eq!(Spread::of(&[4.0, 1.0, 3.0, 2.0]), Some(spread));
        assert_eq!(Spread::of(&[7.0]).map(|spread| spread.median), Some(7.0));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn the_empty_program_is_taken_off_in_its_own_turn() {
        let runs = |nanoseconds, runs| Runs { nanoseconds, runs };
        let program = [runs(1000, 10), runs(300, 2), runs(0, 0)];
        let empty = [runs(400, 10), runs(100, 2), runs(40, 1)];
        assert_eq!(above_empty(&program, &empty), [60.0, 100.0]);
    }

    #[test]
    fn parts_add_up_turn_by_turn() {
        assert_eq!(sums(&[vec![1.0, 2.0], vec![10.0, 20.0]]), [11.0, 22.0]);
        assert_eq!(ratios(&[1.0, 6.0], &[4.0, 3.0]), [0.25, 2.0]);
    }

    #[test]
    fn counts_differ_by_a_share_of_the_larger() {
        let pairs = [(99, 100), (0, 0), (0, 5)].into_iter();
        let differences: Vec<f64> = pairs.map(|(a, b)| difference_percent(a, b)).collect();
        assert_eq!(differences, [1.0, 0.0, 100.0]);
    }
}
