//! Payload of a generated frame: its flow, sequence number and intended departure.

/// Bytes of a probe: what a UDP packet in a frame of 64 bytes has room for.
pub const PROBE_LEN: usize = 18;

/// First bytes of every probe ("tt" and the version of the layout).
const MAGIC: [u8; 2] = *b"t1";

/// The payload of a generated frame. All fields are big endian:
///
/// | bytes | what |
/// |---|---|
/// | 0–1 | magic `t1` |
/// | 2–3 | flow |
/// | 4–9 | sequence number, over all flows |
/// | 10–17 | intended departure, ns of `CLOCK_REALTIME` |
///
/// Flow and sequence number come first, so that they lie within the 64 bytes that make the signature
/// also behind an IPv6 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The flow that it belongs to.
    pub flow: u16,
    /// Its number among all probes of a run, below 2^48.
    pub sequence: u64,
    /// When it was to depart.
    pub intended_ns: u64,
}

impl Probe {
    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; PROBE_LEN] {
        let mut bytes = [0; PROBE_LEN];
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2..4].copy_from_slice(&self.flow.to_be_bytes());
        bytes[4..10].copy_from_slice(&self.sequence.to_be_bytes()[2..]);
        bytes[10..].copy_from_slice(&self.intended_ns.to_be_bytes());
        bytes
    }

    /// From the start of a UDP payload; `None` when it is not a probe.
    #[must_use]
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let bytes = payload.first_chunk::<PROBE_LEN>()?;
        let (flow, sequence) = Self::identity(bytes)?;
        let mut intended_ns = [0; 8];
        intended_ns.copy_from_slice(&bytes[10..]);
        Some(Self { flow, sequence, intended_ns: u64::from_be_bytes(intended_ns) })
    }

    /// Flow and sequence number, also of a payload that was cut behind them; `None` when it is not a probe.
    #[must_use]
    pub fn identity(payload: &[u8]) -> Option<(u16, u64)> {
        let bytes = payload.first_chunk::<10>().filter(|bytes| bytes[..2] == MAGIC)?;
        let mut sequence = [0; 8];
        sequence[2..].copy_from_slice(&bytes[4..]);
        Some((u16::from_be_bytes([bytes[2], bytes[3]]), u64::from_be_bytes(sequence)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_probe_comes_back(flow: u16, sequence in 0..1_u64 << 48, intended_ns: u64) {
            let probe = Probe { flow, sequence, intended_ns };
            prop_assert_eq!(Probe::decode(&probe.encode()), Some(probe));
        }
    }

    #[test]
    fn other_payloads_are_no_probes() {
        assert_eq!(Probe::decode(b"t1 too short"), None);
        assert_eq!(Probe::decode(&[0; 64]), None);
    }
}
