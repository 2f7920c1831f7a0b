//! Signatures from outside: a packet has the same one before and after every device that rewrites what a
//! forwarder may rewrite, different packets have different ones, the way a frame is stored does not
//! matter, and another program can compute them from the definition alone.
#![allow(clippy::single_range_in_vec_init, reason = "one range of bytes is meant")]

mod chance;
mod devices;
mod encapsulations;

use crate::support::frames::{ICMP, IPV4, IPV6, Ipv4, Ipv6, TCP, UDP, ethernet, probe, tcp, udp};
use crate::support::{How, Order, Pcap, Pcapng, read};
use tailtrim_tail::capture::Record;
use tailtrim_tail::signature::{Rewrites, SIGNED_BYTES, Selection, Signature, Signer};
use xxhash_rust::xxh3::xxh3_128;

const PLAIN: Rewrites = Rewrites { nat: false, tos: false, tunnel: false };
const NAT: Rewrites = Rewrites { nat: true, ..PLAIN };
const TOS: Rewrites = Rewrites { tos: true, ..PLAIN };
const TUNNEL: Rewrites = Rewrites { tunnel: true, ..PLAIN };

/// The records of a pcap of these frames.
fn records(link_type: u32, frames: &[&[u8]], signer: &Signer) -> Vec<Record> {
    let mut file = Pcap::new(Order::Little, true, link_type);
    for frame in frames {
        file.frame(0, frame);
    }
    read(&file.bytes, How::default(), signer).sound()
}

/// The signature of an Ethernet frame, both when it is the last of a capture and when it is not, and in
/// a pcapng.
fn sign_with(signer: &Signer, frame: &[u8]) -> Signature {
    let amid = records(1, &[frame, &[0xee; 128]], signer);
    let last = records(1, &[frame], signer);
    assert_eq!(amid[0], last[0]);
    let mut pcapng = Pcapng::new(Order::Big);
    pcapng.interface(1, Some(9), None).packet(0, 0, frame).packet(0, 0, &[0xee; 128]);
    assert_eq!(read(&pcapng.bytes, How::default(), signer).sound(), amid);
    amid[0].signature
}

fn sign(rewrites: Rewrites, frame: &[u8]) -> Signature {
    sign_with(&Signer::new(rewrites), frame)
}

/// The definition: the first 64 bytes of the packet with some cleared, padded with zeros.
fn defined(packet: &[u8], cleared: &[std::ops::Range<usize>]) -> Signature {
    let mut block = [0; 64];
    let length = packet.len().min(64);
    block[..length].copy_from_slice(&packet[..length]);
    for range in cleared {
        for index in range.clone().filter(|&index| index < 64) {
            block[index] = 0;
        }
    }
    let hash = xxh3_128(&block);
    Signature { high: (hash >> 64) as i64, low: hash as i64 }
}

/// Ascending bytes, so that none equals its neighbours.
fn payload(length: usize) -> Vec<u8> {
    (1..=length).map(|byte| byte as u8).collect()
}

