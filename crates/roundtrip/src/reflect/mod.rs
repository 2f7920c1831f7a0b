//! Turning a request into its reply, in the same bytes, or refusing it for a reason that is counted.
//!
//! A reply is as long as its request because it is written over it: no client causes more bytes than it sends. Checks
//! are made in the order of their cost; the HMAC comes last.

mod answer;
mod clients;
mod location;
mod loops;
mod policy;
mod refusal;
mod session;

pub use policy::{Allowed, AllowedError, Class, Limit, Policy};
pub use refusal::{Counters, Refusal, Refusals};

use answer::Seen;
use clients::Clients;
use loops::Loops;
use session::{Session, SessionKey};
use std::net::{IpAddr, SocketAddr};
use tailtrim_wire::stamp::{self, ReflectorPacket, SenderPacket, StampError};
use tailtrim_wire::time::{ErrorEstimate, TimeFormat};
use tailtrim_wire::tlv::{StampedBy, Synchronization};
use tailtrim_wire::twamp;

/// TTL and hop limit of test packets (RFC 5357 section 4.2: 255, so that hops can be counted), which also replaces that
/// of a request where it is unknown.
const HOPS: u8 = 255;
/// Lowest port of clients: services have lower ones, and might answer.
const FIRST_CLIENT_PORT: u16 = 1_024;

/// Service on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// UDP echo (RFC 862).
    Echo,
    /// STAMP (RFC 8762, RFC 8972).
    Stamp,
    /// TWAMP-Light (RFC 5357 appendix I).
    Twamp,
}

/// Arrival of a request: addresses, times and fields of its headers.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// From whom.
    pub from: SocketAddr,
    /// To which address of this host, if that is known.
    pub to: Option<IpAddr>,
    /// To which port.
    pub port: u16,
    /// T2, `CLOCK_REALTIME`.
    pub received_ns: i64,
    /// Source of T2.
    pub by: StampedBy,
    /// A clock that never steps, for the limits.
    pub now_ns: i64,
    /// TTL or hop limit, if that is known.
    pub hops: Option<u8>,
    /// DSCP and ECN, if they are known.
    pub traffic_class: Option<u8>,
    /// The sender's MAC address, where frames are seen.
    pub mac: Option<[u8; 6]>,
    /// Whether the request was longer than the room for it.
    pub truncated: bool,
}

/// Settings for sending a reply.
#[derive(Debug, Clone, Copy)]
pub struct Reply {
    /// DSCP, with ECN 0.
    pub traffic_class: u8,
    /// TTL or hop limit.
    pub hops: u8,
    /// The session whose follow-up telemetry needs its departure time.
    session: Option<(SessionKey, u32)>,
    stamped: Stamped,
}

impl Reply {
    /// Whether its send time is wanted: see [`Reflector::departed`].
    #[must_use]
    pub fn wants_departure(&self) -> bool {
        self.session.is_some()
    }
}

/// Place of T3 in the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stamped {
    Not,
    Open(TimeFormat),
    Signed(TimeFormat),
}

/// The clock of the stamps.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Its error bound; `None` if it is not synchronised.
    pub bound_ns: Option<u64>,
    /// Source of T3.
    pub sent_by: StampedBy,
}

/// Turns requests into replies.
#[derive(Debug)]
pub struct Reflector {
    policy: Policy,
    clock: Clock,
    limited: Clients<[u8; 16], i64>,
    sessions: Clients<SessionKey, Session>,
    loops: Loops,
    counters: Counters,
}

impl Reflector {
    /// A reflector. `seed` is a random number, so that clients cannot choose whom they drive out of its tables.
    #[must_use]
    pub fn new(policy: Policy, clock: Clock, seed: u64) -> Self {
        let sessions = if policy.keeps_sessions() { policy.remembered } else { 0 };
        let limited = if policy.limit.is_some() { policy.remembered } else { 0 };
        let remembered = policy.remembered;
        Self {
            policy,
            clock,
            loops: Loops::new(remembered, seed.rotate_left(16)),
            limited: Clients::new(limited, seed),
            sessions: Clients::new(sessions, seed.rotate_left(32)),
            counters: Counters::default(),
        }
    }

