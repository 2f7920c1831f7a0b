//! The size of a terminal.

/// Columns of the terminal on standard output.
pub(crate) fn columns() -> Option<u16> {
    // SAFETY: all-zero bits are a valid `winsize`.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: `size` is valid for writing; the call fails where standard output is not a terminal.
    let result = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (result == 0 && size.ws_col > 0).then_some(size.ws_col)
}
