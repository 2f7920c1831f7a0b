//! Captures out: nanosecond pcap, little endian.

/// The file header of a capture of Ethernet frames cut at `snap` bytes.
#[must_use]
pub fn header(snap: u32) -> [u8; 24] {
    let mut header = [0; 24];
    header[..8].copy_from_slice(&[0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
    header[16..20].copy_from_slice(&snap.to_le_bytes());
    header[20] = 1;
    header
}

/// Stands for the stamp of a frame that has none: the last one that the format has, in 2106. Not 0, which frames have
/// at the beginning of captures whose clock begins there.
pub const NO_STAMP_NS: i64 = u32::MAX as i64 * 1_000_000_000 + 999_999_999;

/// Whether a stamp stands for none: also where another program copied the frame and kept its microseconds only.
pub(super) fn stands_for_none(stamp_ns: i64) -> bool {
    (NO_STAMP_NS - 999..=NO_STAMP_NS).contains(&stamp_ns)
}

/// Header of a pcap record, to be followed by `captured` bytes of the frame; stamps from 1970 to 2106, or
/// [`NO_STAMP_NS`].
#[must_use]
pub fn record_header(stamp_ns: i64, captured: u32, length: u32) -> [u8; 16] {
    let (seconds, nanoseconds) =
        (stamp_ns.div_euclid(1_000_000_000), stamp_ns.rem_euclid(1_000_000_000));
    let mut header = [0; 16];
    header[..4].copy_from_slice(&(seconds as u32).to_le_bytes());
    header[4..8].copy_from_slice(&(nanoseconds as u32).to_le_bytes());
    header[8..12].copy_from_slice(&captured.to_le_bytes());
    header[12..].copy_from_slice(&length.to_le_bytes());
    header
}
