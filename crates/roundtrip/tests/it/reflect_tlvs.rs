//! Answers to each TLV, byte by byte, with the section of RFC 8972 that requires it.

use proptest::prelude::*;
use tailtrim_roundtrip::reflect::{Arrival, Class, Clock, Policy, Reflector, Service};
use tailtrim_wire::stamp::{AUTHENTICATED_LEN, OPEN_LEN, ReflectorPacket, SenderPacket};
use tailtrim_wire::tlv::{self, Integrity, StampedBy};
use tailtrim_wire::{ErrorEstimate, Key, TimeFormat};

const T2: i64 = 1_700_000_000_000_001_000;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// From 192.0.2.7 port 40000 (9c40) to 198.51.100.1 port 862 (035e), DSCP 46 and ECN 1.
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

fn key() -> Key {
    Key::of_bytes(b"sixteen letters!").unwrap()
}

fn reflector(policy: Policy) -> Reflector {
    Reflector::new(policy, Clock { bound_ns: None, sent_by: StampedBy::Software }, 1)
}

fn request(key: Option<&Key>) -> Vec<u8> {
    let error =
        ErrorEstimate { synchronized: true, format: TimeFormat::Ntp, scale: 0, multiplier: 1 };
    let stamp = TimeFormat::Ntp.write(T2);
    let mut packet = vec![0; if key.is_some() { AUTHENTICATED_LEN } else { OPEN_LEN }];
    SenderPacket { sequence: 9, stamp, error, ssid: 5 }.write(key, &mut packet).unwrap();
    packet
}

/// Reply to these TLVs of a reflector without state.
fn answered(tlvs: &str) -> Vec<u8> {
    answered_at(&arrival(), tlvs)
}

fn answered_at(arrival: &Arrival, tlvs: &str) -> Vec<u8> {
    let mut packet = request(None);
    packet.extend(bytes(tlvs));
    reflector(Policy::default()).reflect(Service::Stamp, arrival, &mut packet).unwrap();
    packet.split_off(OPEN_LEN)
}

#[test]
fn what_is_known_comes_back_with_all_flags_clear() {
    for (section, asked, expected) in [
        // 4.1: any bytes, and they stay.
        ("4.1", "80 01 0005 0102030405", "00 01 0005 0102030405"),
        // 4.1: more than one, and empty.
        ("4.1", "80 01 0000 80 01 0001 ff", "00 01 0000 00 01 0001 ff"),
        // 4.2: destination port, source port.
        ("4.2", "80 02 0004 00000000", "00 02 0004 035e9c40"),
        // 4.3: clock and method of T2, of T3: 5 free-running, 2 local software.
        ("4.3", "80 03 0004 00000000", "00 03 0004 05020502"),
        // 4.3: sub-TLVs may follow; none is known.
        ("4.3", "80 03 000a 00000000 80 09 0002 abcd", "00 03 000a 05020502 80 09 0002 abcd"),
        // 4.4: DSCP1 10 wanted, DSCP2 46, ECN 1, RP 0: 001010 101110 01 00.
        ("4.4", "80 04 0004 28000000", "00 04 0004 2ae40000"),
        // 4.4: reserved bits are ignored, and zero in the reply.
        ("4.4", "80 04 0004 2803ffff", "00 04 0004 2ae40000"),
        // 4.5: the sender's counter stays; without state nothing is counted.
        ("4.5", "80 05 000c 00000007 00000001 00000002", "00 05 000c 00000007 00000000 00000000"),
        // 4.6: access 1 and 2 in the upper bits, the code; all else is reserved.
        ("4.6", "80 06 0004 1f02ffff", "00 06 0004 10020000"),
        ("4.6", "80 06 0004 20010000", "00 06 0004 20010000"),
        // 4.7: without state, zeros.
        (
            "4.7",
            "80 07 0010 00000001 0102030405060708 02 ffffff",
            "00 07 0010 00000000 0000000000000000 00 000000",
        ),
    ] {
        assert_eq!(answered(asked), bytes(expected), "section {section}: {asked}");
    }
}

#[test]
fn the_location_is_told_in_place() {
    // Section 4.2.1: 1 asks for the MAC address, 4 for the destination, 7 for the source. The answers have the types 2
    // or 3 (EUI-48, EUI-64), 5 or 6, 8 or 9.
    let asked = "80 02 003c 00000000 \
                 80 01 0008 0000000000000000 \
                 80 04 0010 00000000000000000000000000000000 \
                 80 07 0010 00000000000000000000000000000000 \
                 80 4d 0000";
    let v4 = "00 02 003c 035e9c40 \
              00 03 0008 0000000000000000 \
              00 05 0010 c6336401000000000000000000000000 \
              00 08 0010 c0000207000000000000000000000000 \
              80 4d 0000";
    assert_eq!(answered(asked), bytes(v4));
    let arrival = Arrival {
        from: "[2001:db8::7]:40000".parse().unwrap(),
        to: Some("2001:db8::1".parse().unwrap()),
        mac: Some([2, 0, 0, 0, 0, 9]),
        ..arrival()
    };
    let v6 = "00 02 003c 035e9c40 \
              00 02 0008 0200000000090000 \
              00 06 0010 20010db8000000000000000000000001 \
              00 09 0010 20010db8000000000000000000000007 \
              80 4d 0000";
    assert_eq!(answered_at(&arrival, asked), bytes(v6));
    // Section 4.2.2: unknown values stay zero.
    let nowhere = Arrival { to: None, ..arrival };
    let answer =
        answered_at(&nowhere, "80 02 0018 00000000 80 04 0010 00000000000000000000000000000000");
    assert_eq!(answer, bytes("00 02 0018 035e9c40 00 04 0010 00000000000000000000000000000000"));
}

