//! On which nodes locked memory lies, from a sample of a process's pages.

use crate::process::ByNode;
use crate::size::whole;
use std::collections::BTreeMap;

/// Pages that are alike, of which some were asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct LockedSample {
    /// How many pages each that was asked for stands for.
    pub weight: f64,
    /// Those that are locked, by node.
    pub locked: ByNode,
}

/// Fewer locked pages in a sample tell too little of where the others are.
const ENOUGH: u64 = 30;

/// Divides what the kernel says is locked (`VmLck`, bytes) over the nodes as the sample's locked pages lie. It counts
/// addresses, so what is locked and not resident is taken to lie like the rest. `None` where the sample has too few locked pages.
#[must_use]
pub fn locked_by_node(samples: &[LockedSample], locked_bytes: u64) -> Option<ByNode> {
    let mut weights: BTreeMap<u32, f64> = BTreeMap::new();
    for sample in samples {
        for (node, pages) in &sample.locked {
            *weights.entry(*node).or_default() += sample.weight * *pages as f64;
        }
    }
    let all: f64 = weights.values().sum();
    let found: u64 = samples.iter().flat_map(|s| s.locked.values()).sum();
    if found < ENOUGH {
        return None;
    }
    let bytes = |weight: f64| whole(locked_bytes as f64 * weight / all);
    Some(weights.into_iter().map(|(n, w)| (n, bytes(w))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(weight: f64, locked: &[(u32, u64)]) -> LockedSample {
        LockedSample {
            weight,
            locked: locked.iter().copied().collect(),
        }
    }

    #[test]
    fn what_is_locked_lies_where_the_samples_locked_pages_do() {
        let samples = [
            sample(10.0, &[(0, 30), (1, 10)]),
            sample(1.0, &[(1, 200)]),
            sample(5.0, &[]),
        ];
        assert_eq!(
            locked_by_node(&samples, 6_000),
            Some(ByNode::from([(0, 3_000), (1, 3_000)]))
        );
    }

    #[test]
    fn a_sample_with_few_locked_pages_tells_nothing() {
        assert_eq!(locked_by_node(&[sample(1.0, &[(0, 29)])], 4_096), None);
        assert_eq!(locked_by_node(&[sample(1.0, &[])], 4_096), None);
        assert_eq!(locked_by_node(&[], 4_096), None);
    }
}
