//! Replies, refusals and counters of a reflector.

use proptest::prelude::*;
use tailtrim_roundtrip::reflect::{Arrival, Clock, Limit, Policy, Reflector, Refusal, Service};
use tailtrim_wire::stamp::{AUTHENTICATED_LEN, OPEN_LEN, ReflectorPacket, SenderPacket};
use tailtrim_wire::tlv::{self, DirectMeasurement, FollowUp, Integrity, StampedBy, kind, tlvs};
use tailtrim_wire::{ErrorEstimate, Key, TimeFormat, twamp};

const T1: i64 = 1_700_000_000_000_000_000;
const T2: i64 = T1 + 1_000;
const T3: i64 = T1 + 2_000;

fn arrival() -> Arrival {
    Arrival {
        from: "192.0.2.7:40000".parse().unwrap(),
        to: Some("198.51.100.1".parse().unwrap()),
        port: 862,
        received_ns: T2,
        by: StampedBy::Software,
        now_ns: 0,
        hops: Some(253),
        traffic_class: Some(46 << 2 | 1),
        mac: None,
        truncated: false,
    }
}

fn reflector(policy: Policy) -> Reflector {
    let policy = Policy { ports: vec![7, 862], ..policy };
    Reflector::new(policy, Clock { bound_ns: None, sent_by: StampedBy::Software }, 1)
}

fn key() -> Key {
    Key::of_bytes(b"sixteen letters!").unwrap()
}

fn request(sequence: u32, key: Option<&Key>, format: TimeFormat) -> Vec<u8> {
    let error = ErrorEstimate { synchronized: true, format, scale: 0, multiplier: 1 };
    let stamp = format.write(T1 + i64::from(sequence));
    let mut packet = vec![0; if key.is_some() { AUTHENTICATED_LEN } else { OPEN_LEN }];
    SenderPacket { sequence, stamp, error, ssid: 5 }.write(key, &mut packet).unwrap();
    packet
}

/// The reply, as it would be sent at T3.
fn reply(reflector: &mut Reflector, packet: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut packet = packet.to_vec();
    let reply = reflector.reflect(Service::Stamp, &arrival(), &mut packet)?;
    reflector.stamp(&reply, &mut packet, T3);
    Ok(packet)
}

#[test]
fn stateless_replies_copy_the_number_and_have_both_stamps() {
    for (key, format) in [(None, TimeFormat::Ntp), (Some(key()), TimeFormat::Ptp)] {
        let mut reflector = reflector(Policy { key: key.clone(), ..Policy::default() });
        let request = request(7, key.as_ref(), format);
        let answer = reply(&mut reflector, &request).unwrap();
        assert_eq!(answer.len(), request.len());
        let read = ReflectorPacket::read(key.as_ref(), &answer).unwrap();
        assert_eq!((read.sequence, read.sender_sequence, read.ssid), (7, 7, 5));
        assert_eq!(format.read(read.received, T1), Some(T2));
        assert_eq!(format.read(read.stamp, T1), Some(T3));
        assert_eq!(format.read(read.sender_stamp, T1), Some(T1 + 7));
        assert_eq!(
            (read.sender_ttl, read.error.format, read.error.synchronized),
            (253, format, false)
        );
        assert!(read.sender_error.synchronized);
    }
}

#[test]
fn stateful_replies_count_by_session_and_tell_when_the_last_one_left() {
    let mut reflector = reflector(Policy { stateful: true, ..Policy::default() });
    let mut packet = request(100, None, TimeFormat::Ntp);
    tlv::append(&mut packet, kind::FOLLOW_UP, &FollowUp::default().write());
    tlv::append(&mut packet, kind::DIRECT_MEASUREMENT, &[0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0]);
    for sequence in 0..3 {
        let mut packet = packet.clone();
        let reply = reflector.reflect(Service::Stamp, &arrival(), &mut packet).unwrap();
        assert!(reply.wants_departure());
        let read = ReflectorPacket::read(None, &packet).unwrap();
        assert_eq!((read.sequence, read.sender_sequence), (sequence, 100));
        let found: Vec<_> = tlvs(&packet[OPEN_LEN..]).collect();
        assert_eq!((found[0].flags, found[1].flags), (0, 0));
        let telemetry = FollowUp::read(found[0].value).unwrap();
        if sequence == 0 {
            assert_eq!(telemetry, FollowUp::default());
        } else {
            let left = TimeFormat::Ntp.read(telemetry.stamp, T1);
            assert_eq!(
                (telemetry.sequence, left),
                (sequence - 1, Some(T3 + i64::from(sequence - 1)))
            );
            assert_eq!(telemetry.by, StampedBy::Hardware as u8);
        }
        let counts = DirectMeasurement::read(found[1].value).unwrap();
        let expected = DirectMeasurement {
            sender_sent: 9,
            reflector_received: sequence + 1,
            reflector_sent: sequence + 1,
        };
        assert_eq!(counts, expected);
        reflector.departed(&reply, T3 + i64::from(sequence), StampedBy::Hardware);
    }
    // Another session has numbers of its own.
    let mut other = request(0, None, TimeFormat::Ntp);
    let from = "192.0.2.7:40001".parse().unwrap();
    reflector.reflect(Service::Stamp, &Arrival { from, ..arrival() }, &mut other).unwrap();
    assert_eq!(ReflectorPacket::read(None, &other).unwrap().sequence, 0);
}

