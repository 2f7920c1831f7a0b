//! The command line of `reflect`.

use crate::cookie;
use crate::stop::Ending;
use clap::ValueEnum;
use serde::Serialize;
use std::net::IpAddr;
use std::path::PathBuf;
use tailtrim_linux::reflect::Nobody;
use tailtrim_roundtrip::reflect::Allowed;

/// Send back what others measure round trips with: UDP echo (RFC 862), STAMP (RFC 8762, RFC 8972) and
/// TWAMP-Light (RFC 5357 appendix I).
///
/// A reply is never longer than its request. Without --echo, --stamp and --twamp: echo on port 7, STAMP on
/// port 862. Without --address, --interface and --allow, only this host is answered. Root and all capabilities are
/// given up as soon as the ports are bound, and only the system calls that answering needs are allowed from then on; the
/// result tells what is left.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent reflect\n  \
    tailtrim-agent reflect --interface eth1\n  \
    tailtrim-agent reflect --stamp 862 --stateful --allow 192.0.2.0/24 --allow 2001:db8::/32\n  \
    tailtrim-agent reflect --address 192.0.2.7 --stamp 862 --key-file stamp.key --rate 1000\n  \
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
    /// Addresses of this host, 0.0.0.0 and :: for all [default: all with --interface or --allow, loopback otherwise]
    #[arg(long, value_name = "IP")]
    pub(crate) address: Vec<IpAddr>,
    /// Only requests that come by this interface
    #[arg(long, value_name = "IFACE")]
    pub(crate) interface: Option<String>,
    /// Where requests become replies
    #[arg(long, value_enum, default_value_t)]
    pub(crate) mode: Mode,
    /// Run the XDP program behind the driver, or within it [default: within, where there is hardware]
    #[arg(long, value_enum, value_name = "WHERE")]
    pub(crate) attach: Option<Attach>,
    /// Look for requests all the time instead of sleeping until one comes; wants a CPU of its own
    #[arg(long)]
    pub(crate) busy_poll: bool,
    /// Answer only these [default: everybody]
    #[arg(long, value_name = "PREFIX")]
    pub(crate) allow: Vec<Allowed>,
    /// Requests per second of one client (an IPv4 address, an IPv6 /64) that are answered; 0: all
    #[arg(long, value_name = "N", default_value = "100000")]
    pub(crate) rate: u32,
    /// Requests of one client that may come at once [default: a tenth of the rate]
    #[arg(long, value_name = "N")]
    pub(crate) burst: Option<u32>,
    /// Echoes per second that may be in a loop, of one client address and port, and are answered: payloads that came
    /// before, and TTLs of at most 32; 0: all. 64 may come at once
    #[arg(long, value_name = "N", default_value = "100")]
    pub(crate) repeats: u32,
    /// Answer only echoes that begin with these 8 bytes, 16 hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = cookie::parse)]
    pub(crate) cookie: Option<[u8; 8]>,
    /// The key of authenticated STAMP; other STAMP packets are refused then
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Number replies of STAMP and TWAMP-Light by session, and tell when the one before really left
    #[arg(long)]
    pub(crate) stateful: bool,
    /// DSCP of all replies [default: that of the request, or what it asks for]
    #[arg(long, value_name = "0-63", value_parser = clap::value_parser!(u8).range(0..=63))]
    pub(crate) dscp: Option<u8>,
    /// Stamps by the NIC, whose clock something (phc2sys) keeps on UTC
    #[arg(long, requires = "interface")]
    pub(crate) hardware_stamps: bool,
    /// Whom to become once the ports are bound: numbers, as id(1) shows them; 0 to stay root, without its capabilities
    #[arg(long, value_name = "UID[:GID]", value_parser = parse_user, default_value = "65534:65534")]
    pub(crate) user: Nobody,
    /// CPU to run on
    #[arg(long)]
    pub(crate) cpu: Option<usize>,
    /// Run under SCHED_FIFO
    #[arg(long)]
    pub(crate) fifo: bool,
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
    /// In this process, past the kernel's stack: one queue of --interface IFACE[:QUEUE] by AF_XDP; replies do not
    /// tell when they really left
    AfXdp,
    /// By the kernel's address translation (nftables), echo only; needs --interface. A process of its own keeps
    /// CAP_NET_ADMIN to remove the rules when the reflector ends, however that is
    Nat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attach {
    /// Within the driver; at a veth only where its other end has an XDP program, too
    Native,
    /// Behind the driver
    Generic,
}

fn parse_user(text: &str) -> Result<Nobody, String> {
    let expected = || format!("{text:?} is no user, expected numbers such as 65534 or 1000:1000");
    let (user, group) = text.split_once(':').unwrap_or((text, text));
    let number = |text: &str| text.parse().map_err(|_| expected());
    Ok(Nobody { user: number(user)?, group: number(group)? })
}
