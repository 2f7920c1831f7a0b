//! What ethtool asks: <linux/ethtool.h>. Unlike sysfs, which shows the network namespace that it was
//! mounted in, these calls are about the namespace of the caller.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const GET_DRIVER: u32 = 3;

/// `struct ethtool_drvinfo`
#[repr(C)]
struct Driver {
    command: u32,
    driver: [u8; 32],
    version: [u8; 32],
    firmware: [u8; 32],
    bus: [u8; 32],
    rom: [u8; 32],
    reserved: [u8; 12],
    counts: [u32; 5],
}

/// Whether there is a device on a bus behind the interface. Any socket does to ask with.
pub(crate) fn has_hardware(socket: BorrowedFd<'_>, interface: &str) -> io::Result<bool> {
    // SAFETY: all-zero bits are a valid structure of numbers.
    let mut driver: Driver = unsafe { std::mem::zeroed() };
    driver.command = GET_DRIVER;
    // SAFETY: all-zero bits are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = interface.as_bytes();
    // The last byte of the name stays zero.
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(name) {
        *slot = *byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut driver).cast();
    // SAFETY: the request is valid for reading and writing and points to the structure of its command,
    // both of which live until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(driver.bus[0] != 0)
}
