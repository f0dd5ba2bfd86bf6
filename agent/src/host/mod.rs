//! Reads sysfs and procfs from a root that tests can replace.
