//! Frames that carry probes.

use super::probe::{PROBE_LEN, Probe};
use crate::checksum::{folded, of_udp, sum};
use crate::frame::{Link, Transport, layers};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Bytes of an Ethernet header without tags.
const ETHERNET: usize = 14;
/// Bytes of a VLAN tag.
const TAG: usize = 4;
/// Bytes of an IPv4 header without options.
const IPV4: usize = 20;
/// Bytes of an IPv6 header.
const IPV6: usize = 40;
/// Bytes of a UDP header.
const UDP: usize = 8;
/// Protocol number of UDP.
const PROTOCOL_UDP: u8 = 17;
/// Routers take one off; nothing here is more than a few hops away.
const TTL: u8 = 64;

/// Source and destination of the generated packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ip {
    /// IPv4.
    V4(Ipv4Addr, Ipv4Addr),
    /// IPv6.
    V6(Ipv6Addr, Ipv6Addr),
}

/// From where to where the generated frames go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addressing {
    /// MAC address of the sender.
    pub source_mac: [u8; 6],
    /// MAC address of the receiver.
    pub destination_mac: [u8; 6],
    /// The 802.1Q tag, if there is to be one: VLAN 0 to 4095, priority 0.
    pub vlan: Option<u16>,
    /// IP addresses.
    pub ip: Ip,
    /// The differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// The UDP source port of flow 0; that of flow n is n higher.
    pub source_port: u16,
    /// The UDP destination port.
    pub destination_port: u16,
    /// Flows, which take turns; at least 1.
    pub flows: u16,
}

/// Frames that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The headers and the probe need more.
    #[error(
        "a frame of {bytes} bytes has no room for the probe, expected {least} or more (both with FCS)"
    )]
    TooShort {
        /// Bytes asked for, with FCS.
        bytes: usize,
        /// Bytes needed, with FCS.
        least: usize,
    },
    /// The ports of the flows would wrap.
    #[error(
        "{flows} flows from source port {source_port} on reach beyond port 65535: choose a lower port or fewer flows"
    )]
    Ports {
        /// Flows asked for.
        flows: u16,
        /// Port of the first.
        source_port: u16,
    },
}

/// Builds frames: once for each size, then only what differs between probes is written.
#[derive(Debug, Clone)]
pub struct Builder {
    addressing: Addressing,
    /// Where the IP header starts.
    network: usize,
    /// Where the UDP header starts.
    transport: usize,
}

impl Builder {
    /// A builder for frames of at least `least_bytes` (without FCS).
    ///
    /// # Errors
    /// [`FrameError`] when the probe or the flows do not fit.
    pub fn new(addressing: Addressing, least_bytes: usize) -> Result<Self, FrameError> {
        let network = ETHERNET + if addressing.vlan.is_some() { TAG } else { 0 };
        let transport = network + if matches!(addressing.ip, Ip::V4(..)) { IPV4 } else { IPV6 };
        let needed = transport + UDP + PROBE_LEN;
        if least_bytes < needed {
            let (bytes, least) = (least_bytes + super::FCS_LEN, needed + super::FCS_LEN);
            return Err(FrameError::TooShort { bytes, least });
        }
        let Addressing { flows, source_port, .. } = addressing;
        if source_port.checked_add(flows.max(1) - 1).is_none() {
            return Err(FrameError::Ports { flows, source_port });
        }
        Ok(Self { addressing, network, transport })
    }

