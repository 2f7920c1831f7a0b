//! What a process asks of the scheduler and of the memory for the sake of its timing.

use super::checked;
use std::io::{self, PipeReader, PipeWriter};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the calling thread on this CPU only.
pub(crate) fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: all-zero bits are an empty set; `cpu` is within the set, as checked above.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        set
    };
    // SAFETY: the set is valid for reading and of the size given; 0 is the calling thread.
    checked(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) })
}

/// Keeps the pages that the process has now in memory. Not those to come: without privileges the limit is
/// a few megabytes, and every allocation beyond it would fail.
pub(crate) fn lock_memory() -> io::Result<()> {
    // SAFETY: the call takes flags only.
    checked(unsafe { libc::mlockall(libc::MCL_CURRENT) })
}

/// Gives the calling thread the largest share of its CPU that others of its class leave it.
pub(crate) fn prefer() -> io::Result<()> {
    // SAFETY: the call takes numbers only; 0 is the calling thread.
    checked(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) })
}

/// Whether this process is alone in its session, or at its head.
pub(crate) fn leads_session() -> bool {
    // SAFETY: neither call takes anything; neither can fail for the caller itself.
    unsafe { libc::getsid(0) == libc::getpid() }
}

/// Runs the calling thread with real-time priority, `SCHED_FIFO`.
pub(crate) fn fifo(priority: i32) -> io::Result<()> {
    // By number: musl's function always fails, as POSIX means processes and Linux threads.
    // SAFETY: the kernel reads one integer, the priority; 0 is the calling thread.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const priority)
    };
    checked(result as libc::c_int)
}

/// Has the kernel end this process with SIGTERM when its parent dies.
pub(crate) fn end_with_parent() -> io::Result<()> {
    // SAFETY: the call takes a signal number only.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) })
}

/// Has the kernel wake the calling thread when its time has come, not up to 50 µs later (the default slack of
/// threads without real-time priority).
pub(crate) fn wake_promptly() -> io::Result<()> {
    // SAFETY: the call takes numbers only; 1 ns is the least.
    checked(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) })
}

/// Leaves the session, so that neither its terminal nor its end concerns this process.
pub(crate) fn leave_session() -> io::Result<()> {
    // SAFETY: the call takes nothing.
    checked(unsafe { libc::setsid() })
}

/// Asks a process to end.
pub(crate) fn terminate(pid: u32) -> io::Result<()> {
    signal(pid, libc::SIGTERM)
}

/// Stops a process until it is told to go on.
pub(crate) fn stop(pid: u32) -> io::Result<()> {
    signal(pid, libc::SIGSTOP)
}

/// Has a process go on that was stopped.
pub(crate) fn go_on(pid: u32) -> io::Result<()> {
    signal(pid, libc::SIGCONT)
}

fn signal(pid: u32, signal: libc::c_int) -> io::Result<()> {
    // 0 and below are groups of processes.
    let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0);
    let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: the call takes numbers only.
    checked(unsafe { libc::kill(pid, signal) })
}

/// Whether this process acts as root.
pub(crate) fn is_root() -> bool {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Becomes another user for good, in all threads: no groups but one, no capabilities.
pub(crate) fn become_user(user: u32, group: u32) -> io::Result<()> {
    // SAFETY: no group is read, since there are none. musl and glibc do all three calls in every thread.
    checked(unsafe { libc::setgroups(0, std::ptr::null()) })?;
    // SAFETY: the calls take numbers only.
    checked(unsafe { libc::setresgid(group, group, group) })?;
    // SAFETY: as above; with the last user number that is 0, the capabilities go.
    checked(unsafe { libc::setresuid(user, user, user) })
}

/// Starts a process of its own for `work`, and returns the other ends of its pipes: what it writes, and what it
/// reads. It has all that this one has, and ends with `work`.
///
/// # Errors
/// Those of the system, and where this process has more than one thread: what another one holds, such as a lock of
/// the allocator, would be held in the new process for ever.
pub(crate) fn beside(
    work: impl FnOnce(PipeReader, PipeWriter),
) -> io::Result<(PipeReader, PipeWriter)> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("this process has more than one thread"));
    }
    let (requests, ask) = io::pipe()?;
    let (answers, answer) = io::pipe()?;
    // SAFETY: there is no other thread, as seen above, so the new process finds everything as one thread left it.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // Its end of the requests is what tells the new process that this one has ended.
            drop((ask, answers));
            let done = catch_unwind(AssertUnwindSafe(|| work(requests, answer)));
            // SAFETY: the call takes a number only. Nothing of what the caller holds is dropped twice.
            unsafe { libc::_exit(if done.is_ok() { 0 } else { 101 }) }
        }
        _ => Ok((answers, ask)),
    }
}
