//! How a node is told apart: its glyph and its place in the order, and bars made of them.

use model::snapshot::Snapshot;
use model::topology::NodeId;

/// Up to this many nodes have shades; more have digits.
const SHADES: [char; 4] = ['█', '▒', '░', '▓'];

/// The nodes on the screen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    ids: Vec<NodeId>,
}

impl Nodes {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        Self {
            ids: snapshot.topology.nodes.iter().map(|n| n.id).collect(),
        }
    }

    /// Its dense index; `None` for a node that the topology doesn't have.
    pub(crate) fn index(&self, id: NodeId) -> Option<usize> {
        self.ids.iter().position(|n| *n == id)
    }

    /// What its bars are made of, legible without colour: a shade, or among many the id's digit.
    pub(crate) fn glyph(&self, id: NodeId) -> char {
        let Some(index) = self.index(id) else {
            return '?';
        };
        if self.ids.len() <= SHADES.len() {
            return SHADES.get(index).copied().unwrap_or('?');
        }
        // Sparse ids may be large; then the digit is the position.
        let ids_are_digits = self.ids.iter().all(|n| *n < 36);
        let digit = if ids_are_digits {
            Some(id)
        } else {
            u32::try_from(index).ok()
        };
        digit.and_then(|d| char::from_digit(d, 36)).unwrap_or('+')
    }
}

/// Divides `width` cells among the shares, by largest remainder; nothing of nothing.
pub(crate) fn apportion(shares: &[(NodeId, f64)], width: usize) -> Vec<(NodeId, usize)> {
    let sane = |v: f64| if v.is_finite() && v > 0.0 { v } else { 0.0 };
    let total: f64 = shares.iter().map(|(_, v)| sane(*v)).sum();
    if total <= 0.0 || !total.is_finite() {
        return Vec::new();
    }
    let mut cells: Vec<(NodeId, usize, f64)> = shares
        .iter()
        .map(|(node, v)| {
            let exact = sane(*v) / total * width as f64;
            let whole = floor(exact).min(width);
            (*node, whole, exact - whole as f64)
        })
        .collect();
    let given: usize = cells.iter().map(|c| c.1).sum();
    let mut by_rest: Vec<usize> = (0..cells.len()).collect();
    by_rest.sort_by(|a, b| cells[*b].2.total_cmp(&cells[*a].2).then(a.cmp(b)));
    for at in by_rest.into_iter().take(width.saturating_sub(given)) {
        cells[at].1 += 1;
    }
    cells.into_iter().map(|(n, c, _)| (n, c)).collect()
}

/// How many of `width` cells a share (0 to 1) fills.
pub(crate) fn filled(share: f64, width: usize) -> usize {
    if share.is_finite() {
        floor((share.clamp(0.0, 1.0) * width as f64).round()).min(width)
    } else {
        0
    }
}

/// A screen's width at most, so the conversion loses nothing.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn floor(value: f64) -> usize {
    value.max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_whatever_the_shares() {
        for (shares, want) in [
            (vec![(0, 1.0), (1, 0.0)], vec![(0, 10), (1, 0)]),
            (vec![(0, 71.0), (1, 29.0)], vec![(0, 7), (1, 3)]),
            (
                vec![(0, 1.0), (1, 1.0), (2, 1.0)],
                vec![(0, 4), (1, 3), (2, 3)],
            ),
            (vec![(0, 0.0)], vec![]),
            (vec![], vec![]),
            (vec![(0, f64::NAN), (1, 5.0)], vec![(0, 0), (1, 10)]),
            (vec![(0, f64::MAX), (1, f64::MAX)], vec![]),
        ] {
            assert_eq!(apportion(&shares, 10), want, "{shares:?}");
        }
        let many: Vec<(NodeId, f64)> = (0..64).map(|n| (n, 1.0)).collect();
        let cells: usize = apportion(&many, 10).iter().map(|c| c.1).sum();
        assert_eq!(cells, 10);
    }

    #[test]
    fn glyphs_differ_and_large_sparse_ids_have_one() {
        let two = Nodes { ids: vec![0, 8] };
        assert_ne!(two.glyph(0), two.glyph(8));
        assert_eq!(two.glyph(3), '?');
        let many = Nodes {
            ids: (0..16).collect(),
        };
        assert_eq!(many.glyph(0), '0');
        assert_eq!(many.glyph(10), 'a');
        let sparse = Nodes {
            ids: vec![0, 8, 250, 251, 252],
        };
        assert_eq!(sparse.glyph(250), '2');
    }

    #[test]
    fn a_bar_of_a_share_stays_in_its_width() {
        for (share, want) in [(0.0, 0), (0.5, 5), (1.0, 10), (9.0, 10), (f64::NAN, 0)] {
            assert_eq!(filled(share, 10), want);
        }
    }
}
