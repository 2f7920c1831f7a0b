//! The checksum of IP, UDP and ICMP (RFC 1071).

/// The sum of the 16-bit words; a byte left over is the upper half of one.
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let words: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    words + rest.first().map_or(0, |&byte| u64::from(byte) << 8)
}

/// The checksum that belongs to a sum: 0 where the sum covered a correct checksum.
#[must_use]
pub fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The checksum that a UDP header carries for a sum: 0 would say that there is none (RFC 768).
#[must_use]
pub fn of_udp(sum: u64) -> u16 {
    match folded(sum) {
        0 => 0xffff,
        checksum => checksum,
    }
}
