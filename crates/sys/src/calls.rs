//! Filters of system calls.

use std::io;

/// Installs a filter in all threads of this process, for good; and has none of them gain privileges, without which
/// an ordinary user may install none.
///
/// Not by the library that makes the filters: it cannot say that they are against faults in this process and not
/// against programs that run within it. Kernels before 5.16 then turn off speculation, which makes every packet
/// slower.
pub fn filter(instructions: &mut [libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: instructions.as_mut_ptr() };
    // SAFETY: the program points to as many instructions as it says, which outlive the call; the kernel copies and
    // checks them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::c_ulong::from(libc::SECCOMP_SET_MODE_FILTER),
            libc::SECCOMP_FILTER_FLAG_TSYNC | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
            &raw const program,
        )
    };
    match result {
        0 => Ok(()),
        thread if thread > 0 => {
            Err(io::Error::other(format!("thread {thread} has another filter already")))
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// Maps a page for code that stays: only tests of filters that forbid it call this.
pub fn executable_memory() -> io::Result<()> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let protection = ProtFlags::READ | ProtFlags::WRITE | ProtFlags::EXEC;
    // SAFETY: the kernel chooses a place where nothing is.
    unsafe { mmap_anonymous(std::ptr::null_mut(), 4_096, protection, MapFlags::PRIVATE) }?;
    Ok(())
}
