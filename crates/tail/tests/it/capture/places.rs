//! Packets of one interface or direction, and which there are.

use super::{signer, stamps};
use crate::support::frames::{Ipv4, UDP, probe, udp};
use crate::support::{How, NAME, Order, Pcap, Pcapng, erf_ethernet, modified_pcap, mscap, says};
use tailtrim_tail::capture::{
    CaptureError, CaptureReader, InterfaceDirection, Only, Record, Whole,
};

fn open(bytes: &[u8], how: How) -> CaptureReader {
    how.open(Box::new(Whole::new(bytes.to_vec()))).unwrap()
}

/// The records that are read of `bytes`, and those of a reader that peeked first.
fn only(bytes: &[u8], named: &str, side: InterfaceDirection) -> Vec<Record> {
    let mut capture = open(bytes, How::default());
    capture.take_only(Only::named(named, side)).unwrap();
    let peeked = capture.peek(&signer()).unwrap();
    let (mut batch, mut records) = (Vec::new(), Vec::new());
    while capture.read(&signer(), &mut batch).unwrap() {
        records.append(&mut batch);
    }
    assert_eq!(peeked, records);
    records
}

fn survey(bytes: &[u8]) -> Vec<(String, String, u64)> {
    let seen = open(bytes, How::default()).survey().unwrap();
    seen.into_iter().map(|seen| (seen.choice, seen.interface, seen.packets)).collect()
}

fn told(seen: &[(&str, &str, u64)]) -> Vec<(String, String, u64)> {
    seen.iter().map(|(choice, name, count)| ((*choice).into(), (*name).into(), *count)).collect()
}

/// A packet of `tcpdump -i any`.
fn cooked2(index: u32, kind: u8) -> Vec<u8> {
    let mut frame = vec![0x08, 0, 0, 0];
    frame.extend(index.to_be_bytes());
    frame.extend([0, 1, kind, 6, 2, 0, 0, 0, 0, 1, 0, 0]);
    frame.extend(Ipv4::new(UDP, udp(1, 2, 3, b"any")).bytes());
    frame
}

#[test]
fn interfaces_of_pcapng_by_number_name_and_description() {
    let mut file = Pcapng::new(Order::Big);
    file.named_interface(1, ["eth1", "to the load generator"]).named_interface(1, ["eth2", ""]);
    for at in 0..6 {
        file.packet(at % 2, u64::from(at), &probe(at));
    }
    for named in ["eth1", "0", "to the load generator"] {
        assert_eq!(stamps(&only(&file.bytes, named, InterfaceDirection::In)), [0, 2, 4]);
    }
    assert_eq!(stamps(&only(&file.bytes, "eth2", InterfaceDirection::Out)), [1, 3, 5]);
    assert!(only(&file.bytes, "eth3", InterfaceDirection::In).is_empty());
    let names = [("eth1", "0 (eth1, to the load generator)", 3), ("eth2", "1 (eth2)", 3)];
    assert_eq!(survey(&file.bytes), told(&names));
}

#[test]
fn directions_of_pcapng() {
    let mut file = Pcapng::new(Order::Little);
    file.named_interface(1, ["eth1", ""]);
    file.directed_packet(0, 1, 1, &probe(0)).directed_packet(0, 2, 2, &probe(1));
    file.packet(0, 3, &probe(2));
    assert_eq!(stamps(&only(&file.bytes, "eth1:in", InterfaceDirection::Out)), [1]);
    assert_eq!(stamps(&only(&file.bytes, ":out", InterfaceDirection::In)), [2]);
    // A tap behind a device may receive what it sent: without a word, both are meant.
    assert_eq!(stamps(&only(&file.bytes, "eth1", InterfaceDirection::Out)), [1, 2, 3]);
    let seen = survey(&file.bytes);
    let choices: Vec<&str> = seen.iter().map(|(choice, ..)| choice.as_str()).collect();
    assert_eq!(choices, ["eth1", "eth1:in", "eth1:out"]);
}

