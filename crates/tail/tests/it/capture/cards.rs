//! ERF, the modified pcap, obsolete packets, and captures of other programs.

use super::{record, signer, stamps};
use crate::support::frames::{Ipv4, UDP, probe, udp};
use crate::support::{
    How, NAME, Order, Pcap, Pcapng, SECOND_NS, erf, erf_ethernet, modified_pcap, read, says,
};
use tailtrim_tail::capture::{CaptureReader, Format, Whole};

const START_NS: i64 = 1_700_000_000 * SECOND_NS;

#[test]
fn erf_of_ethernet_and_ip() {
    let packet = Ipv4::new(UDP, udp(1, 2, 3, b"raw")).bytes();
    let mut extended = erf_ethernet(3, START_NS + 7, &probe(2));
    // Two extension headers, the first of which says that there is another one.
    extended[8] |= 0x80;
    extended.splice(16..16, [[0x83, 1, 2, 3, 4, 5, 6, 7], [3, 1, 2, 3, 4, 5, 6, 7]].concat());
    let length = extended.len() as u16;
    extended[10..12].copy_from_slice(&length.to_be_bytes());
    let mut dropped = erf_ethernet(1, START_NS + 11, &probe(1));
    dropped[12..14].copy_from_slice(&5_u16.to_be_bytes());
    let bytes = [
        erf_ethernet(0, START_NS + 1, &probe(0)),
        dropped,
        // Padding and metadata are no packets.
        erf(48, 0, START_NS, 0, &[]),
        erf(27, 0, START_NS, 0, &[0; 16]),
        extended,
        erf(22, 0, START_NS + 999_999_999, packet.len(), &packet),
    ]
    .concat();
    let content = read(&bytes, How::default(), &signer());
    assert_eq!((content.tap_drops, content.offset), (Some(5), bytes.len() as u64));
    let records = content.sound();
    assert_eq!(records[0], record(START_NS + 1, &probe(0)));
    assert_eq!(records[1], record(START_NS + 11, &probe(1)));
    assert_eq!(records[2], record(START_NS + 7, &probe(2)));
    assert_eq!(records[3].stamp_ns, START_NS + 999_999_999);
    assert_eq!(records[3].signature, super::record_of(101, &packet).signature);
    assert_eq!((records[3].length, records[3].cut), (packet.len() as u32, false));
    let reader =
        CaptureReader::open(NAME, Box::new(Whole::new(bytes)), How::default().stamps, false, false);
    assert_eq!(reader.unwrap().format(), Format::Erf);
}

#[test]
fn erf_that_was_cut_or_is_damaged() {
    let long = [probe(0), vec![7; 100]].concat();
    let mut cut = erf(2, 0, START_NS, long.len() + 4, &[&[0, 0], &long[..80]].concat());
    let content = read(&cut, How::default(), &signer());
    let records = content.sound();
    assert_eq!((records[0].cut, records[0].length), (true, long.len() as u32));
    let whole = erf_ethernet(0, START_NS, &probe(1));
    cut.extend(&whole);
    let length = cut.len();
    let content = read(&cut[..length - 9], How::default(), &signer());
    let error = content.error.unwrap();
    let found = format!("ends {} bytes into a record", whole.len() - 9);
    assert!(says(&error, &[NAME, &found, &format!("{} bytes", whole.len())]), "{error}");
    assert_eq!(content.records.len(), 1);
    // A record that is shorter than its header.
    cut.extend(erf(2, 0, START_NS, 60, &[0; 62]));
    cut[length + 10..length + 12].copy_from_slice(&[0, 8]);
    let content = read(&cut, How::default(), &signer());
    let error = content.error.unwrap();
    assert!(says(&error, &[&format!("byte {length}:"), "type 2 and 8 bytes", "16"]), "{error}");
    assert_eq!(content.records.len(), 2);
}

#[test]
fn types_of_erf_that_are_not_read() {
    let atm = erf(3, 1, START_NS, 52, &[0; 52]);
    let mixed = [erf_ethernet(0, START_NS, &probe(0)), atm.clone(), atm.clone()].concat();
    let content = read(&mixed, How::default(), &signer());
    assert_eq!(content.unread, ["2 packets of interface 1 (ERF type 3, ATM)"]);
    assert_eq!(content.sound().len(), 1);
    let content = read(&[atm.clone(), atm].concat(), How::default(), &signer());
    let error = content.error.unwrap();
    assert!(says(&error, &[NAME, "no packet can be read", "2 packets", "ATM"]), "{error}");
}

#[test]
fn the_modified_pcap() {
    for order in [Order::Little, Order::Big] {
        let frames = [probe(0), probe(1)];
        let packets = [
            (START_NS + 5_000, 2, 0, frames[0].as_slice()),
            (START_NS + 9_000, 3, 4, frames[1].as_slice()),
        ];
        let bytes = modified_pcap(order, &packets);
        let records = read(&bytes, How::default(), &signer()).sound();
        let expected = packets.map(|(stamp_ns, _, _, frame)| record(stamp_ns, frame));
        assert_eq!(records, expected);
    }
}

