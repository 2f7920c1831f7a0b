//! Records of each capture format.

use super::{record, record_of, signature_of, signer, stamps};
use crate::support::frames::{self, Ipv4, UDP, ethernet, probe, udp};
use crate::support::{How, Order, Pcap, Pcapng, SECOND_NS, drain, inputs, mscap, read, x552};
use tailtrim_tail::capture::{CaptureError, CaptureReader, Format, Record, StampSource, Whole};
use tailtrim_tail::signature::Signature;

#[test]
fn pcap_of_both_resolutions_and_byte_orders() {
    let stamps_ns = [0, 999_999_000, 1_500_000_000, 4_294_967_295 * SECOND_NS];
    for order in [Order::Little, Order::Big] {
        for nanoseconds in [false, true] {
            // The upper bits of the link type tell the length of the FCS.
            for link_type in [1, 0xf400_0001] {
                let mut file = Pcap::new(order, nanoseconds, link_type);
                let mut expected = Vec::new();
                for (stamp_ns, sequence) in stamps_ns.into_iter().zip(0..) {
                    let stamp_ns = stamp_ns + if nanoseconds { 789 } else { 0 };
                    file.frame(stamp_ns, &probe(sequence));
                    expected.push(record(stamp_ns, &probe(sequence)));
                }
                let content = read(&file.bytes, How::default(), &signer());
                assert_eq!(content.offset, file.bytes.len() as u64);
                assert_eq!(content.tap_drops, None);
                assert_eq!(content.sound(), expected);
            }
        }
    }
}

#[test]
fn more_records_than_fit_a_batch_or_a_buffer() {
    let mut file = Pcap::ethernet();
    let frame = [probe(0), vec![0x77; 900]].concat();
    for index in 0..2_000 {
        file.frame(index, &frame);
    }
    for input in inputs(&file.bytes) {
        let records = drain(input, How::default(), &signer()).sound();
        assert_eq!(stamps(&records), (0..2_000).collect::<Vec<i64>>());
    }
}

#[test]
fn pcapng_with_sections_interfaces_and_resolutions() {
    let frame = probe(1);
    let packet = Ipv4::new(UDP, udp(1, 2, 3, b"raw")).bytes();
    let mut file = Pcapng::new(Order::Little);
    file.interface(1, None, None) // microseconds
        .interface(1, Some(9), Some(1_700_000_000))
        .interface(101, Some(3), Some(-5))
        .interface(1, Some(0x80 | 10), None) // 1/1024 s
        .packet(1, 123_456_789, &frame)
        .packet(0, 5_000_001, &frame)
        .packet(2, 7_250, &packet)
        .packet(3, 1536, &frame)
        .block(0x0bad_cafe, b"of no known type")
        .statistics(0, 3, 4)
        .section(Order::Big)
        .interface(1, Some(6), Some(-3))
        .packet(0, 1 << 33, &frame)
        .section(Order::Little)
        .interface(1, Some(9), None)
        .packet(0, 42, &frame);
    let content = read(&file.bytes, How::default(), &signer());
    assert_eq!(content.tap_drops, Some(7));
    assert_eq!(content.offset, file.bytes.len() as u64);
    let mut expected: Vec<Record> = [
        1_700_000_000_123_456_789,
        5_000_001_000,
        2_250_000_000,
        1_500_000_000,
        (1 << 33) * 1_000 - 3 * SECOND_NS,
        42,
    ]
    .map(|stamp_ns| record(stamp_ns, &frame))
    .to_vec();
    expected[2] = Record { stamp_ns: 2_250_000_000, ..record_of(101, &packet) };
    assert_eq!(content.sound(), expected);
}

/// Stamps are as coarse as those of the interfaces whose packets are read.
#[test]
fn an_interface_without_packets_does_not_make_stamps_coarse() {
    let mut file = Pcapng::new(Order::Little);
    file.interface(1, None, None).interface(1, Some(9), None).packet(1, 42, &probe(1));
    for (packets, unit_ps) in [(0, 1_000), (1, 1_000_000)] {
        for ticks in 0..packets {
            file.packet(0, ticks, &probe(2));
        }
        let mut capture = How::default().open(Box::new(Whole::new(file.bytes.clone()))).unwrap();
        let mut batch = Vec::new();
        while capture.read(&signer(), &mut batch).unwrap() {}
        assert_eq!(capture.unit_ps(), unit_ps);
    }
}

