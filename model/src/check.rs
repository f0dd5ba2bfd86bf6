//! What `numawatch check` answers: the four questions before a replica is added, then the other findings.

use crate::finding::{Finding, Severity};
use crate::findings::{Past, Subject, View};
use crate::list;
use crate::policy::PolicyMode;
use crate::process::Process;
use crate::signal::SignalName;
use crate::snapshot::{Lost, Snapshot};
use crate::thresholds::Thresholds;
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

/// A process that ended before it could be asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Its pid.
    pub pid: u32,
    /// Its name; `None` where it ended before it was seen.
    pub name: Option<String>,
}

/// All that a check says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Who was there or asked for at the beginning, and had ended at the end.
    #[serde(default)]
    pub ended: Vec<Ended>,
    /// The four questions, a process after the other.
    pub answers: Vec<Answer>,
    /// What else was found, and the evidence of what failed.
    pub findings: Vec<Finding>,
    /// What was not counted, or not told: with lost rows no answer that rests on counts is sure.
    #[serde(default)]
    pub lost: Lost,
}

impl Report {
    /// The worst of it; [`State::Unknown`] if nobody could be asked about, somebody no more, or counts were lost.
    #[must_use]
    pub fn worst(&self) -> State {
        let gone = self.answers.is_empty() || !self.ended.is_empty();
        let unsure = self.lost.rows.is_some_and(|rows| rows > 0);
        let nobody = (gone || unsure).then_some(State::Unknown);
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

/// Answers for each live process of the newest snapshot, whose conclusions were drawn with these thresholds; `asked` are
/// the pids that somebody named, and `began` is the snapshot at which watching began.
#[must_use]
pub fn check(
    began: &Snapshot,
    snapshot: &Snapshot,
    thresholds: &Thresholds,
    asked: &[u32],
) -> Report {
    let view = View {
        now: snapshot,
        past: &Past::default(),
        thresholds,
        cache_bytes: None,
    };
    let findings: Vec<Finding> = snapshot.all_findings().into_iter().cloned().collect();
    let alive = snapshot.processes.iter().filter(|p| p.alive);
    let answers = alive
        .flat_map(|process| four(&view, process, &findings))
        .collect();
    Report {
        ended: ended(began, snapshot, asked),
        answers,
        findings,
        lost: snapshot.host.lost.clone(),
    }
}

fn ended(began: &Snapshot, now: &Snapshot, asked: &[u32]) -> Vec<Ended> {
    let (began, now) = (&began.processes, &now.processes);
    let is_there = |p: &&Process| {
        let same = |q: &Process| (q.pid, q.start_time) == (p.pid, p.start_time);
        now.iter().any(|q| q.alive && same(q))
    };
    let seen = began.iter().filter(|p| p.alive && !is_there(p));
    let mut ended: Vec<Ended> = seen
        .map(|p| Ended {
            pid: p.pid,
            name: Some(p.name.clone()),
        })
        .collect();
    for pid in asked {
        let known = ended.iter().any(|e| e.pid == *pid);
        if known || now.iter().any(|p| p.alive && p.pid == *pid) {
            continue;
        }
        let last = now.iter().chain(began).find(|p| p.pid == *pid);
        ended.push(Ended {
            pid: *pid,
            name: last.map(|p| p.name.clone()),
        });
    }
    ended.sort_by_key(|e| e.pid);
    ended
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
            device_node(view, &subject, process),
        ),
        answer(
            "worker-affinity",
            &[
                "worker-affinity-differs",
                "worker-policy-differs",
                "threads-wander",
            ],
            worker_affinity(process),
        ),
        answer(
            "pinned-buffers",
            &[
                "pinned-before-bind",
                "pinned-on-wrong-node",
                "driver-memory-on-wrong-node",
                "locked-on-wrong-node",
            ],
            pinned(view, &subject, process),
        ),
    ]
}

