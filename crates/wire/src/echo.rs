//! Probes for whoever sends back what it gets: UDP echo (RFC 862), and behind the header of an ICMP echo.

use crate::bytes::{field, put};

/// Bytes of a probe.
pub const ECHO_PROBE_LEN: usize = 24;
/// First bytes of every probe ("ttrt" for round trip).
pub const ECHO_PROBE_MAGIC: [u8; 4] = *b"ttrt";

/// Content of an echo probe. All fields are big endian:
///
/// | bytes | what |
/// |---|---|
/// | 0–3 | magic `ttrt` |
/// | 4–7 | session: a random number of the sender, so that replies to another one are none |
/// | 8–15 | sequence number |
/// | 16–23 | when it was to depart, or did: ns since 1970 |
///
/// Behind it may be padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoProbe {
    /// Session of the sender.
    pub session: u32,
    /// Which one.
    pub sequence: u64,
    /// The sender's time.
    pub unix_ns: i64,
}

impl EchoProbe {
    /// The bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; ECHO_PROBE_LEN] {
        let mut bytes = [0; ECHO_PROBE_LEN];
        put(&mut bytes, 0, &ECHO_PROBE_MAGIC);
        put(&mut bytes, 4, &self.session.to_be_bytes());
        put(&mut bytes, 8, &self.sequence.to_be_bytes());
        put(&mut bytes, 16, &self.unix_ns.to_be_bytes());
        bytes
    }

    /// The probe at the start of these bytes, if it is one.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<ECHO_PROBE_LEN>()?;
        let (session, sequence) = Self::identity(bytes)?;
        Some(Self { session, sequence, unix_ns: i64::from_be_bytes(field(bytes, 16)) })
    }

    /// Session and sequence number, also of bytes that were cut behind them; `None` when it is not a probe.
    #[must_use]
    pub fn identity(bytes: &[u8]) -> Option<(u32, u64)> {
        let bytes = bytes.first_chunk::<16>()?;
        (field(bytes, 0) == ECHO_PROBE_MAGIC)
            .then(|| (u32::from_be_bytes(field(bytes, 4)), u64::from_be_bytes(field(bytes, 8))))
    }
}

/// The cookie of UDP echo, which reflector and client both know: eight bytes of sixteen hexadecimal digits.
///
/// # Errors
/// It has another form; the text names what is expected.
pub fn parse_cookie(text: &str) -> Result<[u8; 8], String> {
    let expected = || format!("invalid cookie {text:?}, expected 16 hexadecimal digits");
    if text.len() != 16 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(expected());
    }
    u64::from_str_radix(text, 16).map(u64::to_be_bytes).map_err(|_| expected())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_digits_are_eight_bytes() {
        assert_eq!(
            parse_cookie("00112233AABBccdd"),
            Ok([0, 0x11, 0x22, 0x33, 0xaa, 0xbb, 0xcc, 0xdd])
        );
        for text in [
            "",
            "0",
            "00112233aabbccd",
            "00112233aabbccdd0",
            "+0112233aabbccdd",
            "g0112233aabbccdd",
        ] {
            assert!(parse_cookie(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_probe_byte_by_byte() {
        let probe = EchoProbe { session: 0x0102_0304, sequence: 0x0506, unix_ns: -2 };
        let bytes = probe.encode();
        assert_eq!(bytes[..8], *b"ttrt\x01\x02\x03\x04");
        assert_eq!(bytes[8..16], [0, 0, 0, 0, 0, 0, 5, 6]);
        assert_eq!(bytes[16..], [255, 255, 255, 255, 255, 255, 255, 254]);
        assert_eq!(EchoProbe::decode(&bytes), Some(probe));
        assert_eq!(EchoProbe::decode(&bytes[..23]), None);
        assert_eq!(EchoProbe::decode(&[0; 24]), None);
    }
}
