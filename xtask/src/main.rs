//! Development tasks: build-ebpf, run, test, vm, dist.
fn main() {}
