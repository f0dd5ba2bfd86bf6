//! Whether a process pays for remote memory: the remote share and the verdict drawn from it.

use crate::balancing::Balancing;
use crate::locality::Locality;
use crate::process::{ByNode, TouchCounter};
use crate::signal::SignalState;
use crate::thresholds::Thresholds;
use crate::topology::Topology;
use serde::{Deserialize, Serialize};

/// From this remote share on, a process is [`Verdict::Remote`].
pub const REMOTE_FROM: f64 = 0.5;
/// From this remote share on, a process is [`Verdict::Mixed`].
pub const MIXED_FROM: f64 = 0.1;
/// Below this many pages in the window there is no verdict.
pub const EVIDENCE_PAGES: u64 = 64;
/// How far back the evidence goes.
pub const WINDOW_S: f64 = 30.0;

/// The conclusion on one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Under [`MIXED_FROM`] remote.
    Local,
    /// Between the two thresholds.
    Mixed,
    /// At least [`REMOTE_FROM`] remote.
    Remote,
    /// Too little evidence, or no signal.
    #[default]
    Unknown,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Local, Self::Mixed, Self::Remote, Self::Unknown];

    /// The word in JSON and on screens.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Mixed => "mixed",
            Self::Remote => "remote",
            Self::Unknown => "unknown",
        }
    }
}

/// What a remote share was derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShareSignal {
    /// Hint touches: a measurement.
    Hint,
    /// Placement and CPU time per node: an estimate, always labelled so.
    Estimate,
}

/// Remote pages over all pages, with its evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RemoteShare {
    /// 0 to 1; `None` without enough evidence.
    pub value: Option<f64>,
    /// What it was derived from.
    pub signal: Option<ShareSignal>,
    /// Seconds that the evidence spans.
    pub window_s: Option<f64>,
    /// Pages of evidence: touched, or resident for an estimate.
    pub pages: Option<u64>,
}

/// One process's growth over the window.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence<'a> {
    /// Hint touches within the window.
    pub hint: Option<&'a TouchCounter>,
    /// Whether hint touches sample all memory evenly: not with memory tiering.
    pub hint_is_share: bool,
    /// On-CPU nanoseconds by node within the window.
    pub cpu_time_ns_by_node: Option<&'a ByNode>,
    /// Resident bytes by node now.
    pub placement_bytes_by_node: Option<&'a ByNode>,
    /// Seconds.
    pub window_s: f64,
    /// Pages of 4 KiB below which nothing is concluded.
    pub least_pages: u64,
}

impl Default for Evidence<'_> {
    fn default() -> Self {
        Self {
            hint: None,
            hint_is_share: false,
            cpu_time_ns_by_node: None,
            placement_bytes_by_node: None,
            window_s: 0.0,
            least_pages: EVIDENCE_PAGES,
        }
    }
}

/// The remote share by the best signal that has evidence.
#[must_use]
pub fn remote_share(evidence: &Evidence<'_>, topology: &Topology) -> RemoteShare {
    if topology.hides_nodes().is_some() {
        return RemoteShare::default();
    }
    from_hint(evidence)
        .or_else(|| estimate(evidence, topology))
        .unwrap_or_default()
}

fn from_hint(evidence: &Evidence<'_>) -> Option<RemoteShare> {
    let hint = evidence.hint.filter(|_| evidence.hint_is_share)?;
    // A local page's node is always known: it is the CPU's.
    let unknown = hint.unknown_node_pages.unwrap_or(0);
    let remote = hint.same_socket_pages? + hint.cross_socket_pages? + unknown;
    let pages = hint.local_pages? + remote;
    (pages >= evidence.least_pages).then(|| RemoteShare {
        value: Some(remote as f64 / pages as f64),
        signal: Some(ShareSignal::Hint),
        window_s: Some(evidence.window_s),
        pages: Some(pages),
    })
}

/// As if each thread touched all resident pages evenly: 1 - Σ cpu(n)·memory(n).
fn estimate(evidence: &Evidence<'_>, topology: &Topology) -> Option<RemoteShare> {
    let cpu = evidence.cpu_time_ns_by_node?;
    let memory = evidence.placement_bytes_by_node?;
    let cpu_total: u64 = cpu.values().sum();
    let memory_total: u64 = memory.values().sum();
    let pages = memory_total / 4096;
    if cpu_total == 0 || pages < evidence.least_pages {
        return None;
    }
    let mut local = 0.0;
    for (cpu_node, ns) in cpu {
        for (memory_node, bytes) in memory {
            if topology.locality(*cpu_node, *memory_node) == Locality::Local {
                local += (*ns as f64 / cpu_total as f64) * (*bytes as f64 / memory_total as f64);
            }
        }
    }
    Some(RemoteShare {
        value: Some((1.0 - local).clamp(0.0, 1.0)),
        signal: Some(ShareSignal::Estimate),
        window_s: Some(evidence.window_s),
        pages: Some(pages),
    })
}

/// The verdict on a remote share.
#[must_use]
pub fn verdict(share: &RemoteShare, thresholds: &Thresholds) -> Verdict {
    match share.value {
        Some(v) if v >= thresholds.remote_from => Verdict::Remote,
        Some(v) if v >= thresholds.mixed_from => Verdict::Mixed,
        Some(_) => Verdict::Local,
        None => Verdict::Unknown,
    }
}

