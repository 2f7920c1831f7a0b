//! A session of ping under datagrams from anybody: nothing crashes, each datagram and each probe is counted once, on
//! one way, and round trips come out in the order in which their probes were sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailtrim_roundtrip::{
    NoAnswer, Obstacle, Passed, Patience, Prober, Protocol, Reply, RoundTrip, Session, StampLevel,
};
use tailtrim_wire::stamp::{self, ReflectorPacket};
use tailtrim_wire::tlv::{self, FollowUp, kind};
use tailtrim_wire::{ErrorEstimate, Key, TimeFormat, icmp, twamp};

const START_NS: i64 = 1_800_000_000_000_000_000;
const MS: i64 = 1_000_000;

fuzz_target!(|data: &[u8]| {
    let [kind, rest @ ..] = data else { return };
    let mut run = Run::new(*kind);
    let mut rest = rest;
    while let Some((head, tail)) = rest.split_first_chunk::<4>() {
        let length = usize::from(head[1]).min(tail.len());
        let (body, tail) = tail.split_at(length);
        rest = tail;
        run.step(*head, body);
    }
    run.finish();
});

struct Run {
    prober: Prober,
    session: Session,
    now_ns: i64,
    datagrams: u64,
    next: u64,
    settled: u64,
}

impl Run {
    fn new(kind: u8) -> Self {
        let key = (kind & 8 != 0).then(|| Key::of_bytes(b"sixteen letters!").unwrap());
        let follow_up = kind & 16 != 0;
        let protocol = match kind & 7 {
            0 => Protocol::UdpEcho { cookie: (kind & 8 != 0).then_some([7; 8]) },
            1 => Protocol::IcmpEcho,
            2 | 3 => Protocol::TwampLight,
            _ => Protocol::Stamp { key, follow_up },
        };
        let asks = matches!(protocol, Protocol::Stamp { follow_up: true, .. });
        let prober = Prober {
            protocol,
            session: 0x0102_0304,
            identifier: 77,
            version: if kind & 32 != 0 { icmp::Version::V6 } else { icmp::Version::V4 },
            clock_bound_ns: Some(1_000),
            same_clock: kind & 64 != 0,
        };
        let patience = Patience {
            timeout_ns: 1_000 * MS,
            stamps_ns: 100 * MS,
            software: kind & 128 != 0,
            hardware: false,
            follow_up: asks,
        };
        let session = Session::new(patience);
        Self { prober, session, now_ns: START_NS, datagrams: 0, next: 0, settled: 0 }
    }

    fn step(&mut self, [what, _, a, b]: [u8; 4], body: &[u8]) {
        let number = self.session.next().saturating_sub(u64::from(a));
        match what % 8 {
            0 | 1 => {
                let mut packet = vec![0; self.prober.protocol.least_bytes()];
                let sender_stamp = self.prober.write(&mut packet, 0, START_NS);
                for _ in 0..=a % 16 {
                    self.session.sent(self.now_ns, self.now_ns, sender_stamp);
                }
            }
            2 | 3 => self.datagram(body),
            4 => self.datagram(&self.reply(number, a, b, body)),
            5 => {
                let passed = [Passed::Queued, Passed::Driver, Passed::Nic][usize::from(b % 3)];
                self.session.passed(number as u32, passed, self.now_ns);
            }
            6 => match self.prober.read_quoted(body) {
                Some((low, bits)) => {
                    self.session.undelivered(self.session.nearest(low, bits), Obstacle::Icmp(3, b));
                }
                None => self.session.refused(1, Obstacle::Local(b.into())),
            },
            _ => {
                self.now_ns += (i64::from(a) << 8 | i64::from(b)) * MS / 16;
                self.settle();
            }
        }
    }

