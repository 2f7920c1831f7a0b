//! The packets of round trips, byte by byte as the RFCs draw them, and under any bytes.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use proptest::prelude::*;
use tailtrim_wire::stamp::{
    AUTHENTICATED_LEN, OPEN_LEN, ReflectorPacket, SenderPacket, StampError, is_reply, restamp,
};
use tailtrim_wire::tlv::{
    self, ClassOfService, DirectMeasurement, FollowUp, Integrity, kind, tlvs,
};
use tailtrim_wire::{EchoProbe, ErrorEstimate, Key, TimeFormat, icmp, twamp};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn error(scale: u8, multiplier: u8) -> ErrorEstimate {
    ErrorEstimate { synchronized: true, format: TimeFormat::Ntp, scale, multiplier }
}

fn sender() -> SenderPacket {
    SenderPacket { sequence: 7, stamp: 0x83aa_7e80_8000_0000, error: error(4, 3), ssid: 0xbeef }
}

fn reflector() -> ReflectorPacket {
    ReflectorPacket {
        sequence: 9,
        stamp: 0x83aa_7e81_4000_0000,
        error: ErrorEstimate {
            synchronized: false,
            format: TimeFormat::Ptp,
            scale: 1,
            multiplier: 2,
        },
        ssid: 0xbeef,
        received: 0x83aa_7e81_2000_0000,
        sender_sequence: 7,
        sender_stamp: 0x83aa_7e80_8000_0000,
        sender_error: error(4, 3),
        sender_ttl: 254,
    }
}

fn key() -> Key {
    Key::of_bytes(&[0x0b; 20]).unwrap()
}

/// RFC 8762 section 4.2.1, figure 2, with the session identifier of RFC 8972 section 3, figure 1.
const SENDER_OPEN: &str = "00000007 83aa7e80 80000000 8403 beef \
    00000000 00000000 00000000 00000000 00000000 00000000 00000000";

/// RFC 8762 section 4.3.1, figure 4, with RFC 8972 section 3, figure 2.
const REFLECTOR_OPEN: &str = "00000009 83aa7e81 40000000 4102 beef 83aa7e81 20000000 \
    00000007 83aa7e80 80000000 8403 0000 fe 000000";

/// RFC 8762 section 4.2.2, figure 3, with RFC 8972 figure 3, without the HMAC.
const SENDER_SIGNED: &str = "00000007 00000000 00000000 00000000 83aa7e80 80000000 8403 beef \
    00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 \
    00000000 00000000 00000000 00000000 00000000 00000000 00000000";

/// RFC 8762 section 4.3.2, figure 5, with RFC 8972 figure 4, without the HMAC.
const REFLECTOR_SIGNED: &str = "00000009 00000000 00000000 00000000 83aa7e81 40000000 4102 beef 00000000 \
    83aa7e81 20000000 00000000 00000000 00000007 00000000 00000000 00000000 \
    83aa7e80 80000000 8403 000000000000 fe 000000 00000000 00000000 00000000";

#[test]
fn unauthenticated_packets_are_as_drawn() {
    let mut packet = vec![0xff; OPEN_LEN];
    sender().write(None, &mut packet).unwrap();
    assert_eq!(packet, bytes(SENDER_OPEN));
    assert_eq!(SenderPacket::read(None, &packet), Ok(sender()));
    packet.fill(0xff);
    reflector().write(None, &mut packet).unwrap();
    assert_eq!(packet, bytes(REFLECTOR_OPEN));
    assert_eq!(ReflectorPacket::read(None, &packet), Ok(reflector()));
    let short = StampError::Short { bytes: 43, least: 44 };
    assert_eq!(SenderPacket::read(None, &packet[..43]), Err(short));
    assert_eq!(sender().write(None, &mut packet[..43]), Err(short));
    assert!(short.to_string().ends_with("43 bytes, expected 44 or more"), "{short}");
}

