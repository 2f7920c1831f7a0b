//! Options of sockets, each with the type that the kernel has for it.

use super::checked;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};

/// An option, and the type of its value.
pub(super) struct SocketOption<T> {
    level: libc::c_int,
    name: libc::c_int,
    value: PhantomData<T>,
}

impl<T: Copy> SocketOption<T> {
    /// # Safety
    /// `T` is the type that the kernel has for this option. It is made of integers alone: without padding, any bits
    /// are a value, and none of them is an address.
    pub(super) const unsafe fn new(level: libc::c_int, name: libc::c_int) -> Self {
        Self { level, name, value: PhantomData }
    }

    /// Sets it.
    pub(super) fn set(&self, file: BorrowedFd<'_>, value: &T) -> io::Result<()> {
        // SAFETY: the value is valid for reading and of the length given. The kernel copies it, and finds no address
        // in it, by the contract of `new`.
        checked(unsafe {
            libc::setsockopt(
                file.as_raw_fd(),
                self.level,
                self.name,
                std::ptr::from_ref(value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        })
    }

    /// Its value. Parts that an older kernel does not know are zero.
    pub(super) fn get(&self, file: BorrowedFd<'_>) -> io::Result<T> {
        // SAFETY: any bits are a value, by the contract of `new`.
        let mut value: T = unsafe { std::mem::zeroed() };
        let mut length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the value is valid for writing and of the length given, beyond which the kernel does not write.
        // Whatever it writes is a value, by the contract of `new`.
        checked(unsafe {
            libc::getsockopt(
                file.as_raw_fd(),
                self.level,
                self.name,
                (&raw mut value).cast(),
                &raw mut length,
            )
        })?;
        Ok(value)
    }
}

/// Receives on a socket only what the filter accepts, and only as many bytes of it as the filter returns.
pub(super) fn attach_filter(
    file: BorrowedFd<'_>,
    instructions: &mut [libc::sock_filter],
) -> io::Result<()> {
    let len = u16::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: instructions.as_mut_ptr() };
    // SAFETY: the program points to as many instructions as it says, which outlive the call; the kernel copies and
    // checks them.
    checked(unsafe {
        libc::setsockopt(
            file.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of_val(&program) as libc::socklen_t,
        )
    })
}
