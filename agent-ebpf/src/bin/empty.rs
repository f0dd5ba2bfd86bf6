//! Programs that do nothing, one of each type: what the kernel's statistics read at a place without any work there.
//!
//! `cargo xtask bench probes` loads one a place, and takes what it costs off what numawatch's program there costs.
#![no_std]
#![no_main]

use aya_ebpf::macros::{
    btf_tracepoint, fentry, fexit, kprobe, kretprobe, raw_tracepoint, tracepoint,
};
use aya_ebpf::programs::{
    BtfTracePointContext, FEntryContext, FExitContext, ProbeContext, RawTracePointContext,
    RetProbeContext, TracePointContext,
};

macro_rules! empty {
    ($($type:ident $name:ident($context:ty) -> $result:ty);+ $(;)?) => {$(
        /// Does nothing.
        #[$type]
        pub(crate) fn $name(_: $context) -> $result {
            0
        }
    )+};
}
empty! {
    btf_tracepoint empty_tp_btf(BtfTracePointContext) -> i32;
    raw_tracepoint empty_raw_tp(RawTracePointContext) -> i32;
    tracepoint empty_tracepoint(TracePointContext) -> u32;
    fentry empty_fentry(FEntryContext) -> i32;
    fexit empty_fexit(FExitContext) -> i32;
    kprobe empty_kprobe(ProbeContext) -> u32;
    kretprobe empty_kretprobe(RetProbeContext) -> u32;
}

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// As the programs that are measured.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
