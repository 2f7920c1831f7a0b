//! The label: what a packet says of itself, where it does: whose it is and which one.
//!
//! | packet | flow | sequence number |
//! |---|---|---|
//! | generated probe ([`traffic::Probe`](crate::traffic::Probe)) | its flow | its own |
//! | probe of round trips by UDP echo ([`EchoProbe`]) | its session | its own |
//! | ICMP and ICMPv6 echo, both ways | its identifier | that of an [`EchoProbe`] in it, else its own |
//! | STAMP and TWAMP-Test from or to port 862 | – | its own |
//! | `MoonSniff`'s record | – | the identifier |
//!
//! Nothing here takes part in matching: a label is for who asks which packets were lost. Probes are known by their
//! first bytes, and other people's payload may begin with them: with two random bytes, one packet in 65,536.
//! The session identifier of STAMP is not a flow here, since TWAMP pads with random bytes where it stands.

use crate::frame::{Encapsulation, Layers, Link, Walk, is_bare_datagram, plain_datagram};
use crate::icmp::{self, Echo, Version};
use crate::traffic::Probe;
use crate::{EchoProbe, stamp};

const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

/// Flow and sequence number of a packet, as far as it says them. 16 bytes, since decoding holds many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// Negative: it does not say.
    flow: i64,
    /// Negative: it does not say.
    sequence: i64,
}

impl Label {
    /// That of a packet which says nothing.
    pub const NONE: Self = Self { flow: -1, sequence: -1 };

    /// A label. A number that does not fit 63 bits is none: every engine has signed integers only.
    #[must_use]
    pub fn new(flow: Option<u32>, sequence: Option<u64>) -> Self {
        Self {
            flow: flow.map_or(-1, i64::from),
            sequence: sequence.and_then(|number| i64::try_from(number).ok()).unwrap_or(-1),
        }
    }

    /// The flow, where the packet names one.
    #[must_use]
    pub fn flow(self) -> Option<i64> {
        (self.flow >= 0).then_some(self.flow)
    }

    /// The sequence number, where the packet has one.
    #[must_use]
    pub fn sequence(self) -> Option<i64> {
        (self.sequence >= 0).then_some(self.sequence)
    }

    /// Reads the label of a frame, also within tunnels. The capture may have cut the frame behind the numbers.
    #[must_use]
    pub fn of_frame(link: Link, frame: &[u8]) -> Self {
        Self::and_encapsulations(link, frame, |_| {})
    }

    /// The same, and shows the encapsulations down to the packet that has a label, or else to the innermost one.
    pub fn and_encapsulations(
        link: Link,
        frame: &[u8],
        mut show: impl FnMut(Encapsulation),
    ) -> Self {
        // Nearly every frame is of this kind, and looking for its layers is most of the time.
        if let Some(datagram) = plain_datagram(link, frame) {
            let label = of_datagram(datagram);
            if label.is_some() || is_bare_datagram(datagram) {
                return label.unwrap_or(Self::NONE);
            }
        }
        for place in Walk::new(link, frame) {
            place.encapsulation.into_iter().for_each(&mut show);
            let packet = &frame[place.start..place.end];
            if let Some(label) = place.layers.and_then(|layers| of_packet(&layers, packet)) {
                return label;
            }
        }
        Self::NONE
    }
}

fn of_packet(layers: &Layers, packet: &[u8]) -> Option<Label> {
    if layers.later_fragment {
        return None;
    }
    let payload = packet.get(layers.payload..layers.end.min(packet.len()))?;
    match (layers.protocol, layers.v6) {
        (UDP, _) => of_datagram(payload),
        (ICMP, false) => of_echo(Version::V4, payload),
        (ICMP_V6, true) => of_echo(Version::V6, payload),
        _ => None,
    }
}

fn of_datagram(datagram: &[u8]) -> Option<Label> {
    let (header, payload) = datagram.split_first_chunk::<8>()?;
    if let Some((flow, sequence)) = Probe::identity(payload) {
        return Some(Label::new(Some(flow.into()), Some(sequence)));
    }
    if let Some((session, sequence)) = EchoProbe::identity(payload) {
        return Some(Label::new(Some(session), Some(sequence)));
    }
    let port = stamp::PORT.to_be_bytes();
    if header[..2] != port && header[2..4] != port {
        return None;
    }
    // The one field that all these packets have in one place (RFC 8762 section 4, RFC 5357 section 4).
    let sequence = u32::from_be_bytes(*payload.first_chunk()?);
    Some(Label::new(None, Some(sequence.into())))
}

fn of_echo(version: Version, message: &[u8]) -> Option<Label> {
    let echo = Echo::header(version, message)?;
    let probe = message.get(icmp::HEADER_LEN..).and_then(EchoProbe::identity);
    // Sixteen bits come round after 65,536 probes, those of the probe do not.
    let sequence = probe.map_or(u64::from(echo.sequence), |(_, sequence)| sequence);
    Some(Label::new(Some(echo.identifier.into()), Some(sequence)))
}