    /// A frame of `bytes` (without FCS) for [`stamp`](Self::stamp) to complete.
    #[must_use]
    pub fn frame(&self, bytes: usize) -> Vec<u8> {
        let Addressing { source_mac, destination_mac, vlan, ip, dscp, destination_port, .. } =
            self.addressing;
        let mut frame = Vec::with_capacity(bytes);
        frame.extend(destination_mac);
        frame.extend(source_mac);
        if let Some(vlan) = vlan {
            frame.extend([0x81, 0x00]);
            frame.extend((vlan & 0xfff).to_be_bytes());
        }
        let datagram = (bytes - self.transport) as u16;
        match ip {
            Ip::V4(source, destination) => {
                frame.extend([0x08, 0x00]);
                let total = IPV4 as u16 + datagram;
                let mut header = [0; IPV4];
                (header[0], header[1]) = (0x45, dscp << 2);
                header[2..4].copy_from_slice(&total.to_be_bytes());
                // Do not fragment.
                (header[6], header[8], header[9]) = (0x40, TTL, PROTOCOL_UDP);
                header[12..16].copy_from_slice(&source.octets());
                header[16..].copy_from_slice(&destination.octets());
                let checksum = folded(sum(&header));
                header[10..12].copy_from_slice(&checksum.to_be_bytes());
                frame.extend(header);
            }
            Ip::V6(source, destination) => {
                frame.extend([0x86, 0xdd, 0x60 | dscp >> 2, dscp << 6, 0, 0]);
                frame.extend(datagram.to_be_bytes());
                frame.extend([PROTOCOL_UDP, TTL]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
            }
        }
        frame.extend([0; 2]);
        frame.extend(destination_port.to_be_bytes());
        frame.extend(datagram.to_be_bytes());
        frame.resize(bytes, 0);
        frame
    }

    /// Bytes of each frame behind which there are only zeros.
    #[must_use]
    pub fn filled(&self) -> usize {
        self.transport + UDP + PROBE_LEN
    }

    /// The flow of the probe of this number.
    #[must_use]
    pub fn flow(&self, sequence: u64) -> u16 {
        (sequence % u64::from(self.addressing.flows.max(1))) as u16
    }

    /// Makes a frame of this builder that of a probe. The payload behind it stays zeros.
    pub fn stamp(&self, frame: &mut [u8], probe: Probe) {
        let port = self.addressing.source_port + probe.flow;
        let datagram = frame.len() - self.transport;
        let udp = &mut frame[self.transport..];
        udp[..2].copy_from_slice(&port.to_be_bytes());
        udp[6..8].fill(0);
        udp[UDP..UDP + PROBE_LEN].copy_from_slice(&probe.encode());
        // Behind the probe are zeros, which do not count.
        let mut total = sum(&udp[..UDP + PROBE_LEN]) + u64::from(PROTOCOL_UDP) + datagram as u64;
        // The addresses end where the UDP header starts.
        let addresses = if self.transport - self.network == IPV4 { 8 } else { 32 };
        total += sum(&frame[self.transport - addresses..self.transport]);
        frame[self.transport + 6..][..2].copy_from_slice(&of_udp(total).to_be_bytes());
    }

    /// The probe in a frame that any forwarder may have passed on: Ethernet, VLAN tags, IPv4 or IPv6,
    /// UDP. `None` when there is none.
    #[must_use]
    pub fn probe(frame: &[u8]) -> Option<Probe> {
        let (ethertype, start) = Link::Ethernet.payload(frame)?;
        let packet = frame.get(start..)?;
        let found = layers(ethertype, packet)?;
        found.transport.filter(|transport| *transport == Transport::Udp)?;
        Probe::decode(packet.get(found.payload + UDP..)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn addressing() -> impl Strategy<Value = Addressing> {
        let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>()).prop_map(|(a, b)| Ip::V4(a.into(), b.into()));
        let v6 =
            (any::<[u8; 16]>(), any::<[u8; 16]>()).prop_map(|(a, b)| Ip::V6(a.into(), b.into()));
        let ports = (1_u16..60_000, any::<u16>(), 1_u16..5_000);
        let ip = prop_oneof![v4, v6];
        (any::<[u8; 6]>(), any::<[u8; 6]>(), prop::option::of(0_u16..4096), ip, 0_u8..64, ports)
            .prop_map(
                |(
                    source_mac,
                    destination_mac,
                    vlan,
                    ip,
                    dscp,
                    (source_port, destination_port, flows),
                )| Addressing {
                    source_mac,
                    destination_mac,
                    vlan,
                    ip,
                    dscp,
                    source_port,
                    destination_port,
                    flows,
                },
            )
    }

    /// The checksum of a whole datagram with its pseudo header, bit by bit as RFC 768 says.
    fn is_right(addresses: &[u8], datagram: &[u8]) -> bool {
        let mut all = addresses.to_vec();
        all.extend([0, PROTOCOL_UDP]);
        all.extend((datagram.len() as u16).to_be_bytes());
        all.extend(datagram);
        all.resize(all.len().next_multiple_of(2), 0);
        let mut total = 0_u64;
        for word in all.chunks(2) {
            total += u64::from(word[0]) << 8 | u64::from(word[1]);
            total = (total & 0xffff) + (total >> 16);
        }
        total == 0xffff
    }

    proptest! {
        #[test]
        fn frames_are_what_receivers_expect(
            addressing in addressing(), extra in 0_usize..1500,
            probes in prop::collection::vec((0..1_u64 << 48, any::<u64>()), 1..4),
        ) {
            let bytes = 84 + extra;
            let builder = Builder::new(addressing, bytes).unwrap();
            let mut frame = builder.frame(bytes);
            for (sequence, intended_ns) in probes {
                let probe = Probe { flow: builder.flow(sequence), sequence, intended_ns };
                builder.stamp(&mut frame, probe);
                prop_assert_eq!(frame.len(), bytes);
                prop_assert_eq!(Builder::probe(&frame), Some(probe));
                prop_assert!(frame[builder.filled()..].iter().all(|byte| *byte == 0));
                let (ethertype, start) = Link::Ethernet.payload(&frame).unwrap();
                let packet = &frame[start..];
                let found = layers(ethertype, packet).unwrap();
                prop_assert_eq!(found.end, packet.len());
                prop_assert_eq!(found.transport, Some(Transport::Udp));
                prop_assert_eq!(found.v6, matches!(addressing.ip, Ip::V6(..)));
                let datagram = &packet[found.payload..];
                let port = u16::from_be_bytes([datagram[0], datagram[1]]);
                prop_assert_eq!(port, addressing.source_port + probe.flow);
                let addresses = &packet[if found.v6 { 8 } else { 12 }..found.payload];
                prop_assert!(is_right(addresses, datagram));
                prop_assert!(datagram[6..8] != [0, 0]);
                if !found.v6 {
                    prop_assert_eq!(folded(sum(&packet[..20])), 0);
                }
            }
        }

        #[test]
        fn looking_for_a_probe_survives_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = Builder::probe(&bytes);
        }
    }

    fn plain() -> Addressing {
        Addressing {
            source_mac: [2, 0, 0, 0, 0, 1],
            destination_mac: [2, 0, 0, 0, 0, 2],
            vlan: None,
            ip: Ip::V4([10, 0, 0, 1].into(), [10, 0, 1, 1].into()),
            dscp: 0,
            source_port: 10_000,
            destination_port: 7,
            flows: 1,
        }
    }

    #[test]
    fn the_smallest_frames_have_room_for_a_probe() {
        assert!(Builder::new(plain(), 60).is_ok());
        let tagged = Addressing { vlan: Some(5), ..plain() };
        let error = Builder::new(tagged, 60).unwrap_err().to_string();
        assert!(error.contains("64 bytes") && error.contains("expected 68 or more"), "{error}");
        let flows = Addressing { flows: 60_000, ..plain() };
        assert!(Builder::new(flows, 60).unwrap_err().to_string().contains("beyond port 65535"));
    }
}
