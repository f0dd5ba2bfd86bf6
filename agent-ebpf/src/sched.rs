//! Scheduling: on-CPU time per thread and node, and moves of threads between nodes.
//!
//! Traces the tracepoint `sched_switch` (BTF-typed, Linux 5.5 and later), where the leaving thread is still current.
//! Produces `SchedRow`, `Thread::on_cpu_ns` and `Cpu`. A thread that has not switched for minutes is in no row: the
//! user side adds the slice under way from `Cpu`.

use agent_ebpf::NO_NODE;
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::macros::btf_tracepoint;
use aya_ebpf::programs::BtfTracePointContext;
use aya_log_ebpf::warn;

use crate::kernel;
use crate::rows::{self, CPUS, Current};

/// `sched_switch(bool preempt, struct task_struct *prev, struct task_struct *next, …)`, 5.5 and later.
#[btf_tracepoint(function = "sched_switch")]
pub(crate) fn sched_switch(ctx: BtfTracePointContext) -> i32 {
    // SAFETY: no arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    let Some(cpu) = CPUS.get_ptr_mut(0) else {
        return 0;
    };
    let next: *const u8 = ctx.arg(2);
    // SAFETY: a per-CPU value, and context switches of one CPU don't nest.
    let began = unsafe {
        let began = (*cpu).switched_at;
        // A reader that sees tid 0 knows that the record is being written.
        core::ptr::write_volatile(&raw mut (*cpu).tid, 0);
        core::ptr::write_volatile(&raw mut (*cpu).switched_at, now);
        core::ptr::write_volatile(
            &raw mut (*cpu).tid,
            kernel::task_tid(next).unwrap_or(0).into(),
        );
        began
    };
    if let Some(current) = Current::get() {
        leave(&ctx, &current, began, now);
    }
    0
}

#[inline(always)]
fn leave(ctx: &BtfTracePointContext, current: &Current, began: u64, now: u64) {
    let node = kernel::cpu_node();
    let (Some(thread), Some(row)) = (rows::thread(current), rows::sched_row(current, node)) else {
        return;
    };
    // A slice that began before the process was tracked counts from then on.
    let began = began.max(current.cookie);
    if now < began {
        warn!(
            ctx,
            "clock went back: thread {} left at {} before {}", current.tid, now, began
        );
        return;
    }
    // SAFETY: this thread's own rows.
    unsafe {
        (*row).on_cpu_ns += now - began;
        (*thread).on_cpu_ns += now - began;
        let last = (*thread).last_node;
        if last != node {
            if last != NO_NODE {
                rows::add(&raw mut (*row).moves_from, rows::slot(node, last), 1);
            }
            (*thread).last_node = node;
        }
    }
}