#[test]
fn packets_of_any_device_by_interface_and_direction() {
    let mut file = Pcap::new(Order::Little, true, 276);
    for (stamp_ns, index, kind) in [(1, 2, 0), (2, 3, 4), (3, 2, 4), (4, 3, 2)] {
        file.frame(stamp_ns, &cooked2(index, kind));
    }
    assert_eq!(stamps(&only(&file.bytes, "2", InterfaceDirection::In)), [1]);
    assert_eq!(stamps(&only(&file.bytes, "3", InterfaceDirection::Out)), [2]);
    assert_eq!(stamps(&only(&file.bytes, "3:in", InterfaceDirection::Out)), [4]);
    assert_eq!(stamps(&only(&file.bytes, ":out", InterfaceDirection::In)), [2, 3]);
    let names = [("2:in", "2", 1), ("2:out", "2", 1), ("3:in", "3", 1), ("3:out", "3", 1)];
    assert_eq!(survey(&file.bytes), told(&names));
}

#[test]
fn interfaces_of_erf_and_the_modified_pcap() {
    let at = |index: u8| erf_ethernet(index % 2, i64::from(index), &probe(u32::from(index)));
    let bytes: Vec<u8> = (0..4).flat_map(at).collect();
    assert_eq!(stamps(&only(&bytes, "1", InterfaceDirection::Out)), [1, 3]);
    assert_eq!(survey(&bytes), told(&[("0", "0", 2), ("1", "1", 2)]));
    let frame = probe(0);
    let packets = [(1_000, 7, 0, frame.as_slice()), (2_000, 8, 4, frame.as_slice())];
    let bytes = modified_pcap(Order::Big, &packets);
    assert_eq!(stamps(&only(&bytes, "7", InterfaceDirection::In)), [1_000]);
    assert_eq!(stamps(&only(&bytes, ":out", InterfaceDirection::In)), [2_000]);
    assert_eq!(survey(&bytes), told(&[("7:in", "7", 1), ("8:out", "8", 1)]));
}

/// Regression: files with interfaces from 4 on were not recognised, nor those that begin with padding.
#[test]
fn all_eight_interfaces_of_erf() {
    let mut first = erf_ethernet(1, 1, &probe(1));
    // The third bit of the interface.
    first[9] |= 0x40;
    let mut padding = [0; 16];
    (padding[8], padding[11]) = (48, 16);
    let bytes = [&first[..], &padding, &erf_ethernet(1, 2, &probe(2))].concat();
    assert_eq!(stamps(&only(&bytes, "5", InterfaceDirection::Out)), [1]);
    assert_eq!(survey(&bytes), told(&[("1", "1", 1), ("5", "5", 1)]));
}

/// Regression: two interfaces of one name, as of two hosts, were offered by that name.
#[test]
fn interfaces_of_one_name_are_chosen_by_number() {
    let mut file = Pcapng::new(Order::Little);
    file.named_interface(1, ["eth0", ""]).named_interface(1, ["eth0", ""]);
    file.packet(0, 1, &probe(0)).packet(1, 2, &probe(1));
    assert_eq!(survey(&file.bytes), told(&[("0", "0 (eth0)", 1), ("1", "1 (eth0)", 1)]));
}

#[test]
fn captures_that_do_not_tell_interfaces() {
    let pcap = Pcap::ethernet().bytes;
    for (bytes, how, found) in [
        (pcap, How::default(), "a pcap of one interface"),
        (mscap(&[(1, 2)]), How::MOONSNIFF, "a MoonSniff capture"),
    ] {
        let error =
            open(&bytes, how).take_only(Only::named("1", InterfaceDirection::In)).unwrap_err();
        assert!(matches!(error, CaptureError::NoPlaces { .. }));
        assert!(says(&error.to_string(), &[NAME, found, "expected a second capture"]), "{error}");
        assert_eq!(open(&bytes, how).survey().unwrap_err().to_string(), error.to_string());
    }
}
