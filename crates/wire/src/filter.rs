//! Frames that are chosen by the words of capture filters: `udp and dst port 5000 and not host 192.0.2.7`.

use crate::flow::Flow;
use crate::frame::Link;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A filter: all of its conditions have to hold. Its words are a part of those of pcap-filter(7), with the same meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    text: String,
    conditions: Vec<Condition>,
}

/// A filter that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "filter {text:?}: {problem}; expected conditions with 'and' between them, each perhaps behind 'not': ip, ip6, udp, tcp, \
     icmp, icmp6, [src|dst] port 5000, [src|dst] host 192.0.2.7, [src|dst] net 192.0.2.0/24, vlan 7"
)]
pub struct FilterError {
    text: String,
    problem: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Condition {
    negated: bool,
    test: Test,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Version(bool),
    Protocol { number: u8, v6: Option<bool> },
    Port(End, u16),
    Net(End, IpAddr, u32),
    Vlan(u16),
}

/// Ends of a packet that are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Source,
    Destination,
    Either,
}

impl End {
    fn holds<T>(self, [source, destination]: [T; 2], test: impl Fn(T) -> bool) -> bool {
        match self {
            Self::Source => test(source),
            Self::Destination => test(destination),
            Self::Either => test(source) || test(destination),
        }
    }
}

impl Filter {
    /// Whether a frame of Ethernet is chosen.
    #[must_use]
    pub fn takes(&self, frame: &[u8]) -> bool {
        let flow = Flow::of_frame(Link::Ethernet, frame);
        let holds = |test| match (test, flow) {
            (Test::Vlan(vlan), _) => Link::Ethernet.vlan(frame) == Some(vlan),
            (_, None) => false,
            (test, Some(flow)) => test.holds(&flow),
        };
        self.conditions.iter().all(|condition| holds(condition.test) != condition.negated)
    }
}

impl Test {
    fn holds(self, flow: &Flow) -> bool {
        let v6 = flow.source.is_ipv6();
        match self {
            Self::Version(wanted) => v6 == wanted,
            Self::Protocol { number, v6: wanted } => {
                flow.protocol == number && wanted.is_none_or(|wanted| wanted == v6)
            }
            Self::Port(end, port) => {
                flow.ports.is_some_and(|ports| end.holds(ports, |one| one == port))
            }
            Self::Net(end, net, bits) => {
                end.holds([flow.source, flow.destination], |one| is_within(one, net, bits))
            }
            Self::Vlan(_) => false,
        }
    }

    fn of(words: &[&str]) -> Result<Self, String> {
        let protocol = |number, v6| Ok(Self::Protocol { number, v6 });
        let (end, words) = match words {
            ["src", words @ ..] => (End::Source, words),
            ["dst", words @ ..] => (End::Destination, words),
            words => (End::Either, words),
        };
        let number =
            |text: &str| text.parse().map_err(|_| format!("{text:?} is no number from 0 to 65535"));
        let address =
            |text: &str| text.parse::<IpAddr>().map_err(|_| format!("{text:?} is no IP address"));
        match words {
            ["port", port] => Ok(Self::Port(end, number(port)?)),
            ["host", host] => address(host).map(|host| Self::Net(end, host, width(host))),
            ["net", net] => {
                let (net, bits) = net.split_once('/').ok_or(format!("{net:?} has no /LENGTH"))?;
                let net = address(net)?;
                let bits = bits.parse().ok().filter(|bits| *bits <= width(net));
                let bits = bits.ok_or("the length of a net is at most that of its address")?;
                Ok(Self::Net(end, net, bits))
            }
            _ if end != End::Either => Err("behind src and dst comes port, host or net".into()),
            ["ip"] => Ok(Self::Version(false)),
            ["ip6"] => Ok(Self::Version(true)),
            ["udp"] => protocol(17, None),
            ["tcp"] => protocol(6, None),
            ["icmp"] => protocol(1, Some(false)),
            ["icmp6"] => protocol(58, Some(true)),
            ["vlan", vlan] => Ok(Self::Vlan(number(vlan)?)),
            [] => Err("a condition is missing".into()),
            words => Err(format!("{:?} is no condition", words.join(" "))),
        }
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv6() { Ipv6Addr::BITS } else { Ipv4Addr::BITS }
}

/// Whether the first bits of both addresses are the same.
fn is_within(address: IpAddr, net: IpAddr, bits: u32) -> bool {
    let differ = match (address, net) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        _ => return false,
    };
    differ >= bits
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let conditions = words.split(|word| *word == "and").map(|words| {
            let (negated, words) = match words {
                ["not", words @ ..] => (true, words),
                words => (false, words),
            };
            Test::of(words).map(|test| Condition { negated, test })
        });
        let conditions = conditions.collect::<Result<_, String>>();
        let wrong = |problem| FilterError { text: text.to_owned(), problem };
        Ok(Self { text: words.join(" "), conditions: conditions.map_err(wrong)? })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A datagram from 192.0.2.1, port 7, to 198.51.100.9, port 5000, perhaps with a tag of VLAN 5.
    fn frame(tagged: bool) -> Vec<u8> {
        let mut frame = vec![2; 12];
        if tagged {
            frame.extend([0x81, 0, 0, 5]);
        }
        frame.extend([8, 0, 0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0]);
        frame.extend([192, 0, 2, 1, 198, 51, 100, 9, 0, 7, 0x13, 0x88, 0, 12, 0, 0, 1, 2, 3, 4]);
        frame
    }

    #[test]
    fn all_conditions_have_to_hold() {
        for (text, plain, tagged) in [
            ("udp", true, true),
            ("ip and udp and port 5000", true, true),
            ("tcp", false, false),
            ("not tcp and not ip6", true, true),
            ("src port 5000", false, false),
            ("dst port 5000 and src port 7", true, true),
            ("host 192.0.2.1", true, true),
            ("dst host 192.0.2.1", false, false),
            ("src net 192.0.0.0/16 and not dst net 198.51.100.0/29", true, true),
            ("net 0.0.0.0/0", true, true),
            ("net ::/0", false, false),
            ("vlan 5 and udp", false, true),
            ("not vlan 5", true, false),
        ] {
            let filter: Filter = text.parse().unwrap();
            assert_eq!((filter.takes(&frame(false)), filter.takes(&frame(true))), (plain, tagged));
            assert_eq!(filter.to_string(), text);
        }
        // A frame without an IP packet.
        let other = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0x88, 0xcc, 0];
        assert!(!"udp".parse::<Filter>().unwrap().takes(&other));
        assert!("not udp".parse::<Filter>().unwrap().takes(&other));
        assert!(!"udp".parse::<Filter>().unwrap().takes(&[]));
    }

    #[test]
    fn what_is_not_understood_is_told() {
        for (text, problem) in [
            ("", "a condition is missing"),
            ("udp and", "a condition is missing"),
            ("udp port 5000", "is no condition"),
            ("udp or tcp", "is no condition"),
            ("port 70000", "is no number"),
            ("host example.com", "is no IP address"),
            ("net 192.0.2.0", "has no /LENGTH"),
            ("net 192.0.2.0/33", "the length of a net"),
            ("src udp", "behind src and dst"),
        ] {
            let told = text.parse::<Filter>().unwrap_err().to_string();
            assert!(told.contains(problem) && told.contains("expected"), "{told}");
        }
    }
}
