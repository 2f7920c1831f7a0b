//! Two reflectors, a network that loses nothing, and a client that forges sender addresses: it comes to rest.
//!
//! The client sends datagrams to one reflector with the address and port of the other one. Without rules against
//! that, one datagram would go round for ever.

use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use tailtrim_roundtrip::reflect::{Arrival, Clock, Policy, Reflector, Service};
use tailtrim_wire::stamp::{AUTHENTICATED_LEN, OPEN_LEN, ReflectorPacket, SenderPacket};
use tailtrim_wire::tlv::StampedBy;
use tailtrim_wire::{ErrorEstimate, Key, TimeFormat, twamp};

const SERVICES: [Service; 3] = [Service::Echo, Service::Stamp, Service::Twamp];
/// When the simulation begins, in ns since 1970.
const BEGIN_NS: i64 = 1_800_000_000_000_000_000;
const MS: i64 = 1_000_000;
/// Packets that one forged datagram may cause, at most.
const MOST: usize = 200;
/// Most packets between two reflectors of tailtrim: TTL from 64 on, and twice a payload that is new with a low TTL.
const MOST_OF_OURS: usize = 70;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Datagram {
    at_ns: i64,
    from: usize,
    hops: u8,
    payload: Vec<u8>,
}

/// Program that answers at the address.
enum Answering {
    Ours(Box<Reflector>, Service),
    /// A foreign echo server, which sends with a TTL of 64.
    Foreign,
}

fn address(side: usize) -> SocketAddr {
    ["10.9.0.1:7007", "10.9.0.2:5007"][side].parse().unwrap()
}

fn ours(service: Service, side: usize, policy: &Policy) -> Answering {
    let policy = Policy { ports: vec![address(side).port()], ..policy.clone() };
    let clock = Clock { bound_ns: None, sent_by: StampedBy::Software };
    Answering::Ours(Box::new(Reflector::new(policy, clock, side as u64)), service)
}

/// The reply, and its TTL.
fn answer(who: &mut Answering, side: usize, mut datagram: Datagram) -> Option<Datagram> {
    let now_ns = datagram.at_ns;
    if let Answering::Ours(reflector, service) = who {
        let arrival = Arrival {
            from: address(datagram.from),
            to: Some(address(side).ip()),
            port: address(side).port(),
            received_ns: BEGIN_NS + now_ns,
            by: StampedBy::Software,
            now_ns,
            hops: Some(datagram.hops),
            traffic_class: None,
            mac: None,
            truncated: false,
        };
        let reply = reflector.reflect(*service, &arrival, &mut datagram.payload).ok()?;
        reflector.stamp(&reply, &mut datagram.payload, BEGIN_NS + now_ns + 1_000);
        datagram.hops = reply.hops;
    } else {
        datagram.hops = 64;
    }
    datagram.from = side;
    Some(datagram)
}

/// Delivers until nothing is under way, or until so many packets or this time. Returns packets, and whether it rests.
fn run(
    sides: &mut [Answering; 2],
    forged: Vec<Datagram>,
    delay_ns: i64,
    routers: u8,
    most: usize,
    until_ns: i64,
) -> (usize, bool) {
    let mut under_way: BinaryHeap<_> = forged.into_iter().map(Reverse).collect();
    let mut packets = 0;
    while let Some(Reverse(datagram)) = under_way.pop() {
        if packets >= most || datagram.at_ns > until_ns {
            return (packets, false);
        }
        packets += 1;
        let side = 1 - datagram.from;
        if let Some(mut reply) = answer(&mut sides[side], side, datagram)
            && let Some(hops) = reply.hops.checked_sub(routers)
            && hops > 0
        {
            reply.at_ns += delay_ns;
            reply.hops = hops;
            under_way.push(Reverse(reply));
        }
    }
    (packets, true)
}

/// Anything, requests and replies of test packets with anything in their fields, and few that are often the same.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..140);
    let near = any::<[u8; 2]>().prop_map(|[near, other]| {
        let format = if other & 1 == 0 { TimeFormat::Ntp } else { TimeFormat::Ptp };
        let stamp = |seconds: u8| format.write(BEGIN_NS + i64::from(seconds) * 1_000 * MS);
        (format, stamp(near), stamp(other))
    });
    let fields = (near, any::<(u32, u16, u8, u8)>(), any::<bool>(), 0..60_usize).prop_map(
        |((format, one, other), (sequence, ssid, multiplier, sender_ttl), signs, padding)| {
            let error = ErrorEstimate { synchronized: true, format, scale: 0, multiplier };
            let key = signs.then(key);
            let mut packet = vec![0; if signs { AUTHENTICATED_LEN } else { OPEN_LEN } + padding];
            if sender_ttl % 2 == 0 {
                let request = SenderPacket { sequence, stamp: one, error, ssid };
                request.write(key.as_ref(), &mut packet).unwrap();
            } else {
                let reply = ReflectorPacket {
                    sequence,
                    stamp: one,
                    error,
                    ssid,
                    received: other,
                    sender_sequence: sequence,
                    sender_stamp: other,
                    sender_error: error,
                    sender_ttl,
                };
                reply.write(key.as_ref(), &mut packet).unwrap();
            }
            packet
        },
    );
    let few = (0..3_u8).prop_map(|letter| vec![letter; 50]);
    prop_oneof![bytes, fields, few]
}