#[test]
fn authenticated_tlvs_are_checked_and_signed_again() {
    let key = key();
    let with_key =
        || reflector(Policy { key: Some(key.clone()), stateful: true, ..Policy::default() });
    let mut packet = request(9, Some(&key), TimeFormat::Ntp);
    tlv::append(&mut packet, kind::CLASS_OF_SERVICE, &[0; 4]);
    tlv::append_hmac(&mut packet, AUTHENTICATED_LEN, &key);
    let answer = reply(&mut with_key(), &packet).unwrap();
    assert_eq!(ReflectorPacket::read(Some(&key), &answer).unwrap().sequence, 0);
    assert_eq!(tlv::integrity(&answer, AUTHENTICATED_LEN, Some(&key)), Integrity::Right);
    assert!(tlvs(&answer[AUTHENTICATED_LEN..]).all(|tlv| tlv.flags == 0));
    // A changed TLV: none is answered, all are marked.
    packet[AUTHENTICATED_LEN + 4] ^= 0x80;
    let answer = reply(&mut with_key(), &packet).unwrap();
    assert!(tlvs(&answer[AUTHENTICATED_LEN..]).all(|tlv| tlv.flags == tlv::INTEGRITY));
    assert!(ReflectorPacket::read(Some(&key), &answer).is_ok());
    // Without HMAC likewise.
    let mut packet = request(9, Some(&key), TimeFormat::Ntp);
    tlv::append(&mut packet, kind::CLASS_OF_SERVICE, &[0; 4]);
    let answer = reply(&mut with_key(), &packet).unwrap();
    assert!(tlvs(&answer[AUTHENTICATED_LEN..]).all(|tlv| tlv.flags == tlv::INTEGRITY));
}

#[test]
fn replayed_and_forged_packets_get_nothing() {
    let key = key();
    let mut reflector = reflector(Policy { key: Some(key.clone()), ..Policy::default() });
    let packet = request(3, Some(&key), TimeFormat::Ntp);
    assert!(reply(&mut reflector, &packet).is_ok());
    for _ in 0..5 {
        assert_eq!(reply(&mut reflector, &packet), Err(Refusal::Replayed));
    }
    let other = Key::of_bytes(b"another sixteen!").unwrap();
    assert_eq!(
        reply(&mut reflector, &request(4, Some(&other), TimeFormat::Ntp)),
        Err(Refusal::Hmac)
    );
    assert_eq!(reply(&mut reflector, &request(4, None, TimeFormat::Ntp)), Err(Refusal::Short));
    // A reply of a reflector is no request.
    let answer = reply(&mut reflector, &request(5, Some(&key), TimeFormat::Ntp)).unwrap();
    assert_eq!(reply(&mut reflector, &answer), Err(Refusal::Reply));
    let counters = reflector.counters();
    assert_eq!(counters.refused.of(Refusal::Hmac), 1);
    assert!(counters.refused.of(Refusal::Replayed) >= 5);
    assert!(counters.add_up());
}

