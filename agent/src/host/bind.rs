//! Binds the caller, and whatever it starts or becomes, to CPUs and to a node's memory.

use model::topology::NodeId;
use std::io::{Error, Result};

/// Lets the caller run on these CPUs only; when this returns, it does.
///
/// # Errors
/// The system's; EINVAL where the cgroup's cpuset has none of them.
pub(crate) fn run_on(cpus: &[u32]) -> Result<()> {
    let mask = mask(cpus);
    // SAFETY: the kernel reads as many bytes as the mask has.
    let done = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            0,
            mask.len() * size_of::<u64>(),
            mask.as_ptr(),
        )
    };
    result(done)
}

/// Takes the caller's memory from this node only (`MPOL_BIND`); without one by the kernel's own policy.
///
/// # Errors
/// The system's: EPERM where a container's seccomp profile forbids it, ENOSYS on a kernel without NUMA.
pub(crate) fn allocate_on(node: Option<NodeId>) -> Result<()> {
    let mask = node.map(|node| mask(&[node]));
    let (policy, start, bits) = match &mask {
        Some(mask) => (libc::MPOL_BIND, mask.as_ptr(), mask_bits(mask)),
        None => (libc::MPOL_DEFAULT, std::ptr::null(), 0),
    };
    // SAFETY: the kernel reads as many bits as the mask has.
    result(unsafe { libc::syscall(libc::SYS_set_mempolicy, policy, start, bits) })
}

/// CPUs or nodes as the kernel's calls take them.
pub(crate) fn mask(bits: &[u32]) -> Vec<u64> {
    let mut mask = vec![0u64; bits.iter().max().map_or(0, |most| *most as usize / 64) + 1];
    for bit in bits {
        mask[*bit as usize / 64] |= 1 << (bit % 64);
    }
    mask
}

/// How many bits the memory policy's calls are told that a mask has: one more than it has, since the kernel takes one off.
pub(crate) fn mask_bits(mask: &[u64]) -> usize {
    mask.len() * 64 + 1
}

fn result(done: libc::c_long) -> Result<()> {
    if done == 0 {
        Ok(())
    } else {
        Err(Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_as_long_as_its_highest_bit_needs() {
        assert_eq!(mask(&[]), [0]);
        assert_eq!(mask(&[0, 63]), [1 | 1 << 63]);
        assert_eq!(mask(&[1, 130]), [2, 0, 4]);
    }
}
