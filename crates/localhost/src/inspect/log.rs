//! The kernel's log: the lines that an audit looks for.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use tailtrim_host::paths::LOG_LINES;

/// Most records that are read: a log of 16 MB has fewer.
const MOST: usize = 200_000;

/// Read `/dev/kmsg` from its beginning.
pub(super) fn lines() -> io::Result<String> {
    let mut log = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")?;
    let mut record = [0; 8_192];
    let mut kept = String::new();
    for _ in 0..MOST {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(length) => keep(&String::from_utf8_lossy(&record[..length]), &mut kept),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // The record was overwritten meanwhile: the next one follows.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(kept)
}

/// A record is `priority,number,time,flags;text`, then lines of properties.
fn keep(record: &str, kept: &mut String) {
    let Some((head, rest)) = record.split_once(';') else { return };
    // Anybody may write to /dev/kmsg: the kernel's own records have facility 0, priorities 0 to 7.
    let priority = head.split(',').next().and_then(|text| text.parse::<u32>().ok());
    let text = rest.lines().next().unwrap_or_default();
    if priority.is_some_and(|priority| priority < 8)
        && LOG_LINES.iter().any(|wanted| text.contains(wanted))
    {
        // The builder of the kernel and the compiler are of no interest.
        let text =
            text.split(" (").next().filter(|_| text.starts_with("Linux version")).unwrap_or(text);
        kept.push_str(text);
        kept.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_kernel_speaks() {
        let mut kept = String::new();
        keep("6,1,0,-;Linux version 6.1.0 (builder@example) (gcc)\n SUBSYSTEM=x\n", &mut kept);
        keep("12,2,0,-;Linux version 9.9 forged", &mut kept);
        keep("6,3,0,-;eth0: MAC aa:bb", &mut kept);
        assert_eq!(kept, "Linux version 6.1.0\n");
    }
}