#[test]
fn what_is_not_known_comes_back_marked() {
    // Section 4: flag U, the value as it was; also for TLVs of RFC 9503 and others.
    assert_eq!(answered("80 c8 0003 010203"), bytes("80 c8 0003 010203"));
    assert_eq!(answered("00 0a 0000 80 01 0000"), bytes("80 0a 0000 00 01 0000"));
    // Reserved flags are zero in the reply.
    assert_eq!(answered("9f 01 0001 aa"), bytes("00 01 0001 aa"));
    // Section 4.6: an access that is neither 1 nor 2 is discarded.
    assert_eq!(answered("80 06 0004 3001ffff"), bytes("80 06 0004 3001ffff"));
    // No TLV: fewer bytes than a header, and zeros to the end.
    assert_eq!(answered("80 01 00"), bytes("80 01 00"));
    assert_eq!(
        answered("80 01 0001 07 0000000000000000000000"),
        bytes("00 01 0001 07 0000000000000000000000")
    );
}

#[test]
fn behind_what_is_malformed_nothing_is_touched() {
    let behind = "80 04 0004 28000000 9f c8 0001 05";
    for (asked, expected) in [
        // Lengths that the type does not have.
        ("80 04 0003 ffffff", "40 04 0003 ffffff"),
        ("80 05 0004 ffffffff", "40 05 0004 ffffffff"),
        ("80 06 0000", "40 06 0000"),
        ("80 03 0003 ffffff", "40 03 0003 ffffff"),
        ("80 02 0003 ffffff", "40 02 0003 ffffff"),
        // Erratum 8339: the fields of Follow-Up Telemetry are zeroed all the same.
        ("80 07 000e 0102030405060708090a0b0c0d0e", "40 07 000e 0000000000000000000000000d0e"),
        ("80 07 0005 0102030405", "40 07 0005 0000000000"),
        // A place that does not fit the Location, or has a wrong length.
        ("80 02 0009 00000000 80 07 0010 ff", "40 02 0009 00000000 40 07 0010 ff"),
        ("80 02 000a 00000000 80 07 0002 ffff", "40 02 000a 00000000 40 07 0002 ffff"),
    ] {
        let answer = answered(&format!("{asked} {behind}"));
        assert_eq!(answer, bytes(&format!("{expected} {behind}")), "{asked}");
    }
    // The TLVs in front are answered; the one that does not fit the packet is the last.
    assert_eq!(answered("80 01 0000 80 01 0063 05"), bytes("00 01 0000 40 01 0063 05"));
    assert_eq!(answered("80 c8 0063 05"), bytes("c0 c8 0063 05"));
}

#[test]
fn the_class_of_the_reply_is_the_one_asked_for_unless_policy_forbids() {
    let asked = bytes("80 04 0004 28000000");
    for (class, dscp, expected) in
        [(Class::Mirror, 10, "00 04 0004 2ae40000"), (Class::Fixed(8), 8, "00 04 0004 2ae50000")]
    {
        let mut packet = [request(None), asked.clone()].concat();
        let mut reflector = reflector(Policy { class, ..Policy::default() });
        let reply = reflector.reflect(Service::Stamp, &arrival(), &mut packet).unwrap();
        assert_eq!(reply.traffic_class, dscp << 2);
        assert_eq!(packet[OPEN_LEN..], bytes(expected));
    }
}

/// The flags of the reply's TLVs, and whether the reply's HMACs are right.
fn signed(policy: Policy, packet: &[u8]) -> (Vec<u8>, Integrity) {
    let (key, mut packet) = (policy.key.clone(), packet.to_vec());
    let base = if key.is_some() { AUTHENTICATED_LEN } else { OPEN_LEN };
    reflector(policy).reflect(Service::Stamp, &arrival(), &mut packet).unwrap();
    assert!(ReflectorPacket::read(key.as_ref(), &packet).is_ok());
    let flags = tlv::tlvs(&packet[base..]).map(|tlv| tlv.flags).collect();
    (flags, tlv::integrity(&packet, base, Some(&self::key())))
}

