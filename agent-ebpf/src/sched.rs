//! Scheduling: on-CPU time per thread and node, and moves of threads between nodes.
//!
//! Traces the tracepoint `sched_switch` (BTF-typed or raw), where the leaving thread is still current.
//! Produces `SchedRow`, `Thread::on_cpu_ns` and `Cpu`. Run time is the scheduler's own account, which leaves out what
//! interrupts and a hypervisor took: a clock's difference would count that too. The user side registers the threads that
//! exist when a process is first watched; whoever appears later was born since, and counts from zero, unless threads
//! have found no room since: then its own count of switches tells. A thread that has not switched for minutes is in no
//! row: the user side adds the slice under way, and finds it by `Cpu`.

use agent_ebpf::{Lost, NO_NODE, SWITCHING, Thread};
use aya_ebpf::EbpfContext;
use aya_ebpf::macros::{btf_tracepoint, raw_tracepoint};
use aya_ebpf::programs::{BtfTracePointContext, RawTracePointContext};
use aya_log_ebpf::warn;

use crate::kernel::{self, Task};
use crate::rows::{self, CPUS, Current};

/// `sched_switch(bool preempt, struct task_struct *prev, struct task_struct *next, …)`, 5.5 and later.
#[btf_tracepoint(function = "sched_switch")]
pub(crate) fn sched_switch(ctx: BtfTracePointContext) -> i32 {
    switch(&ctx, Task::Typed(ctx.arg(1)), Task::Typed(ctx.arg(2)));
    0
}

/// The same by raw tracepoint.
#[raw_tracepoint(tracepoint = "sched_switch")]
pub(crate) fn raw_sched_switch(ctx: RawTracePointContext) -> i32 {
    switch(&ctx, Task::Bare(ctx.arg(1)), Task::Bare(ctx.arg(2)));
    0
}

#[inline(always)]
fn switch(ctx: &impl EbpfContext, leaving: Task, coming: Task) {
    let (tgid, tid) = kernel::current();
    let cpu = CPUS.get_ptr_mut(0);
    if let Some(cpu) = cpu {
        // SAFETY: a per-CPU value, and context switches of one CPU don't nest.
        unsafe { core::ptr::write_volatile(&raw mut (*cpu).tid, u64::from(tid) | SWITCHING) };
    }
    if let Some(current) = Current::of(tgid, tid) {
        leave(ctx, &current, leaving);
    }
    if let Some(cpu) = cpu {
        // SAFETY: as above. Whoever reads the next thread's id finds the last one's slice in its row.
        unsafe {
            core::ptr::write_volatile(&raw mut (*cpu).switches, (*cpu).switches + 1);
            core::ptr::write_volatile(&raw mut (*cpu).tid, coming.tid().unwrap_or(0).into());
        }
    }
}

#[inline(always)]
fn leave(ctx: &impl EbpfContext, current: &Current, task: Task) {
    let node = kernel::cpu_node();
    let Some(thread) = rows::thread(current) else {
        return;
    };
    let Some(run_time) = task.run_time() else {
        return;
    };
    // SAFETY: this thread's own rows.
    unsafe {
        let owner = (*thread).task;
        if owner != 0 && owner != task.address() {
            // A thread in the middle of an exec has its leader's tid already. When the exec is told, its own state comes
            // along, and this slice counts with the next.
            return;
        }
        if (*thread).home_node == NO_NODE {
            (*thread).home_node = node;
        }
        if (*thread).run_time_ns == 0 && rows::threads_were_full() && task.switches() != Some(1) {
            // It ran before there was room for its state: that is lost and counted as such. This slice is lost too, since
            // nobody knows where it began.
            rows::lost(Lost::Row);
            (*thread).task = task.address();
            (*thread).run_time_ns = run_time;
            (*thread).last_node = node;
            return;
        }
        let at_home = (*thread).home_node == node;
        let last = (*thread).last_node;
        let moved = last != node && last != NO_NODE;
        // Three paths, each with its own pointers: the verifier can't follow one that may be none.
        if at_home && !moved {
            if let Some(ran) = ran(ctx, current, thread, &task, run_time) {
                (*thread).on_cpu_ns += ran;
                (*thread).last_node = node;
            }
            return;
        }
        let Some(row) = rows::sched_row(current, node) else {
            // Lost, and counted as such: what needs no row counts, and the next slice begins here, or what this one ran
            // would count to the node where the next one ends.
            if let Some(ran) = ran(ctx, current, thread, &task, run_time) {
                if at_home {
                    (*thread).on_cpu_ns += ran;
                }
                (*thread).last_node = node;
            }
            return;
        };
        let Some(ran) = ran(ctx, current, thread, &task, run_time) else {
            return;
        };
        if at_home {
            (*thread).on_cpu_ns += ran;
        } else {
            (*row).on_cpu_ns += ran;
        }
        if moved {
            rows::add(&raw mut (*row).moves_from, rows::slot(node, last), 1);
        }
        (*thread).last_node = node;
    }
}

/// Nanoseconds since its last switch-out, from which the next slice counts; `None` when its account fell.
///
/// # Safety
/// `thread` is the current thread's row.
#[inline(always)]
unsafe fn ran(
    ctx: &impl EbpfContext,
    current: &Current,
    thread: *mut Thread,
    task: &Task,
    run_time: u64,
) -> Option<u64> {
    // SAFETY: the caller's.
    let before = unsafe {
        (*thread).task = task.address();
        core::mem::replace(&mut (*thread).run_time_ns, run_time)
    };
    if run_time < before {
        warn!(
            ctx,
            "run time of thread {} fell from {} to {} ns", current.tid, before, run_time
        );
        return None;
    }
    Some(run_time - before)
}