#[test]
fn who_is_not_to_be_answered_is_not() {
    let policy = Policy {
        allowed: vec!["192.0.2.0/24".parse().unwrap()],
        limit: Some(Limit::new(10, 2)),
        ..Policy::default()
    };
    let mut reflector = reflector(policy);
    let base = arrival();
    let from = |text: &str| Arrival { from: text.parse().unwrap(), ..base };
    for (arrival, service, bytes, expected) in [
        (Arrival { truncated: true, ..base }, Service::Echo, 9, Some(Refusal::TooLong)),
        (from("192.0.2.7:1023"), Service::Echo, 9, Some(Refusal::SourcePort)),
        (from("192.0.2.7:862"), Service::Echo, 9, Some(Refusal::SourcePort)),
        (from("224.0.0.1:5000"), Service::Echo, 9, Some(Refusal::Address)),
        (from("255.255.255.255:5000"), Service::Echo, 9, Some(Refusal::Address)),
        (from("0.0.0.0:5000"), Service::Echo, 9, Some(Refusal::Address)),
        (from("[ff02::1]:5000"), Service::Echo, 9, Some(Refusal::Address)),
        (
            Arrival { to: Some("ff02::1".parse().unwrap()), ..base },
            Service::Echo,
            9,
            Some(Refusal::Address),
        ),
        (from("192.0.3.7:5000"), Service::Echo, 9, Some(Refusal::NotAllowed)),
        (from("[2001:db8::1]:5000"), Service::Echo, 9, Some(Refusal::NotAllowed)),
        (base, Service::Echo, 0, None),
        (base, Service::Twamp, 40, Some(Refusal::Short)),
        // Two at once, whatever their outcome.
        (base, Service::Echo, 9, Some(Refusal::Rate)),
        (from("192.0.2.8:5000"), Service::Stamp, 43, Some(Refusal::Short)),
        (from("192.0.2.8:5000"), Service::Twamp, 41, None),
    ] {
        let mut packet = vec![1; bytes];
        let reply = reflector.reflect(service, &arrival, &mut packet);
        assert_eq!(reply.err(), expected, "{arrival:?} {bytes}");
    }
    let counters = *reflector.counters();
    assert!(counters.add_up());
    assert_eq!((counters.received, counters.reflected, counters.refused.total()), (15, 2, 13));
    reflector.unsent();
    let counters = *reflector.counters();
    assert!(counters.add_up());
    assert_eq!((counters.reflected, counters.unsent), (1, 1));
    let text = serde_json::to_string(&counters).unwrap();
    assert!(text.contains(r#""refused":{"too_long":1,"source_port":2,"#), "{text}");
}

#[test]
fn echoes_come_back_unchanged_and_twamp_keeps_its_padding() {
    let mut reflector = reflector(Policy::default());
    let mut packet = b"anything at all".to_vec();
    let reply = reflector.reflect(Service::Echo, &arrival(), &mut packet).unwrap();
    reflector.stamp(&reply, &mut packet, T3);
    assert_eq!(packet, b"anything at all");
    // The class of the request, without its ECN bits.
    assert_eq!((reply.traffic_class, reply.hops), (46 << 2, 63));
    let mut packet = vec![0xaa; 60];
    let error =
        ErrorEstimate { synchronized: false, format: TimeFormat::Ntp, scale: 0, multiplier: 1 };
    twamp::SenderPacket { sequence: 3, stamp: 8, error }.write(&mut packet);
    let reply = reflector.reflect(Service::Twamp, &arrival(), &mut packet).unwrap();
    reflector.stamp(&reply, &mut packet, T3);
    let read = twamp::read_reply(&packet).unwrap();
    assert_eq!(
        (read.sequence, read.sender_sequence, read.sender_stamp, read.sender_ttl),
        (3, 3, 8, 253)
    );
    assert_eq!(TimeFormat::Ntp.read(read.stamp, T1), Some(T3));
    assert_eq!(packet[41..], [0xaa; 19]);
}

#[test]
fn stateful_twamp_has_numbers_of_its_own() {
    // RFC 5357 section 4.2.1: they start with 0, independent of the requests' numbers.
    let mut reflector = reflector(Policy { stateful: true, ..Policy::default() });
    let error =
        ErrorEstimate { synchronized: false, format: TimeFormat::Ntp, scale: 0, multiplier: 1 };
    for expected in 0..3 {
        let mut packet = vec![0; 50];
        twamp::SenderPacket { sequence: 90 + expected, stamp: 8, error }.write(&mut packet);
        assert_eq!(
            reflector.reflect(Service::Twamp, &arrival(), &mut packet[..40]).err(),
            Some(Refusal::Short)
        );
        reflector.reflect(Service::Twamp, &arrival(), &mut packet).unwrap();
        let read = twamp::read_reply(&packet).unwrap();
        assert_eq!((read.sequence, read.sender_sequence), (expected, 90 + expected));
    }
    // The same client at another address of this host is another session.
    let mut packet = vec![0; 50];
    let to = Some("198.51.100.2".parse().unwrap());
    reflector.reflect(Service::Twamp, &Arrival { to, ..arrival() }, &mut packet).unwrap();
    assert_eq!(twamp::read_reply(&packet).unwrap().sequence, 0);
}

proptest! {
    #[test]
    fn invented_sources_cost_bounded_memory_and_each_is_counted(
        sources in prop::collection::vec(any::<(u32, u16)>(), 1..500), rate in 1_u32..5,
    ) {
        let policy = Policy { limit: Some(Limit::new(rate, 1)), stateful: true, ..Policy::default() };
        let mut reflector = reflector(policy);
        let count = sources.len() as u64;
        for (ip, port) in sources {
            let from = (std::net::Ipv4Addr::from_bits(ip), port).into();
            let mut packet = request(0, None, TimeFormat::Ntp);
            let _ = reflector.reflect(Service::Stamp, &Arrival { from, ..arrival() }, &mut packet);
        }
        prop_assert!(reflector.counters().add_up());
        prop_assert_eq!(reflector.counters().received, count);
    }
}
