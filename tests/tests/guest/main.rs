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

mod balancing;
mod json;
mod leftovers;
mod lifecycle;
mod sched;
mod signals;
mod touch;

fn kernel_6_1() -> &'static Guest {
    static GUEST: OnceLock<Guest> = OnceLock::new();
    GUEST.get_or_init(|| play("6.1"))
}

fn kernel_6_12() -> &'static Guest {
    static GUEST: OnceLock<Guest> = OnceLock::new();
    GUEST.get_or_init(|| play("6.12"))
}

fn play(kernel: &str) -> Guest {
    Guest::play(kernel, Path::new(env!("CARGO_BIN_EXE_scenario")))
}
