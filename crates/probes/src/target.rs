//! A target of probes: the socket to it, its session, and the datagrams of both ways.

use crate::socket::{
    self, ErrorOrigin, Inbox, Notice, Outgoing, Point, Received, Settings, Socket, SocketError,
    Stamping, Transport,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tailtrim_roundtrip::{
    NoAnswer, Obstacle, Passed, Patience, Prober, Protocol, Reply, Session, StampLevel,
};
use tailtrim_sys::clock;
use tailtrim_wire::icmp;

/// Longest wait of an answered probe for its send stamps, which come by interrupt and may be late.
pub const STAMPS_NS: i64 = 200_000_000;

/// Most calls for the replies that wait in a socket: a flood of datagrams must not keep a sender from its departures.
const MOST_CALLS: usize = 1_024;

/// Destination of probes, and their protocol.
#[derive(Debug, Clone)]
pub struct Destination {
    /// Address of the target.
    pub address: SocketAddr,
    /// From which address of this host; `None`: the route decides.
    pub source: Option<IpAddr>,
    /// From which port; 0: the kernel chooses.
    pub source_port: u16,
    /// DSCP and ECN.
    pub traffic_class: Option<u8>,
    /// Protocol of the requests.
    pub protocol: Protocol,
}

/// Properties of probes that several targets share.
#[derive(Debug, Clone)]
pub struct Probing {
    /// Bytes above UDP, or with ICMP above IP; no fewer than the protocol has.
    pub payload_bytes: usize,
    /// Replies after this time are late.
    pub timeout_ns: i64,
    /// Number of decided probes of which late replies and duplicates are recognized.
    pub remembered: usize,
    /// Points at which a round trip begins and ends.
    pub level: StampLevel,
    /// Send and receive by this interface only.
    pub device: Option<String>,
    /// `SO_BUSY_POLL`.
    pub busy_poll_us: Option<u32>,
    /// TTL or hop limit of probes.
    pub hops: Option<u8>,
    /// Bytes for replies that wait to be fetched; `None`: the host's default.
    pub receive_buffer: Option<usize>,
    /// The hosts have one clock.
    pub same_clock: bool,
}

/// Room for the datagrams of one call, which targets share.
#[derive(Debug)]
pub struct Buffers {
    packets: Vec<Vec<u8>>,
    inbox: Inbox,
    notices: Inbox,
    payload_bytes: usize,
}

impl Buffers {
    /// For probes with at most so many bytes above UDP.
    #[must_use]
    pub fn new(payload_bytes: usize) -> Self {
        Self {
            packets: vec![Vec::new(); socket::BATCH],
            inbox: Inbox::new(socket::BATCH, payload_bytes.max(256) + 128),
            notices: Inbox::new(socket::BATCH, 256),
            payload_bytes,
        }
    }

    /// Makes room for probes with so many bytes above UDP.
    pub fn fit(&mut self, payload_bytes: usize) {
        if payload_bytes > self.payload_bytes {
            *self = Self::new(payload_bytes);
        }
    }
}

/// A target that is being probed.
#[derive(Debug)]
pub struct Target {
    destination: Destination,
    payload_bytes: usize,
    socket: Socket,
    session: Session,
    prober: Prober,
    /// Difference between a stamp's key and the probe's number, modulo 2³².
    shift: u32,
    last_departure_ns: i64,
}

impl Target {
    /// Opens a socket to it. `index` tells the sessions of one process apart.
    ///
    /// # Errors
    /// [`SocketError::Open`].
    pub fn open(
        index: usize,
        destination: Destination,
        probing: &Probing,
    ) -> Result<Self, SocketError> {
        let session_number = session_number(index);
        let mut socket = open_socket(&destination, probing, session_number as u16)?;
        socket.connect(destination.address)?;
        let version =
            if destination.address.is_ipv6() { icmp::Version::V6 } else { icmp::Version::V4 };
        Ok(Self {
            payload_bytes: probing.payload_bytes.max(destination.protocol.least_bytes()),
            prober: Prober {
                protocol: destination.protocol.clone(),
                session: session_number,
                identifier: socket.identifier().unwrap_or(0),
                version,
                clock_bound_ns: socket::clock_bound_ns(),
                same_clock: probing.same_clock,
            },
            session: Session::new(Patience {
                timeout_ns: probing.timeout_ns,
                stamps_ns: STAMPS_NS,
                remembered: probing.remembered,
                software: probing.level.stamps_sent(),
                hardware: probing.level == StampLevel::Hardware,
                follow_up: matches!(destination.protocol, Protocol::Stamp { follow_up: true, .. }),
            }),
            destination,
            socket,
            shift: 0,
            last_departure_ns: 0,
        })
    }

    /// Destination of the probes.
    #[must_use]
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Bytes of a probe's IP packet.
    #[must_use]
    pub fn packet_bytes(&self) -> usize {
        let ip = if self.destination.address.is_ipv6() { 40 } else { 20 };
        let is_icmp = matches!(self.destination.protocol, Protocol::IcmpEcho);
        ip + if is_icmp { 0 } else { 8 } + self.payload_bytes
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Its probes and replies.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The same, to settle or to end them.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Departure of the first probe of the last [`send`](Self::send).
    #[must_use]
    pub fn last_departure_ns(&self) -> i64 {
        self.last_departure_ns
    }

    /// Sends a probe for each of these departures, at most [`socket::BATCH`].
    ///
    /// # Errors
    /// [`SocketError::Broken`].
    pub fn send(&mut self, mut due: &[i64], buffers: &mut Buffers) -> Result<(), SocketError> {
        let first = self.session.next();
        while !due.is_empty() {
            let next = self.session.next();
            let now_ns = clock::realtime_ns();
            let mut sender_stamp = 0;
            let packets = &mut buffers.packets[..due.len()];
            for (number, packet) in (next..).zip(&mut *packets) {
                packet.resize(self.payload_bytes, 0);
                sender_stamp = self.prober.write(packet, number, now_ns);
            }
            let batch: Vec<Outgoing<'_>> = packets
                .iter()
                .map(|bytes| Outgoing {
                    bytes,
                    to: self.destination.address,
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
    ///
    /// # Errors
    /// [`SocketError::Broken`].
    pub fn receive(&mut self, buffers: &mut Buffers) -> Result<bool, SocketError> {
        let count = self.socket.receive(&mut buffers.inbox)?;
        let now_ns = clock::realtime_ns();
        for received in buffers.inbox.datagrams() {
            take(&mut self.session, &self.prober, &received, now_ns);
        }
        Ok(count > 0)
    }

    /// Takes the replies that wait in the socket, if the timeout of a probe is over at a time, which is past: this process may
    /// have been delayed longer than they.
    ///
    /// # Errors
    /// [`SocketError::Broken`].
    pub fn catch_up(&mut self, now_ns: i64, buffers: &mut Buffers) -> Result<(), SocketError> {
        for _ in 0..MOST_CALLS {
            if !self.session.is_overdue(now_ns) || !self.receive(buffers)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads send stamps and errors from the kernel's error queue. Returns whether there were any.
    ///
    /// # Errors
    /// [`SocketError::Broken`].
    pub fn listen(&mut self, buffers: &mut Buffers) -> Result<bool, SocketError> {
        let mut any = false;
        while self.socket.notices(&mut buffers.notices)? > 0 {
            any = true;
            for notice in buffers.notices.notices() {
                note(&mut self.session, &self.prober, self.shift, notice);
            }
            if !buffers.notices.is_full() {
                break;
            }
        }
        Ok(any)
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
        far_hops: answer.far_hops,
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
    destination: &Destination,
    probing: &Probing,
    identifier: u16,
) -> Result<Socket, SocketError> {
    let any = match destination.address {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let transport = match destination.protocol {
        Protocol::IcmpEcho => Transport::IcmpEcho { identifier },
        _ => Transport::Udp,
    };
    let port = if transport == Transport::Udp { destination.source_port } else { 0 };
    let local = SocketAddr::new(destination.source.unwrap_or(any), port);
    Socket::open(&Settings {
        device: probing.device.clone(),
        traffic_class: destination.traffic_class,
        // RFC 8762 section 4.2.1 and RFC 5357 section 4.1.2: reflectors need it to count the hops.
        hops: probing.hops.or((!matches!(
            destination.protocol,
            Protocol::UdpEcho { .. } | Protocol::IcmpEcho
        ))
        .then_some(255)),
        busy_poll_us: probing.busy_poll_us,
        receive_buffer: probing.receive_buffer,
        bare: probing.level == StampLevel::Application,
        stamping: Stamping {
            receive: probing.level.stamps_received(),
            send: probing.level.stamps_sent(),
            hardware: probing.level == StampLevel::Hardware,
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