    /// Sets the clock for all later requests.
    pub fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Turns the request into its reply; [`stamp`](Self::stamp) completes it.
    ///
    /// # Errors
    /// The reason for a refusal, which is counted.
    pub fn reflect(
        &mut self,
        service: Service,
        arrival: &Arrival,
        packet: &mut [u8],
    ) -> Result<Reply, Refusal> {
        self.counters.received += 1;
        let reply = self.judge(arrival).and_then(|()| match service {
            Service::Echo => self.echo_reply(arrival, packet),
            Service::Stamp => self.stamp_reply(arrival, packet),
            Service::Twamp => self.twamp_reply(arrival, packet),
        });
        match reply {
            Ok(_) => self.counters.reflected += 1,
            Err(refusal) => self.counters.refused.count(refusal),
        }
        self.counters.forgotten_clients = self.limited.evicted();
        self.counters.forgotten_flows = self.loops.forgotten_flows();
        self.counters.forgotten_payloads = self.loops.forgotten_payloads();
        self.counters.forgotten_sessions = self.sessions.evicted();
        reply
    }

    /// Writes T3 at the last moment.
    pub fn stamp(&self, reply: &Reply, packet: &mut [u8], sent_ns: i64) {
        match reply.stamped {
            Stamped::Not => {}
            Stamped::Open(format) => stamp::restamp(None, packet, format.write(sent_ns)),
            Stamped::Signed(format) => {
                stamp::restamp(self.policy.key.as_ref(), packet, format.write(sent_ns));
            }
        }
    }

    /// Notes that a reply really left at this time, for the session's next follow-up telemetry.
    pub fn departed(&mut self, reply: &Reply, sent_ns: i64, by: StampedBy) {
        let Some((key, sequence)) = &reply.session else { return };
        if let Some(session) = self.sessions.get(key) {
            session.departed = Some((*sequence, sent_ns, by));
        }
    }

    /// Notes that the kernel did not take a reply.
    pub fn unsent(&mut self) {
        self.counters.reflected = self.counters.reflected.saturating_sub(1);
        self.counters.unsent += 1;
    }

    /// Counts a request that cannot be [reflected](Self::reflect), since it cannot be read.
    pub fn refuse(&mut self, refusal: Refusal) {
        self.counters.received += 1;
        self.counters.refused.count(refusal);
    }

