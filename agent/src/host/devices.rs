//! Which kinds of device memory is made for: the major numbers of GPUs', accelerators' and RDMA devices' files.

use crate::host::root::{Root, read_if_present};

/// Names in `/proc/devices`; those of a kind may be followed by more (`nvidia-uvm`).
const KINDS: &[&str] = &["nvidia", "drm", "kfd", "accel", "infiniband"];

/// The major numbers, ascending; none on a host that has no such driver.
pub(crate) fn read_device_majors(root: &Root) -> Vec<u32> {
    // Without the file there are no device numbers to know anything of.
    let text = read_if_present(&root.proc("devices")).ok().flatten();
    parse(&text.unwrap_or_default())
}

fn parse(text: &str) -> Vec<u32> {
    let character = text.lines().take_while(|line| !line.starts_with("Block"));
    let mut majors: Vec<u32> = character
        .filter_map(|line| {
            let (major, name) = line.trim().split_once(' ')?;
            // `nvidiactl` and `nvidia-uvm` too; of the others a longer word is something else.
            let of_kind = |kind: &&str| {
                let rest = name.strip_prefix(*kind);
                rest.is_some_and(|r| {
                    *kind == "nvidia" || !r.starts_with(|c: char| c.is_alphabetic())
                })
            };
            let known = KINDS.iter().any(of_kind);
            known.then(|| major.parse().ok())?
        })
        .collect();
    majors.sort_unstable();
    majors.dedup();
    majors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_known_by_their_names() {
        let text = "Character devices:\n  1 mem\n 10 misc\n195 nvidia-frontend\n195 nvidiactl\n226 drm\n\
                    231 infiniband_verbs\n234 nvidia-uvm\n261 accel\n510 kfd\n511 drmother\n\n\
                    Block devices:\n  8 sd\n250 nvidia\n";
        assert_eq!(parse(text), [195, 226, 231, 234, 261, 510]);
    }

    #[test]
    fn a_host_without_such_drivers_has_none() {
        assert!(parse("Character devices:\n  1 mem\n\nBlock devices:\n").is_empty());
        assert!(parse("").is_empty());
    }
}
