//! Ending processes that a controller on another host has started, when its connection ends.
//!
//! The connection is represented by the process that serves it, such as that of sshd.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;
use tailtrim_sys::{clock, poll};

/// Longer than anything lasts.
const FOR_EVER: Duration = Duration::MAX;
/// Longest wait for the other process to end after SIGTERM.
const END: Duration = Duration::from_secs(2);

/// Runs a command to its end, or kills it when another process ends. Returns its exit status.
///
/// `started` is called with its number.
///
/// # Errors
/// The other process does not exist, the command cannot be started, or `started` fails; the command is
/// ended then.
pub fn while_lives(
    other: u32,
    command: &mut Command,
    started: impl FnOnce(u32) -> io::Result<()>,
) -> io::Result<ExitStatus> {
    let other = opened(other)?;
    let mut child = command.spawn()?;
    let waited = started(child.id()).and_then(|()| until_either_ends(&other, &child));
    // A process that was not waited for keeps its number, so no other one is killed.
    if child.try_wait()?.is_none() {
        child.kill()?;
    }
    let ended = child.wait()?;
    waited.map(|()| ended)
}

fn until_either_ends(other: &OwnedFd, child: &Child) -> io::Result<()> {
    let this = opened(child.id())?;
    while !poll::any(&[other.as_fd(), this.as_fd()], FOR_EVER)? {}
    Ok(())
}

/// Waits until `input` has been silent for so long, or has ended, and then ends another process: with SIGTERM, and soon
/// with SIGKILL. Returns at once when that process has ended by itself.
///
/// # Errors
/// The other process may not be ended, or the input cannot be read.
pub fn end_when_silent(
    other: u32,
    mut input: impl Read + AsFd,
    silence: Duration,
) -> io::Result<()> {
    let other = match opened(other) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
        opened => opened?,
    };
    let mut rest = [0; 64];
    let mut until_ns = due(silence);
    loop {
        let left_ns = u64::try_from(until_ns - clock::monotonic_ns()).unwrap_or(0);
        if poll::any(&[input.as_fd(), other.as_fd()], Duration::from_nanos(left_ns))? {
            if poll::any(&[other.as_fd()], Duration::ZERO)? {
                return Ok(());
            }
            if input.read(&mut rest)? == 0 {
                break;
            }
            until_ns = due(silence);
        } else if clock::monotonic_ns() >= until_ns {
            break;
        }
    }
    pidfd_send_signal(&other, Signal::TERM)?;
    if !poll::any(&[other.as_fd()], END)? {
        pidfd_send_signal(&other, Signal::KILL)?;
    }
    Ok(())
}

/// Time at which it has been silent for too long, on the clock that never steps.
fn due(silence: Duration) -> i64 {
    clock::monotonic_ns().saturating_add(i64::try_from(silence.as_nanos()).unwrap_or(i64::MAX))
}

fn opened(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}
