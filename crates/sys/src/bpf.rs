//! bpf(2), for XDP programs that are bound to an interface, whose driver then answers their questions: aya loads none.
//!
//! Numbers and structures are those of `<linux/bpf.h>`; the kernel takes what a structure leaves out for zero.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const PROGRAM_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const PROGRAM_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const HAS_FRAGMENTS: u32 = 1 << 5;
const BOUND_TO_DEVICE: u32 = 1 << 6;
/// `XDP_FLAGS_DRV_MODE`.
const WITHIN_DRIVER: u32 = 1 << 2;
/// Bytes of what the verifier says.
const LOG: usize = 64 << 10;

/// An instruction as the kernel takes it.
pub type Instruction = [u8; 8];

#[repr(C)]
#[derive(Default)]
struct Load {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
}

#[repr(C)]
struct Link {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// Loads an XDP program for one interface; `pieces`: frames may consist of several.
///
/// # Errors
/// The kernel's answer, and the last words of its verifier.
pub fn load_bound_xdp(
    program: &[Instruction],
    license: &CStr,
    interface: u32,
    pieces: bool,
) -> io::Result<OwnedFd> {
    let mut load = Load {
        program_type: PROGRAM_TYPE_XDP,
        instruction_count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
        flags: BOUND_TO_DEVICE | if pieces { HAS_FRAGMENTS } else { 0 },
        interface,
        attach_type: ATTACH_XDP,
        ..Load::default()
    };
    // SAFETY: instructions and licence are borrowed until the call is over, and the kernel reads no more of them.
    let error = match unsafe { call(PROGRAM_LOAD, &load) } {
        Ok(file) => return Ok(file),
        Err(error) => error,
    };
    let mut log = vec![0_u8; LOG];
    (load.log_level, load.log_bytes, load.log) = (1, LOG as u32, log.as_mut_ptr() as u64);
    // SAFETY: as above; the kernel writes no more of the log than there is room for.
    match unsafe { call(PROGRAM_LOAD, &load) } {
        Ok(file) => Ok(file),
        Err(_) => Err(with_reason(error, &log)),
    }
}

fn with_reason(error: io::Error, log: &[u8]) -> io::Error {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let log = String::from_utf8_lossy(&log[..end]);
    // The last line is a count.
    let reason = log.lines().rev().find(|line| !line.is_empty() && !line.starts_with("processed "));
    match reason {
        Some(reason) => io::Error::new(error.kind(), format!("{error}: {reason}")),
        None => error,
    }
}

/// Attaches an XDP program within the driver of an interface, until the link is closed.
///
/// # Errors
/// The kernel's answer.
pub fn attach_xdp(program: BorrowedFd<'_>, interface: u32) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd().cast_unsigned();
    let link = Link { program, interface, attach_type: ATTACH_XDP, flags: WITHIN_DRIVER };
    // SAFETY: the structure has no addresses.
    unsafe { call(LINK_CREATE, &link) }
}

/// Makes a call that returns a file.
///
/// # Safety
/// `T` is the part of `union bpf_attr` that the command takes, without padding, and its addresses are valid.
unsafe fn call<T>(command: libc::c_int, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the attributes are valid for reading and of the length given; callers vouch for what they point to.
    let file = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attributes),
            size_of::<T>() as libc::c_uint,
        )
    };
    match libc::c_int::try_from(file) {
        // SAFETY: a new file, which nothing else has.
        Ok(file) if file >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(file) }),
        _ => Err(io::Error::last_os_error()),
    }
}

const _: () = assert!(size_of::<Load>() == 72);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_verifiers_last_words() {
        let told = |log: &[u8]| with_reason(io::Error::from_raw_os_error(libc::EACCES), log);
        let log = b"0: (b7) r0 = 1\nR0 is bad\nprocessed 1 insns\n\0\0";
        assert!(told(log).to_string().ends_with("(os error 13): R0 is bad"));
        assert_eq!(told(&[0; 4]).raw_os_error(), Some(libc::EACCES));
    }
}
