//! The CPUs that a thread may run on.

use std::fs;
use std::io::{self, ErrorKind};
use tailtrim_host::Cpus;
use tailtrim_sys::affinity;
use tailtrim_sys::process;
use tailtrim_tune::Value;

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
    Ok(process::start_ticks(pid)? == Some(start))
}