/// Whether hint touches can be read as a share of all touches: balancing on (1), not tiering (2).
#[must_use]
pub fn hint_is_share(balancing: Balancing<'_>, hint: SignalState) -> bool {
    balancing == Balancing::On && matches!(hint, SignalState::Attached | SignalState::Degraded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Node;

    fn two_nodes() -> Topology {
        let node = |id| Node {
            id,
            cpus: vec![id],
            socket: Some(id),
            ..Node::default()
        };
        Topology {
            nodes: vec![node(0), node(1)],
            ..Topology::default()
        }
    }

    fn hint(local: u64, cross: u64) -> TouchCounter {
        TouchCounter {
            local_pages: Some(local),
            same_socket_pages: Some(0),
            cross_socket_pages: Some(cross),
            ..TouchCounter::default()
        }
    }

    #[test]
    fn hint_touches_decide_when_there_are_enough() {
        for (local, cross, want) in [
            (100, 0, Verdict::Local),
            (91, 9, Verdict::Local),
            (90, 10, Verdict::Mixed),
            (51, 49, Verdict::Mixed),
            (50, 50, Verdict::Remote),
            (0, 64, Verdict::Remote),
            (0, 63, Verdict::Unknown),
        ] {
            let counter = hint(local, cross);
            let evidence = Evidence {
                hint: Some(&counter),
                hint_is_share: true,
                window_s: 30.0,
                ..Evidence::default()
            };
            let share = remote_share(&evidence, &two_nodes());
            let verdict = verdict(&share, &Thresholds::default());
            assert_eq!(verdict, want, "{local} local, {cross} cross-socket");
        }
    }

    #[test]
    fn hidden_nodes_leave_no_share() {
        let counter = hint(100, 0);
        let evidence = Evidence {
            hint: Some(&counter),
            hint_is_share: true,
            ..Evidence::default()
        };
        let mut one = two_nodes();
        one.nodes.truncate(1);
        assert_eq!(remote_share(&evidence, &one).value, Some(0.0));
        one.nodes_reason = Some("/sys is empty".to_owned());
        one.nodes_hidden = true;
        assert_eq!(remote_share(&evidence, &one).value, None);
    }

    #[test]
    fn where_the_lines_are_drawn_can_be_changed() {
        let stricter = Thresholds {
            remote_from: 0.2,
            mixed_from: 0.05,
            ..Thresholds::default()
        };
        for (value, want) in [
            (Some(0.04), Verdict::Local),
            (Some(0.05), Verdict::Mixed),
            (Some(0.2), Verdict::Remote),
            (None, Verdict::Unknown),
        ] {
            let share = RemoteShare {
                value,
                ..RemoteShare::default()
            };
            assert_eq!(verdict(&share, &stricter), want, "{value:?}");
        }
        let counter = hint(0, 63);
        let evidence = Evidence {
            hint: Some(&counter),
            hint_is_share: true,
            least_pages: 63,
            ..Evidence::default()
        };
        assert_eq!(remote_share(&evidence, &two_nodes()).pages, Some(63));
    }

    #[test]
    fn hint_touches_of_unknown_node_are_remote() {
        let counter = TouchCounter {
            unknown_node_pages: Some(8_000),
            ..hint(200, 0)
        };
        let evidence = Evidence {
            hint: Some(&counter),
            hint_is_share: true,
            ..Evidence::default()
        };
        let share = remote_share(&evidence, &two_nodes());
        assert_eq!(verdict(&share, &Thresholds::default()), Verdict::Remote);
    }

    #[test]
    fn without_hint_touches_it_is_an_estimate_and_says_so() {
        let cpu = ByNode::from([(0, 25), (1, 75)]);
        let memory = ByNode::from([(0, 4096 * 1000)]);
        let evidence = Evidence {
            cpu_time_ns_by_node: Some(&cpu),
            placement_bytes_by_node: Some(&memory),
            ..Evidence::default()
        };
        let share = remote_share(&evidence, &two_nodes());
        assert_eq!(share.value, Some(0.75));
        assert_eq!(share.signal, Some(ShareSignal::Estimate));
    }

    #[test]
    fn an_idle_process_has_no_share() {
        let cpu = ByNode::from([(0, 0)]);
        let memory = ByNode::from([(0, 4096 * 1000)]);
        let evidence = Evidence {
            cpu_time_ns_by_node: Some(&cpu),
            placement_bytes_by_node: Some(&memory),
            ..Evidence::default()
        };
        assert_eq!(
            remote_share(&evidence, &two_nodes()),
            RemoteShare::default()
        );
    }

    #[test]
    fn tiering_hints_are_no_share() {
        for (mode, state, want) in [
            (Some(1), SignalState::Attached, true),
            (Some(2), SignalState::Attached, false),
            (Some(3), SignalState::Attached, false),
            (Some(0), SignalState::Attached, false),
            (None, SignalState::Attached, false),
            (Some(1), SignalState::Unreliable, false),
        ] {
            let balancing = Balancing::of(mode, None);
            assert_eq!(hint_is_share(balancing, state), want, "{mode:?} {state:?}");
        }
    }
}
