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

/// Takes the caller's memory from this node only (`MPOL_BIND`).
///
/// # Errors
/// The system's: EPERM where a container's seccomp profile forbids it, ENOSYS on a kernel without NUMA.
pub(crate) fn allocate_on(node: NodeId) -> Result<()> {
    let mask = mask(&[node]);
    // SAFETY: the kernel reads as many bits as the mask has.
    let done = unsafe {
        libc::syscall(
            libc::SYS_set_mempolicy,
            libc::MPOL_BIND,
            mask.as_ptr(),
            // One more than there are bits: the kernel takes one off.
            mask.len() * 64 + 1,
        )
    };
    result(done)
}

fn mask(bits: &[u32]) -> Vec<u64> {
    let mut mask = vec![0u64; bits.iter().max().map_or(0, |most| *most as usize / 64) + 1];
    for bit in bits {
        mask[*bit as usize / 64] |= 1 << (bit % 64);
    }
    mask
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
