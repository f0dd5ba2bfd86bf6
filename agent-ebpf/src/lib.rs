//! The ABI: what the kernel side writes and the user side reads. Plain `repr(C)`, no padding left implicit.
#![no_std]
