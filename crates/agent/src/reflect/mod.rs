//! `tailtrim-agent reflect`.

mod request;

pub(crate) use request::Reflect;

use crate::events::{self, EachSecond};
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::options::key;
use crate::output::{self, note};
use crate::stop::watch_signals;
use request::{Attach, Mode};
use serde::Serialize;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tailtrim_ports::port::{Capabilities, PortError, PortName};
use tailtrim_probes::reflect::{
    FrameReflector, Left, Listening, NatReflector, ReflectError, Reflected, SocketReflector, Way,
    XdpReflector, give_up,
};
use tailtrim_probes::socket::{NicStamps, SocketError};
use tailtrim_roundtrip::reflect::{Class, Counters, Limit, Policy, Refusal, Service};
use tailtrim_sys::placement::Placement;
use tailtrim_tail::summary::grouped;

#[derive(Serialize)]
struct ReflectReport<'a> {
    #[serde(flatten)]
    reflected: &'a Reflected,
    #[serde(flatten)]
    place: Place,
    /// Whether it was root and no longer is.
    root_given_up: bool,
    /// Remaining privileges of its threads, read from the kernel.
    privileges: &'a Left,
    host: &'a Placement,
    /// Warnings about the measurement, from the counters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Addresses of a reflector, and notes on getting them.
#[derive(Serialize)]
struct Place {
    mode: Mode,
    /// Mode of the AF_XDP port.
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<Capabilities>,
    listening: Vec<Listener>,
    /// Whether only loopback is served because no option names other clients.
    loopback_only: bool,
    left_out: Vec<String>,
    /// Tables of killed reflectors that were removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
}

#[derive(Serialize)]
struct Listener {
    service: Service,
    address: String,
}

/// Of [`Policy::repeats`].
const REPEATS_AT_ONCE: u32 = 64;
const LOOPBACK_ONLY: &str = "only requests from this host are answered; --interface INTERFACE, --allow PREFIX or \
    --address IP also answers other hosts (--address 0.0.0.0 --address :: to all)";

