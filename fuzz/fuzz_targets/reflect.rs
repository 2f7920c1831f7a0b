//! A reflector under a sequence of packets from anybody: nothing crashes, every packet is counted once, a
//! reply is as long as its request, and what is refused stays as it was. A reply is no request to any other
//! reflector, and echoes keep to the budget and the TTL that end loops.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tailtrim_roundtrip::reflect::{Arrival, Class, Clock, Limit, Policy, Reflector, Refusal, Service};
use tailtrim_wire::stamp::{AUTHENTICATED_LEN, OPEN_LEN, ReflectorPacket, SenderPacket, is_reply};
use tailtrim_wire::tlv::{self, StampedBy};
use tailtrim_wire::{EchoProbe, ErrorEstimate, Key, TimeFormat, icmp, twamp};

const COOKIE: [u8; 8] = *b"8 bytes!";

fuzz_target!(|data: &[u8]| {
    let [kind, more, packets @ ..] = data else { return };
    parse(packets);
    let key = (kind & 1 != 0).then(|| Key::of_bytes(b"sixteen letters!").unwrap());
    let policy = Policy {
        ports: vec![7, 862],
        allowed: if kind & 2 != 0 { vec!["10.0.0.0/8".parse().unwrap()] } else { Vec::new() },
        limit: (kind & 4 != 0).then(|| Limit::new(1_000, 2)),
        key: key.clone(),
        stateful: kind & 8 != 0,
        class: if kind & 16 != 0 { Class::Fixed(46) } else { Class::Mirror },
        repeats: (more & 1 == 0).then(|| Limit::new(100, 4)),
        cookie: (more & 2 != 0).then_some(COOKIE),
        remembered: 16,
    };
    let clock = Clock { bound_ns: (kind & 32 != 0).then_some(1_000), sent_by: StampedBy::Software };
    let endless = more & 1 != 0;
    let mut others = [None, key.clone()].map(|key| {
        let policy = Policy { ports: vec![8620], key, remembered: 16, ..Policy::default() };
        Reflector::new(policy, clock, 9)
    });
    let mut reflector = Reflector::new(policy, clock, 7);
    let mut rest = packets;
    let mut count = 0;
    while let Some((head, tail)) = rest.split_first_chunk::<8>() {
        let length = usize::from(head[0]).min(tail.len());
        let (body, tail) = tail.split_at(length);
        rest = tail;
        count += 1;
        one(&mut reflector, &mut others, key.as_ref(), endless, *head, body);
    }
    let counters = reflector.counters();
    assert!(counters.add_up());
    assert_eq!(counters.received, count);
    assert!(others.iter().all(|other| other.counters().add_up()));
});

/// Everything that reads packets.
fn parse(packet: &[u8]) {
    let key = Key::of_bytes(b"sixteen letters!").unwrap();
    let _ = (SenderPacket::read(None, packet), SenderPacket::read(Some(&key), packet));
    if let Ok(reply) = ReflectorPacket::read(None, packet) {
        let mut again = packet[..OPEN_LEN].to_vec();
        reply.write(None, &mut again).unwrap();
        assert_eq!(ReflectorPacket::read(None, &again), Ok(reply));
        let _ = reply.error.bound_ns();
    }
    let _ =
        (twamp::SenderPacket::read(packet), twamp::read_reply(packet), EchoProbe::decode(packet));
    for version in [icmp::Version::V4, icmp::Version::V6] {
        let _ = icmp::Echo::read(version, packet);
    }
    let _ = (tlv::integrity(packet, OPEN_LEN, None), tlv::integrity(packet, OPEN_LEN, Some(&key)));
    let total: usize = tlv::tlvs(packet).map(|tlv| tlv::HEADER_LEN + tlv.value.len()).sum();
    assert!(total <= packet.len());
    if let Some(bytes) = packet.first_chunk::<8>() {
        let stamp = u64::from_be_bytes(*bytes);
        for format in [TimeFormat::Ntp, TimeFormat::Ptp] {
            if let Some(ns) = format.read(stamp, i64::MAX / 2) {
                assert_eq!(format.read(format.write(ns), ns), Some(ns));
            }
        }
        assert_eq!(ErrorEstimate::read([bytes[0], bytes[1]]).write(), [bytes[0], bytes[1]]);
    }
}

