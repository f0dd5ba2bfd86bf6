//! One body, two programs: by a typed attachment where the kernel allows it, and by the rung below.

/// At a function's entry: fentry, and kprobe.
macro_rules! entry {
    ($(#[$doc:meta])* fn $fentry:ident, $kprobe:ident($($arg:ident: $type:ty = $index:literal),*) $body:expr) => {
        $(#[$doc])*
        #[aya_ebpf::macros::fentry]
        pub(crate) fn $fentry(ctx: aya_ebpf::programs::FEntryContext) -> i32 {
            $(let $arg: $type = ctx.arg($index);)*
            let _ = ctx;
            $body;
            0
        }

        /// The same by kprobe.
        #[aya_ebpf::macros::kprobe]
        pub(crate) fn $kprobe(ctx: aya_ebpf::programs::ProbeContext) -> u32 {
            $(let Some($arg) = ctx.arg::<$type>($index) else { return 0 };)*
            let _ = ctx;
            $body;
            0
        }
    };
}

/// At a function's exit: fexit, and kretprobe.
macro_rules! exit {
    ($(#[$doc:meta])* fn $fexit:ident, $kretprobe:ident() $body:expr) => {
        $(#[$doc])*
        #[aya_ebpf::macros::fexit]
        pub(crate) fn $fexit(_ctx: aya_ebpf::programs::FExitContext) -> i32 {
            $body;
            0
        }

        /// The same by kretprobe.
        #[aya_ebpf::macros::kretprobe]
        pub(crate) fn $kretprobe(_ctx: aya_ebpf::programs::RetProbeContext) -> u32 {
            $body;
            0
        }
    };
}

/// At a tracepoint: BTF-typed, and raw.
macro_rules! tracepoint {
    ($(#[$doc:meta])* fn $typed:ident, $raw:ident($($arg:ident: $type:ty = $index:literal),*) $body:expr) => {
        $(#[$doc])*
        #[aya_ebpf::macros::btf_tracepoint]
        pub(crate) fn $typed(ctx: aya_ebpf::programs::BtfTracePointContext) -> i32 {
            $(let $arg: $type = ctx.arg($index);)*
            let _ = ctx;
            $body;
            0
        }

        /// The same by raw tracepoint.
        #[aya_ebpf::macros::raw_tracepoint]
        pub(crate) fn $raw(ctx: aya_ebpf::programs::RawTracePointContext) -> i32 {
            $(let $arg: $type = ctx.arg($index);)*
            let _ = ctx;
            $body;
            0
        }
    };
}

pub(crate) use {entry, exit, tracepoint};
