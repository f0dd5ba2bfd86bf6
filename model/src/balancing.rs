//! What `kernel.numa_balancing` makes the kernel do.

use crate::snapshot::Host;
use std::fmt;

/// The setting, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancing<'a> {
    /// It can't be read, for this reason.
    Unknown(&'a str),
    /// The kernel was built without.
    NotInKernel,
    /// No hint faults, and no page is moved.
    Off,
    /// Pages are brought to the threads that hint-touch them: a sample of all touches.
    On,
    /// Pages are moved between fast and slow memory: hint touches are those of slow memory, and no sample.
    Tiering {
        /// Both at once.
        and_on: bool,
    },
    /// A mode that this version doesn't know.
    Other(u32),
}

impl<'a> Balancing<'a> {
    /// Of the setting's value, and of why it can't be read.
    #[must_use]
    pub const fn of(mode: Option<u32>, unreadable: Option<&'a str>) -> Self {
        match (mode, unreadable) {
            (None, Some(why)) => Self::Unknown(why),
            (None, None) => Self::NotInKernel,
            (Some(0), _) => Self::Off,
            (Some(1), _) => Self::On,
            (Some(2), _) => Self::Tiering { and_on: false },
            (Some(3), _) => Self::Tiering { and_on: true },
            (Some(mode), _) => Self::Other(mode),
        }
    }
}

/// `on`: what a line about the machine says of it.
impl fmt::Display for Balancing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown(_) => "unknown",
            Self::NotInKernel => "not in this kernel",
            Self::Off => "off",
            Self::On => "on",
            Self::Tiering { and_on: false } => "tiering",
            Self::Tiering { and_on: true } => "on + tiering",
            Self::Other(mode) => return write!(f, "mode {mode}"),
        })
    }
}

impl Host {
    /// What its setting of NUMA balancing makes the kernel do.
    #[must_use]
    pub fn balancing(&self) -> Balancing<'_> {
        Balancing::of(self.numa_balancing, self.numa_balancing_reason.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_its_meaning() {
        for (mode, unreadable, want) in [
            (None, Some("masked"), Balancing::Unknown("masked")),
            (None, None, Balancing::NotInKernel),
            (Some(0), None, Balancing::Off),
            (Some(1), None, Balancing::On),
            (Some(2), None, Balancing::Tiering { and_on: false }),
            (Some(3), None, Balancing::Tiering { and_on: true }),
            (Some(4), None, Balancing::Other(4)),
        ] {
            assert_eq!(Balancing::of(mode, unreadable), want);
        }
    }
}