/// No reflector of test packets answers a reply, with the same key or without one, and however it came.
fn feed_back(others: &mut [Reflector; 2], arrival: &Arrival, answer: &[u8], signed: bool) {
    let arrival = Arrival { from: "192.0.2.9:50000".parse().unwrap(), truncated: false, to: None, ..*arrival };
    let other = &mut others[usize::from(signed)];
    let services: &[Service] = if signed { &[Service::Stamp] } else { &[Service::Stamp, Service::Twamp] };
    for service in services {
        let refused = other.reflect(*service, &arrival, &mut answer.to_vec()).err();
        // A reply of TWAMP-Light may be shorter than a request of STAMP.
        assert!(matches!(refused, Some(Refusal::Reply | Refusal::Short)), "{service:?}: {refused:?}");
        assert!(refused == Some(Refusal::Reply) || answer.len() < OPEN_LEN);
    }
}

fn one(
    reflector: &mut Reflector, others: &mut [Reflector; 2], key: Option<&Key>, endless: bool, head: [u8; 8], body: &[u8],
) {
    let [_, how, a, b, c, d, port, time] = head;
    let address: IpAddr = if how & 1 == 0 {
        Ipv4Addr::new(a, b, c, d).into()
    } else {
        Ipv6Addr::from([a, b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, c, d]).into()
    };
    let service =
        [Service::Stamp, Service::Echo, Service::Twamp, Service::Stamp][usize::from(how >> 1 & 3)];
    let mut packet = body.to_vec();
    if how & 24 == 24 && service == Service::Echo {
        packet.splice(..0, COOKIE);
    }
    // A signed packet: random bytes would never be one.
    if how & 8 != 0 && packet.len() >= AUTHENTICATED_LEN {
        if let Some(key) = key {
            let (signed, hmac) = packet[..AUTHENTICATED_LEN].split_at_mut(AUTHENTICATED_LEN - 16);
            hmac.copy_from_slice(&key.sign(&[signed]));
            if how & 16 != 0 {
                tlv::append_hmac(&mut packet, AUTHENTICATED_LEN, key);
            }
        }
    }
    let arrival = Arrival {
        from: (address, if how & 32 == 0 { u16::from(port) | 0x8000 } else { u16::from(port) * 4 })
            .into(),
        to: (how & 64 != 0).then_some(IpAddr::V4(Ipv4Addr::new(d, c, b, a))),
        port: 862,
        received_ns: i64::from(time) << (how & 31),
        by: StampedBy::Software,
        now_ns: i64::from(time) * 100_000,
        hops: Some(time),
        traffic_class: Some(port),
        mac: (how & 4 != 0).then_some([a, b, c, d, port, time]),
        truncated: how & 128 != 0 && time & 1 == 1,
    };
    let before = packet.clone();
    match reflector.reflect(service, &arrival, &mut packet) {
        Ok(reply) => {
            // T3 is behind T2, within the time that a reply waits.
            reflector.stamp(&reply, &mut packet, arrival.received_ns.saturating_add(i64::from(time) * 30_000_000));
            assert!(arrival.from.port() >= 1_024 && !arrival.truncated);
            if service == Service::Stamp {
                let answer = ReflectorPacket::read(key, &packet).expect("a reply that can be read");
                let request = SenderPacket::read(key, &before).expect("only of what can be read");
                assert_eq!(
                    (answer.sender_sequence, answer.sender_stamp, answer.ssid),
                    (request.sequence, request.stamp, request.ssid)
                );
            }
            if service == Service::Echo {
                assert_eq!(packet, before);
                // Lower than the request's, except at the end of a traceroute.
                assert!((1..64).contains(&reply.hops) && (reply.hops < time || (reply.hops == 32 && time <= 32)));
            } else {
                assert!(!is_reply(key.filter(|_| service == Service::Stamp), &before));
                // A reply can be recognised by a request with an error estimate and a TTL, and by a T2 that is not
                // zero.
                let signed = key.is_some() && service == Service::Stamp;
                let estimate = if signed { 25 } else { 13 };
                if before[estimate] != 0 && time != 0 && arrival.received_ns > 0 {
                    feed_back(others, &arrival, &packet, signed);
                }
            }
            if time & 2 != 0 {
                reflector.departed(&reply, i64::from(time), StampedBy::Hardware);
            }
            if time & 4 != 0 {
                reflector.unsent();
            }
        }
        Err(refusal) => {
            assert_eq!(packet, before, "refused as {refusal:?}");
            assert!(refusal != Refusal::Hmac || key.is_some());
            assert!(refusal != Refusal::Cookie || (service == Service::Echo && !before.starts_with(&COOKIE)));
            // Without a budget only TTLs end.
            assert!(refusal != Refusal::Loop || service == Service::Echo && (!endless || time <= 1));
            assert!(refusal != Refusal::Reply || service != Service::Echo);
        }
    }
    // In any case, no client gets more bytes than it sent.
    assert_eq!(packet.len(), before.len());
}
