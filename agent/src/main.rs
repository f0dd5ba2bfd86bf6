//! numawatch: which inference process pays for remote memory, how much, and why.

mod engines;
mod export;
mod host;

fn main() {}
