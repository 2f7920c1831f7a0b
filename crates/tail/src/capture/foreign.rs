//! Captures that are not read: the name of their format or link type, and what makes a readable capture of them.

use crate::summary::grouped;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Advice on a link type whose frames are not read.
pub(super) const FRAMES: &str = "record on the network interface itself";

/// Advice on a capture format of another program.
const CONVERT: &str = "convert it with editcap -F nsecpcap IN OUT (of Wireshark)";

/// Advice on a file of another kind than a capture.
const NO_CAPTURE: &str = "record with tcpdump -w or tailtrim-agent capture";

/// Capture formats of other programs by their first bytes, most of which Wireshark converts.
const FORMATS: &[(&[u8], &str, &str)] = &[
    (b"snoop\0\0\0", "a snoop capture", CONVERT),
    (b"btsnoop\0", "a Bluetooth capture (btsnoop)", FRAMES),
    (b"GMBU", "a capture of Microsoft Network Monitor 2", CONVERT),
    (b"RTSS", "a capture of Microsoft Network Monitor 1", CONVERT),
    (b"TRSNIFF data", "a Sniffer capture", CONVERT),
    (b"XCP\0", "a NetXRay capture", CONVERT),
    (b"VL\0\0", "a NetXRay capture", CONVERT),
    (b"ObserverPktBuf", "an Observer capture", CONVERT),
    (b"\x7fver", "an OmniPeek capture", CONVERT),
    (b"\x05VNF", "a Visual Networks capture", CONVERT),
    (b"iptrace ", "an iptrace capture of AIX", CONVERT),
    (b"EyeSDN", "an EyeSDN capture", CONVERT),
    (b"\xaa\xaa\xaa\xaa", "a 5View capture", CONVERT),
    (b"\x00\x00\x02\x00\x12\x05\x00\x10", "a K12 capture", CONVERT),
    (b"\x54\x52\x00\x64\x00", "an nettl trace of HP-UX", CONVERT),
    (b"\x1c\x00\x01\xab", "an Ixia capture (lcap)", CONVERT),
    (b"\x1c\x00\x01\xac", "an Ixia capture (lcap)", CONVERT),
    (b"\xab\x01\x00\x1c", "an Ixia capture (lcap)", CONVERT),
    (b"\xac\x01\x00\x1c", "an Ixia capture (lcap)", CONVERT),
    (b"\xa1\xe2\xcb\x12", "a variant of pcap", CONVERT),
    (b"\x12\xcb\xe2\xa1", "a variant of pcap", CONVERT),
    (b"\xa1\xb2\xc3\xcd", "a variant of pcap", CONVERT),
    (b"\xcd\xc3\xb2\xa1", "a variant of pcap", CONVERT),
    (b"BZh", "compressed by bzip2", "decompress it with bunzip2"),
    (b"\xfd7zXZ\0", "compressed by xz", "decompress it with xz -d"),
    (b"\x04\x22\x4d\x18", "compressed by lz4", "decompress it with lz4 -d"),
    (b"LZIP", "compressed by lzip", "decompress it with lzip -d"),
    (b"\x89LZO", "compressed by lzop", "decompress it with lzop -d"),
    (b"\x1f\x9d", "compressed by compress", "decompress it with uncompress"),
    (b"PK\x03\x04", "a zip archive", "unpack it with unzip"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it with 7z x"),
    (b"PAR1", "a Parquet file", "give the directory of the result or of decode, not a file in it"),
    (
        b"version https://git-lfs",
        "a pointer of Git LFS",
        "fetch the capture itself with git lfs pull",
    ),
    (b"\x7fELF", "a program", NO_CAPTURE),
];

/// Link types that are not read, by their numbers (tcpdump.org/linktypes.html).
const LINK_TYPES: &[(u32, &str)] = &[
    (0, "BSD loopback"),
    (6, "Token Ring"),
    (8, "SLIP"),
    (9, "PPP"),
    (10, "FDDI"),
    (50, "PPP"),
    (51, "PPPoE session"),
    (104, "Cisco HDLC"),
    (105, "IEEE 802.11"),
    (107, "frame relay"),
    (108, "OpenBSD loopback"),
    (109, "OpenBSD IPsec"),
    (117, "OpenBSD pflog"),
    (119, "IEEE 802.11 with a Prism header"),
    (127, "IEEE 802.11 with radiotap"),
    (138, "IP over FireWire"),
    (163, "IEEE 802.11 with AVS"),
    (186, "USB"),
    (187, "Bluetooth"),
    (189, "usbmon"),
    (190, "CAN"),
    (192, "PPI"),
    (195, "IEEE 802.15.4"),
    (197, "ERF within pcap"),
    (201, "Bluetooth"),
    (220, "usbmon"),
    (227, "SocketCAN"),
    (230, "IEEE 802.15.4"),
    (239, "NFLOG"),
    (242, "IP over InfiniBand"),
    (247, "InfiniBand"),
    (249, "USBPcap"),
    (251, "Bluetooth LE"),
    (252, "upper PDUs of Wireshark"),
    (253, "netlink"),
    (254, "Bluetooth monitor"),
    (256, "Bluetooth LE"),
    (271, "vsock"),
    (272, "nRF sniffer"),
    (282, "Broadcom tag"),
    (284, "DSA tag"),
    (285, "EDSA tag"),
];

/// A link type by number and name.
pub(super) fn link_type_name(number: u32) -> String {
    name_of(number).map_or(number.to_string(), |name| format!("{number} ({name})"))
}

/// The same as [`Unread`] has it.
pub(super) fn unread_link_type(number: u32) -> String {
    let name = name_of(number).map_or(String::new(), |name| format!(", {name}"));
    format!("link type {number}{name}")
}

fn name_of(number: u32) -> Option<&'static str> {
    let private = (147..=162).contains(&number).then_some("a private one of its user");
    let name = LINK_TYPES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name);
    private.or(name)
}

/// The content that these first bytes show, and the content that was expected, with what helps.
pub(super) fn what_else(first: &[u8]) -> (String, String) {
    let known = FORMATS.iter().find(|(magic, ..)| first.starts_with(magic));
    if let Some((_, what, help)) = known {
        return ((*what).to_owned(), format!("pcap, pcapng, ERF or mscap: {help}"));
    }
    let text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    if first.iter().all(text) {
        return (
            "text".to_owned(),
            format!(
                "pcap, pcapng, ERF or mscap: {NO_CAPTURE}, or make one of a hex dump with text2pcap"
            ),
        );
    }
    let magic: Vec<String> = first.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    (
        format!("magic number {}", magic.join(" ")),
        "a pcap (a1b2c3d4, a1b23c4d or a1b2cd34, either byte order), pcapng (0a0d0d0a), zstd or gzip magic number, ERF \
         records, or the name ending .mscap: file(1) or capinfos may tell what it is, and editcap -F nsecpcap IN OUT \
         converts what Wireshark reads"
            .to_owned(),
    )
}

/// Packets that are not read, because the link type of their interface is not understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// The number of the interface.
    pub interface: u32,
    /// The link type, by number and name.
    pub link_type: String,
    /// Packets.
    pub packets: u64,
}

impl fmt::Display for Unread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets = if self.packets == 1 { "packet" } else { "packets" };
        let (count, Self { interface, link_type, .. }) = (grouped(self.packets), self);
        write!(formatter, "{count} {packets} of interface {interface} ({link_type})")
    }
}
