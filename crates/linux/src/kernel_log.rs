//! The kernel's log.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

/// More than a record may have: a shorter buffer is refused.
const RECORD: usize = 16 << 10;

/// Read what is in the log, a line a record, without the time and the level before each.
///
/// # Errors
///
/// There is no `/dev/kmsg` or no permission to read it.
pub fn read() -> io::Result<String> {
    // Without the flag, reading waits at the end of the log for what comes next.
    let mut device =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")?;
    let mut record = [0; RECORD];
    let mut log = String::new();
    loop {
        match device.read(&mut record) {
            Ok(0) => return Ok(log),
            Ok(length) => {
                let text = String::from_utf8_lossy(&record[..length]);
                // What follows the first line are variables of the device that the record is about.
                let first = text.lines().next().unwrap_or_default();
                log += first.split_once(';').map_or(first, |(_, message)| message);
                log.push('\n');
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(log),
            // Records were overwritten while this was reading, or a signal came: the next ones are there.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
