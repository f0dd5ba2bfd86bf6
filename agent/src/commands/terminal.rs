//! The terminal that the output goes to.

use std::io::StdoutLock;
use std::os::fd::AsRawFd as _;

/// The width of the terminal that this is; `None` where it is none, and where it doesn't tell.
pub(super) fn columns(out: &StdoutLock<'_>) -> Option<usize> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the kernel writes a `winsize` there.
    let answer = unsafe { libc::ioctl(out.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    (answer == 0 && size.ws_col > 0).then(|| size.ws_col.into())
}
