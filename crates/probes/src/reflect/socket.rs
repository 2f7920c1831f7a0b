//! Reflecting by UDP sockets: works everywhere, and is the reference for the other modes.

use super::departures::Departures;
use super::listening::{Listening, Opened};
use super::regular::Regular;
use super::xdp::XdpReflector;
use super::{ReflectError, Reflected, clock_now, seed};
use crate::socket::{Inbox, Notice, Outgoing, Point, Received, Socket, wait_any};
use arrayvec::ArrayVec;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tailtrim_ports::grace::GracePeriod;
use tailtrim_roundtrip::reflect::{Arrival, Policy, Reflector, Reply, Service};
use tailtrim_sys::clock;
use tailtrim_wire::tlv::StampedBy;

/// Requests in one go: T3 is written before the call that sends all of them, so few.
const BATCH: usize = 16;
/// Room for a request: an MTU of 9,000, and more for loopback and reassembled fragments.
const ROOM: usize = 9_216;
/// Longest wait for a request before `stopped` is looked at again.
const WAIT: Duration = Duration::from_millis(20);
/// Interval at which the clock's error bound is read.
const CLOCK_NS: i64 = 1_000_000_000;
/// Looks at empty sockets before the time is asked.
const LOOKS: u32 = 1 << 12;
/// Where a regular client has a socket of its own, the one for everybody is looked at in one of so many rounds:
/// 1 µs later than otherwise at most.
const OTHERS_EVERY: u32 = 4;
/// A NIC's clock further off the kernel's than any interrupt is late is not kept on UTC.
const FOREIGN_NS: u64 = 1_000_000;
/// The same where a stamp is looked at later: notices wait until the process has answered other requests.
const FOREIGN_SENT_NS: u64 = 1_000_000_000;

/// A reflector on UDP sockets.
#[derive(Debug)]
pub struct SocketReflector {
    sockets: Vec<Socket>,
    services: Vec<Service>,
    /// For a reflector that polls at given addresses: a second socket for each one, at the end of `sockets`, for the
    /// client that asks most.
    regulars: Vec<Regular>,
    round: u32,
    /// Why addresses were left out: one of the families may be missing on a host.
    left_out: Vec<String>,
    busy_poll: bool,
    reflector: Reflector,
    telemetry: Option<Vec<Departures>>,
    inbox: Inbox,
    notices: Inbox,
    requests: Vec<Request>,
    reflected: Reflected,
    clock_ns: i64,
    xdp: Option<XdpReflector>,
}

/// A request that became a reply.
#[derive(Debug)]
struct Request {
    bytes: Vec<u8>,
    from: SocketAddr,
    to: Option<IpAddr>,
    reply: Option<Reply>,
}

impl SocketReflector {
    /// Binds all ports on all addresses of `listening`.
    ///
    /// # Errors
    /// [`ReflectError::Socket`] when one cannot be bound; with no addresses given, one family may be missing.
    pub fn open(listening: &Listening, mut policy: Policy) -> Result<Self, ReflectError> {
        policy.ports = listening.services.iter().map(|(_, port)| *port).collect();
        // Stamps of replies cost the kernel time, and only a session's next reply can tell them.
        let tells = policy.stateful;
        let Opened { mut sockets, mut services, left_out } = listening.open(&policy, tells)?;
        let mut regulars = Vec::new();
        for at in 0..if listening.has_regulars(&policy) { sockets.len() } else { 0 } {
            let settings = listening.settings(services[at], sockets[at].local(), tells);
            let (regular, socket) = Regular::beside(&sockets[at], &settings)?;
            regulars.push(regular);
            sockets.push(socket);
            services.push(services[at]);
        }
        let request = || Request {
            bytes: Vec::with_capacity(ROOM),
            from: anywhere_at_0(),
            to: None,
            reply: None,
        };
        Ok(Self {
            telemetry: tells.then(|| sockets.iter().map(|_| Departures::new()).collect()),
            sockets,
            services,
            regulars,
            round: 0,
            left_out,
            busy_poll: listening.busy_poll,
            reflector: Reflector::new(policy, clock_now(), seed()),
            inbox: Inbox::new(BATCH, ROOM),
            notices: Inbox::new(BATCH, 256),
            requests: (0..BATCH).map(|_| request()).collect(),
            reflected: Reflected::default(),
            clock_ns: clock::monotonic_ns(),
            xdp: None,
        })
    }

