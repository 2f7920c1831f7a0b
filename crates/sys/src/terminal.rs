//! The terminal on standard output.

use rustix::termios::tcgetwinsize;
use std::io;

/// Columns of the terminal on standard output; `None` where that is none.
#[must_use]
pub fn columns() -> Option<usize> {
    let columns = tcgetwinsize(io::stdout()).ok()?.ws_col;
    (columns > 0).then_some(columns.into())
}
