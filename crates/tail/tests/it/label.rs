//! Labels of packets, for every kind of capture; and that labels stay with their packets.

use crate::support::frames::{GRE, ICMP, IPV4, Ipv4, Ipv6, UDP, ethernet, gre, probe, udp, vxlan};
use crate::support::{How, Order, Pcap, Pcapng, inputs, mscap, x552};
use proptest::prelude::*;
use tailtrim_tail::signature::{Rewrites, Signer};
use tailtrim_wire::EchoProbe;
use tailtrim_wire::frame::Link;
use tailtrim_wire::icmp::{Echo, Version};
use tailtrim_wire::label::Label;
use tailtrim_wire::traffic::Probe;

const ICMP_V6: u8 = 58;

fn generated(flow: u16, sequence: u64) -> Vec<u8> {
    udp(10_000, 7, 0, &Probe { flow, sequence, intended_ns: 1 }.encode())
}

fn frame(flow: u16, sequence: u64) -> Vec<u8> {
    Ipv4::new(UDP, generated(flow, sequence)).frame()
}

fn said(frame: &[u8]) -> (Option<i64>, Option<i64>) {
    let label = Label::of_frame(Link::Ethernet, frame);
    (label.flow(), label.sequence())
}

#[test]
fn probes_of_the_generator() {
    let plain = frame(3, 1 << 47);
    assert_eq!(said(&plain), (Some(3), Some(1 << 47)));
    let padded = [plain.as_slice(), &[0; 6]].concat();
    assert_eq!(said(&padded), (Some(3), Some(1 << 47)));
    let packet = Ipv4::new(UDP, generated(3, 4)).bytes();
    assert_eq!(said(&ethernet(&[(0x8100, 5), (0x88a8, 6)], IPV4, &packet)), (Some(3), Some(4)));
    assert_eq!(Label::of_frame(Link::RawIp, &packet), Label::new(Some(3), Some(4)));
    let v6 = Ipv6::new(UDP, generated(5, 6)).frame();
    assert_eq!(said(&v6), (Some(5), Some(6)));
    let optional = Ipv4 { options: vec![1; 8], ..Ipv4::new(UDP, generated(7, 8)) };
    assert_eq!(said(&optional.frame()), (Some(7), Some(8)));
    // A capture that cut the frame behind the numbers has them still.
    assert_eq!(said(&v6[..14 + 40 + 8 + 10]), (Some(5), Some(6)));
    assert_eq!(said(&v6[..14 + 40 + 8 + 9]), (None, None));
}

#[test]
fn probes_within_tunnels() {
    let inside = frame(1, 2);
    let tunnelled = Ipv4::new(UDP, vxlan(&inside)).frame();
    assert_eq!(said(&tunnelled), (Some(1), Some(2)));
    let twice = Ipv4::new(GRE, gre(0, IPV4, &tunnelled[14..])).frame();
    assert_eq!(said(&twice), (Some(1), Some(2)));
}

#[test]
fn probes_of_round_trips() {
    let probe = EchoProbe { session: u32::MAX, sequence: 1 << 40, unix_ns: 0 }.encode();
    let echo = Ipv4::new(UDP, udp(40_000, 7, 0, &probe)).frame();
    assert_eq!(said(&echo), (Some(i64::from(u32::MAX)), Some(1 << 40)));
    for (version, protocol) in [(Version::V4, ICMP), (Version::V6, ICMP_V6)] {
        for (reply, data, sequence) in [(false, &[0; 24], 9), (true, &probe, 1 << 40)] {
            let mut message = [&[0; 8], data.as_slice()].concat();
            Echo { reply, identifier: 77, sequence: 9 }.write(version, &mut message);
            let frame = match version {
                Version::V4 => Ipv4::new(protocol, message).frame(),
                Version::V6 => Ipv6::new(protocol, message).frame(),
            };
            assert_eq!(said(&frame), (Some(77), Some(sequence)));
        }
    }
    let too_large = EchoProbe { session: 1, sequence: u64::MAX, unix_ns: 0 }.encode();
    let frame = Ipv4::new(UDP, udp(40_000, 7, 0, &too_large)).frame();
    assert_eq!(said(&frame), (Some(1), None));
}

#[test]
fn test_packets_of_stamp_have_a_number_and_no_flow() {
    let payload = [&[0, 0, 1, 2], [9; 40].as_slice()].concat();
    for (source, destination) in [(50_000, 862), (862, 50_000)] {
        let frame = Ipv4::new(UDP, udp(source, destination, 0, &payload)).frame();
        assert_eq!(said(&frame), (None, Some(0x102)));
    }
    assert_eq!(said(&Ipv4::new(UDP, udp(50_000, 863, 0, &payload)).frame()), (None, None));
}

