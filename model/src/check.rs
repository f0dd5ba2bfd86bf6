//! What `numawatch check` answers: the four questions before a replica is added, then the other findings.

use crate::finding::{Finding, Severity};
use crate::findings::{Subject, View, findings};
use crate::list;
use crate::policy::PolicyMode;
use crate::process::Process;
use crate::signal::SignalName;
use serde::{Deserialize, Serialize};

/// How a question was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum State {
    /// As it should be.
    Pass,
    /// No signal tells.
    Unknown,
    /// It may cost.
    Warn,
    /// It costs.
    Fail,
}

impl State {
    /// The word on screens.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Unknown => "UNKNOWN",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
        }
    }
}

/// One question, answered for one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Stable: `remote-share`, `device-node`, `worker-affinity`, `pinned-buffers`.
    pub id: String,
    /// The process.
    pub pid: u32,
    /// The answer.
    pub state: State,
    /// One line: what was seen, or why nothing was.
    pub summary: String,
}

/// All that a check says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The four questions, a process after the other.
    pub answers: Vec<Answer>,
    /// What else was found, and the evidence of what failed.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The worst of it; [`State::Unknown`] if nobody could be asked about.
    #[must_use]
    pub fn worst(&self) -> State {
        let nobody = self.answers.is_empty().then_some(State::Unknown);
        let found = self.findings.iter().map(|f| match f.severity {
            Severity::Info => State::Pass,
            Severity::Warn => State::Warn,
            Severity::Fail => State::Fail,
        });
        let answered = self.answers.iter().map(|a| a.state);
        answered
            .chain(found)
            .chain(nobody)
            .max()
            .unwrap_or(State::Pass)
    }
}

/// Answers for each live process of the newest snapshot.
#[must_use]
pub fn check(view: &View<'_>) -> Report {
    let findings = findings(view);
    let alive = view.now.processes.iter().filter(|p| p.alive);
    let answers = alive
        .flat_map(|process| four(view, process, &findings))
        .collect();
    Report { answers, findings }
}

fn four(view: &View<'_>, process: &Process, findings: &[Finding]) -> [Answer; 4] {
    let subject = Subject::new(view, process);
    let answer = |id: &str, ids: &[&str], clear: Result<String, String>| {
        let found = findings
            .iter()
            .filter(|f| f.pid == Some(process.pid) && ids.contains(&f.id.as_str()))
            .max_by_key(|f| f.severity);
        let (state, summary) = match (found, clear) {
            (Some(f), _) if f.severity == Severity::Fail => (State::Fail, f.summary.clone()),
            (Some(f), _) if f.severity == Severity::Warn => (State::Warn, f.summary.clone()),
            (_, Ok(seen)) => (State::Pass, seen),
            (_, Err(why)) => (State::Unknown, why),
        };
        Answer {
            id: id.to_owned(),
            pid: process.pid,
            state,
            summary,
        }
    };
    [
        remote_share(view, process),
        answer(
            "device-node",
            &[
                "bound-to-wrong-node",
                "cpuset-forbids-gpu-node",
                "memory-away-from-gpu",
                "policy-is-a-hint",
            ],
            device_node(&subject, process),
        ),
        answer(
            "worker-affinity",
            &["worker-affinity-differs", "threads-wander"],
            match (&process.cpus_allowed, process.threads.is_empty()) {
                (Some(cpus), false) => Ok(format!(
                    "nothing says that its threads may leave CPUs {cpus}"
                )),
                _ => Err("its threads' affinity can't be read".to_owned()),
            },
        ),
        answer(
            "pinned-buffers",
            &[
                "pinned-before-bind",
                "pinned-on-wrong-node",
                "driver-memory-on-wrong-node",
                "locked-on-wrong-node",
            ],
            pinned(&subject, process),
        ),
    ]
}

