//! Reads sysfs and procfs from a root that tests can replace.

pub(crate) mod available;
pub(crate) mod bind;
pub(crate) mod cache;
pub(crate) mod capabilities;
pub(crate) mod cgroup;
pub(crate) mod cpu_time;
pub(crate) mod cpulist;
pub(crate) mod device_files;
pub(crate) mod devices;
pub(crate) mod error;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod kernel;
pub(crate) mod lockdown;
#[cfg(test)]
pub(crate) mod machines;
pub(crate) mod maps;
pub(crate) mod memory_filesystems;
pub(crate) mod move_pages;
pub(crate) mod namespaces;
pub(crate) mod numa_maps;
pub(crate) mod nvidia;
pub(crate) mod nvml;
pub(crate) mod own_bpf;
pub(crate) mod page_flags;
pub(crate) mod pagemap;
pub(crate) mod pci;
pub(crate) mod placement;
pub(crate) mod process;
pub(crate) mod root;
pub(crate) mod self_cost;
pub(crate) mod status;
pub(crate) mod surroundings;
pub(crate) mod topology;
pub(crate) mod vmstat;
