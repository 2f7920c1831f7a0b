//! Captures byte by byte: every format read back from a mapped file, a pipe and in single bytes, every
//! kind of damage with the complete text of its error, with and without salvage.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod support;

use std::io;
use support::frames::{self, Ipv4, UDP, ethernet, probe, udp};
use support::{
    Content, Failing, How, NAME, Order, Pcap, Pcapng, SECOND_NS, drain, inputs, mscap, read, x552,
};
use tailtrim_model::capture::{
    Capture, CaptureError, Format, Record, StampSource, Streamed, Whole,
};
use tailtrim_model::signature::{Rewrites, Signature, Signer};

fn signer() -> Signer {
    Signer::new(Rewrites::default())
}

/// The signature of a frame, taken on its own from a capture of one record.
fn signature_of(frame: &[u8]) -> Signature {
    record_of(1, frame).signature
}

fn record_of(link_type: u32, frame: &[u8]) -> Record {
    let mut file = Pcap::new(Order::Little, true, link_type);
    file.frame(0, frame);
    read(&file.bytes, How::default(), &signer()).sound()[0]
}

/// What is expected of a whole Ethernet frame.
fn record(stamp_ns: i64, frame: &[u8]) -> Record {
    Record {
        stamp_ns,
        signature: signature_of(frame),
        length: frame.len() as u32,
        signable: frame.len() as u16 - 14,
        cut: false,
        stamped: true,
    }
}

fn stamps(records: &[Record]) -> Vec<i64> {
    records.iter().map(|record| record.stamp_ns).collect()
}

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

