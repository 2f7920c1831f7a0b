//! The command line of `reflect`.

use crate::exit::Failure;
use crate::options::Placing;
use crate::stop::Ending;
use clap::ValueEnum;
use serde::Serialize;
use std::net::{AddrParseError, IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::str::FromStr;
use tailtrim_probes::reflect::Nobody;
use tailtrim_roundtrip::reflect::Allowed;
use tailtrim_wire::parse_cookie;

/// Send back what others measure round trips with: UDP echo (RFC 862), STAMP (RFC 8762, RFC 8972) and
/// TWAMP-Light (RFC 5357 appendix I).
///
/// A reply is never longer than its request. Without --echo, --stamp and --twamp: echo on port 7, STAMP on
/// port 862. Without --address, --interface and --allow, only this host is answered. Once the ports are bound, root
/// and all capabilities are given up, and a seccomp filter allows only the system calls of a reflector; the result
/// reports what is left.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent reflect\n  \
    tailtrim-agent reflect --interface eth1\n  \
    tailtrim-agent reflect --stamp 862 --stateful --allow 192.0.2.0/24 --allow 2001:db8::/32\n  \
    tailtrim-agent reflect --address 192.0.2.7 --stamp 862 --key-file stamp.key --limit 1000\n  \
    tailtrim-agent reflect --address 192.0.2.7 --echo 7 --cookie 5ae1c0ffee15900d\n  \
    tailtrim-agent reflect --mode xdp --interface eth1 --echo 7 --stamp 862\n  \
    tailtrim-agent reflect --mode af-xdp --interface eth1 --busy-poll --cpu 3\n  \
    tailtrim-agent reflect --mode nat --interface eth1 --echo 7\n  \
    tailtrim-agent reflect --echo 7007 --busy-poll --cpu 3")]
pub(crate) struct Reflect {
    /// UDP echo on this port
    #[arg(long, value_name = "PORT")]
    pub(crate) echo: Vec<u16>,
    /// STAMP on this port
    #[arg(long, value_name = "PORT")]
    pub(crate) stamp: Vec<u16>,
    /// TWAMP-Light on this port
    #[arg(long, value_name = "PORT")]
    pub(crate) twamp: Vec<u16>,
    /// Addresses to listen on, 0.0.0.0 and :: for all; of a link: fe80::1%eth0 [default: all with --interface or --allow,
    /// loopback otherwise]
    #[arg(long, value_name = "IP")]
    pub(crate) address: Vec<Address>,
    /// Answer only requests received by this interface
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// Where requests are reflected
    #[arg(long, value_enum, default_value_t)]
    pub(crate) mode: Mode,
    /// Attachment of the XDP program [default: native if the interface is hardware]
    #[arg(long, value_enum, value_name = "WHERE")]
    pub(crate) attach: Option<Attach>,
    /// Busy-poll for requests instead of sleeping; needs a dedicated CPU
    #[arg(long)]
    pub(crate) busy_poll: bool,
    /// Answer only these clients [default: all]
    #[arg(long, value_name = "PREFIX")]
    pub(crate) allow: Vec<Allowed>,
    /// Most requests answered per second and client (an IPv4 address, an IPv6 /64); 0: no limit
    #[arg(long, value_name = "N", default_value = "100000")]
    pub(crate) limit: u32,
    /// Largest burst of one client [default: a tenth of the limit]
    #[arg(long, value_name = "N")]
    pub(crate) limit_burst: Option<u32>,
    /// Most echoes answered per second, client address and port that may be in a loop (repeated payload, TTL of at
    /// most 32); 0: no limit. Bursts of 64 are allowed
    #[arg(long, value_name = "N", default_value = "100")]
    pub(crate) repeats: u32,
    /// Answer only echoes that begin with these 8 bytes (16 hexadecimal digits)
    #[arg(long, value_name = "HEX", value_parser = parse_cookie)]
    pub(crate) cookie: Option<[u8; 8]>,
    /// File with the key of authenticated STAMP; unauthenticated STAMP is then refused
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Stateful STAMP and TWAMP-Light: number replies by session, and report the exact send time of the previous one
    #[arg(long)]
    pub(crate) stateful: bool,
    /// DSCP of all replies, 0 to 63 [default: as in the request, or as it asks]
    #[arg(long, value_name = "DSCP", value_parser = clap::value_parser!(u8).range(0..=63))]
    pub(crate) dscp: Option<u8>,
    /// Use time stamps of the NIC; its clock must be kept on UTC (phc2sys)
    #[arg(long, requires = "interface")]
    pub(crate) hardware_stamps: bool,
    /// User to switch to once the ports are bound, as numbers of id(1); 0: stay root without capabilities
    #[arg(long, value_name = "UID[:GID]", value_parser = parse_user, default_value = "65534:65534")]
    pub(crate) user: Nobody,
    #[command(flatten)]
    pub(crate) placing: Placing,
    #[command(flatten)]
    pub(crate) ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// In this process, by UDP sockets
    #[default]
    Socket,
    /// By an XDP program where it can (echo, STAMP and TWAMP-Light without TLVs, key or sessions), by UDP sockets
    /// otherwise; needs --interface
    Xdp,
    /// In this process, bypassing the kernel's stack: one queue of --interface INTERFACE[:QUEUE] by AF_XDP; no exact send
    /// times of replies
    AfXdp,
    /// By the kernel's address translation (nftables), echo only; needs --interface. A separate process keeps
    /// CAP_NET_ADMIN to remove the rules when the reflector ends
    Nat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attach {
    /// In the driver; for a veth its other end needs an XDP program, too
    Native,
    /// In the kernel, after the driver; works with every driver
    Generic,
}

/// An address of this host, with the interface of its link if it has a zone (RFC 4007).
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) ip: IpAddr,
    zone: Option<String>,
}

impl FromStr for Address {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once('%') {
            Some((ip, zone)) => {
                Self { ip: ip.parse::<Ipv6Addr>()?.into(), zone: Some(zone.to_owned()) }
            }
            None => Self { ip: text.parse()?, zone: None },
        })
    }
}

impl Reflect {
    /// The interface by which all requests have to come: that of --interface, or the zone of the addresses.
    pub(crate) fn device(&self) -> Result<Option<String>, Failure> {
        let zones = || self.address.iter().filter_map(|one| one.zone.as_ref());
        let Some(device) = self.interface.as_ref().or(zones().next()) else { return Ok(None) };
        let all = self.interface.is_some() || zones().count() == self.address.len();
        if all && zones().all(|zone| zone == device) {
            return Ok(Some(device.clone()));
        }
        Err(Failure::usage(format!(
            "--address with the zone of another interface than {device}: expected one interface for all addresses"
        )))
    }
}

fn parse_user(text: &str) -> Result<Nobody, String> {
    let expected = || format!("invalid user {text:?}, expected numbers such as 65534 or 1000:1000");
    let (user, group) = text.split_once(':').unwrap_or((text, text));
    let number = |text: &str| text.parse().map_err(|_| expected());
    Ok(Nobody { user: number(user)?, group: number(group)? })
}
