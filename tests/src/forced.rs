//! Holds numawatch to a rung, as a kernel would that refuses those above it, or a user who may load no eBPF.

use model::signal::{Mechanism, SignalName};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// `CAP_SYS_ADMIN`, which stands in for the others, `CAP_PERFMON` and `CAP_BPF`.
const LOADING: [libc::c_ulong; 3] = [21, 38, 39];

/// Has the command measure every signal by this rung that has it; by procfs it may load no eBPF.
pub fn force(command: &mut Command, rung: Mechanism) {
    if rung != Mechanism::Procfs {
        command.args(options(rung));
        return;
    }
    // SAFETY: a system call between fork and exec, on the child alone.
    unsafe { command.pre_exec(may_not_load) };
}

/// Of each signal the rung, or to do without a program where it has no such one. The placement is procfs' anyway.
fn options(rung: Mechanism) -> Vec<String> {
    let has = |signal: SignalName| match signal {
        SignalName::FirstTouch | SignalName::Map | SignalName::Migration => true,
        // A context switch is a tracepoint, and nothing else.
        SignalName::Sched => rung != Mechanism::Kprobe,
        _ => rung == Mechanism::Kprobe,
    };
    SignalName::ALL
        .into_iter()
        .filter(|signal| *signal != SignalName::Placement)
        .filter_map(|signal| match (has(signal), signal) {
            (true, _) => Some((signal, rung.as_str())),
            (false, SignalName::Sched) => None,
            (false, _) => Some((signal, "off")),
        })
        .map(|(signal, rung)| format!("--mechanism={}={rung}", signal.as_str()))
        .collect()
}

/// Root gets at an exec what its bounding set has.
fn may_not_load() -> std::io::Result<()> {
    for capability in LOADING {
        // SAFETY: these arguments are numbers.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rung_is_forced_on_the_signals_that_may_have_it() {
        let tracepoints = options(Mechanism::TpBtf);
        assert_eq!(tracepoints.len(), SignalName::ALL.len() - 1);
        assert_eq!(tracepoints[0], "--mechanism=sched=tp_btf");
        assert!(tracepoints.contains(&"--mechanism=hint=off".to_owned()));
        let kprobes = options(Mechanism::Kprobe);
        assert_eq!(kprobes[0], "--mechanism=first_touch=kprobe");
        assert!(kprobes.contains(&"--mechanism=hint=kprobe".to_owned()));
    }
}