#[test]
fn pcapng_simple_packets_have_no_stamp() {
    let frame = probe(1);
    let mut file = Pcapng::new(Order::Big);
    file.interface(1, None, None)
        .simple_packet(&frame, frame.len() as u32)
        .simple_packet(&frame[..40], frame.len() as u32)
        // Padding to a multiple of four is not part of the frame.
        .simple_packet(&frame[..41], 41);
    let records = read(&file.bytes, How::default(), &signer()).sound();
    let unstamped = Record { stamped: false, ..record(0, &frame) };
    assert_eq!(records[0], unstamped);
    assert_eq!((records[1].cut, records[1].signable), (true, 26));
    assert_eq!((records[2].cut, records[2].signable), (false, 27));
    assert_eq!(records[2].signature, signature_of(&frame[..41]));
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

/// Reads with and without salvage: the records must be the same, and the damage of one the error of the
/// other. Returns the records, the text of the error and the hint.
fn damaged(bytes: &[u8], how: How) -> (Vec<Record>, String, Option<String>) {
    let strict = read(bytes, how, &signer());
    let how = How { salvage: true, ..how };
    let salvaged = read(bytes, how, &signer());
    let Content { records, error, hint, damage, .. } = strict;
    assert_eq!(damage, None);
    assert_eq!(salvaged.records, records);
    if records.is_empty() {
        // Without a record there is nothing to salvage.
        assert_eq!((&salvaged.error, salvaged.damage), (&error, None));
    } else {
        assert_eq!((salvaged.error, &salvaged.damage), (None, &error));
    }
    (records, error.unwrap(), hint)
}

fn salvage_hint(records: usize) -> Option<String> {
    (records > 0)
        .then(|| format!("use --salvage to analyse the {records} packets before the damage"))
}

#[test]
fn pcap_truncated_at_every_byte() {
    for order in [Order::Little, Order::Big] {
        let mut file = Pcap::new(order, true, 1);
        let mut starts = vec![Pcap::HEADER];
        for sequence in 0..3 {
            file.frame(i64::from(sequence), &probe(sequence)[..50 + sequence as usize]);
            starts.push(file.bytes.len());
        }
        let whole = read(&file.bytes, How::default(), &signer()).sound();
        for end in 0..file.bytes.len() {
            let bytes = &file.bytes[..end];
            if let Some(records) = starts.iter().position(|&start| start == end) {
                let content = read(bytes, How::default(), &signer());
                assert_eq!(content.sound(), whole[..records]);
                continue;
            }
            let (records, error, hint) = damaged(bytes, How::default());
            let before = starts.iter().filter(|&&start| start <= end).count();
            let expected = if end == 0 {
                "the file is empty, expected a capture (pcap, pcapng or mscap)".to_owned()
            } else if end < Pcap::HEADER {
                format!(
                    "byte 0: {end} bytes, expected at least 24 bytes of capture header \
                     (pcap, pcapng or mscap)"
                )
            } else {
                let start = starts[before - 1];
                let there = end - start;
                let wanted = 50 + before - 1;
                let place = match there.checked_sub(Pcap::RECORD_HEADER) {
                    None => format!("{there} bytes into a record header, expected 16 bytes"),
                    Some(there) => format!("{there} bytes into a frame, expected {wanted} bytes"),
                };
                format!("byte {start}: the capture ends {place}")
            };
            assert_eq!(error, format!("{NAME}: {expected}"));
            assert_eq!(records, whole[..before.saturating_sub(1)]);
            assert_eq!(hint, salvage_hint(records.len()));
        }
    }
}

#[test]
fn pcapng_truncated_at_every_byte() {
    let mut file = Pcapng::new(Order::Little);
    let mut starts = vec![(0, 0), (file.bytes.len(), 0)];
    let step = |file: &Pcapng, starts: &mut Vec<(usize, usize)>, records| {
        starts.push((file.bytes.len(), records));
    };
    file.interface(1, Some(9), None);
    step(&file, &mut starts, 0);
    file.packet(0, 7, &probe(0));
    step(&file, &mut starts, 1);
    file.section(Order::Big);
    step(&file, &mut starts, 1);
    file.interface(1, None, None);
    step(&file, &mut starts, 1);
    file.packet(0, 9, &probe(1)[..57]);
    step(&file, &mut starts, 2);
    let whole = read(&file.bytes, How::default(), &signer()).sound();
    assert_eq!(whole.len(), 2);
    for end in 1..file.bytes.len() {
        let bytes = &file.bytes[..end];
        if let Some((_, records)) = starts.iter().find(|(start, _)| *start == end) {
            let content = read(bytes, How::default(), &signer());
            assert_eq!(content.sound(), whole[..*records]);
            continue;
        }
        let (records, error, hint) = damaged(bytes, How::default());
        let (start, before) = starts[starts.iter().filter(|(start, _)| *start < end).count() - 1];
        let there = end - start;
        let expected = if end < 4 {
            format!(
                "byte 0: {end} bytes, expected at least 24 bytes of capture header \
                 (pcap, pcapng or mscap)"
            )
        } else {
            format!(
                "byte {start}: the capture ends inside a block, {there} bytes into it, \
                 expected a whole block"
            )
        };
        assert_eq!(error, format!("{NAME}: {expected}"));
        assert_eq!(records, whole[..before]);
        assert_eq!(hint, salvage_hint(before));
    }
}

#[test]
fn mscap_truncated_at_every_byte() {
    let bytes = mscap(&[(1, 1), (2, 2), (3, 3)]);
    for end in (1..bytes.len()).filter(|end| end % 12 != 0) {
        let (records, error, hint) = damaged(&bytes[..end], How::MOONSNIFF);
        assert_eq!(
            error,
            format!(
                "{NAME}: byte {}: the capture ends {} bytes into a record, expected 12 bytes",
                end / 12 * 12,
                end % 12
            )
        );
        assert_eq!(records.len(), end / 12);
        assert_eq!(hint, salvage_hint(end / 12));
    }
}

/// A pcap with two sound records, `header` and more sound records behind.
fn pcap_with(order: Order, nanoseconds: bool, snap_length: u32, header: [u32; 4]) -> Vec<u8> {
    let mut file = Pcap::with_snap_length(order, nanoseconds, 1, snap_length);
    file.frame(1_000, &probe(0)).frame(2_000, &probe(1));
    file.record(header, &[0xee; 60]).frame(3_000, &probe(2));
    file.bytes
}

#[test]
fn damage_within_a_pcap() {
    // Two records of 16 + 64 bytes behind the header.
    let start = 24 + 2 * 80;
    let cases = [
        // A record is at most as long as the snap length or 256 KiB.
        (
            true,
            65_535,
            [1, 0, 262_145, 262_145],
            "a record of 262145 bytes",
            "at most 262144 bytes",
        ),
        (true, 300_000, [1, 0, 300_001, 1], "a record of 300001 bytes", "at most 300000 bytes"),
        (true, u32::MAX, [1, 0, 262_145, 1], "a record of 262145 bytes", "at most 262144 bytes"),
        (true, 0, [1, 0, u32::MAX, 1], "a record of 4294967295 bytes", "at most 262144 bytes"),
        // Both wrong: the length is what makes reading on impossible.
        (
            true,
            0,
            [1, u32::MAX, u32::MAX, 1],
            "a record of 4294967295 bytes",
            "at most 262144 bytes",
        ),
        (
            true,
            0,
            [1, 1_000_000_000, 60, 60],
            "1000000000 nanoseconds in a stamp",
            "fewer than 1000000000",
        ),
        (false, 0, [1, 1_000_000, 60, 60], "1000000 microseconds in a stamp", "fewer than 1000000"),
        (
            false,
            0,
            [1, u32::MAX, 60, 60],
            "4294967295 microseconds in a stamp",
            "fewer than 1000000",
        ),
    ];
    for (nanoseconds, snap_length, header, found, wanted) in cases {
        for order in [Order::Little, Order::Big] {
            let bytes = pcap_with(order, nanoseconds, snap_length, header);
            let (records, error, hint) = damaged(&bytes, How::default());
            assert_eq!(error, format!("{NAME}: byte {start}: {found}, expected {wanted}"));
            assert_eq!(stamps(&records), [1_000, 2_000]);
            assert_eq!(hint, salvage_hint(2));
        }
    }
}

/// A pcapng with one sound packet, then what `damage` writes, then another sound packet.
fn pcapng_with(order: Order, damage: impl FnOnce(&mut Pcapng)) -> (usize, Vec<u8>) {
    let mut file = Pcapng::new(order);
    file.interface(1, Some(9), None);
    file.packet(0, 1, &probe(0));
    let start = file.bytes.len();
    damage(&mut file);
    file.packet(0, 2, &probe(1));
    (start, file.bytes)
}

#[test]
fn damage_within_a_pcapng() {
    type Break = fn(&mut Pcapng);
    let cases: [(Break, &str, &str); 15] = [
        (
            |file| file.bytes.extend([0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 1, 2, 3, 4]),
            "a section of unknown byte order",
            "1a2b3c4d",
        ),
        (
            |file| file.bytes.extend([0; 12]),
            "a block of 0 bytes",
            "a multiple of 4 from 12 to 16777216",
        ),
        (
            |file| file.bytes.extend([0xff; 12]),
            "a block of 4294967295 bytes",
            "a multiple of 4 from 12 to 16777216",
        ),
        (
            |file| file.bytes.extend([6_u32, 8, 8].iter().flat_map(|&w| file.order.u32(w))),
            "a block of 8 bytes",
            "a multiple of 4 from 12 to 16777216",
        ),
        (
            |file| file.bytes.extend([6_u32, 14, 14].iter().flat_map(|&w| file.order.u32(w))),
            "a block of 14 bytes",
            "a multiple of 4 from 12 to 16777216",
        ),
        (
            |file| {
                let words = [6_u32, 16_777_220, 0];
                file.bytes.extend(words.iter().flat_map(|&w| file.order.u32(w)));
            },
            "a block of 16777220 bytes",
            "a multiple of 4 from 12 to 16777216",
        ),
        (
            |file| {
                let words = [99_u32, 16, 0, 20];
                file.bytes.extend(words.iter().flat_map(|&w| file.order.u32(w)));
            },
            "a block whose two lengths differ (16 first)",
            "the same length at both ends",
        ),
        (
            |file| {
                file.block(2, &[0; 24]);
            },
            "an obsolete packet block",
            "enhanced packet blocks",
        ),
        (
            |file| {
                file.block(6, &[0; 8]);
            },
            "a block of type 0x6 that does not parse",
            "a well-formed block",
        ),
        (
            |file| {
                file.packet(1, 2, &probe(1));
            },
            "a packet of interface 1",
            "one of the 1 interfaces described before",
        ),
        (
            |file| {
                file.section(file.order).simple_packet(&probe(1), 64);
            },
            "a packet of interface 0",
            "one of the 0 interfaces described before",
        ),
        (
            |file| {
                file.interface(105, None, None).packet(1, 2, &probe(1));
            },
            "a packet of link type 105",
            "1 (Ethernet), 101, 228 or 229 (raw IP), 113 or 276 (Linux cooked)",
        ),
        (
            |file| {
                file.interface(1, Some(20), None);
            },
            "a stamp resolution of 0x14",
            "a power of 10 or 2 that fits 64 bits",
        ),
        (
            |file| {
                file.interface(1, Some(0), None).packet(1, u64::MAX, &probe(1));
            },
            "a stamp of 18446744073709551615 units",
            "a time within 146 years of 1970",
        ),
        (
            |file| {
                file.interface(1, Some(9), Some(i64::MIN)).packet(1, 5, &probe(1));
            },
            "a stamp of 5 units",
            "a time within 146 years of 1970",
        ),
    ];
    for order in [Order::Little, Order::Big] {
        for (number, (damage, found, wanted)) in cases.iter().enumerate() {
            let (start, bytes) = pcapng_with(order, damage);
            let (records, error, hint) = damaged(&bytes, How::default());
            // Some of the damage stands behind a sound block.
            let place: u64 = error
                .strip_prefix(&format!("{NAME}: byte "))
                .and_then(|rest| rest.split_once(':'))
                .map(|(place, _)| place.parse().unwrap())
                .unwrap();
            let behind = match number {
                10 => 28,
                11 => 20,
                13 => 32,
                14 => 44,
                _ => 0,
            };
            assert_eq!(place, (start + behind) as u64, "{error}");
            assert_eq!(error, format!("{NAME}: byte {place}: {found}, expected {wanted}"));
            assert_eq!(stamps(&records), [1]);
            assert_eq!(hint, salvage_hint(1));
        }
    }
}

#[test]
fn a_pcapng_packet_larger_than_its_block() {
    for order in [Order::Little, Order::Big] {
        let (start, bytes) = pcapng_with(order, |file| {
            let words = [0_u32, 0, 2, 5, 5];
            let body: Vec<u8> = words.iter().flat_map(|&w| file.order.u32(w)).collect();
            file.block(6, &[body.as_slice(), &[1, 2, 3, 4]].concat());
        });
        let (_, error, _) = damaged(&bytes, How::default());
        let parse = "a block of type 0x6 that does not parse, expected a well-formed block";
        assert_eq!(error, format!("{NAME}: byte {start}: {parse}"));
    }
}

#[test]
fn what_no_reader_understands() {
    let magic = "expected a pcap (a1b2c3d4 or a1b23c4d, either byte order), pcapng (0a0d0d0a), \
                 zstd or gzip magic number, or the name ending .mscap";
    let links = "expected 1 (Ethernet), 101, 228 or 229 (raw IP), 113 or 276 (Linux cooked)";
    let cases = [
        (
            b"GIF89a, and then some more bytes".to_vec(),
            format!("magic number 47 49 46 38, {magic}"),
        ),
        (vec![0; 24], format!("magic number 00 00 00 00, {magic}")),
        (Pcap::new(Order::Little, true, 105).bytes, format!("link type 105, {links}")),
        (Pcap::new(Order::Big, false, 65_535).bytes, format!("link type 65535, {links}")),
    ];
    for (bytes, expected) in cases {
        for how in [How::default(), How::SALVAGE] {
            let content = read(&bytes, how, &signer());
            assert_eq!(content.error, Some(format!("{NAME}: byte 0: {expected}")));
            assert_eq!(content.hint, None);
        }
    }
}

#[test]
fn an_empty_file_is_named() {
    for how in [How::default(), How::SALVAGE, How::MOONSNIFF] {
        let content = read(&[], how, &signer());
        assert_eq!(
            content.error.unwrap(),
            "some/capture: the file is empty, expected a capture (pcap, pcapng or mscap)"
        );
        assert_eq!(content.hint, None);
    }
}

#[test]
fn a_source_that_fails() {
    let mut file = Pcap::ethernet();
    file.frame(1, &probe(0)).frame(2, &probe(1));
    let signer = signer();
    for cut in [10, 24, 24 + 80, 24 + 80 + 30, 24 + 160] {
        let input = || Box::new(Streamed::new(Failing(file.bytes[..cut].to_vec())));
        let content = drain(input(), How::default(), &signer);
        let records = cut.saturating_sub(24) / 80;
        // Before the header is complete nothing was read that could be used.
        let offset = if cut < 24 { 0 } else { 24 + records * 80 };
        let expected = format!("{NAME}: reading failed after byte {offset}: the cable is cut");
        assert_eq!(content.error.as_ref(), Some(&expected));
        assert_eq!(content.records.len(), records);
        let hint = "use --salvage to analyse what could be read";
        assert_eq!(content.hint.as_deref(), (offset > 0).then_some(hint));
        let salvaged = drain(input(), How::SALVAGE, &signer);
        assert_eq!(salvaged.records, content.records);
        if offset > 0 {
            assert_eq!((salvaged.error, salvaged.damage), (None, Some(expected)));
        } else {
            assert_eq!((salvaged.error, salvaged.damage), (Some(expected), None));
        }
    }
}

#[test]
fn peeking_at_a_source_that_fails_loses_nothing() {
    let mut file = Pcap::ethernet();
    file.frame(1, &probe(0)).frame(2, &probe(1));
    let input = Streamed::new(Failing(file.bytes[..24 + 80 + 30].to_vec()));
    let mut capture = How::SALVAGE.open(Box::new(input)).unwrap();
    let peeked = capture.peek(&signer()).unwrap();
    assert_eq!(stamps(&peeked), [1]);
    let mut batch = Vec::new();
    assert!(capture.read(&signer(), &mut batch).unwrap());
    assert_eq!(batch, peeked);
    assert!(!capture.read(&signer(), &mut batch).unwrap());
    assert_eq!(
        capture.damage().unwrap().to_string(),
        "some/capture: reading failed after byte 104: the cable is cut"
    );
}

#[test]
fn the_text_and_the_hint_of_every_error() {
    let path = || "a.pcap".to_owned();
    let cases: [(CaptureError, &str, Option<&str>); 9] = [
        (
            CaptureError::Open { path: path(), source: io::Error::other("no such luck") },
            "a.pcap: cannot be opened: no such luck",
            None,
        ),
        (
            CaptureError::Io { path: path(), offset: 0, source: io::Error::other("gone") },
            "a.pcap: reading failed after byte 0: gone",
            None,
        ),
        (
            CaptureError::Io { path: path(), offset: 7, source: io::Error::other("gone") },
            "a.pcap: reading failed after byte 7: gone",
            Some("use --salvage to analyse what could be read"),
        ),
        (
            CaptureError::Empty { path: path() },
            "a.pcap: the file is empty, expected a capture (pcap, pcapng or mscap)",
            None,
        ),
        (
            CaptureError::Format {
                path: path(),
                found: "magic number 00 01 02 03".to_owned(),
                expected: "another one".to_owned(),
            },
            "a.pcap: byte 0: magic number 00 01 02 03, expected another one",
            None,
        ),
        (
            CaptureError::Damaged {
                path: path(),
                offset: 24,
                found: "this".to_owned(),
                expected: "that".to_owned(),
                records: 0,
            },
            "a.pcap: byte 24: this, expected that",
            None,
        ),
        (
            CaptureError::Damaged {
                path: path(),
                offset: 99,
                found: "this".to_owned(),
                expected: "that".to_owned(),
                records: 3,
            },
            "a.pcap: byte 99: this, expected that",
            Some("use --salvage to analyse the 3 packets before the damage"),
        ),
        (
            CaptureError::Disorder { path: path(), packet: 17, back_ns: 2_000_000_000 },
            "a.pcap: packet 17: its stamp is 2000000000 ns before an earlier one, expected stamps in order within 1 s",
            Some(
                "the capture's clock was set back; sort it (reordercap) if only the file is disordered, or record it again",
            ),
        ),
        (
            CaptureError::Damaged {
                path: path(),
                offset: 99,
                found: "this".to_owned(),
                expected: "that".to_owned(),
                records: 1,
            },
            "a.pcap: byte 99: this, expected that",
            Some("use --salvage to analyse the 1 packets before the damage"),
        ),
    ];
    for (error, text, hint) in cases {
        assert_eq!(error.to_string(), text);
        assert_eq!(error.hint().as_deref(), hint);
    }
}

#[test]
fn stamps_come_from_the_header_by_default() {
    assert_eq!(StampSource::default(), StampSource::Header);
    let mut file = Pcap::ethernet();
    file.frame(77, &x552(&probe(0), 1, 2));
    let input = Box::new(Whole::new(file.bytes));
    let mut capture = Capture::open("a", input, StampSource::default(), false, false).unwrap();
    assert_eq!(stamps(&capture.peek(&signer()).unwrap()), [77]);
}
