//! What the kernel forbids even root: its lockdown, its other security modules, and eBPF for those who are not root.

use crate::host::root::{Root, read};
use std::fmt;

/// The kernel's lockdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lockdown {
    /// Off.
    Off,
    /// Nothing may change the running kernel.
    Integrity,
    /// And nothing may read its memory: no kprobes, no reads by probes.
    Confidentiality,
}

impl fmt::Display for Lockdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "none",
            Self::Integrity => "integrity",
            Self::Confidentiality => "confidentiality",
        })
    }
}

/// What can be known of the security modules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Security {
    /// `None` when it can't be read: securityfs is not mounted, or not for this user.
    pub(crate) lockdown: Option<Lockdown>,
    /// Names of the modules, in the kernel's order; empty when they can't be read.
    pub(crate) modules: Vec<String>,
    /// `kernel.unprivileged_bpf_disabled`: 0 allowed, 1 and 2 not; `None` where the kernel has no such setting.
    pub(crate) unprivileged_bpf_disabled: Option<u32>,
}

/// Reads all three; what can't be read is unknown, and no error.
pub(crate) fn read_security(root: &Root) -> Security {
    let modules = read(&root.sys("kernel/security/lsm")).unwrap_or_default();
    let disabled = read(&root.proc("sys/kernel/unprivileged_bpf_disabled"));
    Security {
        lockdown: read(&root.sys("kernel/security/lockdown"))
            .ok()
            .and_then(|text| parse(&text)),
        modules: modules
            .trim()
            .split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
        unprivileged_bpf_disabled: disabled.ok().and_then(|text| text.trim().parse().ok()),
    }
}

/// `none [integrity] confidentiality`: the chosen one is in brackets.
fn parse(text: &str) -> Option<Lockdown> {
    let (_, rest) = text.split_once('[')?;
    match rest.split_once(']')?.0 {
        "none" => Some(Lockdown::Off),
        "integrity" => Some(Lockdown::Integrity),
        "confidentiality" => Some(Lockdown::Confidentiality),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    #[test]
    fn the_state_is_the_one_in_brackets() {
        for (text, want) in [
            ("[none] integrity confidentiality\n", Some(Lockdown::Off)),
            (
                "none [integrity] confidentiality\n",
                Some(Lockdown::Integrity),
            ),
            (
                "none integrity [confidentiality]\n",
                Some(Lockdown::Confidentiality),
            ),
            ("none [something] new\n", None),
            ("", None),
        ] {
            assert_eq!(parse(text), want, "{text:?}");
        }
    }

    #[test]
    fn a_host_with_securityfs_tells_all() {
        let fixture = Fixture::with(&[
            (
                "sys/kernel/security/lockdown",
                "none [integrity] confidentiality\n",
            ),
            ("sys/kernel/security/lsm", "lockdown,capability,yama"),
            ("proc/sys/kernel/unprivileged_bpf_disabled", "2\n"),
        ]);
        let security = read_security(&fixture.root());
        assert_eq!(security.lockdown, Some(Lockdown::Integrity));
        assert_eq!(security.modules, ["lockdown", "capability", "yama"]);
        assert_eq!(security.unprivileged_bpf_disabled, Some(2));
    }

    #[test]
    fn without_securityfs_the_state_is_unknown_and_not_off() {
        assert_eq!(read_security(&Fixture::new().root()), Security::default());
    }
}