/// Regression: the unit of the last section counted, also if it had no packets.
#[test]
fn stamps_are_as_coarse_as_those_of_any_section() {
    let mut file = Pcapng::new(Order::Little);
    file.interface(1, None, None).packet(0, 42, &probe(1));
    file.section(Order::Big).interface(1, Some(9), None);
    let mut capture = How::default().open(Box::new(Whole::new(file.bytes.clone()))).unwrap();
    let mut batch = Vec::new();
    while capture.read(&signer(), &mut batch).unwrap() {}
    assert_eq!(capture.unit_ps(), 1_000_000);
}

#[test]
fn drops_are_counted_once_however_often_they_are_told() {
    // The counters run from the start of the capture: of two statements about an interface the later
    // one holds.
    let mut file = Pcapng::new(Order::Little);
    file.interface(1, None, None)
        .interface(1, None, None)
        .statistics(0, 3, 0)
        .statistics(1, 10, 20)
        .statistics(0, 5, 1)
        .section(Order::Big)
        .interface(1, None, None)
        .statistics(0, 100, 0);
    let content = read(&file.bytes, How::default(), &signer());
    assert_eq!(content.tap_drops, Some(5 + 1 + 10 + 20 + 100));
    assert_eq!(content.sound(), []);
}

#[test]
fn absurd_drops_do_not_overflow() {
    let mut file = Pcapng::new(Order::Little);
    file.interface(1, None, None)
        .interface(1, None, None)
        .statistics(0, u64::MAX, u64::MAX)
        .statistics(1, u64::MAX, 1)
        .section(Order::Little)
        .interface(1, None, None)
        .statistics(0, u64::MAX, 1);
    let content = read(&file.bytes, How::default(), &signer());
    assert_eq!(content.tap_drops, Some(u64::MAX));
}

#[test]
fn mscap_records() {
    let bytes = mscap(&[(1, 7), (2_000_000_000, 8), (4_294_967_295, u32::MAX)]);
    let records = read(&bytes, How::MOONSNIFF, &signer()).sound();
    let expected =
        [(1, 7), (2_000_000_000, 8), (4_294_967_295, 0xffff_ffff)].map(|(stamp_ns, identifier)| {
            Record {
                stamp_ns,
                signature: Signature::of_identifier(identifier),
                length: 0,
                signable: u16::MAX,
                cut: false,
                stamped: true,
            }
        });
    assert_eq!(records, expected);
}

#[test]
fn mscap_stamps_that_wrap_run_on() {
    const WRAP: i64 = 1 << 32;
    // The fourth frame was stamped before the wrap and written after it.
    let bytes = mscap(&[
        (4_000_000_000, 0),
        (4_294_000_000, 1),
        (100, 2),
        (4_294_967_000, 3),
        (200, 4),
        (2_000_000_000, 5),
        (4_000_000_000, 6),
        (1, 7),
    ]);
    let records = read(&bytes, How::MOONSNIFF, &signer()).sound();
    let expected = [
        4_000_000_000,
        4_294_000_000,
        WRAP + 100,
        4_294_967_000,
        WRAP + 200,
        WRAP + 2_000_000_000,
        WRAP + 4_000_000_000,
        2 * WRAP + 1,
    ];
    assert_eq!(stamps(&records), expected);
}

#[test]
fn mscap_stamps_of_full_width_are_taken_as_they_are() {
    let bytes = mscap(&[(4_294_967_296, 0), (10_000_000_000, 1), (9_999_999_999, 2)]);
    let records = read(&bytes, How::MOONSNIFF, &signer()).sound();
    assert_eq!(stamps(&records), [4_294_967_296, 10_000_000_000, 9_999_999_999]);
}

#[test]
fn mscap_stamps_beyond_time_are_none() {
    let bytes = mscap(&[(3_000_000_000, 0), (1 << 63, 1), (u64::MAX, 2), (3_000_000_001, 3)]);
    let records = read(&bytes, How::MOONSNIFF, &signer()).sound();
    let stamped: Vec<bool> = records.iter().map(|record| record.stamped).collect();
    assert_eq!(stamped, [true, false, false, true]);
    assert_eq!((records[0].stamp_ns, records[3].stamp_ns), (3_000_000_000, 3_000_000_001));
}

