//! The kernel side.
#![no_std]
#![no_main]
