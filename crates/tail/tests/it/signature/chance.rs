//! Signatures of frames by chance.

use super::{PLAIN, records, sign};
use crate::support::frames::{ICMP, Ipv4, TCP, UDP, udp};
use crate::support::{How, Order, Pcapng, read};
use proptest::prelude::*;
use tailtrim_tail::signature::{Rewrites, Signer};

/// Frames that look like IPv4 in Ethernet, with everything that decides how they are signed.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let head = prop_oneof![
        8 => Just([0x08, 0x00, 0x45]),
        1 => Just([0x08, 0x00, 0x46]),
        1 => Just([0x86, 0xdd, 0x60]),
        1 => Just([0x81, 0x00, 0x45]),
        1 => Just([0x00, 0x00, 0x00]),
        1 => any::<[u8; 3]>(),
    ];
    let total = prop_oneof![4 => 0..100_u16, 1 => any::<u16>()];
    let protocol = prop_oneof![Just(UDP), Just(TCP), Just(ICMP), Just(0), any::<u8>()];
    let fragment = prop_oneof![3 => Just(0x4000_u16), 1 => Just(0), 1 => any::<u16>()];
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..120),
        (0..120_usize).prop_map(|length| vec![0; length]),
    ];
    (bytes, head, total, protocol, fragment).prop_map(
        |(mut frame, head, total, protocol, fragment)| {
            let mut put = |at: usize, bytes: &[u8]| {
                for (index, &byte) in bytes.iter().enumerate() {
                    if let Some(place) = frame.get_mut(at + index) {
                        *place = byte;
                    }
                }
            };
            put(12, &head);
            put(16, &total.to_be_bytes());
            put(20, &fragment.to_be_bytes());
            put(23, &[protocol]);
            frame
        },
    )
}

fn rewrites() -> impl Strategy<Value = Rewrites> {
    (any::<bool>(), any::<bool>(), prop::bool::weighted(0.2))
        .prop_map(|(nat, tos, tunnel)| Rewrites { nat, tos, tunnel })
}

/// The places of an IPv4 UDP packet in Ethernet that take part by default and may have any value.
fn telling_places() -> Vec<usize> {
    // Type of service, identification, addresses, ports, length field of UDP, payload within 64 bytes.
    [15..16, 18..20, 26..40, 42..78].into_iter().flatten().collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn neighbours_do_not_matter(
        frames in prop::collection::vec(frames(), 1..8),
        rewrites in rewrites(),
        limit in prop_oneof![Just(64_usize), 0..64_usize],
    ) {
        let signer = Signer::new(rewrites).limited_to(limit);
        let list: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let together = records(1, &list, &signer);
        let mut pcapng = Pcapng::new(Order::Little);
        pcapng.interface(1, Some(9), None);
        for frame in &frames {
            pcapng.packet(0, 0, frame);
        }
        prop_assert_eq!(&read(&pcapng.bytes, How::default(), &signer).sound(), &together);
        for (frame, record) in frames.iter().zip(together) {
            prop_assert_eq!(records(1, &[frame], &signer)[0], record);
            // In front of a long frame all of the first one's surroundings can be read.
            prop_assert_eq!(records(1, &[frame, &[0x45; 90]], &signer)[0], record);
            prop_assert_eq!(records(1, &[frame, &[0; 90]], &signer)[0], record);
        }
    }

    #[test]
    fn different_packets_have_different_signatures(
        payload in prop::collection::vec(any::<u8>(), 36..60),
        place in prop::sample::select(telling_places()),
        flip in 1..=255_u8,
    ) {
        let frame = Ipv4::new(UDP, udp(1024, 53, 0, &payload)).frame();
        let mut other = frame.clone();
        other[place] ^= flip;
        // The port of VXLAN is of no meaning here.
        prop_assert_ne!(sign(PLAIN, &frame), sign(PLAIN, &other));
    }

    #[test]
    fn masked_bytes_do_not_matter(
        payload in prop::collection::vec(any::<u8>(), 0..60),
        rubbish in any::<[u8; 17]>(),
        tail in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let frame = Ipv4::new(UDP, udp(1024, 53, 0, &payload)).frame();
        let mut other = frame.clone();
        other[..12].copy_from_slice(&rubbish[..12]);
        other[22] = rubbish[12];
        other[24..26].copy_from_slice(&rubbish[13..15]);
        other[40..42].copy_from_slice(&rubbish[15..17]);
        other.extend(&tail);
        prop_assert_eq!(sign(PLAIN, &frame), sign(PLAIN, &other));
    }

    #[test]
    fn any_bytes_on_any_link_are_signed(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        link_type in prop::sample::select(vec![0, 1, 9, 12, 50, 51, 101, 104, 108, 113, 228, 229, 239, 276, 281, 282, 284, 285]),
        rewrites in rewrites(),
    ) {
        let signer = Signer::new(rewrites);
        let record = records(link_type, &[&bytes], &signer)[0];
        prop_assert!(usize::from(record.signable) <= bytes.len());
        prop_assert_eq!(record.length as usize, bytes.len());
    }
}
