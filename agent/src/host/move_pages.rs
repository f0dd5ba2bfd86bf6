//! On which node pages of a process lie: the system call `move_pages`, told no target, only asks. 0.5 µs a page.

use std::io;

/// Asks for pages at these addresses. An answer below 0 is none: the page is gone, or the kernel doesn't tell.
///
/// # Errors
/// The system's, of the whole call.
pub(crate) fn nodes_of(pid: u32, addresses: &[u64]) -> io::Result<Vec<i32>> {
    let mut answers = vec![-libc::ENOENT; addresses.len()];
    // SAFETY: both arrays have as many entries as the kernel is told; without targets it only writes the answers.
    let done = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            pid,
            addresses.len(),
            addresses.as_ptr(),
            std::ptr::null::<i32>(),
            answers.as_mut_ptr(),
            0,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resident_page_has_a_node_and_an_unmapped_one_none() {
        let page = Box::new(1_u8);
        let address = (&raw const *page) as u64 & !4095;
        let answers = nodes_of(std::process::id(), &[address, 4096]).unwrap();
        assert!(answers[0] >= 0, "{answers:?}");
        assert!(answers[1] < 0, "{answers:?}");
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        let error = nodes_of(u32::MAX >> 1, &[4096]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }
}