#[test]
fn packets_that_say_nothing() {
    assert_eq!(said(&probe(1)), (None, None));
    assert_eq!(said(&[]), (None, None));
    // The payload of a later fragment is no header.
    let later = Ipv4 { fragment: 100, ..Ipv4::new(UDP, generated(1, 2)) };
    assert_eq!(said(&later.frame()), (None, None));
    let first = Ipv4 { fragment: 0x2000, ..Ipv4::new(UDP, generated(1, 2)) };
    assert_eq!(said(&first.frame()), (Some(1), Some(2)));
    let mut v6 = Ipv6::new(UDP, generated(1, 2));
    v6.extensions = vec![(44, vec![0, 0, 0, 8, 0, 0, 0, 1])];
    assert_eq!(said(&v6.frame()), (None, None));
    // Padding of Ethernet and trailers are no payload.
    let empty = [Ipv4::new(UDP, udp(1, 862, 0, &[])).frame(), vec![1; 30]].concat();
    assert_eq!(said(&empty), (None, None));
}

/// Reads labels with their records' stamps in all ways, which must agree.
fn labels(bytes: &[u8], how: How) -> Vec<(i64, Label)> {
    let signer = Signer::new(Rewrites::default());
    let [whole, streamed, creeping] = inputs(bytes).map(|input| {
        let mut capture = how.open(input).unwrap();
        assert!(capture.labels().is_empty());
        capture.take_labels();
        let (mut batch, mut found) = (Vec::new(), Vec::new());
        capture.peek(&signer).unwrap();
        while capture.read(&signer, &mut batch).unwrap() {
            let stamped = batch.iter().filter(|record| record.stamped);
            assert_eq!(stamped.clone().count(), capture.labels().len());
            found.extend(stamped.map(|r| r.stamp_ns).zip(capture.labels().iter().copied()));
        }
        assert!(capture.labels().is_empty());
        found
    });
    assert_eq!(whole, streamed);
    assert_eq!(whole, creeping);
    whole
}

#[test]
fn labels_stay_with_their_packets() {
    let count = 700;
    let mut pcap = Pcap::new(Order::Big, true, 1);
    let mut pcapng = Pcapng::new(Order::Big);
    pcapng.interface(1, Some(9), None);
    let mut expected = Vec::new();
    for index in 0..count {
        // Shapes change, and some packets say nothing.
        let of_number = match index % 5 {
            0 => probe(index as u32),
            1 => Ipv6::new(UDP, generated(1, index)).frame(),
            _ => frame(index as u16 % 7, index),
        };
        let stamp_ns = index as i64 * 10;
        pcap.frame(stamp_ns, &of_number);
        pcapng.packet(0, stamp_ns.cast_unsigned(), &of_number);
        if index % 3 == 0 {
            pcapng.simple_packet(&frame(9, 9), 64);
        }
        expected.push((stamp_ns, Label::of_frame(Link::Ethernet, &of_number)));
    }
    assert_eq!(expected.iter().filter(|(_, label)| *label == Label::NONE).count(), 140);
    assert_eq!(labels(&pcap.bytes, How::default()), expected);
    assert_eq!(labels(&pcapng.bytes, How::default()), expected);
    let records: Vec<_> = (0..count).map(|n| (n, n as u32)).collect();
    // A stamp beyond 2^63 ns is none.
    let with_none = [&[(u64::MAX, 7)], records.as_slice()].concat();
    let expected: Vec<_> =
        (0..count).map(|n| (n.cast_signed(), Label::new(None, Some(n)))).collect();
    assert_eq!(labels(&mscap(&with_none), How::MOONSNIFF), expected);
}

#[test]
fn a_stamp_in_the_trailer_is_no_payload() {
    let mut pcap = Pcap::ethernet();
    let mut pcapng = Pcapng::new(Order::Little);
    pcapng.interface(1, Some(9), None);
    for (sequence, nanoseconds) in [(1, 7), (2, 1_000_000_000), (3, 9)] {
        let stamped = x552(&frame(4, sequence), nanoseconds, 0);
        pcap.frame(99, &stamped);
        pcapng.packet(0, 99, &stamped);
    }
    let label = |sequence| Label::new(Some(4), Some(sequence));
    for bytes in [&pcap.bytes, &pcapng.bytes] {
        // The second one has no stamp.
        assert_eq!(labels(bytes, How::X552), [(7, label(1)), (9, label(3))]);
    }
}

proptest! {
    #[test]
    fn looking_for_a_label_survives_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        for link in [Link::Ethernet, Link::RawIp, Link::Cooked, Link::Cooked2] {
            let label = Label::of_frame(link, &bytes);
            prop_assert!(label.flow().is_none_or(|flow| flow >= 0));
            prop_assert!(label.sequence().is_none_or(|sequence| sequence >= 0));
        }
    }
}
