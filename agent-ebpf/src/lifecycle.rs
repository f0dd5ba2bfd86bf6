//! Lifecycle: keeps the set of tracked processes right across fork, exec and exit.
//!
//! Traces the tracepoints `sched_process_fork`, `sched_process_exec` and `sched_process_exit` (BTF-typed or
//! raw). Produces `Tracked` of children, `Thread::exited`, `Tracked::exited` and `News`.

use agent_ebpf::{Lost, NEWS_EXEC, NEWS_EXIT, NEWS_FORK, NO_NODE, News, Thread, Tracked};
use aya_ebpf::bindings::BPF_ANY;
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;

use crate::kernel;
use crate::rows::{self, Current, NEWS, THREADS, TRACKED, lost};
use crate::twins::tracepoint;

tracepoint! {
    /// `sched_process_fork(struct task_struct *parent, struct task_struct *child)`, 5.5 and later; the parent is current.
    fn sched_process_fork, raw_sched_process_fork(child: *const u8 = 1)
    forked(child)
}

#[inline(always)]
fn forked(child: *const u8) {
    let Some((child_tgid, child_tid)) = kernel::task_ids(child) else {
        return;
    };
    let (tgid, _) = kernel::current();
    if child_tgid == tgid {
        born(tgid, child_tid);
        return;
    }
    if let Some(thread) = THREADS.get_ptr_mut(child_tid) {
        // SAFETY: its owner is gone: a thread that first counted after it began to exit has not said so.
        unsafe { (*thread).exited = 1 };
    }
    if rows::tracked(tgid).is_none() {
        // A pid that comes back to a stranger: its predecessor is no longer to be counted.
        if rows::tracked(child_tgid).is_some() {
            let _ = TRACKED.remove(child_tgid);
        }
        return;
    }
    // SAFETY: no arguments.
    let cookie = unsafe { bpf_ktime_get_ns() };
    let child = Tracked {
        cookie,
        parent: tgid,
        exited: 0,
    };
    if TRACKED
        .insert(child_tgid, child, u64::from(BPF_ANY))
        .is_err()
    {
        lost(Lost::Process);
        return;
    }
    tell(NEWS_FORK, child_tgid);
}

/// A thread: its rows are made when it first counts. If its tid was another's before, whose rows are not folded yet, its
/// run time and its moves begin anew.
#[inline(always)]
fn born(tgid: u32, tid: u32) {
    if rows::tracked(tgid).is_none() {
        return;
    }
    if let Some(thread) = THREADS.get_ptr_mut(tid) {
        // SAFETY: its predecessor is gone, and it does not run yet.
        unsafe {
            begin_anew(thread);
            (*thread).exited = 0;
        }
    }
}

/// Another thread has the tid now.
///
/// # Safety
/// `thread` is a value of `THREADS` that nobody else writes.
#[inline(always)]
unsafe fn begin_anew(thread: *mut Thread) {
    // SAFETY: the caller's.
    unsafe {
        (*thread).task = 0;
        (*thread).run_time_ns = 0;
        (*thread).last_node = NO_NODE;
    }
}

tracepoint! {
    /// `sched_process_exec(struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)`, 5.5 and later.
    ///
    /// A thread that isn't the leader takes the leader's tid when it executes; the old leader is gone by then.
    fn sched_process_exec, raw_sched_process_exec(old_tid: u32 = 1)
    executed(old_tid)
}

#[inline(always)]
fn executed(old_tid: u32) {
    let (tgid, tid) = kernel::current();
    tell(NEWS_EXEC, tgid);
    let Some(current) = Current::get() else {
        return;
    };
    if old_tid == tid {
        return;
    }
    let Some(now) = rows::thread(&current) else {
        return;
    };
    // SAFETY: both are this thread's now.
    unsafe {
        match THREADS.get_ptr_mut(old_tid) {
            Some(before) if (*before).cookie == current.cookie => {
                (*now).last_node = (*before).last_node;
                (*now).run_time_ns = (*before).run_time_ns;
                (*now).task = (*before).task;
                (*before).last_node = NO_NODE;
                (*before).exited = 1;
            }
            // It has not switched since its birth, and all of its run time is to be counted; or its state found no room,
            // which the next switch tells.
            _ => begin_anew(now),
        }
        (*now).exited = 0;
    }
}

tracepoint! {
    /// `sched_process_exit(struct task_struct *p, …)`, 5.5 and later; `p` is current and still has its last slice to run.
    fn sched_process_exit, raw_sched_process_exit()
    exits()
}

#[inline(always)]
fn exits() {
    let (tgid, tid) = kernel::current();
    let Some(process) = TRACKED.get_ptr_mut(tgid) else {
        return;
    };
    if let Some(thread) = THREADS.get_ptr_mut(tid) {
        // SAFETY: this thread's own state.
        unsafe { (*thread).exited = 1 };
    }
    if kernel::current_is_last_thread() {
        // SAFETY: written once, by the last thread.
        unsafe { (*process).exited = 1 };
        tell(NEWS_EXIT, tgid);
    }
}

#[inline(always)]
fn tell(kind: u32, tgid: u32) {
    if NEWS.output::<News>(News { kind, tgid }, 0).is_err() {
        lost(Lost::News);
    }
}
