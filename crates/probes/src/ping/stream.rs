//! Probes from one source to one target in one class, and the replies to them.

use super::analysis::Analyser;
use super::log::Log;
use super::result::StreamResult;
use super::{Live, PingError, Plan, log_path};
use crate::socket::{
    self, ErrorOrigin, Inbox, Notice, Outgoing, Point, Received, Settings, Socket, Stamping,
    Transport,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use tailtrim_roundtrip::{
    Ending, NoAnswer, Obstacle, Passed, Patience, Prober, Protocol, Reply, RoundTrip, Session,
    Split, StampLevel,
};
use tailtrim_sys::clock;
use tailtrim_wire::icmp;

/// Bytes for replies that wait to be fetched: those of the largest bursts.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Longest wait of an answered probe for its send stamps, which come by interrupt and may be late.
const STAMPS_NS: i64 = 200_000_000;

/// Bytes of an Ethernet header.
const ETHERNET_LEN: usize = 14;

/// Where to send, and how.
#[derive(Debug, Clone)]
pub struct StreamPlan {
    /// Name of the stream.
    pub name: String,
    /// Address of the target.
    pub target: SocketAddr,
    /// From which address of this host; `None`: the route decides.
    pub source: Option<IpAddr>,
    /// From which port; 0: the kernel chooses.
    pub source_port: u16,
    /// DSCP and ECN.
    pub traffic_class: Option<u8>,
    /// Protocol of the requests.
    pub protocol: Protocol,
}

/// A stream under way.
#[derive(Debug)]
pub(super) struct Stream {
    plan: StreamPlan,
    level: StampLevel,
    socket: Socket,
    session: Session,
    prober: Prober,
    split: Split,
    analyser: Analyser,
    log: Option<(Log, PathBuf)>,
    packets: Vec<Vec<u8>>,
    inbox: Inbox,
    notices: Inbox,
    packet_bytes: usize,
    /// Difference between a stamp's key and the probe's number, modulo 2³².
    shift: u32,
    last_departure_ns: i64,
    unstamped: u64,
    round_trips_ns: Vec<i64>,
    live: bool,
}

impl Stream {
    pub(super) fn open(index: usize, stream: &StreamPlan, plan: &Plan) -> Result<Self, PingError> {
        let session_number = session_number(index);
        let mut socket = open_socket(stream, plan, session_number as u16)?;
        socket.connect(stream.target)?;
        let (is_v6, is_icmp) =
            (stream.target.is_ipv6(), matches!(stream.protocol, Protocol::IcmpEcho));
        let ip_bytes = if is_v6 { 40 } else { 20 };
        let payload = plan.payload_bytes.max(stream.protocol.least_bytes());
        let packet_bytes = ip_bytes + if is_icmp { 0 } else { 8 } + payload;
        let analyser = Analyser::start(&stream.name, packet_bytes + ETHERNET_LEN, &plan.options);
        let log = plan.log.as_deref().map(|folder| {
            let path = log_path(folder, index);
            let log = Log::create(&path, packet_bytes);
            log.map(|log| (log, path.clone())).map_err(|source| PingError::Log { path, source })
        });
        Ok(Self {
            prober: Prober {
                protocol: stream.protocol.clone(),
                session: session_number,
                identifier: socket.identifier().unwrap_or(0),
                version: if is_v6 { icmp::Version::V6 } else { icmp::Version::V4 },
                clock_bound_ns: socket::clock_bound_ns(),
                same_clock: plan.same_clock,
            },
            plan: stream.clone(),
            level: plan.level,
            socket,
            session: Session::new(Patience {
                timeout_ns: plan.timeout_ns,
                stamps_ns: STAMPS_NS,
                software: plan.level.stamps_sent(),
                hardware: plan.level == StampLevel::Hardware,
                follow_up: matches!(stream.protocol, Protocol::Stamp { follow_up: true, .. }),
            }),
            split: Split::new(),
            analyser,
            log: log.transpose()?,
            packets: vec![vec![0; payload]; socket::BATCH],
            inbox: Inbox::new(socket::BATCH, payload.max(256) + 128),
            notices: Inbox::new(socket::BATCH, 256),
            packet_bytes,
            shift: 0,
            last_departure_ns: 0,
            unstamped: 0,
            round_trips_ns: Vec::new(),
            live: true,
        })
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Whether a reply came more than once.
    pub(super) fn is_answered_twice(&self) -> bool {
        self.session.counts().replies.duplicate > 0
    }

    pub(super) fn is_idle(&self) -> bool {
        self.session.is_idle()
    }

    /// The last probe was sent.
    pub(super) fn no_more(&mut self) {
        self.session.no_more();
    }

    pub(super) fn last_departure_ns(&self) -> i64 {
        self.last_departure_ns
    }

    /// Sends a probe for each of these departures.
    pub(super) fn send(&mut self, mut due: &[i64]) -> Result<(), PingError> {
        let first = self.session.next();
        while !due.is_empty() {
            let next = self.session.next();
            let now_ns = clock::realtime_ns();
            let mut sender_stamp = 0;
            for (number, packet) in (next..).zip(&mut self.packets[..due.len()]) {
                sender_stamp = self.prober.write(packet, number, now_ns);
            }
            let batch: Vec<Outgoing<'_>> = self.packets[..due.len()]
                .iter()
                .map(|bytes| Outgoing {
                    bytes,
                    to: self.plan.target,
                    from: None,
                    traffic_class: None,
                    hops: None,
                })
                .collect();
            let sent = self.socket.send(&batch)?;
            if next == first {
                self.last_departure_ns = sent.begun_ns;
            }
            self.shift = (next as u32).wrapping_sub(sent.first_key);
            let (taken, rest) = due.split_at(sent.taken);
            for intended_ns in taken {
                self.session.sent(*intended_ns, sent.begun_ns, sender_stamp);
            }
            due = rest;
            if let Some(errno) = sent.refused {
                self.session.refused(1, Obstacle::Local(errno));
                due = due.get(1..).unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Takes the replies that have come. Returns whether there were any.
    pub(super) fn receive(&mut self) -> Result<bool, PingError> {
        let count = self.socket.receive(&mut self.inbox)?;
        let now_ns = clock::realtime_ns();
        for received in self.inbox.datagrams() {
            take(&mut self.session, &self.prober, &received, now_ns);
        }
        Ok(count > 0)
    }

    /// Reads send stamps and errors from the kernel's error queue.
    pub(super) fn listen(&mut self) -> Result<(), PingError> {
        while !self.session.is_idle() && self.socket.notices(&mut self.notices)? > 0 {
            for notice in self.notices.notices() {
                note(&mut self.session, &self.prober, self.shift, notice);
            }
        }
        Ok(())
    }

    /// Hands on the round trips that are decided.
    pub(super) fn settle(&mut self, now_ns: i64) -> Result<(), PingError> {
        while let Some(trip) = self.session.settle(now_ns) {
            self.hand_on(&trip)?;
        }
        let before_ns = self.session.oldest_ns().unwrap_or(now_ns);
        self.analyser.release(before_ns);
        Ok(())
    }

    fn hand_on(&mut self, trip: &RoundTrip) -> Result<(), PingError> {
        let answered = trip.ending == Ending::Answered;
        let round_trip_ns = trip.stamps.round_trip_ns(self.level).filter(|_| answered);
        let begin_ns = trip.stamps.begin_ns(self.level);
        if answered {
            self.split.record(&trip.stamps, trip.clock_bound_ns);
            match round_trip_ns.zip(begin_ns) {
                Some((round_trip_ns, begin_ns)) => {
                    self.analyser.sent(trip.number, begin_ns);
                    self.analyser.received(trip.number, begin_ns + round_trip_ns);
                    if self.live {
                        self.round_trips_ns.push(round_trip_ns);
                    }
                }
                None => self.unstamped += 1,
            }
        } else {
            self.analyser.sent(trip.number, begin_ns.unwrap_or(trip.stamps.app_send_ns));
        }
        if let Some((log, path)) = &mut self.log {
            let written = log.write(trip, round_trip_ns);
            written.map_err(|source| PingError::Log { path: path.clone(), source })?;
        }
        Ok(())
    }

    /// Adds the events since the last call.
    pub(super) fn tell(&mut self, live: &mut Live) {
        let counts = self.session.counts();
        live.sent += counts.probes.sent();
        live.answered += counts.replies.first;
        live.unanswered += counts.probes.unanswered();
        live.round_trips_ns.append(&mut self.round_trips_ns);
    }

    /// Ends the stream and analyses it.
    pub(super) fn finish(mut self) -> Result<StreamResult, PingError> {
        self.listen()?;
        self.session.counts_mut().overflowed = self.socket.overflowed()?.into();
        for trip in self.session.finish() {
            self.hand_on(&trip)?;
        }
        if let Some((log, path)) = self.log.take() {
            log.close().map_err(|source| PingError::Log { path, source })?;
        }
        let mut result = StreamResult {
            name: self.plan.name,
            target: self.plan.target,
            local: self.socket.local(),
            protocol: self.plan.protocol.name(),
            traffic_class: self.plan.traffic_class,
            packet_bytes: self.packet_bytes,
            counts: self.session.counts().clone(),
            unstamped: self.unstamped,
            parts: self.split.parts(),
            one_way: self.split.one_way(),
            summary: self.analyser.finish()?,
        };
        result.complete();
        Ok(result)
    }
}

fn take(session: &mut Session, prober: &Prober, received: &Received<'_>, now_ns: i64) {
    // Longer than the probe: whatever it begins with, it is not a reply to it.
    let read = if received.truncated {
        Err(NoAnswer::Malformed)
    } else {
        prober.read(received.bytes, now_ns)
    };
    let answer = match read {
        Ok(answer) => answer,
        Err(why) => {
            let replies = &mut session.counts_mut().replies;
            replies.datagrams += 1;
            match why {
                NoAnswer::Stray => replies.stray += 1,
                NoAnswer::Malformed => replies.malformed += 1,
                NoAnswer::Unauthentic => replies.unauthentic += 1,
            }
            return;
        }
    };
    let reply = Reply {
        app_receive_ns: now_ns,
        received_ns: received.software_ns,
        nic_received_ns: received.hardware_ns,
        sender_stamp: answer.sender_stamp,
        far_ns: answer.far_ns,
        clock_bound_ns: answer.clock_bound_ns,
        far_number: answer.far_number,
        follow_up: answer.follow_up,
        bytes: received.packet_bytes as u32,
        hops: received.hops,
    };
    session.replied(session.nearest(answer.low, answer.bits), &reply);
}

fn note(session: &mut Session, prober: &Prober, shift: u32, notice: Notice<'_>) {
    match notice {
        Notice::Stamp { key, point, software_ns, hardware_ns } => {
            let low = key.wrapping_add(shift);
            let passed = match point {
                Point::Queued => Passed::Queued,
                Point::Sent => Passed::Driver,
            };
            if let Some(time_ns) = software_ns {
                session.passed(low, passed, time_ns);
            }
            if let Some(time_ns) = hardware_ns {
                session.passed(low, Passed::Nic, time_ns);
            }
        }
        Notice::Undelivered { cause, bytes, .. } => {
            let obstacle = match cause {
                ErrorOrigin::Icmp { kind, code } => Obstacle::Icmp(kind, code),
                ErrorOrigin::Icmp6 { kind, code } => Obstacle::Icmp6(kind, code),
                ErrorOrigin::Local { errno } => Obstacle::Local(errno),
            };
            match prober.read_quoted(bytes) {
                Some((low, bits)) => {
                    session.undelivered(session.nearest(low, bits), obstacle);
                }
                None => session.counts_mut().unattributed_errors += 1,
            }
        }
    }
}

fn open_socket(
    stream: &StreamPlan,
    plan: &Plan,
    identifier: u16,
) -> Result<Socket, socket::SocketError> {
    let any = match stream.target {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let transport = match stream.protocol {
        Protocol::IcmpEcho => Transport::IcmpEcho { identifier },
        _ => Transport::Udp,
    };
    let port = if transport == Transport::Udp { stream.source_port } else { 0 };
    let local = SocketAddr::new(stream.source.unwrap_or(any), port);
    Socket::open(&Settings {
        device: plan.device.clone(),
        traffic_class: stream.traffic_class,
        // RFC 8762 section 4.2.1 and RFC 5357 section 4.1.2: reflectors need it to count the hops.
        hops: plan.hops.or((!matches!(
            stream.protocol,
            Protocol::UdpEcho { .. } | Protocol::IcmpEcho
        ))
        .then_some(255)),
        busy_poll_us: plan.busy_poll_us,
        receive_buffer: Some(RECEIVE_BUFFER),
        bare: plan.level == StampLevel::Application,
        stamping: Stamping {
            receive: plan.level.stamps_received(),
            send: plan.level.stamps_sent(),
            hardware: plan.level == StampLevel::Hardware,
        },
        ..Settings::new(transport, local)
    })
}

/// A number that no other session has, mostly: of the time and of the process.
fn session_number(index: usize) -> u32 {
    let time = clock::realtime_ns().cast_unsigned();
    // A multiplicative hash (Knuth) spreads differences of a few bits over all.
    let mixed = (time ^ u64::from(std::process::id()) << 32 ^ index as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}