/// Is the remote share near zero?
fn remote_share(view: &View<'_>, process: &Process) -> Answer {
    let t = view.thresholds;
    let share = &process.remote_share;
    let (state, summary) = match share.value {
        None => (
            State::Unknown,
            "no hint touches, and no placement with CPU time to estimate from".to_owned(),
        ),
        Some(value) => {
            let state = if value >= t.remote_from {
                State::Fail
            } else if value >= t.mixed_from {
                State::Warn
            } else {
                State::Pass
            };
            let how = match share.signal {
                Some(crate::verdict::ShareSignal::Hint) => "of hint touches are remote",
                _ => "of its memory is remote to its threads, by estimate",
            };
            (state, format!("{:.0} % {how}", value * 100.0))
        }
    };
    Answer {
        id: "remote-share".to_owned(),
        pid: process.pid,
        state,
        summary,
    }
}

/// Is the device's node the node to which it is bound?
fn device_node(subject: &Subject<'_>, process: &Process) -> Result<String, String> {
    if subject.nodes() < 2 {
        return Ok("this machine shows one node".to_owned());
    }
    if process.devices.is_empty() {
        return Err("no GPU that it uses is known".to_owned());
    }
    let home = subject
        .device_home()
        .ok_or("which node its GPUs are on is unknown: numa_node reads -1, or it has GPUs of several nodes open")?;
    let placing = &process.placing;
    let bound = match (&placing.policy, &placing.mems_allowed) {
        (Some(policy), _) if policy.mode == PolicyMode::Bind => &policy.nodes,
        (_, Some(mems)) if mems.len() < subject.nodes() => mems,
        (Some(_), _) => {
            return Err(format!(
                "nothing binds it to the node of {}: where memory lies is left to chance",
                home.because
            ));
        }
        (None, _) => return Err("its memory policy can't be read".to_owned()),
    };
    if bound.iter().all(|node| home.nodes.contains(node)) {
        Ok(format!(
            "{} and its memory are bound to node {}",
            home.because,
            list::format(bound)
        ))
    } else {
        Err(format!(
            "it may allocate on nodes {}, {} is on {}",
            list::format(bound),
            home.because,
            list::format(&home.nodes.iter().copied().collect::<Vec<_>>())
        ))
    }
}

/// Are pinned buffers on the right node, taken after the bind? What was pinned before it was watched can't be told, so a
/// process that has a GPU and pinned nothing since is no pass.
fn pinned(subject: &Subject<'_>, process: &Process) -> Result<String, String> {
    let live = subject.trusts(SignalName::Pin);
    let made = process.pinned.made.pages.filter(|_| live);
    let before = process.pinned.bytes.unwrap_or(0);
    let judged = subject.device_home().is_some() || subject.bound_to().is_some();
    match made {
        None => Err("no signal tells of pins here".to_owned()),
        Some(0) if process.devices.is_empty() && before == 0 => {
            Ok("nothing was pinned while it was watched".to_owned())
        }
        Some(0) => Err(format!(
            "nothing was pinned while it was watched, {} MiB are accounted as pinned; watch its start to see where",
            before >> 20
        )),
        Some(pages) if judged && process.pinned.made.by_node.is_some() => Ok(format!(
            "{pages} pages were pinned while it was watched, on the right node"
        )),
        Some(pages) => Err(format!(
            "{pages} pages were pinned while it was watched, and neither a GPU nor a policy says where they should be"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            answers: states.iter().copied().map(answer).collect(),
            findings: Vec::new(),
        };
        assert_eq!(report(&[]).worst(), State::Unknown);
        assert_eq!(report(&[State::Pass]).worst(), State::Pass);
        assert_eq!(
            report(&[State::Pass, State::Unknown]).worst(),
            State::Unknown
        );
        assert_eq!(report(&[State::Warn, State::Unknown]).worst(), State::Warn);
        assert_eq!(report(&[State::Fail, State::Warn]).worst(), State::Fail);
    }
}
