//! Ports as they are named on the command line.

use std::fmt;
use std::str::FromStr;

/// Kernel interface for frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortKind {
    /// AF_PACKET.
    Packet,
    /// AF_XDP.
    Xdp,
}

/// `packet:INTERFACE`, or just the interface; `xdp:INTERFACE` for all its queues, or `xdp:INTERFACE:QUEUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortName {
    /// Kernel interface for its frames.
    pub kind: PortKind,
    /// The network interface.
    pub interface: String,
    /// The only queue of the interface, which AF_XDP alone can choose.
    pub queue: Option<u32>,
}

/// A name that is not a port's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("port {0:?}: expected an interface such as eth1, packet:eth1, xdp:eth1 or xdp:eth1:QUEUE")]
pub struct PortNameError(String);

/// More queues than any NIC has: the table of sockets is as long as that.
const MOST_QUEUES: u32 = 4_096;

impl FromStr for PortName {
    type Err = PortNameError;

    fn from_str(text: &str) -> Result<Self, PortNameError> {
        let wrong = || PortNameError(text.to_owned());
        let (kind, rest) = match text.split_once(':') {
            None => (PortKind::Packet, text),
            Some(("packet", rest)) => (PortKind::Packet, rest),
            Some(("xdp", rest)) => (PortKind::Xdp, rest),
            Some(_) => return Err(wrong()),
        };
        let (interface, queue) = match rest.split_once(':') {
            Some((interface, queue)) if kind == PortKind::Xdp => {
                (interface, Some(queue.parse().map_err(|_| wrong())?))
            }
            _ => (rest, None),
        };
        // IFNAMSIZ is 16 with the zero byte at the end.
        let fits = (1..16).contains(&interface.len())
            && !interface.contains(|c: char| c == '/' || c == ':' || c.is_whitespace())
            && queue.is_none_or(|queue| queue < MOST_QUEUES);
        if fits { Ok(Self { kind, interface: interface.to_owned(), queue }) } else { Err(wrong()) }
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.queue) {
            (PortKind::Packet, _) => write!(f, "packet:{}", self.interface),
            (PortKind::Xdp, None) => write!(f, "xdp:{}", self.interface),
            (PortKind::Xdp, Some(queue)) => write!(f, "xdp:{}:{queue}", self.interface),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for (text, kind, interface, queue, canonical) in [
            ("eth1", PortKind::Packet, "eth1", None, "packet:eth1"),
            ("packet:eth1", PortKind::Packet, "eth1", None, "packet:eth1"),
            ("xdp:eth1", PortKind::Xdp, "eth1", None, "xdp:eth1"),
            ("xdp:eth1:0", PortKind::Xdp, "eth1", Some(0), "xdp:eth1:0"),
            ("xdp:eth1.7:63", PortKind::Xdp, "eth1.7", Some(63), "xdp:eth1.7:63"),
            ("xdp", PortKind::Packet, "xdp", None, "packet:xdp"),
        ] {
            let name: PortName = text.parse().unwrap();
            assert_eq!(name, PortName { kind, interface: interface.to_owned(), queue });
            assert_eq!(name.to_string(), canonical);
        }
    }

    #[test]
    fn what_is_no_name_is_told() {
        for text in [
            "",
            "xdp:",
            "packet:",
            "packet:eth1:0",
            "xdp:eth1:",
            "xdp:eth1:-1",
            "xdp:eth1:x",
            "xdp:eth1:4096",
            "xdp:eth1:0:0",
            "dpdk:eth1",
            "a/b",
            "a b",
            "sixteen-letters!",
        ] {
            let error = text.parse::<PortName>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("port {text:?}: expected")), "{error}");
        }
    }
}
