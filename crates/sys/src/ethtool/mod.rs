//! Settings and properties of network interfaces, by the kernel's `SIOCETHTOOL`.
//!
//! Each command has its type, so that no caller has to know the size of the kernel's answer. Structures and numbers are
//! those of `<linux/ethtool.h>`.

mod structures;

pub use structures::{
    Answer, Channels, Coalescing, Driver, Eee, Pause, Rings, Settings, Timestamping, filter_name,
    named,
};

use std::ffi::c_void;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use structures::{NAME, Request, text};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const GET_INDIRECTION: u32 = 0x38;
const GET_STRINGS: u32 = 0x1b;
const GET_STRING_COUNTS: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
/// `ETH_SS_FEATURES`: the set of strings that names the features.
const FEATURE_NAMES: u32 = 4;
/// More features than any kernel has.
const MOST_FEATURES: usize = 1_024;
/// More entries than any table of indirection has.
const MOST_ENTRIES: usize = 1 << 16;

/// One of the features that the kernel knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// As `ethtool -k` calls it.
    pub name: String,
    /// Whether it is on.
    pub active: bool,
    /// Whether it cannot be changed on this interface.
    pub fixed: bool,
}

/// Asks an interface.
///
/// # Errors
///
/// `EOPNOTSUPP` where its driver does not know the command, `ENODEV` where there is no such interface.
pub fn get<A: Answer>(interface: &str) -> io::Result<A> {
    let mut request = Request { command: A::GET, body: A::default() };
    // SAFETY: the kernel writes no more than the request has, by the contract of `Answer`.
    unsafe { call(interface, (&raw mut request).cast()) }.map_err(unknown)?;
    Ok(request.body)
}

/// Sets the fields that were read and changed. Needs CAP_NET_ADMIN.
///
/// # Errors
///
/// The driver's answer.
pub fn set<S: Settings>(interface: &str, settings: &S) -> io::Result<()> {
    let mut request = Request { command: S::SET, body: *settings };
    // SAFETY: the kernel reads no more than the request has, by the contract of `Settings`.
    unsafe { call(interface, (&raw mut request).cast()) }.map(drop)
}

/// All features, in the kernel's order.
///
/// # Errors
///
/// As [`get`].
pub fn features(interface: &str) -> io::Result<Vec<Feature>> {
    let names = feature_names(interface)?;
    let blocks = names.len().div_ceil(32);
    let mut words = vec![0; 2 + blocks * 4];
    (words[0], words[1]) = (GET_FEATURES, blocks as u32);
    // SAFETY: the kernel writes as many blocks of four words as the second word says.
    unsafe { call(interface, words.as_mut_ptr().cast()) }.map_err(unknown)?;
    let feature = |(number, name): (usize, String)| {
        // Of each block: available, requested, active, never changed.
        let block = &words[2 + number / 32 * 4..];
        let bit = |word: usize| block[word] >> (number % 32) & 1 == 1;
        Feature { name, active: bit(2), fixed: !bit(0) || bit(3) }
    };
    Ok(names.into_iter().enumerate().map(feature).collect())
}

/// Turns a feature on or off. Needs CAP_NET_ADMIN.
///
/// # Errors
///
/// The kernel has no such feature, or the interface keeps it as it is.
pub fn set_feature(interface: &str, name: &str, on: bool) -> io::Result<()> {
    let names = feature_names(interface)?;
    let number = names.iter().position(|known| known == name).ok_or(io::ErrorKind::NotFound)?;
    let blocks = names.len().div_ceil(32);
    let mut words = vec![0; 2 + blocks * 2];
    (words[0], words[1]) = (SET_FEATURES, blocks as u32);
    // Of each block: which bits count, and their values.
    let at = 2 + number / 32 * 2;
    words[at] = 1 << (number % 32);
    words[at + 1] = u32::from(on) << (number % 32);
    // SAFETY: the kernel reads as many blocks of two words as the second word says.
    match unsafe { call(interface, words.as_mut_ptr().cast()) }? {
        0 => Ok(()),
        // `ETHTOOL_F_UNSUPPORTED`, `ETHTOOL_F_WISH`
        _ => Err(io::Error::other("the interface keeps it as it is")),
    }
}

