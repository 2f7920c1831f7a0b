//! The system calls that a reflector's threads may make. docs/security.md has the same list.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use std::collections::BTreeMap;
use std::io;
use tailtrim_sys::calls;

/// Mode of a reflector, which determines the system calls that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By UDP sockets.
    Sockets,
    /// By UDP sockets, and by an XDP program in front of them.
    Xdp,
    /// By an AF_XDP port.
    Frames,
    /// By the kernel's address translation: this process only reads counters.
    Nat,
}

/// A system call, by its name without `SYS_` and its number on this architecture.
type Call = (&'static str, libc::c_long);

macro_rules! calls {
    ($($call:ident),* $(,)?) => { &[$((without_prefix(stringify!($call)), libc::$call)),*] };
}

/// Calls that every thread needs: time, memory, open files, and exit.
const ALWAYS: &[Call] = calls![
    SYS_read,
    SYS_write,
    SYS_close,
    SYS_futex,
    SYS_sched_yield,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_restart_syscall,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_getrandom,
    SYS_brk,
    SYS_mmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_munmap,
    SYS_madvise,
    SYS_exit,
    SYS_exit_group,
];

/// Datagrams, and how far the clock is off.
const SOCKETS: &[Call] = calls![
    SYS_recvmsg,
    SYS_recvmmsg,
    SYS_sendmmsg,
    SYS_sendto,
    SYS_ppoll,
    SYS_connect,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_adjtimex,
    SYS_clock_adjtime,
];

/// Frames, and how far the clock is off.
const FRAMES: &[Call] =
    calls![SYS_recvfrom, SYS_sendto, SYS_ppoll, SYS_getsockopt, SYS_adjtimex, SYS_clock_adjtime,];

/// Calls by which the C library and Rust's get facts that they can do without: a number of CPUs, the source lines of a
/// panic.
const LOOKS: &[Call] = calls![
    SYS_openat,
    SYS_readlinkat,
    SYS_newfstatat,
    SYS_fstat,
    SYS_statx,
    SYS_lseek,
    SYS_fcntl,
    SYS_ioctl,
    SYS_getcwd,
    SYS_getpid,
    SYS_gettid,
    SYS_sched_getaffinity,
];

/// The same on x86, which has older calls for it.
#[cfg(target_arch = "x86_64")]
const OLDER_LOOKS: &[Call] = calls![SYS_open, SYS_readlink, SYS_stat, SYS_lstat, SYS_access];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_LOOKS: &[Call] = &[];

const fn without_prefix(call: &'static str) -> &'static str {
    call.split_at(4).1
}

/// The calls of a mode that [`ALWAYS`] lacks.
const fn own(way: Way) -> &'static [Call] {
    match way {
        Way::Sockets | Way::Xdp => SOCKETS,
        Way::Frames => FRAMES,
        Way::Nat => &[],
    }
}

/// Restricts all threads of this process to the calls of a mode, for good. [`LOOKS`] are refused with EPERM. Any other
/// call ends the process: no part of it makes them, and injected code must not go on trying.
///
/// # Errors
/// The kernel's, and [`Unsupported`](io::ErrorKind::Unsupported) where there is no filter for this architecture.
pub(super) fn restrict(way: Way) -> io::Result<()> {
    let refused = [LOOKS, OLDER_LOOKS].concat();
    let allowed = [own(way), ALWAYS, &refused].concat();
    let eperm = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    // The kernel takes the stricter answer of two filters. Where it is always the same for a call, it keeps it
    // (Linux 5.11) and no longer asks the filters, so their length and order do not matter.
    for (calls, action, otherwise) in [
        (&refused, eperm, SeccompAction::Allow),
        (&allowed, SeccompAction::Allow, SeccompAction::KillProcess),
    ] {
        let program = program(calls, action, otherwise).map_err(|error| {
            io::Error::new(io::ErrorKind::Unsupported, format!("no filter: {error}"))
        })?;
        let mut instructions: Vec<libc::sock_filter> = program
            .iter()
            .map(|step| libc::sock_filter { code: step.code, jt: step.jt, jf: step.jf, k: step.k })
            .collect();
        calls::filter(&mut instructions)?;
    }
    Ok(())
}

fn program(
    calls: &[Call],
    action: SeccompAction,
    otherwise: SeccompAction,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let rules = calls.iter().map(|&(name, number)| Ok((number, rules(name)?)));
    let rules: BTreeMap<i64, Vec<SeccompRule>> = rules.collect::<Result<_, _>>()?;
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, otherwise, action, architecture)?.try_into()
}

/// Conditions on a call's arguments; empty: every call is allowed.
fn rules(name: &str) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    // Memory must not become executable.
    let not_code = SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64);
    if !matches!(name, "mmap" | "mprotect") {
        return Ok(Vec::new());
    }
    let only = SeccompCondition::new(2, SeccompCmpArgLen::Dword, not_code, 0)?;
    Ok(vec![SeccompRule::new(vec![only])?])
}

#[cfg(test)]
mod tests;
