//! Damage at every byte, and within what is whole.

use super::{signer, stamps};
use crate::support::frames::probe;
use crate::support::{Content, How, NAME, Order, Pcap, Pcapng, mscap, read};
use tailtrim_tail::capture::{Record, Remedy};

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

type Break = fn(&mut Pcapng);

/// How far behind the first packet the damage is found (a sound block may stand in front of it), what is written
/// there, what the error says was found and what it expected.
const DAMAGES: [(u64, Break, &str, &str); 15] = [
    (
        0,
        |file| file.bytes.extend([0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 1, 2, 3, 4]),
        "a section of unknown byte order",
        "1a2b3c4d",
    ),
    (
        0,
        |file| file.bytes.extend([0; 12]),
        "a block of 0 bytes",
        "a multiple of 4 from 12 to 16777216",
    ),
    (
        0,
        |file| file.bytes.extend([0xff; 12]),
        "a block of 4294967295 bytes",
        "a multiple of 4 from 12 to 16777216",
    ),
    (
        0,
        |file| file.bytes.extend([6_u32, 8, 8].iter().flat_map(|&w| file.order.u32(w))),
        "a block of 8 bytes",
        "a multiple of 4 from 12 to 16777216",
    ),
    (
        0,
        |file| file.bytes.extend([6_u32, 14, 14].iter().flat_map(|&w| file.order.u32(w))),
        "a block of 14 bytes",
        "a multiple of 4 from 12 to 16777216",
    ),
    (
        0,
        |file| {
            let words = [6_u32, 16_777_220, 0];
            file.bytes.extend(words.iter().flat_map(|&w| file.order.u32(w)));
        },
        "a block of 16777220 bytes",
        "a multiple of 4 from 12 to 16777216",
    ),
    (
        0,
        |file| {
            let words = [99_u32, 16, 0, 20];
            file.bytes.extend(words.iter().flat_map(|&w| file.order.u32(w)));
        },
        "a block whose two lengths differ (16 first)",
        "the same length at both ends",
    ),
    (
        0,
        |file| {
            file.block(2, &[0; 24]);
        },
        "an obsolete packet block",
        "enhanced packet blocks",
    ),
    (
        0,
        |file| {
            file.block(6, &[0; 8]);
        },
        "a block of type 0x6 that does not parse",
        "a well-formed block",
    ),
    (
        0,
        |file| {
            file.packet(1, 2, &probe(1));
        },
        "a packet of interface 1",
        "one of the 1 interfaces described before",
    ),
    (
        28,
        |file| {
            file.section(file.order).simple_packet(&probe(1), 64);
        },
        "a packet of interface 0",
        "one of the 0 interfaces described before",
    ),
    (
        20,
        |file| {
            file.interface(105, None, None).packet(1, 2, &probe(1));
        },
        "a packet of link type 105",
        "1 (Ethernet), 101, 228 or 229 (raw IP), 113 or 276 (Linux cooked)",
    ),
    (
        0,
        |file| {
            file.interface(1, Some(20), None);
        },
        "a stamp resolution of 0x14",
        "a power of 10 or 2 that fits 64 bits",
    ),
    (
        32,
        |file| {
            file.interface(1, Some(0), None).packet(1, u64::MAX, &probe(1));
        },
        "a stamp of 18446744073709551615 units",
        "a time within 146 years of 1970",
    ),
    (
        44,
        |file| {
            file.interface(1, Some(9), Some(i64::MIN)).packet(1, 5, &probe(1));
        },
        "a stamp of 5 units",
        "a time within 146 years of 1970",
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
