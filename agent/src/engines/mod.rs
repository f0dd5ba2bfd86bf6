//! Knows the inference engines by their command lines, and who else holds a GPU.

pub(crate) mod command;
pub(crate) mod gpu;
mod model_name;
pub(crate) mod rules;
pub(crate) mod scan;
pub(crate) mod selection;
mod table;
mod title;

#[cfg(test)]
mod rules_tests;
#[cfg(test)]
mod scan_tests;