/// Names of the features, by their numbers.
fn feature_names(interface: &str) -> io::Result<Vec<String>> {
    // Two words are a mask of 64 bits in this machine's order.
    let mut counts = [GET_STRING_COUNTS, 0, 0, 0, 0];
    counts[2..4].copy_from_slice(&words_of(1 << FEATURE_NAMES));
    // SAFETY: the kernel writes one count behind the mask for the one bit that is set.
    unsafe { call(interface, counts.as_mut_ptr().cast()) }.map_err(unknown)?;
    let (known, count) = (counts[2] | counts[3], counts[4] as usize);
    if known == 0 || count == 0 || count > MOST_FEATURES {
        return Err(unsupported());
    }
    // The kernel writes all names, whatever number it is asked for: there is room for the most.
    let mut names = vec![0_u8; 12 + MOST_FEATURES * NAME];
    for (at, word) in [GET_STRINGS, FEATURE_NAMES, count as u32].into_iter().enumerate() {
        names[at * 4..][..4].copy_from_slice(&word.to_ne_bytes());
    }
    // SAFETY: the number of names is fixed when a kernel is built, and it was seen to be at most what there
    // is room for.
    unsafe { call(interface, names.as_mut_ptr().cast()) }.map_err(unknown)?;
    Ok(names[12..].chunks_exact(NAME).take(count).map(text).collect())
}

/// The queue of each entry of the table by which received packets are spread.
///
/// # Errors
///
/// As [`get`].
pub fn indirection(interface: &str) -> io::Result<Vec<u32>> {
    let mut size = [GET_INDIRECTION, 0];
    // SAFETY: asked for no entries, the kernel writes only their number, the second word.
    unsafe { call(interface, size.as_mut_ptr().cast()) }.map_err(unknown)?;
    let entries = size[1] as usize;
    if entries == 0 || entries > MOST_ENTRIES {
        return Err(unsupported());
    }
    let mut words = vec![0; 2 + entries];
    (words[0], words[1]) = (GET_INDIRECTION, size[1]);
    // SAFETY: the kernel refuses where the table has meanwhile more entries than the second word says.
    unsafe { call(interface, words.as_mut_ptr().cast()) }.map_err(unknown)?;
    Ok(words.split_off(2))
}

/// Drivers answer in more than one way that they do not know a command.
fn unknown(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EINVAL | libc::ENOTTY) => unsupported(),
        _ => error,
    }
}

fn unsupported() -> io::Error {
    io::Error::from_raw_os_error(libc::EOPNOTSUPP)
}

fn words_of(mask: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = mask.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

/// Returns the kernel's result, which is not negative.
///
/// # Safety
///
/// `data` points to one of the structures of `<linux/ethtool.h>`, its first word the command, with room for all
/// that the command reads and writes.
unsafe fn call(interface: &str, data: *mut c_void) -> io::Result<u32> {
    // SAFETY: all-zero bits are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = interface.as_bytes();
    // The last byte of the name stays zero.
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(name) {
        *slot = *byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = data.cast();
    // Any socket will do, also an ordinary user's: commands that it does not know itself go to the device.
    let socket = UnixDatagram::unbound()?;
    // SAFETY: the request lives until the call returns, and points to what the caller vouches for.
    let told = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    u32::try_from(told).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_with_its_first_zero() {
        assert_eq!(text(b"rx-gro\0junk"), "rx-gro");
        assert_eq!(text(b"veth "), "veth");
        assert_eq!(text(&[b'x'; NAME]).len(), NAME);
    }

    #[test]
    fn the_loopback_tells_its_features() {
        let features = features("lo").unwrap();
        let loopback = features.iter().find(|feature| feature.name == "loopback").unwrap();
        assert!(loopback.active && loopback.fixed, "{loopback:?}");
        // Names keep their numbers also where the kernel has left one free.
        assert!(features.len() > 32, "{}", features.len());
    }

    #[test]
    fn what_a_driver_does_not_know_is_told_in_one_way() {
        let code = |error: io::Error| error.raw_os_error();
        assert_eq!(get::<Rings>("lo").map_err(code).err(), Some(Some(libc::EOPNOTSUPP)));
        assert_eq!(get::<Rings>("no-such").map_err(code).err(), Some(Some(libc::ENODEV)));
        let long = "a-name-that-is-too-long";
        assert_eq!(get::<Rings>(long).map_err(code).err(), Some(Some(libc::ENODEV)));
        assert_eq!(indirection("lo").map_err(code).err(), Some(Some(libc::EOPNOTSUPP)));
    }
}
