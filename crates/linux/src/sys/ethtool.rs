//! The ioctl behind `ethtool`: simpler than its netlink family, and older kernels have it too.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

/// `SIOCETHTOOL` of linux/sockios.h.
const SIOCETHTOOL: u64 = 0x8946;

/// Asks about an interface. `words` is one of the structures of linux/ethtool.h, its first word the
/// command; the answer takes its place. The caller gives room for all that the command can return.
pub(crate) fn ethtool(interface: &str, words: &mut [u32]) -> io::Result<()> {
    // Any socket will do: what it does not know itself goes to the network devices.
    let socket = UnixDatagram::unbound()?;
    // SAFETY: all-zero bits are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: `request` is valid and names a buffer that outlives the call; each command writes at most
    // the structure that the caller laid out, whose counts it filled in.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
