//! What numawatch says of known workloads in a two-node guest, on two kernels; one boot a kernel serves all tests.
//!
//! The clauses of the foundation's "Done when" have theirs in the names: `done_when_2_…`.

use std::path::Path;
use std::sync::OnceLock;
use tests::vm::Guest;

/// Each test once a kernel.
macro_rules! on_each_kernel {
    ($($test:ident),* $(,)?) => {
        mod kernel_6_1 {
            $(#[test] fn $test() { super::$test(crate::kernel_6_1()); })*
        }
        mod kernel_6_12 {
            $(#[test] fn $test() { super::$test(crate::kernel_6_12()); })*
        }
    };
}

/// Each test on 6.12 only.
macro_rules! on_kernel_6_12 {
    ($($test:ident),* $(,)?) => {
        mod kernel_6_12 {
            $(#[test] fn $test() { super::$test(crate::kernel_6_12()); })*
        }
    };
}

/// Each test on 6.1 only.
macro_rules! on_kernel_6_1 {
    ($($test:ident),* $(,)?) => {
        mod kernel_6_1 {
            $(#[test] fn $test() { super::$test(crate::kernel_6_1()); })*
        }
    };
}

#[path = "guest/balancing.rs"]
mod balancing;
#[path = "guest/json.rs"]
mod json;
#[path = "guest/kprobes.rs"]
mod kprobes;
#[path = "guest/leftovers.rs"]
mod leftovers;
#[path = "guest/lifecycle.rs"]
mod lifecycle;
#[path = "guest/missed.rs"]
mod missed;
#[path = "guest/placement.rs"]
mod placement;
#[path = "guest/sched.rs"]
mod sched;
#[path = "guest/signals.rs"]
mod signals;
#[path = "guest/touch.rs"]
mod touch;
#[path = "guest/tracepoints.rs"]
mod tracepoints;

fn kernel_6_1() -> &'static Guest {
    static GUEST: OnceLock<Guest> = OnceLock::new();
    boot_the_other(kernel_6_12);
    GUEST.get_or_init(|| play("6.1"))
}

fn kernel_6_12() -> &'static Guest {
    static GUEST: OnceLock<Guest> = OnceLock::new();
    boot_the_other(kernel_6_1);
    GUEST.get_or_init(|| play("6.12"))
}

/// When all tests run, both guests are needed: they boot side by side, each on a CPU of its own.
fn boot_the_other(other: fn() -> &'static Guest) {
    static BOOTED: OnceLock<()> = OnceLock::new();
    BOOTED.get_or_init(|| {
        if std::env::args()
            .skip(1)
            .all(|argument| argument.starts_with('-'))
        {
            std::thread::spawn(other);
        }
    });
}

fn play(kernel: &str) -> Guest {
    Guest::play(kernel, Path::new(env!("CARGO_BIN_EXE_scenario")))
}