    /// Puts an XDP program in front, which answers most requests.
    pub fn behind(&mut self, xdp: XdpReflector) {
        self.xdp = Some(xdp);
    }

    /// Services with their bound addresses; port 0 has been replaced by the real one.
    #[must_use]
    pub fn bound(&self) -> Vec<(Service, SocketAddr)> {
        let ports = self.sockets.len() - self.regulars.len();
        let locals = self.sockets[..ports].iter().map(Socket::local);
        self.services.iter().copied().zip(locals).collect()
    }

    /// Addresses that were left out, with the reason.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Reflects until `stopped`; `seen` has the number of requests so far.
    ///
    /// # Errors
    /// [`ReflectError::Socket`] when a socket breaks.
    pub fn run(
        mut self,
        stopped: &AtomicBool,
        seen: &AtomicU64,
    ) -> Result<Reflected, ReflectError> {
        let (mut idle, mut last) = (0_u32, GracePeriod::default());
        loop {
            let ending = stopped.load(Ordering::Acquire);
            if self.serve()? > 0 && !(ending && last.is_over()) {
                seen.store(self.seen(), Ordering::Relaxed);
                self.look_at_clock();
                idle = 0;
            } else if ending {
                break;
            } else if self.busy_poll {
                idle = idle.wrapping_add(1);
                if idle.is_multiple_of(LOOKS) {
                    self.look_at_clock();
                    seen.store(self.seen(), Ordering::Relaxed);
                }
                std::hint::spin_loop();
            } else {
                wait_any(&self.sockets, WAIT)?;
                self.look_at_clock();
                seen.store(self.seen(), Ordering::Relaxed);
            }
        }
        self.reflected.counters = *self.reflector.counters();
        if let Some(xdp) = &self.xdp {
            let work = xdp.work();
            self.reflected.counters += work.counters;
            self.reflected.xdp = Some(work);
        }
        let overflowed = self.sockets.iter().map(Socket::overflowed);
        self.reflected.dropped = overflowed.map(|count| count.ok().map(u64::from)).sum();
        Ok(self.reflected)
    }

    fn seen(&self) -> u64 {
        let sockets = self.reflector.counters().received;
        sockets + self.xdp.as_ref().map_or(0, XdpReflector::seen)
    }

    fn look_at_clock(&mut self) {
        let now_ns = clock::monotonic_ns();
        if now_ns - self.clock_ns > CLOCK_NS {
            self.clock_ns = now_ns;
            self.reflector.set_clock(clock_now());
            if let Some(xdp) = &self.xdp {
                xdp.refresh_clock();
            }
        }
    }

    /// One round over all sockets. Returns how many requests it was.
    fn serve(&mut self) -> Result<usize, ReflectError> {
        self.round = self.round.wrapping_add(1);
        let ports = self.sockets.len() - self.regulars.len();
        let mut count = 0;
        for at in 0..ports {
            if self.regulars.get(at).is_some_and(Regular::is_taken) {
                let (came, _) = self.serve_socket(ports + at)?;
                if came > 0 {
                    self.regulars[at].came();
                }
                count += came;
                if !self.round.is_multiple_of(OTHERS_EVERY) {
                    continue;
                }
            }
            let (came, answered) = self.serve_socket(at)?;
            count += came;
            if answered > 0 && !self.regulars.is_empty() {
                let from = self.requests[0].from;
                self.regulars[at].other_came(from, answered, &mut self.sockets[ports + at]);
            }
        }
        Ok(count)
    }

    /// Answers the requests that have come to a socket. Returns their number, and how many of them get replies.
    fn serve_socket(&mut self, at: usize) -> Result<(usize, usize), ReflectError> {
        if self.telemetry.is_some() {
            self.hear_departures(at)?;
        }
        let came = self.sockets[at].receive(&mut self.inbox)?;
        let replies = if came > 0 { self.reflect(at) } else { 0 };
        self.send(at, replies)?;
        Ok((came, replies))
    }

