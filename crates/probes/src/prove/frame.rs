//! The packets that are sent: PTP Sync messages (IEEE 1588-2019, 13.3 and 13.6), which every NIC that stamps can stamp, or
//! the same under an Ethertype for experiments.

/// Bytes without FCS: the least.
pub(super) const LENGTH: usize = 60;
/// IEEE 802 local experimental Ethertype 1.
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];
const PTP: [u8; 2] = [0x88, 0xf7];
const PTP_GROUP: [u8; 6] = [0x01, 0x1b, 0x19, 0, 0, 0];
/// Offsets of the fields of the message.
const TYPE: usize = 12;
const BODY: usize = 14;
const IDENTITY: usize = BODY + 20;
const SEQUENCE: usize = BODY + 30;

/// Packets with numbers.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    bytes: [u8; LENGTH],
    number: u16,
}

impl Frame {
    /// Packets of PTP, or others; `run` tells them from those of other processes.
    pub(super) fn new(from: [u8; 6], to: [u8; 6], ptp: bool, run: u64) -> Self {
        let mut bytes = [0; LENGTH];
        bytes[..6].copy_from_slice(if ptp { &PTP_GROUP } else { &to });
        bytes[6..TYPE].copy_from_slice(&from);
        bytes[TYPE..BODY].copy_from_slice(if ptp { &PTP } else { &EXPERIMENTAL });
        // Version 2, 44 bytes, and a Follow_Up to come: no NIC writes into it.
        bytes[BODY + 1] = 2;
        bytes[BODY + 3] = 44;
        bytes[BODY + 6] = 2;
        bytes[IDENTITY..IDENTITY + 8].copy_from_slice(&run.to_ne_bytes());
        bytes[IDENTITY + 9] = 1;
        Self { bytes, number: 0 }
    }

    /// The number of the next one.
    pub(super) fn number(&self) -> u16 {
        self.number
    }

    /// The next one.
    pub(super) fn next(&mut self) -> &[u8] {
        self.bytes[SEQUENCE..SEQUENCE + 2].copy_from_slice(&self.number.to_be_bytes());
        self.number = self.number.wrapping_add(1);
        &self.bytes
    }

    /// The number of one that came; `None` for other packets.
    pub(super) fn number_of(&self, came: &[u8]) -> Option<u16> {
        let alike =
            |range: std::ops::Range<usize>| came.get(range.clone()) == self.bytes.get(range);
        let ours = alike(TYPE..BODY) && alike(IDENTITY..SEQUENCE);
        ours.then(|| came.get(SEQUENCE..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes)))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_known_by_its_run() {
        let new = |run| Frame::new([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], true, run);
        let (mut one, mut other) = (new(1), new(2));
        one.next();
        let second = one.next().to_vec();
        assert_eq!((one.number_of(&second), one.number()), (Some(1), 2));
        assert_eq!(one.number_of(other.next()), None);
        assert_eq!(one.number_of(&second[..SEQUENCE + 1]), None);
        assert_eq!(one.number_of(&[]), None);
    }
}
