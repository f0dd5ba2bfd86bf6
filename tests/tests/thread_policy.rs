//! A thread's own memory policy, on the machine that runs the tests: this test's process is the one that is watched.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

use model::snapshot::Snapshot;
use std::process::Command;
use tests::built::numawatch;

/// By the system call: libraries do no more.
fn bind_this_thread(node: u32) {
    let mask = 1_u64 << node;
    // SAFETY: a mask of 64 bits, of which the kernel reads as many.
    let done = unsafe {
        libc::syscall(
            libc::SYS_set_mempolicy,
            libc::MPOL_BIND,
            &raw const mask,
            64,
        )
    };
    assert_eq!(done, 0, "set_mempolicy");
}

#[test]
fn a_thread_that_binds_itself_is_told_apart_from_its_process() {
    let node = tests::bound::node();
    let watched = std::thread::spawn(move || {
        bind_this_thread(node);
        // SAFETY: it takes nothing and can't fail.
        let tid = unsafe { libc::gettid() };
        let output = Command::new(numawatch())
            .args(["snapshot", "--json", "--for", "1s", "--pid"])
            .arg(std::process::id().to_string())
            .output()
            .expect("numawatch starts");
        (tid, output)
    });
    let (tid, output) = watched.join().expect("the thread");
    let snapshot: Snapshot = serde_json::from_slice(&output.stdout).expect("a snapshot");
    let processes = snapshot.processes.iter();
    let mut own = processes.filter(|p| p.pid == std::process::id());
    let own = own.next().expect("this process");
    let policies: Vec<(u32, String)> = own
        .threads
        .iter()
        .filter_map(|t| Some((t.tid, t.policy.as_ref()?.to_string())))
        .collect();
    let tid = u32::try_from(tid).expect("a tid");
    assert_eq!(policies, [(tid, format!("bind:{node}"))]);
}
