//! Damage at every byte, and within what is whole.

use super::{signer, stamps};
use crate::support::frames::probe;
use crate::support::{Content, How, NAME, Order, Pcap, Pcapng, mscap, read, says};
use tailtrim_tail::capture::{Record, Remedy};
use tailtrim_tail::summary::counted;

/// Reads with and without salvage: the records must be the same, and the damage of one the error of the
/// other. Returns the records, the text of the error and what can be done.
fn damaged(bytes: &[u8], how: How) -> (Vec<Record>, String, Option<Remedy>) {
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

fn bytes_of(count: usize) -> String {
    format!(" {}", counted(count as u64, "byte"))
}

fn salvage_hint(records: usize) -> Option<Remedy> {
    (records > 0).then_some(Remedy::Salvage { packets: Some(records as u64) })
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
            let (start, there, of, wanted) = if end < Pcap::HEADER {
                (0, end, "header", Pcap::HEADER)
            } else {
                let start = starts[before - 1];
                match (end - start).checked_sub(Pcap::RECORD_HEADER) {
                    None => (start, end - start, "record header", 16),
                    Some(there) => (start, there, "frame", 50 + before - 1),
                }
            };
            if end == 0 {
                assert!(says(&error, &[NAME, "empty"]), "{error}");
            } else {
                assert!(
                    says(&error, &[NAME, &format!("byte {start}:"), &bytes_of(there)]),
                    "{error}"
                );
                assert!(says(&error, &["expected", &bytes_of(wanted)]), "{error}");
                assert!(error.contains(of), "{error}");
            }
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
        let start = format!("byte {}:", if end < 4 { 0 } else { start });
        let there = bytes_of(if end < 4 { end } else { there });
        let wanted = if end < 4 { "24 bytes" } else { "a whole block" };
        assert!(says(&error, &[NAME, &start, &there, "expected", wanted]), "{error}");
        assert_eq!(records, whole[..before]);
        assert_eq!(hint, salvage_hint(before));
    }
}