#[test]
fn the_definition_can_be_computed_elsewhere() {
    let ttl_and_checksum = [8..9, 10..12];
    let with = |more: &[std::ops::Range<usize>]| [&ttl_and_checksum, more].concat();
    for length in [0, 1, 9, 18, 36, 37, 100, 1400] {
        let packet = Ipv4::new(UDP, udp(1, 2, 0xbeef, &payload(length))).bytes();
        assert_eq!(sign(PLAIN, &ethernet(&[], IPV4, &packet)), defined(&packet, &with(&[26..28])));
        let packet = Ipv4::new(TCP, tcp(1, 2, 0xbeef, &payload(length))).bytes();
        assert_eq!(sign(PLAIN, &ethernet(&[], IPV4, &packet)), defined(&packet, &with(&[36..38])));
        let packet = Ipv4::new(ICMP, payload(length)).bytes();
        assert_eq!(sign(PLAIN, &ethernet(&[], IPV4, &packet)), defined(&packet, &with(&[])));
        let packet = Ipv6::new(UDP, udp(1, 2, 0xbeef, &payload(length))).bytes();
        assert_eq!(sign(PLAIN, &ethernet(&[], IPV6, &packet)), defined(&packet, &[7..8, 46..48]));
        let packet = Ipv6::new(TCP, tcp(1, 2, 0xbeef, &payload(length))).bytes();
        assert_eq!(sign(PLAIN, &ethernet(&[], IPV6, &packet)), defined(&packet, &[7..8, 56..58]));
        // Nothing is known about what is neither.
        let arp = payload(length);
        assert_eq!(sign(PLAIN, &ethernet(&[], 0x0806, &arp)), defined(&arp, &[]));
    }
    let mut options = Ipv4::new(UDP, udp(1, 2, 0xbeef, &payload(40)));
    options.options = vec![7, 7, 4, 0, 0, 0, 0, 0];
    let packet = options.bytes();
    assert_eq!(sign(PLAIN, &options.frame()), defined(&packet, &with(&[34..36])));
    let mut fragment = Ipv4::new(UDP, payload(40));
    fragment.fragment = 0x2001;
    assert_eq!(sign(PLAIN, &fragment.frame()), defined(&fragment.bytes(), &with(&[])));
    let packet = Ipv4::new(UDP, udp(1, 2, 0xbeef, &payload(40))).bytes();
    let frame = ethernet(&[], IPV4, &packet);
    assert_eq!(sign(NAT, &frame), defined(&packet, &with(&[26..28, 12..20, 20..24])));
    assert_eq!(sign(TOS, &frame), defined(&packet, &with(&[26..28, 1..2])));
    let packet = Ipv6::new(TCP, tcp(1, 2, 0xbeef, &payload(40))).bytes();
    let frame = ethernet(&[], IPV6, &packet);
    assert_eq!(sign(NAT, &frame), defined(&packet, &[7..8, 56..58, 8..40, 40..44]));
    assert_eq!(sign(TOS, &frame), defined(&packet, &[7..8, 56..58, 0..2]));
    let selection: Selection = "42:4,0:2,100:9".parse().unwrap();
    let hash = xxh3_128(&[&frame[42..46], &frame[..2], &frame[100..frame.len().min(109)]].concat());
    let expected = Signature { high: (hash >> 64) as i64, low: hash as i64 };
    assert_eq!(sign_with(&Signer::of_selection(selection), &frame), expected);
}

/// A signature that never changes: run directories and databases hold them.
#[test]
fn signatures_of_old_results_stay_valid() {
    let Signature { high, low } = sign(PLAIN, &probe(7));
    assert_eq!((high, low), (PROBE_7.0, PROBE_7.1));
}

/// As computed with Python's xxhash.
const PROBE_7: (i64, i64) = (9_171_874_745_582_690_067, -2_678_568_987_645_404_551);

#[test]
fn the_whole_transport_header_of_a_later_fragment_counts() {
    // At the place of the UDP checksum stands payload.
    let fragment = |byte| {
        let mut payload = payload(60);
        payload[6] = byte;
        Ipv4 { fragment: 0x0007, ..Ipv4::new(UDP, payload) }.frame()
    };
    assert_ne!(sign(PLAIN, &fragment(1)), sign(PLAIN, &fragment(2)));
}

#[test]
fn an_unknown_total_length_keeps_what_was_captured() {
    // Segmentation offload leaves the length 0.
    let mut frames = [1, 2].map(|byte| Ipv4::new(TCP, tcp(1, 2, 3, &[byte; 20])).frame());
    for frame in &mut frames {
        frame[16..18].fill(0);
    }
    assert_ne!(sign(PLAIN, &frames[0]), sign(PLAIN, &frames[1]));
}

#[test]
fn a_frame_is_not_signed_in_the_shape_of_the_one_before() {
    // All of one captured length, each differing from the first in what decides which bytes take part.
    let mut frame = Ipv4::new(UDP, udp(1, 2, 3, &payload(30))).frame();
    frame.resize(100, 0x99);
    let signer = Signer::new(PLAIN);
    for (place, value) in [(13, 6), (14, 0x46), (16, 1), (17, 29), (20, 0x41), (21, 1), (23, TCP)] {
        let mut other = frame.clone();
        assert_ne!(other[place], value);
        other[place] = value;
        // The frame behind them all keeps the three before on the fast path.
        let together = records(1, &[&frame, &other, &frame, &[0; 90]], &signer);
        let alone = |frame: &[u8]| records(1, &[frame], &signer)[0];
        assert_eq!(together[..3], [alone(&frame), alone(&other), alone(&frame)], "byte {place}");
    }
}