    /// Counts of all requests by outcome.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn judge(&mut self, arrival: &Arrival) -> Result<(), Refusal> {
        let Policy { ports, allowed, limit, .. } = &self.policy;
        if arrival.truncated {
            return Err(Refusal::TooLong);
        }
        let (ip, port) = (arrival.from.ip().to_canonical(), arrival.from.port());
        if port < FIRST_CLIENT_PORT || ports.contains(&port) {
            return Err(Refusal::SourcePort);
        }
        let nobody = ip.is_multicast() || ip.is_unspecified() || ip == IpAddr::from([255; 4]);
        if nobody || arrival.to.is_some_and(|to| to.is_multicast()) {
            return Err(Refusal::Address);
        }
        if !allowed.is_empty() && !allowed.iter().any(|allowed| allowed.contains(ip)) {
            return Err(Refusal::NotAllowed);
        }
        let Some(limit) = limit else { return Ok(()) };
        let client = policy::client(ip);
        // A new client has not sent anything for long.
        let due_ns = self.limited.entry(client, || i64::MIN);
        if limit.admits(due_ns, arrival.now_ns) { Ok(()) } else { Err(Refusal::Rate) }
    }

    fn echo_reply(&mut self, arrival: &Arrival, packet: &[u8]) -> Result<Reply, Refusal> {
        let Self { policy, loops, .. } = self;
        if policy.cookie.is_some_and(|cookie| !packet.starts_with(&cookie)) {
            return Err(Refusal::Cookie);
        }
        let hops = loops.judge(policy.repeats, arrival, packet)?;
        Ok(Reply { hops, ..self.plain(arrival, Stamped::Not) })
    }

    fn plain(&self, arrival: &Arrival, stamped: Stamped) -> Reply {
        let dscp = match self.policy.class {
            Class::Mirror => arrival.traffic_class.unwrap_or(0) >> 2,
            Class::Fixed(dscp) => dscp,
        };
        Reply { traffic_class: dscp << 2, hops: HOPS, session: None, stamped }
    }

    fn error(&self, format: TimeFormat) -> ErrorEstimate {
        ErrorEstimate::of_bound(self.clock.bound_ns, format)
    }

    fn twamp_reply(&mut self, arrival: &Arrival, packet: &mut [u8]) -> Result<Reply, Refusal> {
        let request = twamp::SenderPacket::read(packet).ok_or(Refusal::Short)?;
        if packet.len() < twamp::REFLECTOR_LEN {
            return Err(Refusal::Short);
        }
        if stamp::is_reply(None, packet) {
            return Err(Refusal::Reply);
        }
        // RFC 5357 section 4.2.1: replies have numbers of their own; appendix I: the request's where no session
        // is known.
        let mut sequence = request.sequence;
        if self.policy.stateful {
            let name = SessionKey::new(arrival, 0);
            sequence = self.sessions.entry(name, Session::default).number();
        }
        let format = request.error.format;
        let reply = ReflectorPacket {
            sequence,
            stamp: 0,
            error: self.error(format),
            ssid: 0,
            received: format.write(arrival.received_ns),
            sender_sequence: request.sequence,
            sender_stamp: request.stamp,
            sender_error: request.error,
            sender_ttl: arrival.hops.unwrap_or(HOPS),
        };
        twamp::write_reply(&reply, packet);
        Ok(self.plain(arrival, Stamped::Open(format)))
    }

    fn stamp_reply(&mut self, arrival: &Arrival, packet: &mut [u8]) -> Result<Reply, Refusal> {
        let Self { policy, clock, sessions, .. } = self;
        let key = policy.key.as_ref();
        if packet.len() >= stamp::base_len(key) && stamp::is_reply(key, packet) {
            return Err(Refusal::Reply);
        }
        let request = SenderPacket::read(key, packet).map_err(|error| match error {
            StampError::Short { .. } => Refusal::Short,
            StampError::Hmac => Refusal::Hmac,
        })?;
        let format = request.error.format;
        let sent_ns = format.read(request.stamp, arrival.received_ns);
        let name = SessionKey::new(arrival, request.ssid);
        let mut session = None;
        if policy.keeps_sessions() {
            let kept = sessions.entry(name, Session::default);
            if key.is_some() && !kept.window.is_new(request.sequence, sent_ns) {
                return Err(Refusal::Replayed);
            }
            kept.received = kept.received.wrapping_add(1);
            session = policy.stateful.then_some(kept);
        }
        let sequence = session.as_ref().map_or(request.sequence, |session| session.sent);
        let reply = ReflectorPacket {
            sequence,
            stamp: 0,
            error: ErrorEstimate::of_bound(clock.bound_ns, format),
            ssid: request.ssid,
            received: format.write(arrival.received_ns),
            sender_sequence: request.sequence,
            sender_stamp: request.stamp,
            sender_error: request.error,
            sender_ttl: arrival.hops.unwrap_or(HOPS),
        };
        // The TLVs' HMAC is checked with the sender's number and made anew with ours.
        let integrity = answer::integrity(packet, key);
        reply.write(key, packet).map_err(|_| Refusal::Short)?;
        let synchronization =
            if clock.bound_ns.is_some() { Synchronization::Ntp } else { Synchronization::Free };
        let mirrors = policy.class == Class::Mirror;
        let seen =
            Seen { arrival, session: session.as_deref(), format, clock, synchronization, mirrors };
        let wanted = answer::answer(packet, key, integrity, &seen);
        if let Some(session) = session {
            session.number();
        }
        let stamped = if key.is_some() { Stamped::Signed(format) } else { Stamped::Open(format) };
        let stateful = self.policy.stateful;
        let mut plain = self.plain(arrival, stamped);
        if let Some(dscp) = wanted {
            plain.traffic_class = dscp << 2;
        }
        plain.session = stateful.then_some((name, sequence));
        Ok(plain)
    }
}