    /// Makes replies of the requests in the inbox. Returns how many.
    fn reflect(&mut self, at: usize) -> usize {
        let Self { inbox, requests, reflector, reflected, .. } = self;
        let (service, port) = (self.services[at], self.sockets[at].local().port());
        let now_ns = clock::monotonic_ns();
        let mut count = 0;
        for received in inbox.datagrams() {
            let (received_ns, by) = match service {
                Service::Echo => (0, StampedBy::Control),
                Service::Stamp | Service::Twamp => stamp(&received, reflected),
            };
            let arrival = Arrival {
                from: received.from,
                to: received.to,
                port,
                received_ns,
                by,
                now_ns,
                hops: received.hops,
                traffic_class: received.traffic_class,
                mac: None,
                truncated: received.truncated,
            };
            let request = &mut requests[count];
            request.bytes.clear();
            request.bytes.extend_from_slice(received.bytes);
            if let Ok(reply) = reflector.reflect(service, &arrival, &mut request.bytes) {
                (request.from, request.to, request.reply) =
                    (received.from, received.to, Some(reply));
                count += 1;
            }
        }
        count
    }

    fn send(&mut self, at: usize, count: usize) -> Result<(), ReflectError> {
        let mut first = 0;
        while first < count {
            let sent_ns = clock::realtime_ns();
            for request in &mut self.requests[first..count] {
                if let Some(reply) = &request.reply {
                    self.reflector.stamp(reply, &mut request.bytes, sent_ns);
                }
            }
            let sent = if let [one] = &self.requests[first..count] {
                self.sockets[at].send(&[outgoing(one)])?
            } else {
                let batch: ArrayVec<Outgoing<'_>, BATCH> =
                    self.requests[first..count].iter().map(outgoing).collect();
                self.sockets[at].send(&batch)?
            };
            if let Some(telemetry) = &mut self.telemetry {
                let taken = &self.requests[first..first + sent.taken];
                for (key, request) in (sent.first_key..).zip(taken) {
                    if let Some(reply) = request.reply.filter(Reply::wants_departure) {
                        telemetry[at].enter(key, reply);
                    }
                }
            }
            first += sent.taken;
            if first < count && sent.taken == 0 {
                // The error belongs to the first one, which is not sent; the others may be.
                self.reflector.unsent();
                first += 1;
            }
        }
        Ok(())
    }

    /// Reads from the error queue when replies really left.
    fn hear_departures(&mut self, at: usize) -> Result<(), ReflectError> {
        let Self { sockets, notices, telemetry, reflector, reflected, .. } = self;
        let Some(telemetry) = telemetry else { return Ok(()) };
        if sockets[at].notices(notices)? == 0 {
            return Ok(());
        }
        for notice in notices.notices() {
            let Notice::Stamp { key, point, software_ns, hardware_ns } = notice else { continue };
            let Some(reply) = telemetry[at].find(key) else { continue };
            // Queued comes first; a driver that stamps corrects it. The clock of a NIC may be another one than UTC.
            let near = |ns: &i64| ns.abs_diff(clock::realtime_ns()) <= FOREIGN_SENT_NS;
            if point == Point::Sent && hardware_ns.is_some_and(|ns| !near(&ns)) {
                reflected.foreign_clock += 1;
            }
            let (sent_ns, by) = match (point, hardware_ns.filter(near)) {
                (Point::Sent, Some(ns)) => (Some(ns), StampedBy::Hardware),
                _ => (software_ns, StampedBy::Software),
            };
            if let Some(sent_ns) = sent_ns {
                reflector.departed(reply, sent_ns, by);
            }
        }
        Ok(())
    }
}

fn anywhere_at_0() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))
}

/// T2, from the best source that there is.
fn stamp(received: &Received<'_>, reflected: &mut Reflected) -> (i64, StampedBy) {
    match (received.software_ns, received.hardware_ns) {
        (Some(software_ns), Some(hardware_ns)) => {
            if software_ns.abs_diff(hardware_ns) <= FOREIGN_NS {
                (hardware_ns, StampedBy::Hardware)
            } else {
                reflected.foreign_clock += 1;
                (software_ns, StampedBy::Software)
            }
        }
        (Some(software_ns), None) => (software_ns, StampedBy::Software),
        (None, _) => {
            reflected.unstamped += 1;
            (clock::realtime_ns(), StampedBy::Control)
        }
    }
}

fn outgoing(request: &Request) -> Outgoing<'_> {
    Outgoing {
        bytes: &request.bytes,
        to: request.from,
        from: request.to,
        traffic_class: request.reply.map(|reply| reply.traffic_class),
        hops: request.reply.map(|reply| reply.hops),
    }
}
