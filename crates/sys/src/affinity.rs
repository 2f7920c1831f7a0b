//! CPUs that a thread may run on.

use std::io;

/// Has a thread run on these CPUs only.
pub fn set(pid: u32, cpus: &[u32]) -> io::Result<()> {
    let most = cpus.iter().max().map_or(0, |most| *most as usize);
    // Longer than `cpu_set_t` where need be: that one ends at 1,024 CPUs.
    let mut mask = vec![0_u64; most / 64 + 1];
    for cpu in cpus {
        mask[*cpu as usize / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the kernel reads as many bytes as are given, all of them the mask's.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            pid as libc::pid_t,
            size_of_val(mask.as_slice()),
            mask.as_ptr(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