#[test]
fn mscap_tells_whether_its_stamps_may_have_wrapped() {
    let open = |records: &[(u64, u32)]| How::MOONSNIFF.open(Box::new(Whole::new(mscap(records))));
    // Also before anything was consumed: whoever compares two captures has only peeked at them.
    let mut narrow = open(&[(1, 0), (2, 1)]).unwrap();
    narrow.peek(&signer()).unwrap();
    assert!(narrow.wraps());
    let mut wide = open(&[(10_000_000_000, 0), (10_000_000_001, 1)]).unwrap();
    wide.peek(&signer()).unwrap();
    assert!(!wide.wraps());
    let file = Pcap::ethernet();
    let pcap = How::default().open(Box::new(Whole::new(file.bytes)));
    assert!(!pcap.unwrap().wraps());
}

#[test]
fn x552_trailers_are_stamps() {
    let frame = probe(5);
    let stamped = |nanoseconds, seconds| x552(&frame, nanoseconds, seconds);
    // No valid nanoseconds: the NIC had no stamp, and the last bytes are payload.
    let unstamped = stamped(1_000_000_000, 12);
    let last = stamped(999_999_999, u32::MAX);
    let mut pcap = Pcap::new(Order::Big, false, 1);
    let mut pcapng = Pcapng::new(Order::Big);
    pcapng.interface(1, Some(9), None);
    for kept in [&stamped(7, 12), &unstamped, &last] {
        pcap.frame(99_000, kept);
        pcapng.packet(0, 99_000, kept);
    }
    // A frame without its end has no trailer, and one shorter than a trailer neither.
    for kept in [&last[..last.len() - 1], &last[..4]] {
        pcap.cut_frame(99_000, kept, last.len() as u32);
        pcapng.cut_packet(0, 99_000, kept, last.len() as u32);
    }
    pcap.frame(99_000, &[1, 2, 3]);
    pcapng.packet(0, 99_000, &[1, 2, 3]);
    for bytes in [&pcap.bytes, &pcapng.bytes] {
        let records = read(bytes, How::X552, &signer()).sound();
        assert_eq!(records[0], record(12_000_000_007, &frame));
        assert_eq!(records[2], record(4_294_967_295 * SECOND_NS + 999_999_999, &frame));
        let stamped: Vec<bool> = records.iter().map(|record| record.stamped).collect();
        assert_eq!(stamped, [true, false, true, false, false, false]);
        // The signature does not depend on the stamp having been there.
        assert!(records[..4].iter().all(|r| r.signature == signature_of(&frame)));
        assert_eq!(records[3].length, last.len() as u32);
        // Without the option the trailer is part of the frame and its length.
        let records = read(bytes, How::default(), &signer()).sound();
        assert_eq!(stamps(&records), [99_000; 6]);
        assert_eq!(records[0].length, frame.len() as u32 + 8);
        assert_eq!(records[0].signature, signature_of(&frame));
    }
}

#[test]
fn the_same_packet_on_every_link() {
    let ipv4 = Ipv4::new(UDP, udp(1, 2, 3, b"a payload that has a few bytes")).bytes();
    let ipv6 = frames::Ipv6::new(UDP, udp(1, 2, 3, b"another payload")).bytes();
    for (ethertype, packet) in [(0x0800_u16, &ipv4), (0x86dd, &ipv6)] {
        let cooked = |length: usize, at: usize| {
            let mut header = vec![0; length];
            header[at..at + 2].copy_from_slice(&ethertype.to_be_bytes());
            [&header, packet.as_slice()].concat()
        };
        let tagged = {
            let mut header = vec![0; 20];
            header[14..18].copy_from_slice(&[0x81, 0, 0, 42]);
            header[18..].copy_from_slice(&ethertype.to_be_bytes());
            [&header, packet.as_slice()].concat()
        };
        let variants: Vec<(u32, Vec<u8>)> = vec![
            (1, ethernet(&[], ethertype, packet)),
            (1, ethernet(&[(0x8100, 0x2064)], ethertype, packet)),
            (1, ethernet(&[(0x88a8, 7), (0x8100, 9)], ethertype, packet)),
            (1, ethernet(&[(0x9100, 7), (0x9100, 8), (0x8100, 9)], ethertype, packet)),
            (12, packet.clone()),
            (14, packet.clone()),
            (101, packet.clone()),
            (if ethertype == 0x0800 { 228 } else { 229 }, packet.clone()),
            (113, cooked(16, 14)),
            (113, tagged),
            (276, cooked(20, 0)),
        ];
        let expected = record_of(101, packet);
        assert_eq!(usize::from(expected.signable), packet.len());
        for (link_type, frame) in variants {
            let record = record_of(link_type, &frame);
            assert_eq!(record.signature, expected.signature, "link type {link_type}");
            assert_eq!(record.signable, expected.signable, "link type {link_type}");
            assert_eq!(record.length, frame.len() as u32);
        }
    }
}