#[test]
fn authenticated_packets_are_as_drawn() {
    let key = key();
    let mut packet = vec![0xff; AUTHENTICATED_LEN];
    sender().write(Some(&key), &mut packet).unwrap();
    assert_eq!(packet[..96], bytes(SENDER_SIGNED));
    // HMAC-SHA-256 with the key 0b0b…0b over the 96 bytes, its first half (by Python's hmac).
    assert_eq!(packet[96..], bytes(SENDER_HMAC));
    assert_eq!(SenderPacket::read(Some(&key), &packet), Ok(sender()));
    packet.fill(0xff);
    reflector().write(Some(&key), &mut packet).unwrap();
    assert_eq!(packet[..96], bytes(REFLECTOR_SIGNED));
    assert_eq!(packet[96..], bytes(REFLECTOR_HMAC));
    assert_eq!(ReflectorPacket::read(Some(&key), &packet), Ok(reflector()));
    restamp(Some(&key), &mut packet, 1);
    let later = ReflectorPacket { stamp: 1, ..reflector() };
    assert_eq!(ReflectorPacket::read(Some(&key), &packet), Ok(later));
    for bit in 0..AUTHENTICATED_LEN * 8 {
        packet[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(ReflectorPacket::read(Some(&key), &packet), Err(StampError::Hmac), "bit {bit}");
        packet[bit / 8] ^= 1 << (bit % 8);
    }
}

const SENDER_HMAC: &str = "161d39b6750666ca8d5852009cb54e5c";
const REFLECTOR_HMAC: &str = "dd7fe8aff5023d931d73197f3b21f3d9";

#[test]
fn twamp_light_is_as_drawn() {
    // RFC 5357 section 4.1.2: number, stamp, error estimate, padding.
    let mut packet = vec![0xaa; 50];
    let request = twamp::SenderPacket { sequence: 7, stamp: sender().stamp, error: error(4, 3) };
    request.write(&mut packet);
    assert_eq!(packet[..14], bytes("00000007 83aa7e80 80000000 8403"));
    assert_eq!(packet[14..], [0xaa; 36]);
    assert_eq!(twamp::SenderPacket::read(&packet), Some(request));
    assert_eq!(twamp::SenderPacket::read(&packet[..13]), None);
    // RFC 5357 section 4.2.1: 41 bytes, then padding.
    assert!(twamp::write_reply(&reflector(), &mut packet));
    let without_session = REFLECTOR_OPEN.replace("beef", "0000");
    assert_eq!(packet[..41], bytes(&without_session)[..41]);
    assert_eq!(packet[41..], [0xaa; 9]);
    assert_eq!(twamp::read_reply(&packet), Some(ReflectorPacket { ssid: 0, ..reflector() }));
    assert_eq!(twamp::read_reply(&packet[..40]), None);
    assert!(!twamp::write_reply(&reflector(), &mut packet[..40]));
}

#[test]
fn tlvs_are_as_drawn() {
    let mut packet = bytes(SENDER_OPEN);
    // RFC 8972 section 4, figure 5; sections 4.1, 4.4 (figure 11), 4.5 (12), 4.7 (14).
    tlv::append(&mut packet, kind::EXTRA_PADDING, &[0x5a; 3]);
    let class = ClassOfService { wanted: 46, seen: 0, ecn: 0, refused: 0 };
    tlv::append(&mut packet, kind::CLASS_OF_SERVICE, &class.write());
    let counts = DirectMeasurement { sender_sent: 1, reflector_received: 2, reflector_sent: 3 };
    tlv::append(&mut packet, kind::DIRECT_MEASUREMENT, &counts.write());
    let telemetry = FollowUp { sequence: 5, stamp: 0x0102_0304_0506_0708, by: 2 };
    tlv::append(&mut packet, kind::FOLLOW_UP, &telemetry.write());
    assert_eq!(
        packet[OPEN_LEN..],
        bytes(
            "80 01 0003 5a5a5a 80 04 0004 b8000000 80 05 000c 00000001 00000002 00000003 \
             80 07 0010 00000005 01020304 05060708 02000000"
        )
    );
    let found: Vec<_> =
        tlvs(&packet[OPEN_LEN..]).map(|tlv| (tlv.kind, tlv.at, tlv.whole)).collect();
    assert_eq!(found, [(1, 0, true), (4, 7, true), (5, 15, true), (7, 31, true)]);
    assert_eq!(ClassOfService::read(&class.write()), Some(class));
    let seen = ClassOfService { wanted: 1, seen: 46, ecn: 3, refused: 1 };
    assert_eq!(seen.write(), [0b0000_0110, 0b1110_1101, 0, 0]);
    assert_eq!(ClassOfService::read(&seen.write()), Some(seen));
    assert_eq!(DirectMeasurement::read(&counts.write()), Some(counts));
    assert_eq!(FollowUp::read(&telemetry.write()), Some(telemetry));
    assert_eq!(FollowUp::read(&[0; 15]), None);
}

#[test]
fn the_hmac_of_tlvs_covers_number_and_tlvs() {
    let key = key();
    let mut packet = bytes(SENDER_OPEN);
    assert_eq!(tlv::integrity(&packet, OPEN_LEN, Some(&key)), Integrity::Absent);
    tlv::append(&mut packet, kind::CLASS_OF_SERVICE, &[0; 4]);
    tlv::append_hmac(&mut packet, OPEN_LEN, &key);
    let covered = bytes("00000007 80040004 00000000");
    assert_eq!(packet[packet.len() - 16..], key.sign(&[&covered]));
    assert_eq!(tlv::integrity(&packet, OPEN_LEN, Some(&key)), Integrity::Right);
    // Only padding may stand behind it.
    let mut padded = packet.clone();
    tlv::append(&mut padded, kind::EXTRA_PADDING, &[1; 9]);
    assert_eq!(tlv::integrity(&padded, OPEN_LEN, Some(&key)), Integrity::Right);
    tlv::append(&mut padded, kind::CLASS_OF_SERVICE, &[0; 4]);
    assert_eq!(tlv::integrity(&padded, OPEN_LEN, Some(&key)), Integrity::Wrong);
    // T1 is not covered: it may be written last.
    packet[5] ^= 1;
    assert_eq!(tlv::integrity(&packet, OPEN_LEN, Some(&key)), Integrity::Right);
    packet[OPEN_LEN + 5] ^= 1;
    assert_eq!(tlv::integrity(&packet, OPEN_LEN, Some(&key)), Integrity::Wrong);
}

#[test]
fn a_tlv_that_does_not_fit_is_the_last() {
    let found: Vec<_> = tlvs(&[0x80, 1, 0, 9, 1, 2]).collect();
    assert_eq!((found.len(), found[0].whole, found[0].value), (1, false, &[1, 2][..]));
    assert_eq!(tlvs(&[0x80, 1, 0]).count(), 0);
    assert_eq!(tlvs(&[0x80, 1, 0, 0, 0x80]).count(), 1);
}

proptest! {
    #[test]
    fn any_bytes_can_be_read(packet in prop::collection::vec(any::<u8>(), 0..300)) {
        let key = key();
        for key in [None, Some(&key)] {
            let _ = SenderPacket::read(key, &packet);
            let _ = ReflectorPacket::read(key, &packet);
        }
        let _ = (twamp::SenderPacket::read(&packet), twamp::read_reply(&packet));
        let _ = EchoProbe::decode(&packet);
        for version in [icmp::Version::V4, icmp::Version::V6] {
            let _ = icmp::Echo::read(version, &packet);
        }
        let _ = tlv::integrity(&packet, OPEN_LEN, Some(&key));
        let total: usize = tlvs(&packet).map(|tlv| tlv::HEADER_LEN + tlv.value.len()).sum();
        prop_assert!(total <= packet.len());
    }

    #[test]
    fn packets_come_back(sequence: u32, stamp: u64, error: [u8; 2], ssid: u16, ttl: u8, received: u64) {
        let key = key();
        let error = ErrorEstimate::read(error);
        for key in [None, Some(&key)] {
            let request = SenderPacket { sequence, stamp, error, ssid };
            let mut packet = vec![0; 120];
            request.write(key, &mut packet).unwrap();
            prop_assert_eq!(SenderPacket::read(key, &packet), Ok(request));
            let reply = ReflectorPacket {
                sequence, stamp, error, ssid, received, sender_sequence: !sequence,
                sender_stamp: !stamp, sender_error: error, sender_ttl: ttl,
            };
            reply.write(key, &mut packet).unwrap();
            prop_assert_eq!(ReflectorPacket::read(key, &packet), Ok(reply));
        }
    }
}

/// A reply, as bytes of the layout that a key has.
fn reply(key: Option<&Key>) -> Vec<u8> {
    let mut packet = vec![0; if key.is_some() { AUTHENTICATED_LEN } else { OPEN_LEN }];
    reflector().write(key, &mut packet).unwrap();
    packet
}

#[test]
fn a_reply_is_told_from_a_request_by_its_fields() {
    for (key, offset) in [(None, 0), (Some(key()), 16)] {
        let key = key.as_ref();
        let replied = reply(key);
        assert!(is_reply(key, &replied));
        // Open packets end with the TTL where TWAMP-Light speaks; signed ones have more behind it.
        let (stamp, received) = if offset == 0 { (4, 16) } else { (16, 32) };
        let (error, ttl) = if offset == 0 { (36, 40) } else { (72, 80) };
        assert!(is_reply(key, &replied[..=ttl]));
        assert!(!is_reply(key, &replied[..ttl]));
        let with = |at: usize, bytes: &[u8]| {
            let mut packet = replied.clone();
            packet[at..at + bytes.len()].copy_from_slice(bytes);
            is_reply(key, &packet)
        };
        for (at, bytes, expected) in [
            (received, &[0; 8][..], false),
            // Seconds: T3 is 0x83aa7e81.
            (received, &[0x83, 0xaa, 0x7e, 0x77], true),
            (received, &[0x83, 0xaa, 0x7e, 0x76], false),
            (received, &[0x83, 0xaa, 0x7e, 0x8b], true),
            (received, &[0x83, 0xaa, 0x7e, 0x8c], false),
            (received, &[0x03, 0xaa, 0x7e, 0x81], false),
            (error + 1, &[0], false),
            (error, &[0], true),
            (error + 2, &[1], false),
            (error + 3, &[1], false),
            (ttl, &[0], false),
            (ttl, &[255], true),
        ] {
            assert_eq!(with(at, bytes), expected, "{bytes:?} at {at}");
        }
        // An era of NTP may end in between.
        let mut packet = replied.clone();
        packet[stamp..stamp + 4].copy_from_slice(&[0, 0, 0, 5]);
        packet[received..received + 4].copy_from_slice(&[255, 255, 255, 251]);
        assert!(is_reply(key, &packet));
        let mut request = vec![0; replied.len() + 60];
        sender().write(key, &mut request).unwrap();
        assert!(!is_reply(key, &request));
    }
}

proptest! {
    #[test]
    fn random_padding_of_twamp_is_no_reply(padding in prop::collection::vec(any::<u8>(), 27..200)) {
        // Once in 2^43 it would be.
        let mut request = vec![0; twamp::SENDER_LEN];
        twamp::SenderPacket { sequence: 3, stamp: sender().stamp, error: error(4, 3) }
            .write(&mut request);
        request.extend(padding);
        prop_assert!(!is_reply(None, &request));
    }

    #[test]
    fn every_reply_to_a_request_with_an_error_estimate_is_one(
        sequence: u32, second in 0..u32::MAX, took_s in 0..=10_u32, scale in 0..64_u8,
        multiplier in 1..=255_u8, sender_ttl in 1..=255_u8, signs: bool,
    ) {
        let key = signs.then(key);
        let received = u64::from(second.max(1)) << 32;
        let replied = ReflectorPacket {
            sequence,
            stamp: u64::from(second.max(1).wrapping_add(took_s)) << 32,
            received,
            sender_error: error(scale, multiplier),
            sender_ttl,
            ..reflector()
        };
        let mut packet = vec![0; AUTHENTICATED_LEN];
        replied.write(key.as_ref(), &mut packet).unwrap();
        prop_assert!(is_reply(key.as_ref(), &packet));
        let mut packet = vec![0xaa; 60];
        prop_assert!(twamp::write_reply(&replied, &mut packet));
        prop_assert!(is_reply(None, &packet));
    }
}