/// Nokia's record headers have four bytes more, those of old Linux distributions eight or twelve, under the usual magic
/// numbers.
#[test]
fn other_variants_of_pcap_are_named() {
    for more in [4, 8, 12] {
        let mut file = Pcap::new(Order::Little, false, 1);
        for sequence in 0..3 {
            let length = probe(sequence).len() as u32;
            file.record([1_700_000_000, sequence, length, length], &vec![0; more]);
            file.bytes.extend(probe(sequence));
        }
        let error = read(&file.bytes, How::default(), &signer()).error.unwrap();
        let headers = format!("record headers of {} bytes", 16 + more);
        assert!(says(&error, &[NAME, &headers, "editcap -F nsecpcap IN OUT"]), "{error}");
    }
}

#[test]
fn file_headers_of_other_versions() {
    let mut old = Pcap::ethernet().bytes;
    old[6] = 3;
    let mut reserved = Pcap::ethernet().bytes;
    reserved[22] = 0x30;
    for (bytes, facts) in [
        (old, ["version 2.3", "version 2.4", "editcap"]),
        (reserved, ["0x00300001", "reserved bits", "damaged"]),
    ] {
        let error = read(&bytes, How::default(), &signer()).error.unwrap();
        assert!(says(&error, &[NAME]) && says(&error, &facts), "{error}");
    }
}

#[test]
fn captures_of_other_programs_are_named_with_what_helps() {
    let cases: [(&[u8], &str, &str); 9] = [
        (b"snoop\0\0\0\0\0\0\x02\0\0\0\x04", "a snoop capture", "editcap -F nsecpcap IN OUT"),
        (b"btsnoop\0\0\0\0\x01\0\0\x03\xea", "Bluetooth", "network interface"),
        (b"GMBU\x01\x02\x03\x04", "Network Monitor", "editcap"),
        (b"\xfd7zXZ\0\0\x04", "compressed by xz", "xz -d"),
        (b"BZh91AY&SY", "compressed by bzip2", "bunzip2"),
        (b"PK\x03\x04\x14\0\0\0", "a zip archive", "unzip"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS", "git lfs pull"),
        (b"12:00:00.000000 IP 10.0.0.1 > 10.0.0.2: UDP", "text", "tcpdump -w"),
        // Found by fuzzing: named otherwise where its bytes arrived one by one.
        (b"12:00:00.000000 IP 10.0.0.1\0", "text", "tcpdump -w"),
    ];
    for (start, found, help) in cases {
        let mut bytes = start.to_vec();
        let filler = if start.is_ascii() && !start.contains(&0) { b' ' } else { 1 };
        bytes.resize(100, filler);
        let error = read(&bytes, How::default(), &signer()).error.unwrap();
        assert!(says(&error, &[NAME, found, help]), "{error}");
    }
    for (link_type, name) in [(192, "PPI"), (127, "radiotap"), (220, "usbmon"), (150, "private")] {
        let bytes = Pcap::new(Order::Little, true, link_type).bytes;
        let error = read(&bytes, How::default(), &signer()).error.unwrap();
        assert!(says(&error, &[NAME, &format!("link type {link_type} ("), name]), "{error}");
    }
}

#[test]
fn interfaces_of_other_link_types_are_counted() {
    let mut file = Pcapng::new(Order::Big);
    file.interface(1, Some(9), None).interface(271, Some(9), None);
    file.packet(0, 5, &probe(0)).packet(1, 6, &[1; 44]).packet(1, 7, &[1; 44]);
    file.packet(0, 8, &probe(1));
    let content = read(&file.bytes, How::default(), &signer());
    assert_eq!(content.unread, ["2 packets of interface 1 (link type 271, vsock)"]);
    assert_eq!(stamps(&content.sound()), [5, 8]);
    let mut none = Pcapng::new(Order::Little);
    none.interface(271, Some(9), None).packet(0, 5, &[1; 44]);
    for how in [How::default(), How::SALVAGE] {
        let error = read(&none.bytes, how, &signer()).error.unwrap();
        let facts = ["no packet can be read", "1 packet of interface 0", "vsock", "expected"];
        assert!(says(&error, &[NAME]) && says(&error, &facts), "{error}");
    }
}

#[test]
fn obsolete_packet_blocks() {
    for order in [Order::Little, Order::Big] {
        let mut file = Pcapng::new(order);
        file.interface(1, Some(9), None).interface(1, None, None);
        file.obsolete_packet(0, 5, &probe(0)).obsolete_packet(1, 7, &probe(1)[..41]);
        let records = read(&file.bytes, How::default(), &signer()).sound();
        assert_eq!(records, [record(5, &probe(0)), record(7_000, &probe(1)[..41])]);
    }
}

#[test]
fn nanoseconds_under_the_magic_number_of_microseconds() {
    let mut file = Pcap::new(Order::Little, false, 1);
    let stamps_ns = [START_NS + 17, START_NS + 999_999_999];
    for stamp_ns in stamps_ns {
        let length = probe(0).len() as u32;
        let words = [stamp_ns / SECOND_NS, stamp_ns % SECOND_NS].map(|word| word as u32);
        file.record([words[0], words[1], length, length], &probe(0));
    }
    let how = How { stamps: tailtrim_tail::capture::StampSource::Nanoseconds, ..How::default() };
    assert_eq!(stamps(&read(&file.bytes, how, &signer()).sound()), stamps_ns);
}
