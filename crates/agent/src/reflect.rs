//! `tailtrim-agent reflect`.

use crate::events::{self, Progress};
use crate::exit::Exit;
use crate::hints::Hint;
use crate::output::{Message, failed};
use crate::stop::{Ending, watch_signals};
use clap::ValueEnum;
use serde::Serialize;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use tailtrim_linux::host::Placement;
use tailtrim_linux::port::{Capabilities, PortError, PortName};
use tailtrim_linux::reflect::{
    FrameReflector, Listening, NatReflector, Nobody, ReflectError, Reflected, SocketReflector,
    XdpReflector, drop_root,
};
use tailtrim_linux::socket::{NicStamps, SocketError};
use tailtrim_roundtrip::reflect::{Allowed, Class, Limit, Policy, Service};
use tailtrim_wire::Key;

/// Send back what others measure round trips with: UDP echo (RFC 862), STAMP (RFC 8762, RFC 8972) and
/// TWAMP-Light (RFC 5357 appendix I).
///
/// A reply is never longer than its request. Without --echo, --stamp and --twamp: echo on port 7, STAMP on
/// port 862. Root is given up as soon as the ports are bound.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent reflect\n  \
    tailtrim-agent reflect --stamp 862 --stateful --allow 192.0.2.0/24 --allow 2001:db8::/32\n  \
    tailtrim-agent reflect --stamp 862 --key-file stamp.key --rate 1000\n  \
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
    /// Addresses of this host [default: all, IPv4 and IPv6]
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
    /// Whom to become once the ports are bound: numbers, as id(1) shows them; 0 to stay root
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
    /// By the kernel's address translation (nftables), echo only; needs --interface. Root is kept to take the rules
    /// down; those of a reflector that was killed go at the next start
    Nat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attach {
    /// Within the driver; at a veth only where its other end has an XDP program, too
    Native,
    /// Behind the driver
    Generic,
}

#[derive(Serialize)]
struct ReflectReport<'a> {
    #[serde(flatten)]
    reflected: &'a Reflected,
    #[serde(flatten)]
    place: Place,
    host: &'a Placement,
}

/// Where a reflector listens, and what it took to get there.
#[derive(Serialize)]
struct Place {
    mode: Mode,
    /// How the AF_XDP port is attached.
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<Capabilities>,
    listening: Vec<Listener>,
    left_out: Vec<String>,
    /// Tables of killed reflectors that were removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
    root_given_up: bool,
}

#[derive(Serialize)]
struct Listener {
    service: Service,
    address: String,
}

/// Runs the verb and prints its events.
pub(crate) fn run(request: &Reflect) -> Exit {
    match reflect(request) {
        Ok(exit) => exit,
        Err((message, exit)) => failed(&message, exit),
    }
}

type Failed = (Message, Exit);

fn reflect(request: &Reflect) -> Result<Exit, Failed> {
    let policy = policy(request)?;
    let stopped = watch_signals().map_err(|error| (error.to_string().into(), Exit::Impossible))?;
    // Before root is given up: afterwards neither memory nor priority may be had.
    let host = Placement::take(request.cpu, request.fifo)
        .map_err(|error| (error.to_string().into(), Exit::Usage))?;
    let _nic = match &request.interface {
        Some(interface) if request.hardware_stamps => {
            Some(NicStamps::enable(interface).map_err(|error| (error.into(), Exit::Impossible))?)
        }
        _ => None,
    };
    match request.mode {
        Mode::AfXdp => by_frames(request, policy, &stopped, &host),
        Mode::Nat => by_nat(request, &policy, &stopped, &host),
        _ => by_socket(request, policy, &stopped, &host),
    }
}

fn by_frames(
    request: &Reflect,
    policy: Policy,
    stopped: &Arc<AtomicBool>,
    host: &Placement,
) -> Result<Exit, Failed> {
    let Some(interface) = &request.interface else {
        return Err(refused(ReflectError::NoInterface));
    };
    let name: PortName = format!("xdp:{interface}")
        .parse()
        .map_err(|error| (format!("--interface {interface}: {error}").into(), Exit::Usage))?;
    let reflector = FrameReflector::open(&name, &listening(request), policy).map_err(refused)?;
    let of =
        |(service, ip, port): &(Service, IpAddr, u16)| listener(&(*service, (*ip, *port).into()));
    let place = Place {
        mode: request.mode,
        port: Some(reflector.capabilities()),
        listening: reflector.bound().iter().map(of).collect(),
        left_out: Vec::new(),
        removed: Vec::new(),
        root_given_up: give_up_root(request)?,
    };
    reflect_until(request, stopped, place, host, |stopped, seen| reflector.run(stopped, seen))
}

fn by_nat(
    request: &Reflect,
    policy: &Policy,
    stopped: &Arc<AtomicBool>,
    host: &Placement,
) -> Result<Exit, Failed> {
    let reflector = NatReflector::set_up(&listening(request), policy).map_err(refused)?;
    let of = |(ip, port): &(IpAddr, u16)| listener(&(Service::Echo, (*ip, *port).into()));
    let place = Place {
        mode: request.mode,
        port: None,
        listening: reflector.bound().iter().map(of).collect(),
        left_out: reflector.left_out().to_vec(),
        removed: reflector.removed().to_vec(),
        root_given_up: false,
    };
    reflect_until(request, stopped, place, host, |stopped, seen| reflector.run(stopped, seen))
}