#[test]
fn frames_cut_by_the_snap_length() {
    let frame = probe(3);
    let mut file = Pcap::with_snap_length(Order::Little, true, 1, 30);
    for kept in 0..=frame.len() {
        file.cut_frame(1, &frame[..kept], frame.len() as u32);
    }
    let records = read(&file.bytes, How::default(), &signer()).sound();
    for (record, kept) in records.iter().zip(0..) {
        assert_eq!(record.cut, kept < frame.len());
        assert_eq!(record.length, frame.len() as u32);
        // Too short for an Ethernet header, all of it counts.
        let signable = if kept < 14 { kept } else { kept - 14 };
        assert_eq!(usize::from(record.signable), signable, "{kept} bytes kept");
        assert_eq!(record.signature, signature_of(&frame[..kept]));
    }
}

#[test]
fn jumbo_frames_and_large_snap_lengths() {
    let frame = [probe(0), vec![0xaa; 300_000]].concat();
    let mut file = Pcap::with_snap_length(Order::Little, true, 1, 1 << 20);
    file.frame(5, &frame);
    let records = read(&file.bytes, How::default(), &signer()).sound();
    assert_eq!(records[0].length, frame.len() as u32);
    assert_eq!(records[0].signable, u16::MAX);
    assert_eq!(records[0].signature, signature_of(&probe(0)));
}

#[test]
fn captures_without_a_packet_are_sound() {
    let mut pcapng = Pcapng::new(Order::Little);
    pcapng.interface(1, None, None);
    for bytes in [Pcap::ethernet().bytes, pcapng.bytes] {
        let content = read(&bytes, How::default(), &signer());
        assert_eq!(content.offset, bytes.len() as u64);
        assert_eq!(content.sound(), []);
    }
}

#[test]
fn formats_are_recognised() {
    let format = |bytes: Vec<u8>, how: How| how.open(Box::new(Whole::new(bytes))).unwrap().format();
    assert_eq!(format(Pcap::ethernet().bytes, How::default()), Format::Pcap);
    let pcapng = Pcapng::new(Order::Big).bytes;
    assert_eq!(format(pcapng, How::default()), Format::Pcapng);
    assert_eq!(format(mscap(&[(1, 2)]), How::MOONSNIFF), Format::Mscap);
}

#[test]
fn peeking_consumes_nothing() {
    let mut pcapng = Pcapng::new(Order::Little);
    pcapng.interface(1, Some(9), None);
    let mut pcap = Pcap::ethernet();
    for index in 0..300 {
        pcap.frame(index, &probe(index as u32));
        pcapng.packet(0, index as u64, &probe(index as u32));
    }
    pcapng.statistics(0, 1, 2);
    let mscap = mscap(&(0..300).map(|n| (n, n as u32)).collect::<Vec<(u64, u32)>>());
    let files =
        [(pcap.bytes, How::default()), (pcapng.bytes, How::default()), (mscap, How::MOONSNIFF)];
    for (mut bytes, how) in files {
        // Damage is for `read` to report.
        bytes.extend([0xff; 11]);
        for input in inputs(&bytes) {
            let mut capture = how.open(input).unwrap();
            let before = capture.offset();
            let peeked = capture.peek(&signer()).unwrap();
            assert_eq!(stamps(&peeked), (0..300).collect::<Vec<i64>>());
            assert_eq!(capture.peek(&signer()).unwrap(), peeked);
            assert_eq!(capture.offset(), before);
            let (mut batch, mut records) = (Vec::new(), Vec::<Record>::new());
            let error = loop {
                match capture.read(&signer(), &mut batch) {
                    Ok(_) => records.extend(&batch),
                    Err(error) => break error,
                }
            };
            assert_eq!(records, peeked);
            assert!(matches!(error, CaptureError::Damaged { records: 300, .. }));
        }
    }
}

#[test]
fn stamps_come_from_the_header_by_default() {
    assert_eq!(StampSource::default(), StampSource::Header);
    let mut file = Pcap::ethernet();
    file.frame(77, &x552(&probe(0), 1, 2));
    let input = Box::new(Whole::new(file.bytes));
    let mut capture =
        CaptureReader::open("a", input, StampSource::default(), false, false).unwrap();
    assert_eq!(stamps(&capture.peek(&signer()).unwrap()), [77]);
}