fn forged(to_first: bool, most: usize) -> impl Strategy<Value = Vec<Datagram>> {
    let side = if to_first { any::<bool>().boxed() } else { Just(false).boxed() };
    let one = (0..50 * MS, side, 1..=255_u8, payload()).prop_map(
        |(at_ns, from_second, hops, payload)| Datagram {
            at_ns,
            from: usize::from(from_second),
            hops,
            payload,
        },
    );
    prop::collection::vec(one, 1..=most)
}

fn key() -> Key {
    Key::of_bytes(b"sixteen letters!").unwrap()
}

fn policies() -> impl Strategy<Value = Policy> {
    any::<[bool; 3]>().prop_map(|[keyed, stateful, unlimited]| Policy {
        key: keyed.then(key),
        stateful,
        repeats: if unlimited { None } else { Policy::default().repeats },
        remembered: 4_096,
        ..Policy::default()
    })
}

/// From a µs to ten seconds, each order of magnitude as often as another.
fn delays(most_ns: i64) -> impl Strategy<Value = i64> {
    (0.0..1.0_f64).prop_map(move |share| (1_000.0 * (most_ns as f64 / 1_000.0).powf(share)) as i64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn two_of_ours_come_to_rest(
        services in prop::array::uniform2(0..3_usize), policy in policies(),
        forged in forged(true, 40), delay_ns in delays(10_000 * MS), routers in 0..3_u8,
    ) {
        let mut sides = [0, 1].map(|side| ours(SERVICES[services[side]], side, &policy));
        let most = MOST_OF_OURS * forged.len();
        let (packets, rests) = run(&mut sides, forged, delay_ns, routers, most, i64::MAX);
        prop_assert!(rests, "{packets} packets, {services:?}");
        for side in &sides {
            if let Answering::Ours(reflector, _) = side {
                prop_assert!(reflector.counters().add_up());
            }
        }
    }

    /// A loop whose rounds take at most 3.5 ms each: 285 a second.
    #[test]
    fn a_fast_loop_with_a_foreign_echo_server_comes_to_rest(
        service in 0..3_usize, policy in policies(),
        forged in forged(false, 40), delay_ns in delays(7 * MS / 4), routers in 0..3_u8,
    ) {
        let policy = Policy { repeats: Policy::default().repeats, ..policy };
        let mut sides = [Answering::Foreign, ours(SERVICES[service], 1, &policy)];
        let most = MOST * forged.len();
        let (packets, rests) = run(&mut sides, forged, delay_ns, routers, most, i64::MAX);
        prop_assert!(rests, "{packets} packets");
    }

    /// A slower one may go on, but not faster than repeats are answered: two packets for each of 100 a second.
    #[test]
    fn a_slow_loop_with_a_foreign_echo_server_keeps_to_the_limit(
        forged in forged(false, 40), delay_ns in delays(10_000 * MS),
    ) {
        let mut sides = [Answering::Foreign, ours(Service::Echo, 1, &Policy::default())];
        let (seconds, count) = (20, forged.len());
        let (packets, _) = run(&mut sides, forged, delay_ns, 0, usize::MAX, seconds * 1_000 * MS);
        prop_assert!(packets <= 2 * (count + 64 + 100 * (seconds as usize + 1)), "{packets}");
    }
}

#[test]
fn one_forged_datagram_between_all_services_causes_few_packets() {
    for (first, second) in SERVICES.iter().flat_map(|a| SERVICES.map(|b| (*a, b))) {
        for delay_ns in [1_000, MS, 100 * MS, 10_000 * MS] {
            let mut sides = [(first, 0), (second, 1)]
                .map(|(service, side)| ours(service, side, &Policy::default()));
            let mut payload = vec![0; OPEN_LEN];
            let error = ErrorEstimate::of_bound(None, TimeFormat::Ntp);
            let stamp = TimeFormat::Ntp.write(BEGIN_NS);
            twamp::SenderPacket { sequence: 1, stamp, error }.write(&mut payload);
            let forged = vec![Datagram { at_ns: 0, from: 0, hops: 64, payload }];
            let (packets, rests) = run(&mut sides, forged, delay_ns, 0, MOST, i64::MAX);
            // The forged one, its reply, both echoed at most; or whatever TTLs leave of a loop of echoes.
            let most = if (first, second) == (Service::Echo, Service::Echo) { 65 } else { 4 };
            assert!(rests && packets <= most, "{first:?} {second:?}: {packets}");
        }
    }
}