fn worker_affinity(process: &Process) -> Result<String, String> {
    let threads = process.threads.len();
    match (&process.cpus_allowed, process.placing.threads_unasked) {
        (Some(_), 0) if threads > 0 && process.placing.policy.is_none() => {
            let why = process.placing.reason.as_deref();
            let why = why.unwrap_or("it was not read");
            Err(format!("its memory policy is not known: {why}"))
        }
        (Some(cpus), 0) if threads > 0 => Ok(format!(
            "nothing says that its threads may leave {}",
            list::counted("CPU", cpus)
        )),
        (Some(_), unasked @ 1..) => Err(format!(
            "affinity and policy of {unasked} of its {threads} threads are not known yet: watch it for longer"
        )),
        _ => Err("its threads' affinity can't be read".to_owned()),
    }
}

/// Whether its policy spreads its memory over several nodes.
fn is_interleaved(process: &Process) -> bool {
    let policy = process.placing.policy.as_ref();
    policy.is_some_and(|policy| {
        let spreads = matches!(
            policy.mode,
            PolicyMode::Interleave | PolicyMode::WeightedInterleave
        );
        spreads && policy.nodes.len() > 1
    })
}

/// Is the remote share near zero?
fn remote_share(view: &View<'_>, process: &Process) -> Answer {
    let t = view.thresholds;
    let share = &process.remote_share;
    let (state, summary) = match share.value {
        None => {
            let why = process.verdict_reason.clone();
            (
                State::Unknown,
                why.unwrap_or_else(|| "nothing tells".to_owned()),
            )
        }
        Some(value) => {
            let state = if value >= t.remote_from {
                // Spread on purpose, half of it is remote on two nodes; whether that is meant nobody can tell.
                if is_interleaved(process) {
                    State::Warn
                } else {
                    State::Fail
                }
            } else if value >= t.mixed_from {
                State::Warn
            } else {
                State::Pass
            };
            let how = match share.signal {
                Some(crate::verdict::ShareSignal::Hint) => "of hint touches are remote",
                _ => "of its memory is remote to its threads, by estimate",
            };
            let asked = if is_interleaved(process) && state != State::Pass {
                ", and its policy interleaves"
            } else {
                ""
            };
            (state, format!("{:.0} % {how}{asked}", value * 100.0))
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
fn device_node(
    view: &View<'_>,
    subject: &Subject<'_>,
    process: &Process,
) -> Result<String, String> {
    if let Some(why) = view.now.topology.hides_nodes() {
        return Err(format!("the machine's nodes can't be read: {why}"));
    }
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
            "{} and its memory are bound to {}",
            home.because,
            list::nodes(bound)
        ))
    } else {
        Err(format!(
            "it may allocate on {}, {} is on {}",
            list::nodes(bound),
            home.because,
            list::format(&home.nodes.iter().copied().collect::<Vec<_>>())
        ))
    }
}

/// Are pinned buffers on the right node, taken after the bind? What was pinned before it was watched can't be told, so a
/// process that has a GPU and pinned nothing since is no pass.
fn pinned(view: &View<'_>, subject: &Subject<'_>, process: &Process) -> Result<String, String> {
    if subject.nodes() < 2 && view.now.topology.hides_nodes().is_none() {
        return Ok("this machine shows one node".to_owned());
    }
    let live = subject.trusts(SignalName::Pin);
    let made = process.pinned.made.pages.filter(|_| live);
    let before = process.pinned.bytes;
    let judged = subject.device_home().is_some() || subject.bound_to().is_some();
    match made {
        None => Err("no signal tells of pins here".to_owned()),
        Some(0) if process.devices.is_empty() && before == Some(0) => {
            Ok("nothing was pinned while it was watched".to_owned())
        }
        Some(0) if before.is_none() => Err(
            "nothing was pinned while it was watched, and VmPin can't be read: what was pinned before is unknown"
                .to_owned(),
        ),
        Some(0) if before == Some(0) => Err(
            "nothing was pinned while it was watched, and VmPin is 0; GPU drivers pin without accounting there, so watch its start to see"
                .to_owned(),
        ),
        Some(0) => Err(format!(
            "nothing was pinned while it was watched, {} MiB are accounted as pinned; watch its start to see where",
            before.unwrap_or(0) >> 20
        )),
        Some(pages) if pages < subject.evidence_pages() => Err(format!(
            "only {pages} pages were pinned while it was watched: too few to tell"
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
#[path = "check_tests.rs"]
mod tests;
