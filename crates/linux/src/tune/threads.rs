//! The CPUs that a thread may run on.

use crate::sys::affinity;
use std::fs;
use std::io::{self, ErrorKind};
use tailtrim_host::Cpus;
use tailtrim_host::tune::Value;

/// The list; `None` where the thread has ended, or another has its number.
pub(super) fn read(pid: u32, start: u64) -> io::Result<Option<Value>> {
    if !lives(pid, start)? {
        return Ok(None);
    }
    let status = match fs::read_to_string(format!("/proc/{pid}/status")) {
        Ok(status) => status,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Ok(list.map(|list| list.trim().into()))
}

/// Sets the list.
pub(super) fn write(pid: u32, start: u64, list: &str) -> io::Result<()> {
    let cpus: Cpus = list.parse().map_err(io::Error::other)?;
    if !lives(pid, start)? {
        return Err(ErrorKind::NotFound.into());
    }
    affinity::set(pid, &cpus.iter().collect::<Vec<_>>())
}

fn lives(pid: u32, start: u64) -> io::Result<bool> {
    let stat = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        // ESRCH: it ended between opening and reading.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(false),
        Err(error) => return Err(error),
    };
    // The name may contain spaces and parentheses; the start is the twentieth field behind it.
    let started = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19));
    Ok(started.and_then(|text| text.parse().ok()) == Some(start))
}
