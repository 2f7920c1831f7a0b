//! Flows: addresses, protocol and ports of a packet; and the groups that packets fall into by a field.

use crate::frame::{Layers, Link, layers};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Addresses, protocol and ports of a packet, in its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// Sender.
    pub source: IpAddr,
    /// Receiver.
    pub destination: IpAddr,
    /// Protocol number of IP.
    pub protocol: u8,
    /// Ports of the sender and the receiver, of TCP and UDP.
    pub ports: Option<[u16; 2]>,
}

impl Flow {
    /// The flow of the outermost IP packet in a frame.
    #[must_use]
    pub fn of_frame(link: Link, frame: &[u8]) -> Option<Self> {
        let (ethertype, start) = link.payload(frame)?;
        let packet = frame.get(start..)?;
        Self::of_packet(&layers(ethertype, packet)?, packet)
    }

    /// The same of an IP packet whose layers are known.
    #[must_use]
    pub fn of_packet(layers: &Layers, packet: &[u8]) -> Option<Self> {
        let [source, destination] = if layers.v6 {
            [8, 24].map(|at| {
                packet.get(at..)?.first_chunk().map(|b: &[u8; 16]| Ipv6Addr::from(*b).into())
            })
        } else {
            [12, 16].map(|at| {
                packet.get(at..)?.first_chunk().map(|b: &[u8; 4]| Ipv4Addr::from(*b).into())
            })
        };
        let ports = layers.transport.and_then(|_| {
            let [a, b, c, d] = *packet.get(layers.payload..)?.first_chunk()?;
            Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
        });
        Some(Self { source: source?, destination: destination?, protocol: layers.protocol, ports })
    }

    /// The flow of the packets in the other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            ports: self.ports.map(|[source, destination]| [destination, source]),
            ..self
        }
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, destination, protocol, ports } = self;
        match (protocol, ports) {
            (6, Some([from, to])) => write!(f, "tcp {source} {from} > {destination} {to}"),
            (17, Some([from, to])) => write!(f, "udp {source} {from} > {destination} {to}"),
            (1 | 58, _) => write!(f, "icmp {source} > {destination}"),
            _ => write!(f, "protocol {protocol} {source} > {destination}"),
        }
    }
}

/// A field by which packets are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The outermost VLAN.
    Vlan,
    /// The code point of differentiated services.
    Dscp,
    /// Addresses, protocol and ports.
    Flow,
    /// The sender's address.
    Source,
    /// The receiver's address.
    Destination,
    /// The receiver's port.
    Port,
    /// The protocol of IP.
    Protocol,
}

impl Field {
    /// All of them, with their names on command lines.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Vlan, "vlan"),
        (Self::Dscp, "dscp"),
        (Self::Flow, "flow"),
        (Self::Source, "source"),
        (Self::Destination, "destination"),
        (Self::Port, "port"),
        (Self::Protocol, "protocol"),
    ];
}

impl FromStr for Field {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|(_, name)| *name == text).map(|(field, _)| field);
        known.ok_or_else(|| {
            let names = Self::ALL.map(|(_, name)| name);
            format!("unknown field {text:?}, expected one of {}", names.join(", "))
        })
    }
}

/// Value of a field, the same for all packets of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// A number.
    Number(u16),
    /// An address.
    Address(IpAddr),
    /// A flow.
    Flow(Flow),
    /// The packet does not have the field.
    Missing,
}

impl Value {
    /// The value of a field of the outermost packet in a frame.
    #[must_use]
    pub fn of_frame(field: Field, link: Link, frame: &[u8]) -> Self {
        Self::found(field, link, frame).unwrap_or(Self::Missing)
    }

    fn found(field: Field, link: Link, frame: &[u8]) -> Option<Self> {
        if field == Field::Vlan {
            return link.vlan(frame).map(Self::Number);
        }
        if field == Field::Dscp {
            let (ethertype, start) = link.payload(frame)?;
            let packet = frame.get(start..)?;
            let layers = layers(ethertype, packet)?;
            let [first, second] = *packet.first_chunk()?;
            // IPv6 splits the traffic class over the first two bytes.
            let class = if layers.v6 { first << 4 | second >> 4 } else { second };
            return Some(Self::Number(u16::from(class >> 2)));
        }
        let flow = Flow::of_frame(link, frame)?;
        Some(match field {
            Field::Source => Self::Address(flow.source),
            Field::Destination => Self::Address(flow.destination),
            Field::Port => Self::Number(flow.ports?[1]),
            Field::Protocol => Self::Number(flow.protocol.into()),
            Field::Vlan | Field::Dscp | Field::Flow => Self::Flow(flow),
        })
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Flow(flow) => write!(f, "{flow}"),
            Self::Missing => f.write_str("none"),
        }
    }
}
