//! ICMP echo (RFC 792) and ICMPv6 echo (RFC 4443 section 4): type, code, checksum, identifier, sequence
//! number, data.

use crate::bytes::{field, put};
use crate::checksum::{folded, sum};

/// Bytes of the header.
pub const HEADER_LEN: usize = 8;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// ICMP.
    V4,
    /// ICMPv6.
    V6,
}

impl Version {
    const fn types(self) -> (u8, u8) {
        match self {
            Self::V4 => (8, 0),
            Self::V6 => (128, 129),
        }
    }
}

/// The header of an echo or its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Whether it is the reply.
    pub reply: bool,
    /// Identifier of the sender; on a ping socket the kernel sets it.
    pub identifier: u16,
    /// Which one.
    pub sequence: u16,
}

impl Echo {
    /// Writes the header over the first [`HEADER_LEN`] bytes of a message whose data stand behind them, with
    /// the checksum of the whole message for ICMP. For ICMPv6 it stays 0: the kernel fills it in. A message without
    /// room for the header stays as it is.
    pub fn write(self, version: Version, message: &mut [u8]) {
        if message.len() < HEADER_LEN {
            return;
        }
        let (request, reply) = version.types();
        let kind = if self.reply { reply } else { request };
        put(message, 0, &[kind, 0, 0, 0]);
        put(message, 4, &self.identifier.to_be_bytes());
        put(message, 6, &self.sequence.to_be_bytes());
        if version == Version::V4 {
            let checksum = folded(sum(message));
            put(message, 2, &checksum.to_be_bytes());
        }
    }

    /// The header of an echo or its reply; `None` where it is another message or cut, or, for ICMP, where the
    /// checksum is wrong. The kernel checks that of ICMPv6.
    #[must_use]
    pub fn read(version: Version, message: &[u8]) -> Option<Self> {
        let echo = Self::header(version, message)?;
        (version == Version::V6 || folded(sum(message)) == 0).then_some(echo)
    }

    /// The same without a look at the checksum, which takes the whole message: a capture may have cut it.
    #[must_use]
    pub fn header(version: Version, message: &[u8]) -> Option<Self> {
        let header = message.first_chunk::<HEADER_LEN>()?;
        let (request, reply) = version.types();
        let known = (header[0] == request || header[0] == reply) && header[1] == 0;
        known.then(|| Self {
            reply: header[0] == reply,
            identifier: u16::from_be_bytes(field(header, 4)),
            sequence: u16::from_be_bytes(field(header, 6)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_byte_by_byte() {
        let mut message = *b"12345678ab\x01";
        let echo = Echo { reply: false, identifier: 0x1234, sequence: 5 };
        echo.write(Version::V4, &mut message);
        // 0800 + 1234 + 0005 + 6162 + 0100 = 7c9b
        assert_eq!(message, *b"\x08\x00\x83\x64\x12\x34\x00\x05ab\x01");
        assert_eq!(Echo::read(Version::V4, &message), Some(echo));
        message[9] ^= 1;
        assert_eq!(Echo::read(Version::V4, &message), None);
        assert_eq!(Echo::read(Version::V4, &message[..7]), None);
        Echo { reply: true, ..echo }.write(Version::V4, &mut message);
        assert_eq!(message[..2], [0, 0]);
        Echo { reply: true, ..echo }.write(Version::V6, &mut message);
        assert_eq!(message[..8], *b"\x81\x00\x00\x00\x12\x34\x00\x05");
        assert_eq!(Echo::read(Version::V6, &message), Some(Echo { reply: true, ..echo }));
        assert_eq!(Echo::read(Version::V4, &message), None);
    }
}
