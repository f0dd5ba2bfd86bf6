//! What the black-box tests share: sessions of workloads under numawatch, played here or in the guest.

pub mod bound;
pub mod bpf;
pub mod built;
pub mod cgroup;
pub mod compare;
pub mod findings;
pub mod forced;
pub mod launch;
pub mod leftovers;
pub mod matrix;
pub mod play;
pub mod process;
pub mod prometheus;
pub mod rows;
pub mod self_test;
pub mod session;
pub mod sessions;
pub mod settings;
pub mod sysctl;
pub mod terminal;
pub mod truth;
pub mod vm;
