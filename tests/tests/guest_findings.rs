//! Findings raised by processes that are wrong on purpose, in a two-node guest with a GPU on node 1, and cleared by what they
//! said to type.

use model::check::{Report as Checked, State};
use model::finding::{Finding, Severity};
use model::process::ByNode;
use std::path::Path;
use std::sync::OnceLock;
use tests::findings::{MANY_PAGES, PAGES, Report, VISIT, WEIGHTS_PAGES, finding};
use tests::vm::Guest;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// What a tenant has besides: its program and libraries in the page cache, stack, heap.
const BESIDES: u64 = 8 << 20;

fn report() -> &'static Report {
    static GUEST: OnceLock<Guest> = OnceLock::new();
    let scenario = Path::new(env!("CARGO_BIN_EXE_scenario"));
    let guest = GUEST.get_or_init(|| Guest::play_findings("6.12", scenario));
    let report = guest.findings();
    assert_eq!(report.error, None, "{report:?}");
    report
}

/// The finding that a tenant raised, in the check of this name.
#[track_caller]
fn raised(check: &str, tenant: &str, id: &str) -> Finding {
    let (_, checked) = report().check(check);
    let found = finding(&checked, report().raised[tenant].pid, id);
    match found {
        Some(found) => found.clone(),
        None => panic!("{tenant} has no {id}: {:?}", checked.findings),
    }
}

/// The tenant was checked again when it was mended, and there is nothing left of the finding.
#[track_caller]
fn cleared(tenant: &str, id: &str) {
    let (_, checked) = report().check("mended");
    let pid = report().mended[tenant].pid;
    assert!(checked.answers.iter().any(|a| a.pid == pid), "{checked:?}");
    assert_eq!(finding(&checked, pid, id), None);
}

#[track_caller]
fn evidence(finding: &Finding, name: &str) -> f64 {
    match finding.evidence.iter().find(|e| e.name == name) {
        Some(evidence) => evidence.value,
        None => panic!("no {name}: {finding:?}"),
    }
}

/// These bytes, to 1 %: their place is known by a sample.
#[track_caller]
fn is_about(value: f64, bytes: u64) {
    let off = (value - bytes as f64).abs() / bytes as f64;
    assert!(off < 0.01, "{value} for {bytes}");
}

/// At least these bytes, and little besides.
#[track_caller]
fn holds(value: f64, bytes: u64) {
    let most = bytes + BESIDES;
    assert!(
        value > bytes as f64 * 0.99 && value < most as f64,
        "{value} for {bytes}"
    );
}

fn all_on(node: u32, pages: u64) -> ByNode {
    ByNode::from([(node, pages)])
}

/// The ids of what costs, or may.
fn costly(checked: &Checked) -> Vec<(Option<u32>, &str)> {
    let costs = checked
        .findings
        .iter()
        .filter(|f| f.severity > Severity::Info);
    costs.map(|f| (f.pid, f.id.as_str())).collect()
}

#[test]
fn a_check_that_fails_exits_with_1() {
    let (exit_code, checked) = report().check("fails");
    assert_eq!((exit_code, checked.worst()), (Some(1), State::Fail));
}

#[test]
fn a_check_that_only_warns_exits_with_0() {
    let (exit_code, checked) = report().check("warns");
    assert_eq!(
        (exit_code, checked.worst()),
        (Some(0), State::Warn),
        "{checked:?}"
    );
}

#[test]
fn when_all_is_mended_nothing_is_found() {
    let (exit_code, checked) = report().check("mended");
    assert_eq!(costly(&checked), [], "{checked:?}");
    assert_eq!(exit_code, Some(0));
}

#[test]
fn memory_away_from_gpu() {
    let pages = &report().raised["away"].pages;
    assert_eq!(*pages, all_on(0, MANY_PAGES));
    let found = raised("fails", "away", "memory-away-from-gpu");
    assert_eq!(found.severity, Severity::Fail);
    holds(evidence(&found, "resident on node 0"), MANY_PAGES * PAGE);
    cleared("away", "memory-away-from-gpu");
    assert_eq!(report().mended["away"].pages, all_on(1, MANY_PAGES));
}

#[test]
fn bound_to_wrong_node() {
    let found = raised("fails", "away", "bound-to-wrong-node");
    assert_eq!(found.severity, Severity::Fail);
    assert_eq!(
        found.summary,
        "it is bound to node 0, and GPU0 is on node 1"
    );
    cleared("away", "bound-to-wrong-node");
}

