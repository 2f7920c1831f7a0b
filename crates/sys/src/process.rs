//! Scheduling, memory and start of processes and threads.

use super::checked;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{self, Pid, Signal};
use rustix::thread::{self, CpuSet};
use std::fs;
use std::io::{self, ErrorKind, PipeReader, PipeWriter};
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tailtrim_host::ProcessStat;

/// Runs the calling thread on this CPU only.
pub fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(thread::sched_setaffinity(None, &set)?)
}

/// Keeps the pages that the process has now in memory. Not those to come: without privileges the limit is
/// a few megabytes, and every allocation beyond it would fail.
pub fn lock_memory() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT)?)
}

/// Gives the calling thread the largest share of its CPU that others of its class leave it.
pub fn prefer() -> io::Result<()> {
    Ok(process::setpriority_process(None, -20)?)
}

/// Lets others of its class go before the calling thread: a nice value above 0.
pub fn defer(nice: i32) -> io::Result<()> {
    Ok(process::setpriority_process(None, nice)?)
}

/// Whether this process is alone in its session, or at its head.
pub fn leads_session() -> bool {
    // Not by rustix: a leader outside of this PID namespace is 0, which is none of its process IDs.
    // SAFETY: neither call takes anything; neither can fail for the caller itself.
    unsafe { libc::getsid(0) == libc::getpid() }
}

/// Runs the calling thread with real-time priority, `SCHED_FIFO`.
pub fn fifo(priority: i32) -> io::Result<()> {
    // By number: musl's function always fails, as POSIX means processes and Linux threads.
    // SAFETY: the kernel reads one integer, the priority; 0 is the calling thread.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const priority)
    };
    checked(result as libc::c_int)
}

/// Has the kernel end this process with SIGTERM when its parent dies.
pub fn end_with_parent() -> io::Result<()> {
    Ok(process::set_parent_process_death_signal(Some(Signal::TERM))?)
}

/// Has the kernel wake the calling thread when its time has come, not up to 50 µs later (the default slack of
/// threads without real-time priority).
pub fn wake_promptly() -> io::Result<()> {
    // Of one nanosecond, the least.
    Ok(thread::set_current_timer_slack(Some(NonZeroU64::MIN))?)
}

/// Leaves the session, so that neither its terminal nor its end concerns this process.
pub fn leave_session() -> io::Result<()> {
    process::setsid()?;
    Ok(())
}

/// Ignores SIGINT and SIGTERM from now on, as do programs that this process executes.
pub fn ignore_requests_to_end() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the call takes numbers only, and no handler is set.
        if unsafe { libc::signal(signal, libc::SIG_IGN) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Asks a process to end.
pub fn terminate(pid: u32) -> io::Result<()> {
    signal(pid, Signal::TERM)
}

/// Stops a process until [`go_on`].
pub fn stop(pid: u32) -> io::Result<()> {
    signal(pid, Signal::STOP)
}

/// Has a process go on that was stopped.
pub fn go_on(pid: u32) -> io::Result<()> {
    signal(pid, Signal::CONT)
}

fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    // 0 and below are groups of processes.
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    Ok(process::kill_process(pid.ok_or(io::ErrorKind::InvalidInput)?, signal)?)
}

/// Whether this process acts as root.
pub fn is_root() -> bool {
    process::geteuid().is_root()
}

/// Becomes another user for good, in all threads: no groups but one, no capabilities.
pub fn become_user(user: u32, group: u32) -> io::Result<()> {
    // SAFETY: no group is read, since there are none. musl and glibc do all three calls in every thread.
    checked(unsafe { libc::setgroups(0, std::ptr::null()) })?;
    // SAFETY: the calls take numbers only.
    checked(unsafe { libc::setresgid(group, group, group) })?;
    // SAFETY: as above; with the last user number that is 0, the capabilities go.
    checked(unsafe { libc::setresuid(user, user, user) })
}

/// Starts a process of its own for `work`, and returns the other ends of its pipes: first of its output, then of its
/// input. It is a copy of this process, and ends with `work`.
///
/// # Errors
/// Those of the system, and one where this process has more than one thread: a lock that another thread holds, such as
/// the allocator's, would stay locked in the new process for ever.
pub fn beside(work: impl FnOnce(PipeReader, PipeWriter)) -> io::Result<(PipeReader, PipeWriter)> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("this process has more than one thread"));
    }
    let (requests, ask) = io::pipe()?;
    let (answers, answer) = io::pipe()?;
    // SAFETY: there is no other thread, as seen above, so the new process finds everything as one thread left it.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // Closes the new process's copies: otherwise it would not see the end of its requests when this process has
            // ended.
            drop((ask, answers));
            let done = catch_unwind(AssertUnwindSafe(|| work(requests, answer)));
            // SAFETY: the call takes a number only. Nothing of what the caller holds is dropped twice.
            unsafe { libc::_exit(if done.is_ok() { 0 } else { 101 }) }
        }
        _ => Ok((answers, ask)),
    }
}

/// When a process or thread was started, in ticks since the host was; `None` where it has ended.
///
/// # Errors
///
/// `/proc` cannot be read, or does not tell.
pub fn start_ticks(pid: u32) -> io::Result<Option<u64>> {
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
