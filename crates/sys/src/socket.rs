//! Sockets of the Internet protocols: socket(7), ip(7), ipv6(7).

use super::checked;
use super::option::{SocketOption, attach_filter};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with};
use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// Bytes of an address: those of `struct sockaddr_in6`, the longer one.
pub const ADDRESS_LEN: usize = 28;

/// Opens a socket that never blocks.
pub fn open(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    Ok(socket_with(
        AddressFamily::from_raw(family as u16),
        SocketType::from_raw(kind as u32),
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        NonZeroU32::new(protocol as u32).map(Protocol::from_raw),
    )?)
}

/// Sets an option that takes an integer.
pub fn set(
    file: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: whichever option it is, the kernel reads no more than this integer, and refuses it where the option
    // takes more. No option takes an address alone.
    let option = unsafe { SocketOption::<libc::c_int>::new(level, name) };
    option.set(file, &value)
}

/// Sends and receives by this interface only.
pub fn bind_to_device(file: BorrowedFd<'_>, interface: &str) -> io::Result<()> {
    // SAFETY: the name is valid for reading and of the length given; the kernel copies it.
    checked(unsafe {
        libc::setsockopt(
            file.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            interface.as_ptr().cast(),
            interface.len() as libc::socklen_t,
        )
    })
}

/// An instruction of a socket filter: code, jump if true, jump if false, operand.
pub type Instruction = (u16, u8, u8, u32);

/// Receives only datagrams that the filter accepts.
pub fn filter(file: BorrowedFd<'_>, program: &[Instruction]) -> io::Result<()> {
    let mut code: Vec<libc::sock_filter> =
        program.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    attach_filter(file, &mut code)
}

/// Binds to an address.
pub fn bind(file: BorrowedFd<'_>, address: &[u8]) -> io::Result<()> {
    // SAFETY: the address is valid for reading and of the length given.
    checked(unsafe {
        libc::bind(file.as_raw_fd(), address.as_ptr().cast(), address.len() as libc::socklen_t)
    })
}

/// Sends to, and receives from, this address only.
pub fn connect(file: BorrowedFd<'_>, address: &[u8]) -> io::Result<()> {
    // SAFETY: the address is valid for reading and of the length given.
    checked(unsafe {
        libc::connect(file.as_raw_fd(), address.as_ptr().cast(), address.len() as libc::socklen_t)
    })
}

/// The address that the socket is bound to, and how long it is.
pub fn name(file: BorrowedFd<'_>) -> io::Result<([u8; ADDRESS_LEN], usize)> {
    let mut address = [0; ADDRESS_LEN];
    let mut length = ADDRESS_LEN as libc::socklen_t;
    // SAFETY: the buffer is valid for writing and of the length given.
    checked(unsafe {
        libc::getsockname(file.as_raw_fd(), address.as_mut_ptr().cast(), &raw mut length)
    })?;
    Ok((address, (length as usize).min(ADDRESS_LEN)))
}

/// Messages for which the socket had no room.
pub fn dropped(file: BorrowedFd<'_>) -> io::Result<u32> {
    // Indices of `<linux/sock_diag.h>`, since Linux 4.12; the kernel fills in those that it knows.
    const VALUES: usize = 9;
    const DROPS: usize = 8;
    // SAFETY: the kernel fills in as many integers as there is room for.
    const MEMORY: SocketOption<[u32; VALUES]> =
        unsafe { SocketOption::new(libc::SOL_SOCKET, libc::SO_MEMINFO) };
    MEMORY.get(file).map(|values| values[DROPS])
}
