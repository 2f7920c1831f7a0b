//! Contents of probes and of replies.

use super::*;
use proptest::prelude::*;

const NOW_NS: i64 = 1_800_000_000_000_000_000;

fn prober(protocol: Protocol) -> Prober {
    Prober {
        protocol,
        session: 0x0102_0304,
        identifier: 77,
        version: icmp::Version::V4,
        clock_bound_ns: Some(1_000),
        same_clock: false,
    }
}

#[test]
fn an_echo_comes_back_as_it_left() {
    let prober = prober(Protocol::UdpEcho { cookie: None });
    let mut packet = vec![0xaa; 40];
    let sender_stamp = prober.write(&mut packet, 1 << 40, NOW_NS);
    let answer = prober.read(&packet, NOW_NS).unwrap();
    assert_eq!((answer.low, answer.far_ns), (1 << 40, None));
    assert_eq!(answer.sender_stamp, sender_stamp);
    assert_eq!(packet[ECHO_PROBE_LEN..], [0xaa; 16]);
    let other = Prober { session: 5, ..prober.clone() };
    assert_eq!(other.read(&packet, NOW_NS), Err(NoAnswer::Stray));
    assert_eq!(prober.read(&packet[..20], NOW_NS), Err(NoAnswer::Malformed));
}

#[test]
fn an_echo_with_a_cookie_begins_with_it() {
    let prober = prober(Protocol::UdpEcho { cookie: Some(*b"8 bytes!") });
    let mut packet = vec![0xaa; prober.protocol.least_bytes() + 4];
    prober.write(&mut packet, 5, NOW_NS);
    assert_eq!(packet[..12], *b"8 bytes!ttrt");
    assert_eq!(packet[32..], [0xaa; 4]);
    assert_eq!(prober.read(&packet, NOW_NS).unwrap().low, 5);
    assert_eq!(prober.read_quoted(&packet), Some((5, 63)));
    packet[0] ^= 1;
    assert_eq!(prober.read(&packet, NOW_NS), Err(NoAnswer::Malformed));
    assert_eq!(prober.read(&packet[8..], NOW_NS), Err(NoAnswer::Malformed));
}

#[test]
fn an_icmp_request_is_no_reply() {
    let prober = prober(Protocol::IcmpEcho);
    let mut packet = vec![0; 56];
    prober.write(&mut packet, 3, NOW_NS);
    assert_eq!(prober.read(&packet, NOW_NS), Err(NoAnswer::Stray));
    assert_eq!(prober.read_quoted(&packet), Some((3, 63)));
    assert_eq!(prober.read_quoted(&packet[..8]), Some((3, 16)));
    icmp::Echo { reply: true, identifier: 77, sequence: 3 }.write(icmp::Version::V4, &mut packet);
    assert_eq!(prober.read(&packet, NOW_NS).unwrap().low, 3);
}

#[test]
fn the_times_of_the_far_host() {
    let prober = prober(Protocol::Stamp { key: None, follow_up: false });
    let mut packet = vec![0; stamp::OPEN_LEN];
    let sender_stamp = prober.write(&mut packet, (1 << 32) + 9, NOW_NS);
    let sent = stamp::SenderPacket::read(None, &packet).unwrap();
    assert_eq!((sent.sequence, sent.ssid), (9, 0x0304));
    let reply = stamp::ReflectorPacket {
        sequence: 1,
        stamp: TimeFormat::Ptp.write(NOW_NS + 900),
        error: ErrorEstimate::of_bound(Some(500), TimeFormat::Ptp),
        ssid: sent.ssid,
        received: TimeFormat::Ptp.write(NOW_NS + 700),
        sender_sequence: sent.sequence,
        sender_stamp: sent.stamp,
        sender_error: sent.error,
        sender_ttl: 64,
    };
    reply.write(None, &mut packet).unwrap();
    let answer = prober.read(&packet, NOW_NS).unwrap();
    assert_eq!((answer.low, answer.bits, answer.far_number), (9, 32, Some(1)));
    assert_eq!(answer.sender_stamp, sender_stamp);
    assert_eq!(answer.far_ns, Some((NOW_NS + 700, NOW_NS + 900)));
    let bound_ns = answer.clock_bound_ns.unwrap();
    assert!((1_500..1_510).contains(&bound_ns), "{bound_ns}");
    let mut unsynchronised = reply;
    unsynchronised.error.synchronized = false;
    unsynchronised.write(None, &mut packet).unwrap();
    assert_eq!(prober.read(&packet, NOW_NS).unwrap().clock_bound_ns, None);
    unsynchronised.ssid = 5;
    unsynchronised.write(None, &mut packet).unwrap();
    assert_eq!(prober.read(&packet, NOW_NS), Err(NoAnswer::Stray));
}

