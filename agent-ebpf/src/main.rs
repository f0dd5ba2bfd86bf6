//! The kernel side's entry points: one module a topic, and what they share in `rows` and `kernel`.
#![no_std]
#![no_main]

mod balance;
mod device;
mod kernel;
mod lifecycle;
mod rows;
mod sched;
mod touch;
mod touch_tracepoints;
mod twins;

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Kernel helpers are for GPL-compatible programs; the project's MIT licence is.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