#[test]
fn mscap_truncated_at_every_byte() {
    let bytes = mscap(&[(1, 1), (2, 2), (3, 3)]);
    for end in (1..bytes.len()).filter(|end| end % 12 != 0) {
        let (records, error, hint) = damaged(&bytes[..end], How::MOONSNIFF);
        let (start, there) = (format!("byte {}:", end / 12 * 12), bytes_of(end % 12));
        assert!(says(&error, &[NAME, &start, &there, "expected", "12 bytes"]), "{error}");
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
        (true, 65_535, [1, 0, 262_145, 262_145], "262,145 bytes", "262,144 bytes"),
        (true, 300_000, [1, 0, 300_001, 1], "300,001 bytes", "300,000 bytes"),
        (true, u32::MAX, [1, 0, 262_145, 1], "262,145 bytes", "262,144 bytes"),
        (true, 0, [1, 0, u32::MAX, 1], "4,294,967,295 bytes", "262,144 bytes"),
        // Both wrong: the length is what makes reading on impossible.
        (true, 0, [1, u32::MAX, u32::MAX, 1], "4,294,967,295 bytes", "262,144 bytes"),
        (true, 0, [1, 1_000_000_000, 60, 60], "1000000000 nanoseconds", "fewer than 1000000000"),
        (false, 0, [1, 1_000_000, 60, 60], "1000000 microseconds", "fewer than 1000000"),
        (false, 0, [1, u32::MAX, 60, 60], "4294967295 microseconds", "fewer than 1000000"),
    ];
    for (nanoseconds, snap_length, header, found, wanted) in cases {
        for order in [Order::Little, Order::Big] {
            let bytes = pcap_with(order, nanoseconds, snap_length, header);
            let (records, error, hint) = damaged(&bytes, How::default());
            let place = format!("byte {start}:");
            assert!(says(&error, &[NAME, &place, found, "expected", wanted]), "{error}");
            assert_eq!(stamps(&records), [1_000, 2_000]);
            // More microseconds than there are may be nanoseconds.
            let hinted = if !nanoseconds && header[1] < 1_000_000_000 {
                Some(Remedy::Nanoseconds { packets: 2 })
            } else {
                salvage_hint(2)
            };
            assert_eq!(hint, hinted);
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

type Break = fn(&mut Pcapng);

/// Cases of damage: its distance behind the first packet (a sound block may stand in front of it), the bytes written
/// there, and the words in which the error names found and expected content.
const DAMAGES: [(u64, Break, &str, &str); 15] = [
    (
        0,
        |file| file.bytes.extend([0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 1, 2, 3, 4]),
        "byte order",
        "1a2b3c4d",
    ),
    (0, |file| file.bytes.extend([0; 12]), " 0 bytes", "4 from 12 to 16,777,216"),
    (0, |file| file.bytes.extend([0xff; 12]), "4,294,967,295 bytes", "4 from 12 to 16,777,216"),
    (
        0,
        |file| file.bytes.extend([6_u32, 8, 8].iter().flat_map(|&w| file.order.u32(w))),
        " 8 bytes",
        "4 from 12 to 16,777,216",
    ),
    (
        0,
        |file| file.bytes.extend([6_u32, 14, 14].iter().flat_map(|&w| file.order.u32(w))),
        " 14 bytes",
        "4 from 12 to 16,777,216",
    ),
    (
        0,
        |file| {
            let words = [6_u32, 16_777_220, 0];
            file.bytes.extend(words.iter().flat_map(|&w| file.order.u32(w)));
        },
        "16,777,220 bytes",
        "4 from 12 to 16,777,216",
    ),
    (
        0,
        |file| {
            let words = [99_u32, 16, 0, 20];
            file.bytes.extend(words.iter().flat_map(|&w| file.order.u32(w)));
        },
        "lengths differ (16",
        "the same length",
    ),
    (
        0,
        |file| {
            file.block(2, &[0; 8]);
        },
        "a packet block without room",
        "at least 32 bytes",
    ),
    (
        0,
        |file| {
            file.block(6, &[0; 8]);
        },
        "type 0x6",
        "well-formed",
    ),
    (
        0,
        |file| {
            file.packet(1, 2, &probe(1));
        },
        "interface 1",
        "the 1 interfaces",
    ),
    (
        28,
        |file| {
            file.section(file.order).simple_packet(&probe(1), 64);
        },
        "interface 0",
        "the 0 interfaces",
    ),
    (
        0,
        |file| {
            file.versioned_section(file.order, [2, 0]);
        },
        "version 2.0",
        "version 1.0",
    ),
    (
        0,
        |file| {
            file.interface(1, Some(20), None);
        },
        "0x14",
        "64 bits",
    ),
    (
        32,
        |file| {
            file.interface(1, Some(0), None).packet(1, u64::MAX, &probe(1));
        },
        "18446744073709551615 units",
        "146 years of 1970",
    ),
    (
        44,
        |file| {
            file.interface(1, Some(9), Some(i64::MIN)).packet(1, 5, &probe(1));
        },
        " 5 units",
        "146 years of 1970",
    ),
];

#[test]
fn damage_within_a_pcapng() {
    for order in [Order::Little, Order::Big] {
        for (behind, damage, found, wanted) in DAMAGES {
            let (start, bytes) = pcapng_with(order, damage);
            let (records, error, hint) = damaged(&bytes, How::default());
            let place: u64 = error
                .strip_prefix(&format!("{NAME}: byte "))
                .and_then(|rest| rest.split_once(':'))
                .map(|(place, _)| place.parse().unwrap())
                .unwrap();
            assert_eq!(place, start as u64 + behind, "{error}");
            assert!(says(&error, &[found, "expected", wanted]), "{error}");
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
        assert!(says(&error, &[NAME, &format!("byte {start}:"), "type 0x6", "parse"]), "{error}");
    }
}

/// Two captures that cat joined: the second one begins with a header of its own.
#[test]
fn a_second_pcap_is_told_with_what_joins_captures() {
    for (order, nanoseconds) in [(Order::Little, true), (Order::Big, false)] {
        let mut file = Pcap::new(order, nanoseconds, 1);
        file.frame(0, &probe(0)).frame(1_000, &probe(1));
        let end = file.bytes.len();
        let joined = [&file.bytes[..], &file.bytes].concat();
        let (records, error, hint) = damaged(&joined, How::default());
        assert_eq!((records.len(), hint), (2, salvage_hint(2)));
        let facts = &[&format!("byte {end}:")[..], "header of another pcap", "mergecap"];
        assert!(says(&error, facts), "{error}");
    }
}