    /// A reply to a probe of this session, changed here and there by the body: random bytes would never be one.
    fn reply(&self, number: u64, a: u8, b: u8, body: &[u8]) -> Vec<u8> {
        let prober = &self.prober;
        let mut packet = vec![0; prober.protocol.least_bytes()];
        // All probes have the same T1.
        let sender_stamp = prober.write(&mut packet, number, START_NS);
        let format = if b & 1 == 0 { TimeFormat::Ntp } else { TimeFormat::Ptp };
        let reply = ReflectorPacket {
            sequence: (number as u32).wrapping_sub(u32::from(b >> 4)),
            stamp: format.write(self.now_ns - i64::from(a)),
            error: ErrorEstimate::of_bound((b & 2 != 0).then_some(5), format),
            ssid: if b & 4 != 0 { 0 } else { 0x0304 },
            received: format.write(self.now_ns - 2 * i64::from(a)),
            sender_sequence: number as u32,
            sender_stamp,
            sender_error: ErrorEstimate::of_bound(None, format),
            sender_ttl: 255,
        };
        match &prober.protocol {
            Protocol::UdpEcho { .. } => {}
            Protocol::IcmpEcho => {
                let echo = icmp::Echo { reply: true, identifier: 77, sequence: number as u16 };
                echo.write(prober.version, &mut packet);
            }
            Protocol::TwampLight => assert!(twamp::write_reply(&reply, &mut packet)),
            Protocol::Stamp { key, .. } => {
                packet.truncate(stamp::base_len(key.as_ref()));
                reply.write(key.as_ref(), &mut packet).unwrap();
                let sequence = reply.sequence.wrapping_sub(u32::from(a % 4));
                let left = FollowUp { sequence, stamp: reply.stamp, by: b };
                let base = packet.len();
                tlv::append(&mut packet, kind::FOLLOW_UP, &left.write());
                packet[base] = a & 0xe0;
                if let Some(key) = key {
                    tlv::append_hmac(&mut packet, base, key);
                }
            }
        }
        for (byte, change) in packet.iter_mut().zip(body) {
            *byte ^= change;
        }
        packet
    }

    fn datagram(&mut self, bytes: &[u8]) {
        self.datagrams += 1;
        match self.prober.read(bytes, self.now_ns) {
            Ok(answer) => {
                let reply = Reply {
                    app_receive_ns: self.now_ns,
                    received_ns: Some(self.now_ns - 1),
                    sender_stamp: answer.sender_stamp,
                    far_ns: answer.far_ns,
                    clock_bound_ns: answer.clock_bound_ns,
                    far_number: answer.far_number,
                    follow_up: answer.follow_up,
                    ..Reply::default()
                };
                let number = self.session.nearest(answer.low, answer.bits);
                self.session.replied(number, &reply);
            }
            Err(why) => {
                let replies = &mut self.session.counts_mut().replies;
                replies.datagrams += 1;
                match why {
                    NoAnswer::Stray => replies.stray += 1,
                    NoAnswer::Malformed => replies.malformed += 1,
                    NoAnswer::Unauthentic => replies.unauthentic += 1,
                }
            }
        }
    }

    fn settle(&mut self) {
        while let Some(trip) = self.session.settle(self.now_ns) {
            assert_eq!(trip.number, self.next);
            self.next += 1;
            self.settled += 1;
            look_at(&trip);
        }
    }

    fn finish(mut self) {
        if self.datagrams % 2 == 0 {
            self.session.no_more();
        }
        self.settle();
        for trip in self.session.finish() {
            self.settled += 1;
            look_at(&trip);
        }
        let counts = self.session.counts();
        let (probes, replies, ways) = (counts.probes, counts.replies, counts.lost_ways);
        assert_eq!(
            probes.due,
            probes.answered
                + probes.late
                + probes.lost
                + probes.altered
                + probes.undelivered
                + probes.refused
                + probes.cut
        );
        assert_eq!(
            replies.datagrams,
            replies.first
                + replies.late
                + replies.duplicate
                + replies.stray
                + replies.altered
                + replies.malformed
                + replies.unauthentic
        );
        assert_eq!(replies.datagrams, self.datagrams);
        assert_eq!(self.settled + probes.cut, self.session.next());
        assert_eq!(ways.there + ways.back + ways.unknown, probes.lost);
        assert_eq!((replies.first, replies.late), (probes.answered, probes.late));
        if let Some(follow_up) = counts.follow_up {
            assert_eq!(follow_up.told + follow_up.untold, probes.answered);
        }
        assert!(self.session.is_idle());
    }
}

/// Times are differences or missing, whatever the far host reports.
fn look_at(trip: &RoundTrip) {
    for level in [StampLevel::Application, StampLevel::Software, StampLevel::Hardware] {
        let _ = (trip.stamps.round_trip_ns(level), trip.stamps.begin_ns(level));
    }
}
