//! What numawatch knows and concludes, as plain data and pure functions: no I/O, no async, no clock of its own.
//!
//! Data goes one way: a sampler fills a [`snapshot::Snapshot`] a tick; dashboards, exporters and checks read it.

pub mod balancing;
pub mod catalogue;
pub mod cgroup;
pub mod check;
pub mod container;
pub mod cost;
pub mod device_use;
pub mod devices;
pub mod even_sample;
pub mod finding;
pub mod findings;
pub mod gpus;
pub mod judge;
pub mod launch;
pub mod link;
pub mod list;
pub mod locality;
pub mod locked;
pub mod mapping;
pub mod mounts;
pub mod policy;
pub mod process;
pub mod random;
pub mod rates;
pub mod sampled;
pub mod sampling;
pub mod selftest;
pub mod signal;
pub mod size;
pub mod snapshot;
pub mod thresholds;
pub mod time;
pub mod topology;
pub mod unknown;
pub mod verdict;
pub mod window;
