//! Questions to network interfaces, and the one setting that a tap needs: stamps by the NIC.
//!
//! Requests and structures: netdevice(7) and Documentation/networking/timestamping.rst of the kernel.

use super::checked;
use super::ethtool::{self, Driver, Timestamping};
use rustix::net::netdevice::name_to_index;
use std::ffi::c_void;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

const SIOCGHWTSTAMP: libc::c_ulong = 0x89b1;
const SIOCSHWTSTAMP: libc::c_ulong = 0x89b0;
/// `HWTSTAMP_FILTER_ALL`: every frame that comes in.
const FILTER_ALL: i32 = 1;
/// `HWTSTAMP_TX_ON`: frames of sockets that ask for it.
const SEND_ON: i32 = 1;

/// `struct hwtstamp_config`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StampSetting {
    flags: i32,
    send_type: i32,
    receive_filter: i32,
}

impl StampSetting {
    /// Stamps of received packets that a filter takes, by its number, and of sent ones.
    pub fn of(receive_filter: i32, send: bool) -> Self {
        Self { flags: 0, send_type: if send { SEND_ON } else { 0 }, receive_filter }
    }

    /// The number of the filter of received packets.
    pub fn receive_filter(&self) -> i32 {
        self.receive_filter
    }

    /// Whether sent packets are stamped.
    pub fn sends(&self) -> bool {
        self.send_type == SEND_ON
    }
}

/// Which frames the NIC stamps now.
pub fn stamping(name: &str) -> io::Result<StampSetting> {
    let mut setting = StampSetting::default();
    exchange(name, SIOCGHWTSTAMP, &mut setting)?;
    Ok(setting)
}

/// The index of an interface.
pub fn index(name: &str) -> io::Result<u32> {
    // Any socket will do.
    Ok(name_to_index(UnixDatagram::unbound()?, name)?)
}

/// The MAC address of an interface.
pub fn mac(name: &str) -> io::Result<[u8; 6]> {
    let request = answered(name, libc::SIOCGIFHWADDR as _)?;
    // SAFETY: the request was answered, so this member of the union is the one that was written.
    let data = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
    Ok([0, 1, 2, 3, 4, 5].map(|at| data[at] as u8))
}

/// Most bytes that an interface carries behind the L2 header.
pub fn mtu(name: &str) -> io::Result<usize> {
    let request = answered(name, libc::SIOCGIFMTU as _)?;
    // SAFETY: as above.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.max(0) as usize)
}

/// State of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// It was set up.
    pub up: bool,
    /// It has a link.
    pub link: bool,
    /// Whatever it sends comes back to this host.
    pub loopback: bool,
}

/// The state of an interface.
pub fn state(name: &str) -> io::Result<State> {
    let has = |flags: libc::c_short, flag: libc::c_int| libc::c_int::from(flags) & flag != 0;
    let flags = flags(&answered(name, libc::SIOCGIFFLAGS as _)?);
    Ok(State {
        up: has(flags, libc::IFF_UP),
        link: has(flags, libc::IFF_RUNNING),
        loopback: has(flags, libc::IFF_LOOPBACK),
    })
}

/// Sets an interface up, or down. Needs CAP_NET_ADMIN.
pub fn set_up(name: &str, up: bool) -> io::Result<()> {
    let mut request = answered(name, libc::SIOCGIFFLAGS as _)?;
    let before = flags(&request);
    let flag = libc::IFF_UP as libc::c_short;
    request.ifr_ifru.ifru_flags = if up { before | flag } else { before & !flag };
    let socket = UnixDatagram::unbound()?;
    // SAFETY: the request is valid for reading, which is all that this number asks for.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut request) })
}

fn flags(answered: &libc::ifreq) -> libc::c_short {
    // SAFETY: callers pass the answer to a question for flags, which is this member of the union.
    unsafe { answered.ifr_ifru.ifru_flags }
}

/// Whether there is a device on a bus behind the interface. Unlike sysfs, which shows the network
/// namespace that it was mounted in, this asks about the namespace of the caller.
pub fn has_hardware(name: &str) -> io::Result<bool> {
    Ok(ethtool::get::<Driver>(name)?.has_bus())
}

/// The number of the clock by which the NIC stamps every frame that comes in; `None` where it cannot.
pub fn stamping_clock(name: &str) -> io::Result<Option<i32>> {
    let info: Timestamping = match ethtool::get(name) {
        // A driver that knows nothing of stamps.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(None),
        other => other?,
    };
    let by_nic = info.capabilities & libc::SOF_TIMESTAMPING_RAW_HARDWARE != 0;
    let every_frame = info.receive_filters & (1 << FILTER_ALL) != 0;
    Ok((by_nic && every_frame && info.clock >= 0).then_some(info.clock))
}

/// Makes the NIC stamp every received frame. Returns the setting from before.
pub fn stamp_all(name: &str) -> io::Result<StampSetting> {
    let before = stamping(name)?;
    let mut wanted = StampSetting { receive_filter: FILTER_ALL, ..before };
    set_stamping(name, &mut wanted)?;
    // A driver may choose another filter than the one asked for.
    if wanted.receive_filter != FILTER_ALL {
        set_stamping(name, &mut before.clone())?;
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(before)
}

/// Makes the NIC stamp also sent frames, where a socket asks for it. Returns the setting from before.
pub fn stamp_both_ways(name: &str) -> io::Result<StampSetting> {
    let before = stamp_all(name)?;
    let mut wanted = StampSetting { send_type: SEND_ON, receive_filter: FILTER_ALL, ..before };
    if let Err(error) = set_stamping(name, &mut wanted) {
        set_stamping(name, &mut before.clone())?;
        return Err(error);
    }
    Ok(before)
}

/// Sets which frames the NIC stamps; the driver writes the real setting into `setting`.
pub fn set_stamping(name: &str, setting: &mut StampSetting) -> io::Result<()> {
    exchange(name, SIOCSHWTSTAMP, setting)
}

fn answered(name: &str, what: libc::c_ulong) -> io::Result<libc::ifreq> {
    let mut request = request(name)?;
    let socket = UnixDatagram::unbound()?;
    // SAFETY: the request is valid for reading and writing, which is what the numbers of the callers ask
    // for.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), what as _, &raw mut request) })?;
    Ok(request)
}

/// A request whose answer goes into a structure of its own.
fn exchange<T>(name: &str, what: libc::c_ulong, data: &mut T) -> io::Result<()> {
    request_with(name, what, std::ptr::from_mut(data).cast())
}

fn request_with(name: &str, what: libc::c_ulong, data: *mut c_void) -> io::Result<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = data.cast();
    // Any socket will do, also an ordinary user's: requests that it does not know itself go to the device.
    let socket = UnixDatagram::unbound()?;
    // SAFETY: the request points to `data`, which outlives the call; every caller passes the structure
    // that the kernel reads and writes for its number.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), what as _, &raw mut request) })
}

fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero bits are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = name.as_bytes();
    // The last byte of the name stays zero.
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(name) {
        *slot = *byte as libc::c_char;
    }
    Ok(request)
}