#[test]
fn threads_away_from_memory() {
    let found = raised("fails", "threads", "threads-away-from-memory");
    assert_eq!(found.severity, Severity::Fail);
    holds(evidence(&found, "resident on node 0"), PAGES * PAGE);
    assert!(evidence(&found, "CPU time on node 1") > VISIT.as_secs_f64());
    cleared("threads", "threads-away-from-memory");
}

#[test]
fn threads_wander() {
    let found = raised("warns", "wander", "threads-wander");
    assert_eq!(found.severity, Severity::Warn);
    // Each third visit of three CPUs is on node 0, and each takes the same CPU time and nine times that of sleep.
    let on_0 = evidence(&found, "CPU time on node 0");
    let share = on_0 / (on_0 + evidence(&found, "CPU time on node 1"));
    assert!((share - 1.0 / 3.0).abs() < 0.05, "{found:?}");
    let rate = evidence(&found, "moves between sockets");
    let most = 2.0 / 3.0 / (10.0 * VISIT.as_secs_f64());
    assert!(rate <= most, "{rate} of {most} moves a second");
    cleared("wander", "threads-wander");
}

#[test]
fn policy_is_a_hint() {
    let found = raised("warns", "preferred", "policy-is-a-hint");
    assert_eq!(found.severity, Severity::Warn);
    // All lies where it should all the same: it was lucky.
    assert_eq!(report().raised["preferred"].pages, all_on(1, PAGES));
    cleared("preferred", "policy-is-a-hint");
}

#[test]
fn memory_from_before_bind() {
    let found = raised("warns", "late", "memory-from-before-bind");
    assert_eq!(found.severity, Severity::Warn);
    assert_eq!(report().raised["late"].pages, all_on(0, PAGES));
    holds(
        evidence(&found, "resident, but for files, on node 0"),
        PAGES * PAGE,
    );
    cleared("late", "memory-from-before-bind");
    assert_eq!(report().mended["late"].pages, all_on(1, PAGES));
}

#[test]
fn weights_in_remote_page_cache() {
    let tenant = &report().raised["weights"];
    assert_eq!(tenant.pages, all_on(1, PAGES));
    assert_eq!(tenant.weights, all_on(0, WEIGHTS_PAGES));
    let found = raised("fails", "weights", "weights-in-remote-page-cache");
    assert_eq!(found.severity, Severity::Fail);
    is_about(evidence(&found, "weights on node 0"), WEIGHTS_PAGES * PAGE);
    cleared("weights", "weights-in-remote-page-cache");
    assert_eq!(report().mended["weights"].weights, all_on(1, WEIGHTS_PAGES));
}

#[test]
fn weights_in_the_page_cache_are_no_memory_from_before_the_bind() {
    let (_, checked) = report().check("fails");
    let pid = report().raised["weights"].pid;
    assert_eq!(finding(&checked, pid, "memory-from-before-bind"), None);
}

#[test]
fn cpuset_forbids_gpu_node() {
    let found = raised("fails", "cpuset", "cpuset-forbids-gpu-node");
    assert_eq!(found.severity, Severity::Fail);
    assert!(
        found
            .summary
            .contains("/tenant forbids the memory and CPUs of node 1"),
        "{found:?}"
    );
    assert_eq!(report().raised["cpuset"].pages, all_on(0, PAGES));
    cleared("cpuset", "cpuset-forbids-gpu-node");
    // The kernel moved its memory along with the cpuset.
    assert_eq!(report().at_the_end["cpuset"].pages, all_on(1, PAGES));
}

#[test]
fn node_is_full() {
    let found = raised("warns", "full", "node-is-full");
    assert_eq!(found.severity, Severity::Warn);
    let [before, after] = report().full[..] else {
        panic!("{:?}", report().full);
    };
    // Of the node's GiB under 5 %, as the kernel counted it too: it was filled to 99 %, and the kernel has begun to take page
    // cache away from it since.
    let full = 0.05 * f64::from(1 << 30);
    assert!(evidence(&found, "free on node 1") < full, "{found:?}");
    assert!((after.free_bytes as f64) < full, "{after:?}");
    // It watched for two seconds of the time in which the kernel counted these.
    let seen = evidence(&found, "allocations meant for it that went elsewhere") * 2.0;
    let counted = (after.foreign - before.foreign) as f64;
    assert!(seen >= 32.0 && seen <= counted, "{seen} of {counted}");
    cleared("full", "node-is-full");
}