fn by_socket(
    request: &Reflect,
    policy: Policy,
    stopped: &Arc<AtomicBool>,
    host: &Placement,
) -> Result<Exit, Failed> {
    let wanted = listening(request);
    let xdp = match request.mode {
        Mode::Socket | Mode::Nat | Mode::AfXdp => None,
        Mode::Xdp => Some(attached(request, &wanted, &policy)?),
    };
    let mut reflector = SocketReflector::open(&wanted, policy).map_err(refused)?;
    if let Some(xdp) = xdp {
        reflector.behind(xdp);
    }
    let place = Place {
        mode: request.mode,
        port: None,
        listening: reflector.bound().iter().map(listener).collect(),
        left_out: reflector.left_out().to_vec(),
        removed: Vec::new(),
        root_given_up: give_up_root(request)?,
    };
    reflect_until(request, stopped, place, host, |stopped, seen| reflector.run(stopped, seen))
}

fn give_up_root(request: &Reflect) -> Result<bool, Failed> {
    drop_root(request.user).map_err(|error| (error.told(), Exit::Impossible))
}

/// Says that it is ready, reflects, and prints what came of it.
fn reflect_until(
    request: &Reflect,
    stopped: &Arc<AtomicBool>,
    place: Place,
    host: &Placement,
    run: impl FnOnce(&AtomicBool, &AtomicU64) -> Result<Reflected, ReflectError>,
) -> Result<Exit, Failed> {
    let seen = Arc::new(AtomicU64::new(0));
    request.ending.watch_parent(stopped);
    events::ready();
    let progress = Progress::start(Arc::clone(&seen));
    let reflected = run(stopped, &seen).map_err(refused)?;
    drop(progress);
    let report = ReflectReport { reflected: &reflected, place, host };
    Ok(events::result("tailtrim.reflector/1", &report))
}

fn attached(
    request: &Reflect,
    wanted: &Listening,
    policy: &Policy,
) -> Result<XdpReflector, Failed> {
    let native = match (request.attach, &request.interface) {
        (Some(attach), _) => attach == Attach::Native,
        (None, Some(interface)) => XdpReflector::prefers_native(interface),
        (None, None) => return Err(refused(ReflectError::NoInterface)),
    };
    XdpReflector::attach(wanted, policy, native).map_err(refused)
}

fn listener((service, address): &(Service, std::net::SocketAddr)) -> Listener {
    Listener { service: *service, address: address.to_string() }
}

fn listening(request: &Reflect) -> Listening {
    Listening {
        services: services(request),
        addresses: request.address.clone(),
        device: request.interface.clone(),
        busy_poll: request.busy_poll,
        hardware: request.hardware_stamps,
    }
}

fn services(request: &Reflect) -> Vec<(Service, u16)> {
    let Reflect { echo, stamp, twamp, mode, .. } = request;
    let chosen: Vec<_> = [(Service::Echo, echo), (Service::Stamp, stamp), (Service::Twamp, twamp)]
        .into_iter()
        .flat_map(|(service, ports)| ports.iter().map(move |port| (service, *port)))
        .collect();
    match (chosen.is_empty(), mode) {
        (false, _) => chosen,
        (true, Mode::Nat) => vec![(Service::Echo, 7)],
        (true, _) => vec![(Service::Echo, 7), (Service::Stamp, 862)],
    }
}

fn policy(request: &Reflect) -> Result<Policy, Failed> {
    let key = request.key_file.as_deref().map(key).transpose()?;
    let burst = request.burst.unwrap_or(request.rate / 10).max(1);
    Ok(Policy {
        allowed: request.allow.clone(),
        limit: (request.rate > 0).then(|| Limit::new(request.rate, burst)),
        key,
        stateful: request.stateful,
        class: request.dscp.map_or(Class::Mirror, Class::Fixed),
        ..Policy::default()
    })
}

fn key(path: &Path) -> Result<Key, Failed> {
    let told = |error: &dyn std::fmt::Display| {
        (format!("--key-file {}: {error}", path.display()).into(), Exit::Usage)
    };
    let text = std::fs::read(path).map_err(|error| told(&error))?;
    Key::of_text(&text).map_err(|error| told(&error))
}

fn parse_user(text: &str) -> Result<Nobody, String> {
    let expected = || format!("{text:?} is no user, expected numbers such as 65534 or 1000:1000");
    let (user, group) = text.split_once(':').unwrap_or((text, text));
    let number = |text: &str| text.parse().map_err(|_| expected());
    Ok(Nobody { user: number(user)?, group: number(group)? })
}

fn refused(error: ReflectError) -> Failed {
    let exit = match &error {
        ReflectError::Socket(SocketError::Broken { .. }) => Exit::Disturbed,
        ReflectError::Port(PortError::Broken { .. }) => Exit::Disturbed,
        ReflectError::NoInterface | ReflectError::OnlyEcho => Exit::Usage,
        _ => Exit::Impossible,
    };
    (error.told(), exit)
}
