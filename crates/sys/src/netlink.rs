//! Questions to the kernel by netlink(7): what drivers say of XDP and AF_XDP, and lost frames.
//!
//! Numbers are those of `<linux/netlink.h>`, `<linux/genetlink.h>` and `<linux/netdev.h>`.

use super::socket;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;

/// `struct nlmsghdr`: length, type, flags, sequence, port.
const HEADER: usize = 16;
/// `struct genlmsghdr`: command, version, reserved.
const GENERIC_HEADER: usize = 4;
/// The most that the kernel puts into one answer.
const ANSWER: usize = 32 << 10;

/// `struct ifinfomsg`, and `IFLA_STATS64`.
const LINK_HEADER: usize = 16;
const COUNTS: u16 = 23;
/// `struct rtnl_link_stats64`: the place of each counter of frames that were received and lost, and its name in ip(8).
const LOST: [(usize, &str); 6] = [
    (4, "errors"),
    (6, "dropped"),
    (11, "over_errors"),
    (14, "fifo_errors"),
    (15, "missed_errors"),
    (23, "nohandler"),
];

/// `NETDEV_CMD_DEV_GET`, and the attributes of its answer.
const DEVICE_GET: u8 = 1;
const IFINDEX: u16 = 1;
const XDP_FEATURES: u16 = 3;
const RECEIVE_METADATA: u16 = 5;
const SOCKET_FEATURES: u16 = 6;

/// Claims of a driver about XDP, by the netdev family: bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct XdpFeatures {
    /// `enum netdev_xdp_act`.
    pub actions: u64,
    /// `enum netdev_xdp_rx_metadata`: hints that an XDP program can ask for; 0 before Linux 6.8.
    pub hints: u64,
    /// `enum netdev_xsk_flags`: what AF_XDP can ask for when it sends; 0 before Linux 6.8.
    pub socket: u64,
}

/// Asks what a driver says of XDP.
///
/// # Errors
/// `ENOENT` from a kernel before 6.3, which has no such family.
pub fn xdp_features(index: u32) -> io::Result<XdpFeatures> {
    let name = attribute(libc::CTRL_ATTR_FAMILY_NAME as u16, b"netdev\0");
    let asked = generic(libc::CTRL_CMD_GETFAMILY as u8, &name);
    let told = ask(libc::NETLINK_GENERIC, libc::GENL_ID_CTRL as u16, libc::NLM_F_ACK, &asked)?;
    let family = told.iter().find_map(|told| {
        let (_, id) = attributes(told.get(GENERIC_HEADER..)?)
            .find(|(kind, _)| *kind == libc::CTRL_ATTR_FAMILY_ID as u16)?;
        Some(u16::from_ne_bytes(*id.first_chunk()?))
    });
    let family = family.ok_or(io::ErrorKind::InvalidData)?;
    let asked = generic(DEVICE_GET, &attribute(IFINDEX, &index.to_ne_bytes()));
    let told = ask(libc::NETLINK_GENERIC, family, libc::NLM_F_ACK, &asked)?;
    let told = told.first().and_then(|told| told.get(GENERIC_HEADER..));
    Ok(features(told.unwrap_or_default()))
}

fn features(told: &[u8]) -> XdpFeatures {
    let mut features = XdpFeatures::default();
    for (kind, value) in attributes(told) {
        let bits = value.first_chunk().map_or(0, |value| u64::from_ne_bytes(*value));
        match kind {
            XDP_FEATURES => features.actions = bits,
            RECEIVE_METADATA => features.hints = bits,
            SOCKET_FEATURES => features.socket = bits,
            _ => {}
        }
    }
    features
}

/// Frames that an interface has received and lost since it was made, by the name of the counter. Which of them a driver
/// has, and which count a frame twice, is its own affair.
///
/// # Errors
/// The kernel's answer.
pub fn lost(index: u32) -> io::Result<[(&'static str, u64); LOST.len()]> {
    let mut asked = [0; LINK_HEADER];
    asked[4..8].copy_from_slice(&index.to_ne_bytes());
    let told = ask(libc::NETLINK_ROUTE, libc::RTM_GETLINK, libc::NLM_F_ACK, &asked)?;
    let told = told.first().and_then(|told| told.get(LINK_HEADER..)).unwrap_or_default();
    let counts = attributes(told).find(|(kind, _)| *kind == COUNTS);
    let counts = counts.map(|(_, counts)| counts).ok_or(io::ErrorKind::InvalidData)?;
    let at = |place: usize| counts.get(place * 8..)?.first_chunk().map(|n| u64::from_ne_bytes(*n));
    Ok(LOST.map(|(place, name)| (name, at(place).unwrap_or(0))))
}

/// Asks one question, with flags such as `NLM_F_ACK` or `NLM_F_DUMP`. Returns the answers without their headers.
pub(super) fn ask(
    protocol: libc::c_int,
    kind: u16,
    flags: libc::c_int,
    body: &[u8],
) -> io::Result<Vec<Vec<u8>>> {
    let flags = libc::NLM_F_REQUEST | flags;
    let mut request = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    request.extend(kind.to_ne_bytes());
    request.extend((flags as u16).to_ne_bytes());
    request.extend([0; 8]);
    request.extend(body);
    // Without an address it goes to the kernel, which answers before the call returns.
    let socket = socket::open(libc::AF_NETLINK, libc::SOCK_RAW, protocol)?;
    send(&socket, &request, SendFlags::empty())?;
    let (mut buffer, mut answers) = (vec![0; ANSWER], Vec::new());
    loop {
        let (_, length) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        for (kind, answer) in messages(&buffer[..length]) {
            match libc::c_int::from(kind) {
                libc::NLMSG_DONE => return Ok(answers),
                // An error of 0 says that there are no more answers.
                libc::NLMSG_ERROR => {
                    let code = answer.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                    return if code == 0 {
                        Ok(answers)
                    } else {
                        Err(io::Error::from_raw_os_error(-code))
                    };
                }
                _ => answers.push(answer.to_vec()),
            }
        }
    }
}

fn generic(command: u8, attributes: &[u8]) -> Vec<u8> {
    [&[command, 1, 0, 0], attributes].concat()
}

pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Messages with their types, without headers. An incomplete end is skipped.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
        let message = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, message))
    })
}

/// Attributes with their types. An incomplete end is skipped.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    // Two bits say how the value is to be read.
    const TYPE: u16 = 0x3fff;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?) & TYPE;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_bits_by_attribute() {
        let told = [
            attribute(IFINDEX, &3_u32.to_ne_bytes()),
            attribute(XDP_FEATURES, &0b1011_u64.to_ne_bytes()),
            attribute(RECEIVE_METADATA, &1_u64.to_ne_bytes()),
            attribute(99, b"other"),
        ]
        .concat();
        assert_eq!(features(&told), XdpFeatures { actions: 0b1011, hints: 1, socket: 0 });
        // Cut anywhere, what is left is read.
        for end in 0..told.len() {
            features(&told[..end]);
        }
    }

    #[test]
    fn the_kernel_answers() {
        let lo = crate::interface::index("lo").unwrap();
        let lost = lost(lo).unwrap();
        assert_eq!((lost[0].0, lost[4].0), ("errors", "missed_errors"));
        match xdp_features(lo) {
            // Loopback's driver runs no XDP programs.
            Ok(told) => assert_eq!(told, XdpFeatures::default()),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOENT)),
        }
        let none = xdp_features(u32::MAX >> 1).unwrap_err();
        assert!(matches!(none.raw_os_error(), Some(libc::ENODEV | libc::ENOENT)), "{none}");
    }
}
