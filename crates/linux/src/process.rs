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
    let stat = ProcessStat::parse(&line).ok_or(ErrorKind::InvalidData)?;
    if stat.has_ended() {
        return Ok(None);
    }
    stat.start_ticks().map(Some).ok_or(ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_process_that_nobody_waited_for_has_ended() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(start_ticks(child.id()).unwrap().is_some());
        drop(child.stdin.take());
        while start_ticks(child.id()).unwrap().is_some() {
            thread::sleep(Duration::from_millis(1));
        }
        child.wait().unwrap();
    }
}