#[test]
fn section_4_8_the_hmac_covers_the_number_and_what_is_in_front() {
    let key = key();
    let with_key = || Policy { key: Some(key.clone()), ..Policy::default() };
    let class = bytes("80 04 0004 28000000");
    let base = request(Some(&key));
    // Computed with Python: hmac.new(b"sixteen letters!", number + TLVs, "sha256").digest()[:16].
    let mut packet = [base.clone(), class.clone()].concat();
    tlv::append_hmac(&mut packet, AUTHENTICATED_LEN, &key);
    let hmac = bytes("80 08 0010 5a6998203921cfe36fcea1fa8404972a");
    assert_eq!(packet[AUTHENTICATED_LEN + class.len()..], hmac);
    let mut answer = packet.clone();
    reflector(with_key()).reflect(Service::Stamp, &arrival(), &mut answer).unwrap();
    let expected = bytes("00 04 0004 2ae40000 00 08 0010 9f6f318b1db7251c2542688c69db2633");
    assert_eq!(answer[AUTHENTICATED_LEN..], expected);
    // Padding may follow; it alone needs no HMAC; nothing else may follow.
    let padding = bytes("80 01 0001 aa");
    let padded = [packet.clone(), padding.clone()].concat();
    assert_eq!(signed(with_key(), &padded), (vec![0, 0, 0], Integrity::Right));
    let alone = [base.clone(), padding.clone()].concat();
    assert_eq!(signed(with_key(), &alone), (vec![0], Integrity::Absent));
    let two = [base.clone(), padding.clone(), padding.clone()].concat();
    assert_eq!(signed(with_key(), &two).0, [tlv::INTEGRITY; 2]);
    let followed = [packet.clone(), class.clone()].concat();
    assert_eq!(signed(with_key(), &followed).0, [tlv::INTEGRITY; 3]);
    // Changed, or not there.
    let mut changed = packet.clone();
    changed[AUTHENTICATED_LEN + 4] ^= 1;
    assert_eq!(signed(with_key(), &changed).0, [tlv::INTEGRITY; 2]);
    assert_eq!(signed(with_key(), &[base.clone(), class.clone()].concat()).0, [tlv::INTEGRITY]);
    // A reflector without a key can verify none, and uses no TLV in front of the HMAC.
    let mut open = [request(None), class.clone(), padding].concat();
    tlv::append_hmac(&mut open, OPEN_LEN, &key);
    assert_eq!(signed(Policy::default(), &open).0, [tlv::INTEGRITY; 3]);
    // TLVs behind a malformed one are not answered, but the reply is signed.
    let mut malformed = [base, bytes("80 04 0003 000000"), class].concat();
    tlv::append_hmac(&mut malformed, AUTHENTICATED_LEN, &key);
    let flags = vec![tlv::MALFORMED, tlv::UNRECOGNIZED, 0];
    assert_eq!(signed(with_key(), &malformed), (flags, Integrity::Right));
}

/// TLVs of all kinds, mostly of lengths that fit, then anything.
fn any_tlvs() -> impl Strategy<Value = Vec<u8>> {
    let tlv = (any::<u8>(), 0..10_u8, prop_oneof![Just(0), Just(4), Just(12), Just(16), 0..40_u16])
        .prop_map(|(flags, kind, length)| {
            let mut tlv = vec![flags, kind];
            tlv.extend(length.to_be_bytes());
            tlv.resize(4 + usize::from(length), kind);
            tlv
        });
    let tail = prop::collection::vec(any::<u8>(), 0..20);
    (prop::collection::vec(tlv, 0..6), tail).prop_map(|(tlvs, tail)| [tlvs.concat(), tail].concat())
}

proptest! {
    #[test]
    fn whatever_is_behind_a_packet_types_and_lengths_come_back(
        tlvs in any_tlvs(), keyed: bool, stateful: bool, hmac: bool,
    ) {
        let key = keyed.then(key);
        let base = if keyed { AUTHENTICATED_LEN } else { OPEN_LEN };
        let mut packet = request(key.as_ref());
        packet.extend(tlvs);
        if hmac {
            tlv::append_hmac(&mut packet, base, &self::key());
        }
        let before = packet.clone();
        let mut reflector = reflector(Policy { key: key.clone(), stateful, ..Policy::default() });
        reflector.reflect(Service::Stamp, &arrival(), &mut packet).unwrap();
        prop_assert!(ReflectorPacket::read(key.as_ref(), &packet).is_ok());
        let kinds = |packet: &[u8]| -> Vec<(u8, usize)> {
            tlv::tlvs(&packet[base..]).map(|tlv| (tlv.kind, tlv.value.len())).collect()
        };
        // A question of the Location becomes its answer within the value; types outside stay.
        prop_assert_eq!(kinds(&packet), kinds(&before));
        // A reply whose request could be verified can be, too.
        if keyed && tlv::integrity(&before, base, key.as_ref()) == Integrity::Right {
            prop_assert_eq!(tlv::integrity(&packet, base, key.as_ref()), Integrity::Right);
        }
    }
}