#[test]
fn a_longer_probe_of_stamp_is_padded_by_a_tlv() {
    let prober = prober(Protocol::Stamp { key: None, follow_up: false });
    let mut packet = vec![0; stamp::OPEN_LEN + 7];
    prober.write(&mut packet, 0, NOW_NS);
    assert_eq!(packet[stamp::OPEN_LEN..], [0x80, 1, 0, 3, 0, 0, 0]);
    let mut packet = vec![0; stamp::OPEN_LEN + 3];
    prober.write(&mut packet, 0, NOW_NS);
    assert_eq!(packet[stamp::OPEN_LEN..], [0, 0, 0]);
}

#[test]
fn telemetry_is_asked_for_and_read() {
    let key = Key::of_bytes(b"sixteen letters!").unwrap();
    for key in [None, Some(key)] {
        let base = stamp::base_len(key.as_ref());
        let prober = prober(Protocol::Stamp { key: key.clone(), follow_up: true });
        let mut packet = vec![0; prober.protocol.least_bytes() + 9];
        prober.write(&mut packet, 7, NOW_NS);
        // RFC 8972 section 4.7: zeros; section 4.8: the HMAC behind it, then padding.
        let kinds: Vec<u8> = tlv::tlvs(&packet[base..]).map(|tlv| tlv.kind).collect();
        let signed = key.is_some();
        assert_eq!(kinds, if signed { vec![7, 8, 1] } else { vec![7, 1] });
        assert_eq!(packet[base..base + 20], [&[0x80, 7, 0, 16][..], &[0; 16]].concat());
        let sent = stamp::SenderPacket::read(key.as_ref(), &packet).unwrap();
        let reply = stamp::ReflectorPacket {
            sequence: 3,
            stamp: TimeFormat::Ntp.write(NOW_NS),
            error: sent.error,
            ssid: sent.ssid,
            received: TimeFormat::Ntp.write(NOW_NS),
            sender_sequence: 7,
            sender_stamp: sent.stamp,
            sender_error: sent.error,
            sender_ttl: 64,
        };
        let left = FollowUp { sequence: 2, stamp: TimeFormat::Ntp.write(NOW_NS + 5), by: 1 };
        let answered = |flags: u8, value: &[u8]| {
            let mut packet = vec![0; base];
            reply.write(key.as_ref(), &mut packet).unwrap();
            tlv::append(&mut packet, kind::FOLLOW_UP, value);
            packet[base] = flags;
            if let Some(key) = &key {
                tlv::append_hmac(&mut packet, base, key);
                packet[base + 20] = 0;
            }
            packet
        };
        let told = |packet: &[u8]| prober.read(packet, NOW_NS).unwrap().follow_up;
        assert_eq!(told(&answered(0, &left.write())), Some((2, NOW_NS + 5)));
        for flags in [tlv::UNRECOGNIZED, tlv::MALFORMED, tlv::INTEGRITY] {
            assert_eq!(told(&answered(flags, &left.write())), None, "{flags:#x}");
        }
        assert_eq!(told(&answered(0, &[0; 16])), None);
        assert_eq!(told(&answered(0, &[0; 16])[..base]), None);
        let mut forged = answered(0, &left.write());
        forged[base + 7] ^= 1;
        assert_eq!(told(&forged).is_none(), signed);
    }
}

proptest! {
    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for protocol in [
            Protocol::UdpEcho { cookie: None }, Protocol::UdpEcho { cookie: Some([1; 8]) }, Protocol::IcmpEcho, Protocol::TwampLight,
            Protocol::Stamp { key: None, follow_up: true },
        ] {
            let prober = prober(protocol);
            let _ = prober.read(&bytes, NOW_NS);
            let _ = prober.read_quoted(&bytes);
            let mut packet = bytes.clone();
            prober.write(&mut packet, 7, NOW_NS);
        }
    }
}
