//! Processes by number and start: numbers alone are used again.

use std::fs;
use std::io::{self, ErrorKind};
use tailtrim_host::ProcessStat;

/// When a process or thread was started, in ticks since the host was; `None` where it has ended.
///
/// # Errors
///
/// `/proc` cannot be read, or does not tell.
pub(crate) fn start_ticks(pid: u32) -> io::Result<Option<u64>> {
    let line = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(line) => line,
        // ESRCH: it ended between opening and reading.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
        Err(error) => return Err(error),
    };
    let start = ProcessStat::parse(&line).and_then(|stat| stat.start_ticks());
    start.map(Some).ok_or(ErrorKind::InvalidData.into())
}