/// Runs the verb and prints its events.
pub(crate) fn run(request: &Reflect) -> Outcome {
    let policy = policy(request)?;
    let stopped = watch_signals()?;
    // Before root is given up: afterwards locking memory and real-time priority may be refused.
    let host = request.placing.take().or_fail(Exit::Usage)?;
    let _nic = match &request.interface {
        Some(interface) if request.hardware_stamps => {
            Some(NicStamps::enable(interface).or_fail(Exit::Impossible)?)
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
) -> Outcome {
    let Some(interface) = &request.interface else {
        return Err(ReflectError::NoInterface.into());
    };
    let name: PortName = format!("xdp:{interface}")
        .parse()
        .map_err(|error| Failure::usage(format!("--interface {interface}: {error}")))?;
    let reflector = FrameReflector::open(&name, &listening(request)?, policy)?;
    let of =
        |(service, ip, port): &(Service, IpAddr, u16)| listener(&(*service, (*ip, *port).into()));
    let place = Place {
        mode: request.mode,
        port: Some(reflector.capabilities()),
        listening: reflector.bound().iter().map(of).collect(),
        loopback_only: false,
        left_out: Vec::new(),
        removed: Vec::new(),
    };
    reflect_until(request, stopped, place, host, |stopped, seen| reflector.run(stopped, seen))
}

fn by_nat(
    request: &Reflect,
    policy: &Policy,
    stopped: &Arc<AtomicBool>,
    host: &Placement,
) -> Outcome {
    let reflector = NatReflector::set_up(&listening(request)?, policy)?;
    let of = |(ip, port): &(IpAddr, u16)| listener(&(Service::Echo, (*ip, *port).into()));
    let place = Place {
        mode: request.mode,
        port: None,
        listening: reflector.bound().iter().map(of).collect(),
        loopback_only: false,
        left_out: reflector.left_out().to_vec(),
        removed: reflector.removed().to_vec(),
    };
    reflect_until(request, stopped, place, host, |stopped, seen| reflector.run(stopped, seen))
}

fn by_socket(
    request: &Reflect,
    policy: Policy,
    stopped: &Arc<AtomicBool>,
    host: &Placement,
) -> Outcome {
    let wanted = listening(request)?;
    let xdp = match request.mode {
        Mode::Socket | Mode::Nat | Mode::AfXdp => None,
        Mode::Xdp => Some(attached(request, &wanted, &policy)?),
    };
    let loopback_only = wanted.is_loopback_only(&policy);
    let mut reflector = SocketReflector::open(&wanted, policy)?;
    if let Some(xdp) = xdp {
        reflector.behind(xdp);
    }
    let place = Place {
        mode: request.mode,
        port: None,
        listening: reflector.bound().iter().map(listener).collect(),
        loopback_only,
        left_out: reflector.left_out().to_vec(),
        removed: Vec::new(),
    };
    reflect_until(request, stopped, place, host, |stopped, seen| reflector.run(stopped, seen))
}

/// Gives up privileges that answering does not need, reports that it is ready, reflects, and prints the result.
fn reflect_until(
    request: &Reflect,
    stopped: &Arc<AtomicBool>,
    place: Place,
    host: &Placement,
    run: impl FnOnce(&AtomicBool, &AtomicU64) -> Result<Reflected, ReflectError>,
) -> Outcome {
    let seen = Arc::new(AtomicU64::new(0));
    let given_up = give_up(request.user).or_hint(Exit::Impossible)?;
    request.ending.watch_parent(stopped);
    if place.loopback_only {
        note("note", LOOPBACK_ONLY);
    }
    let terminal = io::stdout().is_terminal();
    let progress = match terminal {
        true => EachSecond::start({
            let seen = Arc::clone(&seen);
            move |seconds| live(seconds, seen.load(Ordering::Relaxed))
        }),
        false => EachSecond::progress(Arc::clone(&seen)),
    };
    let root_given_up = given_up.root();
    let privileges = &given_up.confine(way(request.mode)).or_hint(Exit::Impossible)?;
    if terminal {
        output::write(answering(&place.listening), Exit::Success)?;
    } else {
        events::ready();
    }
    let reflected = run(stopped, &seen)?;
    drop(progress);
    if terminal {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    let warnings = warnings(&reflected);
    for warning in &warnings {
        note("warning", warning);
    }
    if terminal {
        return output::write(ended(&reflected), Exit::Success);
    }
    let report =
        ReflectReport { reflected: &reflected, place, root_given_up, privileges, host, warnings };
    events::result("tailtrim.reflector/1", &report)
}

/// Addresses and ports that are answered, for a terminal.
fn answering(listeners: &[Listener]) -> String {
    let told: Vec<_> = listeners
        .iter()
        .map(|Listener { service, address }| match service {
            Service::Echo => format!("UDP echo at {address}"),
            Service::Stamp => format!("STAMP at {address}"),
            Service::Twamp => format!("TWAMP-Light at {address}"),
        })
        .collect();
    format!("Answering {}, until Ctrl-C.\n", told.join(", "))
}

/// The line of a terminal that is written again each second.
fn live(seconds: u64, packets: u64) {
    let _ = write!(io::stderr(), "\r{seconds} s: {} packets\x1b[K", grouped(packets));
}

/// The counts, on a terminal.
fn ended(reflected: &Reflected) -> String {
    let Counters { received, reflected, unsent, refused, .. } = &reflected.counters;
    let mut text = format!("{} requests: {} answered", grouped(*received), grouped(*reflected));
    for (count, why) in Refusal::ALL
        .map(|why| (refused.of(why), format!("refused ({})", why.name().replace('_', " "))))
        .into_iter()
        .chain([(*unsent, "not sent".to_owned())])
        .filter(|(count, _)| *count > 0)
    {
        text += &format!(", {} {why}", grouped(count));
    }
    text + "\n"
}

fn warnings(reflected: &Reflected) -> Vec<String> {
    let looped = reflected.counters.refused.of(Refusal::Loop);
    let text = || {
        format!(
            "{looped} echoes were refused because their payload came before or their TTL was low, as in a loop of two \
             reflectors; if they are of a generator with a constant payload: --repeats 0"
        )
    };
    (looped > 0).then(text).into_iter().collect()
}

fn way(mode: Mode) -> Way {
    match mode {
        Mode::Socket => Way::Sockets,
        Mode::Xdp => Way::Xdp,
        Mode::AfXdp => Way::Frames,
        Mode::Nat => Way::Nat,
    }
}

fn attached(
    request: &Reflect,
    wanted: &Listening,
    policy: &Policy,
) -> Result<XdpReflector, Failure> {
    let native = match (request.attach, &request.interface) {
        (Some(attach), _) => attach == Attach::Native,
        (None, Some(interface)) => XdpReflector::prefers_native(interface),
        (None, None) => return Err(ReflectError::NoInterface.into()),
    };
    Ok(XdpReflector::attach(wanted, policy, native)?)
}

fn listener((service, address): &(Service, std::net::SocketAddr)) -> Listener {
    Listener { service: *service, address: address.to_string() }
}

fn listening(request: &Reflect) -> Result<Listening, Failure> {
    Ok(Listening {
        services: services(request),
        addresses: request.address.iter().map(|one| one.ip).collect(),
        device: request.device()?,
        busy_poll: request.busy_poll,
        hardware: request.hardware_stamps,
    })
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

fn policy(request: &Reflect) -> Result<Policy, Failure> {
    let key = request.key_file.as_deref().map(key).transpose()?;
    let burst = request.limit_burst.unwrap_or(request.limit / 10).max(1);
    Ok(Policy {
        allowed: request.allow.clone(),
        limit: (request.limit > 0).then(|| Limit::new(request.limit, burst)),
        repeats: (request.repeats > 0).then(|| Limit::new(request.repeats, REPEATS_AT_ONCE)),
        cookie: request.cookie,
        key,
        stateful: request.stateful,
        class: request.dscp.map_or(Class::Mirror, Class::Fixed),
        ..Policy::default()
    })
}

impl From<ReflectError> for Failure {
    fn from(error: ReflectError) -> Self {
        let exit = match &error {
            ReflectError::Socket(SocketError::Broken { .. }) => Exit::Disturbed,
            ReflectError::Port(PortError::Broken { .. }) => Exit::Disturbed,
            ReflectError::NoInterface | ReflectError::OnlyEcho => Exit::Usage,
            _ => Exit::Impossible,
        };
        Self::hinted(&error, exit)
    }
}