#[test]
fn a_frame_is_not_signed_in_the_shape_of_one_with_other_tags() {
    let tagged = [
        &[][..],
        &[(0x8100, 7)],
        &[(0x8100, 8)],
        &[(0x88a8, 7)],
        &[(0x88a8, 7), (0x8100, 8)],
        &[(0x88a8, 9), (0x8100, 8)],
        &[(0x88a8, 7), (0x88a8, 8)],
        &[(0x88a8, 7), (0x8847, 8)],
        &[(0x88a8, 7), (0x8100, 8), (0x8100, 9)],
    ];
    let frames: Vec<Vec<u8>> = [4, 9, 30, 100]
        .map(|length| Ipv4::new(UDP, udp(1, 2, 3, &payload(length))).bytes())
        .iter()
        .flat_map(|packet| tagged.map(|tags| ethernet(tags, IPV4, packet)))
        .flat_map(|frame| {
            // Padded, and of lengths that others have, too.
            [60, 64, 68, 100, 104].map(|least| {
                let mut frame = frame.clone();
                frame.resize(frame.len().max(least), 0x99);
                frame
            })
        })
        .collect();
    let signer = Signer::new(PLAIN);
    let alone: Vec<Record> = frames.iter().map(|frame| records(1, &[frame], &signer)[0]).collect();
    for (frame, told) in frames.iter().zip(&alone) {
        for (other, other_told) in frames.iter().zip(&alone) {
            let together = records(1, &[frame, other, frame, &[0; 90]], &signer);
            assert_eq!(together[..3], [*told, *other_told, *told], "{frame:02x?} {other:02x?}");
        }
    }
    // The packet is the same behind all tags.
    let packets: std::collections::HashSet<_> = frames
        .iter()
        .zip(&alone)
        .filter(|(frame, _)| !frame.windows(2).any(|bytes| bytes == [0x88, 0x47]))
        .map(|(_, record)| record.signature)
        .collect();
    assert_eq!(packets.len(), 4);
}

#[test]
fn a_limit_makes_cut_and_whole_frames_equal() {
    let frame = Ipv4::new(UDP, udp(1, 2, 3, &payload(100))).frame();
    for kept in 14..=14 + SIGNED_BYTES {
        let signer = Signer::new(PLAIN).limited_to(kept - 14);
        assert_eq!(signer.limit(), kept - 14);
        let mut file = Pcap::ethernet();
        file.cut_frame(0, &frame[..kept], frame.len() as u32);
        let cut = read(&file.bytes, How::default(), &signer).sound()[0].signature;
        // A header that is not there cannot be masked: below 20 bytes both sides would have to be cut.
        if kept >= 34 {
            assert_eq!(cut, sign_with(&signer, &frame), "{kept} bytes kept");
        }
    }
    assert_eq!(Signer::new(PLAIN).limited_to(1000).limit(), SIGNED_BYTES);
}

/// Found by fuzzing: such a frame was taken for one of the shape of the frame before the first.
#[test]
fn a_frame_of_no_bytes_is_signed_by_the_selection() {
    let signer = Signer::of_selection("42:4".parse().unwrap());
    let empty = records(1, &[&[]], &signer)[0];
    assert_eq!(records(1, &[&[], &[0; 100]], &signer)[0], empty);
    let hash = xxh3_128(&[]);
    let nothing = Signature { high: (hash >> 64) as i64, low: hash as i64 };
    assert_eq!(empty.signature, nothing);
}

#[test]
fn identifiers_do_not_collide() {
    let mut signatures: Vec<Signature> = (0..100_000).map(Signature::of_identifier).collect();
    signatures.sort_unstable();
    signatures.dedup();
    assert_eq!(signatures.len(), 100_000);
}

#[test]
fn selections_as_text() {
    for text in ["42:4", "0:1,2047:1", "10:20,10:20", "0:2048"] {
        assert_eq!(text.parse::<Selection>().unwrap().to_string(), text);
    }
    assert_eq!(" 1 : 2 , 3:4".parse::<Selection>().unwrap().to_string(), "1:2,3:4");
    let expected = "expected OFFSET:LENGTH[,OFFSET:LENGTH…] in bytes from the start of the frame, \
                    for example 42:4";
    for (text, problem) in [
        ("", r#"no colon in """#),
        ("42", r#"no colon in "42""#),
        ("42:4,", r#"no colon in """#),
        ("a:4", r#"invalid number "a""#),
        ("4:-1", r#"invalid number "-1""#),
        ("4:5:6", r#"invalid number "5:6""#),
        ("18446744073709551616:1", r#"invalid number "18446744073709551616""#),
        ("4:0", r#""4:0" must name 1 or more bytes before offset 2048"#),
        ("2048:1", r#""2048:1" must name 1 or more bytes before offset 2048"#),
        (
            "18446744073709551615:18446744073709551615",
            r#""18446744073709551615:18446744073709551615" must name 1 or more bytes before offset 2048"#,
        ),
    ] {
        let error = text.parse::<Selection>().unwrap_err();
        assert_eq!(error.to_string(), format!("signature {text:?}: {problem}, {expected}"));
    }
}
