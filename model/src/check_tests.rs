use super::*;
use crate::findings::tests::{process, snapshot, thread};
use crate::judge::Judge;
use crate::policy::Policy;

fn answer(state: State) -> Answer {
    Answer {
        id: "remote-share".to_owned(),
        pid: 1,
        state,
        summary: String::new(),
    }
}

#[test]
fn the_worst_answer_decides() {
    let report = |states: &[State]| Report {
        ended: Vec::new(),
        answers: states.iter().copied().map(answer).collect(),
        findings: Vec::new(),
        lost: Lost::default(),
    };
    assert_eq!(report(&[]).worst(), State::Unknown);
    assert_eq!(report(&[State::Pass]).worst(), State::Pass);
    let mut unsure = report(&[State::Pass]);
    unsure.lost.rows = Some(1);
    assert_eq!(unsure.worst(), State::Unknown);
    unsure.lost.rows = Some(0);
    assert_eq!(unsure.worst(), State::Pass);
    assert_eq!(
        report(&[State::Pass, State::Unknown]).worst(),
        State::Unknown
    );
    assert_eq!(report(&[State::Warn, State::Unknown]).worst(), State::Warn);
    assert_eq!(report(&[State::Fail, State::Warn]).worst(), State::Fail);
}

#[test]
fn a_remote_half_is_no_failure_where_the_policy_interleaves() {
    for (mode, want) in [
        (PolicyMode::Default, State::Fail),
        (PolicyMode::Interleave, State::Warn),
    ] {
        let mut spread = process();
        spread.placing.policy = Some(Policy {
            mode,
            nodes: vec![0, 1],
            flags: Vec::new(),
        });
        let report = checked(vec![process()], vec![spread], &[]);
        assert_eq!(report.answers[0].state, want, "{mode:?}");
    }
}

#[test]
fn threads_that_were_not_asked_are_no_pass() {
    for (unasked, want) in [(0, State::Pass), (3, State::Unknown)] {
        let mut asked = process();
        asked.threads = ["a", "b", "c", "d"].map(|name| thread(name, None)).into();
        asked.placing.threads_unasked = unasked;
        let report = checked(vec![process()], vec![asked], &[]);
        let answers = report.answers.iter();
        let mut affinity = answers.filter(|a| a.id == "worker-affinity");
        assert_eq!(affinity.next().map(|a| a.state), Some(want), "{unasked}");
    }
}

#[test]
fn a_machine_whose_nodes_are_hidden_is_no_pass() {
    let why = "/sys/devices/system/node has no nodes";
    for (reason, want) in [(None, State::Pass), (Some(why), State::Unknown)] {
        let mut now = snapshot(10, vec![process()]);
        now.topology.nodes.truncate(1);
        now.topology.nodes_reason = reason.map(str::to_owned);
        now.topology.nodes_hidden = reason.is_some();
        let mut judge = Judge::default();
        judge.judge(&mut now);
        let report = check(&now, &now, judge.thresholds(), &[]);
        let device = report.answers.iter().find(|a| a.id == "device-node");
        let device = device.unwrap();
        assert_eq!(device.state, want, "{device:?}");
        if let Some(why) = reason {
            assert!(device.summary.contains(why), "{device:?}");
        }
    }
}

#[test]
fn what_is_pinned_and_cannot_be_read_is_no_pass() {
    for (bytes, says) in [(Some(0), "VmPin is 0"), (None, "VmPin can't be read")] {
        let mut now = process();
        now.pinned.bytes = bytes;
        now.pinned.made.pages = Some(0);
        let report = checked(vec![process()], vec![now], &[]);
        let mut answers = report.answers.iter();
        let pinned = answers.find(|a| a.id == "pinned-buffers").unwrap();
        assert_eq!(pinned.state, State::Unknown, "{pinned:?}");
        assert!(pinned.summary.contains(says), "{pinned:?}");
    }
}

fn checked(began: Vec<Process>, now: Vec<Process>, asked: &[u32]) -> Report {
    let (mut began, mut now) = (snapshot(0, began), snapshot(10, now));
    let mut judge = Judge::default();
    judge.judge(&mut began);
    judge.judge(&mut now);
    check(&began, &now, judge.thresholds(), asked)
}

#[test]
fn who_ended_meanwhile_is_told_and_unknown() {
    let named = Ended {
        pid: 42,
        name: Some("server".to_owned()),
    };
    let gone = Process {
        alive: false,
        ..process()
    };
    let came_back = Process {
        start_time: 8,
        ..process()
    };
    for now in [Vec::new(), vec![gone], vec![came_back]] {
        let report = checked(vec![process()], now, &[42]);
        assert_eq!(report.ended, std::slice::from_ref(&named));
    }
    let at_once = Process {
        alive: false,
        ..process()
    };
    let report = checked(vec![at_once], Vec::new(), &[42]);
    assert_eq!(report.ended, std::slice::from_ref(&named));
    let report = checked(vec![process()], Vec::new(), &[]);
    assert_eq!((report.ended, report.answers.len()), (vec![named], 0));
    assert_eq!(
        checked(vec![process()], vec![process()], &[42]).ended,
        Vec::new()
    );
}

#[test]
fn who_ended_before_anybody_saw_it_has_no_name() {
    let report = checked(Vec::new(), vec![process()], &[7, 42]);
    let unseen = Ended { pid: 7, name: None };
    assert_eq!((&report.ended, report.answers.len()), (&vec![unseen], 4));
    assert_eq!(
        checked(Vec::new(), Vec::new(), &[7]).worst(),
        State::Unknown
    );
}

#[test]
fn an_idle_process_is_to_be_checked_under_load() {
    let mut idle = process();
    idle.remote_share.value = None;
    let report = checked(vec![idle.clone()], vec![idle], &[]);
    let summary = &report.answers[0].summary;
    let want = "it used no CPU time while it was watched: check it under load";
    assert!(summary.ends_with(want), "{summary}");
}
