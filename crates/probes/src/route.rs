//! The path to a target: which routers return probes whose hops are used up.
//!
//! All probes of one path have the same addresses and ports, so that routers with several equal paths send them the same
//! way (Augustin et al., Avoiding traceroute anomalies with Paris traceroute, 2006).

use crate::socket::{
    ErrorOrigin, Inbox, Notice, Outgoing, Settings, Socket, SocketError, Stamping, Transport,
};
use crate::target::Destination;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tailtrim_roundtrip::{Prober, Protocol};
use tailtrim_sys::clock;
use tailtrim_wire::icmp;

/// Hops that are tried at most: the default of traceroute(8).
const MOST_HOPS: u8 = 30;
/// Probes for each.
const TRIES: usize = 2;
/// Wait for an answer to each: routers answer within a round trip, and that takes less on Earth.
const WAIT_NS: i64 = 500_000_000;
/// Routers in a row that do not answer, after which no more are asked.
const SILENT: usize = 5;

/// A router, or the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// Its address; `None`: it does not answer.
    pub by: Option<IpAddr>,
    /// Time until its answer.
    pub round_trip_ns: Option<i64>,
}

/// A path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Route {
    /// The routers in their order, and the target as the last one if it was reached.
    pub hops: Vec<Hop>,
    /// Whether the target answered.
    pub reached: bool,
}

/// Answer to one probe.
enum Answer {
    /// Its hops were used up.
    Router(IpAddr),
    /// It is there.
    Target,
    /// It does not come through.
    Refused(IpAddr),
}

/// Looks a path up. It takes a round trip for each hop, and a second for each that does not answer.
///
/// # Errors
/// The socket.
pub fn find(
    destination: &Destination,
    payload_bytes: usize,
    device: Option<&str>,
) -> Result<Route, SocketError> {
    let mut asking = Asking::open(destination, payload_bytes, device)?;
    let mut route = Route { hops: Vec::new(), reached: false };
    let mut silent = 0;
    for hops in 1..=MOST_HOPS {
        let (answer, round_trip_ns) = asking.ask(hops)?;
        silent = if answer.is_none() { silent + 1 } else { 0 };
        let by = match answer {
            Some(Answer::Router(by) | Answer::Refused(by)) => Some(by),
            Some(Answer::Target) => Some(destination.address.ip()),
            None => None,
        };
        route.hops.push(Hop { by, round_trip_ns });
        route.reached = matches!(answer, Some(Answer::Target));
        if route.reached || matches!(answer, Some(Answer::Refused(_))) || silent == SILENT {
            break;
        }
    }
    if !route.reached {
        // Of those that do not answer nothing is known, not even whether they are there.
        let known = route.hops.iter().rposition(|hop| hop.by.is_some()).map_or(0, |at| at + 1);
        route.hops.truncate(known);
    }
    Ok(route)
}

/// A socket, and the probe that it waits for.
struct Asking {
    socket: Socket,
    prober: Prober,
    to: SocketAddr,
    packet: Vec<u8>,
    inbox: Inbox,
    number: u64,
}

impl Asking {
    fn open(
        destination: &Destination,
        payload_bytes: usize,
        device: Option<&str>,
    ) -> Result<Self, SocketError> {
        let to = destination.address;
        let any = match to {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let session = clock::realtime_ns() as u32;
        let transport = match destination.protocol {
            Protocol::IcmpEcho => Transport::IcmpEcho { identifier: session as u16 },
            _ => Transport::Udp,
        };
        let local = SocketAddr::new(destination.source.unwrap_or(any), 0);
        let mut socket = Socket::open(&Settings {
            device: device.map(str::to_owned),
            traffic_class: destination.traffic_class,
            stamping: Stamping { receive: true, ..Stamping::default() },
            ..Settings::new(transport, local)
        })?;
        socket.connect(to)?;
        let version = if to.is_ipv6() { icmp::Version::V6 } else { icmp::Version::V4 };
        let bytes = payload_bytes.max(destination.protocol.least_bytes());
        let prober = Prober {
            protocol: destination.protocol.clone(),
            session,
            identifier: socket.identifier().unwrap_or(0),
            version,
            clock_bound_ns: None,
            same_clock: false,
        };
        let inbox = Inbox::new(8, bytes.max(256) + 128);
        Ok(Self { socket, prober, to, packet: vec![0; bytes], inbox, number: 0 })
    }

    /// Sends a probe with so many hops until one is answered. Returns who answered, and after which time.
    fn ask(&mut self, hops: u8) -> Result<(Option<Answer>, Option<i64>), SocketError> {
        for _ in 0..TRIES {
            self.number += 1;
            let begin_ns = clock::realtime_ns();
            self.prober.write(&mut self.packet, self.number, begin_ns);
            let outgoing = Outgoing {
                bytes: &self.packet,
                to: self.to,
                from: None,
                traffic_class: None,
                hops: Some(hops),
            };
            // One that this host refuses is not answered.
            self.socket.send(&[outgoing])?;
            let until_ns = clock::monotonic_ns() + WAIT_NS;
            loop {
                let left_ns = until_ns - clock::monotonic_ns();
                if left_ns <= 0 {
                    break;
                }
                self.socket.wait(Duration::from_nanos(left_ns.cast_unsigned()))?;
                if let Some(answer) = self.answer()? {
                    return Ok((Some(answer), Some(clock::realtime_ns() - begin_ns)));
                }
            }
        }
        Ok((None, None))
    }

    fn answer(&mut self) -> Result<Option<Answer>, SocketError> {
        self.socket.notices(&mut self.inbox)?;
        for notice in self.inbox.notices() {
            let Notice::Undelivered { cause, by: Some(by), bytes, .. } = notice else { continue };
            // Where too little is quoted to tell, it is of this one: none is sent before the one before is answered, or
            // has been waited for.
            let quoted = self.prober.read_quoted(bytes);
            if quoted.is_some_and(|(low, bits)| low != self.number & ((1 << bits) - 1)) {
                continue;
            }
            let used_up = match cause {
                ErrorOrigin::Icmp { kind, .. } => kind == 11,
                ErrorOrigin::Icmp6 { kind, .. } => kind == 3,
                ErrorOrigin::Local { .. } => continue,
            };
            return Ok(Some(match by {
                by if used_up => Answer::Router(by),
                by if by == self.to.ip() => Answer::Target,
                by => Answer::Refused(by),
            }));
        }
        self.socket.receive(&mut self.inbox)?;
        let now_ns = clock::realtime_ns();
        let ours = |bytes: &[u8]| {
            let answer = self.prober.read(bytes, now_ns).ok()?;
            (answer.low == self.number & ((1 << answer.bits) - 1)).then_some(Answer::Target)
        };
        Ok(self.inbox.datagrams().find_map(|received| ours(received.bytes)))
    }
}
