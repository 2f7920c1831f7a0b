//! Requests as frames become replies that a receiver accepts.

use proptest::prelude::*;
use tailtrim_roundtrip::frame::{Came, finish, reflect};
use tailtrim_roundtrip::reflect::{Clock, Policy, Reflector, Refusal, Service};
use tailtrim_wire::stamp::ReflectorPacket;
use tailtrim_wire::tlv::StampedBy;

const SERVICES: [(Service, u16); 2] = [(Service::Echo, 7), (Service::Stamp, 862)];

fn reflector() -> Reflector {
    let policy = Policy { ports: vec![7, 862], remembered: 16, ..Policy::default() };
    Reflector::new(policy, Clock { bound_ns: None, sent_by: StampedBy::Software }, 1)
}

fn came() -> Came {
    Came { received_ns: 1_000_000_000, by: StampedBy::Software, now_ns: 0, truncated: false }
}

/// A frame from 10.0.0.1 or fd00::1 to .2, with an unfinished checksum: that of the pseudo header.
fn frame(
    v6: bool,
    vlan: bool,
    from_port: u16,
    port: u16,
    payload: &[u8],
    padding: usize,
) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    if vlan {
        frame.extend([0x81, 0, 0, 5]);
    }
    let datagram = (payload.len() + 8) as u16;
    let network = frame.len() + 2;
    if v6 {
        frame.extend([0x86, 0xdd, 0x6b, 0x91, 0x23, 0x45]);
        frame.extend(datagram.to_be_bytes());
        frame.extend([17, 61]);
        for last in [1, 2] {
            frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
    } else {
        frame.extend([0x08, 0x00, 0x45, 0xb9]);
        frame.extend((datagram + 20).to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 61, 17, 0xaa, 0xaa, 10, 0, 0, 1, 10, 0, 0, 2]);
    }
    frame.extend(from_port.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend(datagram.to_be_bytes());
    let addresses = &frame[network + if v6 { 8 } else { 12 }..frame.len() - 6];
    let unfinished = ones(&[addresses, &[0, 17], &datagram.to_be_bytes()]);
    frame.extend(unfinished.to_be_bytes());
    frame.extend(payload);
    frame.resize(frame.len() + padding, 0xee);
    frame
}

/// The sum of 16-bit words with carries, which is all ones where a checksum is right.
fn ones(pieces: &[&[u8]]) -> u16 {
    let mut total = 0_u32;
    for piece in pieces {
        for pair in piece.chunks(2) {
            total += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            total = (total & 0xffff) + (total >> 16);
        }
    }
    total as u16
}

fn check(frame: &[u8], network: usize, v6: bool) {
    let packet = &frame[network..];
    let header = if v6 { 40 } else { 20 };
    let length = u16::from_be_bytes([packet[header + 4], packet[header + 5]]);
    let datagram = &packet[header..header + usize::from(length)];
    let addresses = &packet[if v6 { 8 } else { 12 }..header];
    assert_eq!(ones(&[addresses, &[0, 17], &length.to_be_bytes(), datagram]), 0xffff);
    if !v6 {
        assert_eq!(ones(&[&packet[..20]]), 0xffff);
    }
}

#[test]
fn replies_go_back_with_good_checksums() {
    for (v6, vlan, port, padding) in
        [(false, false, 7, 0), (false, true, 862, 9), (true, false, 862, 0), (true, true, 7, 3)]
    {
        let mut reflector = reflector();
        let payload = vec![1; if port == 7 { 5 } else { 44 }];
        let request = frame(v6, vlan, 40_000, port, &payload, padding);
        let mut reply = request.clone();
        let how = reflect(&mut reflector, &SERVICES, &came(), &mut reply).unwrap().unwrap();
        finish(&reflector, &how, &mut reply, 2_000_000_000);
        assert_eq!(reply.len(), request.len());
        assert_eq!((&reply[..6], &reply[6..12]), (&request[6..12], &request[..6]));
        let network = if vlan { 18 } else { 14 };
        check(&reply, network, v6);
        let at = network + if v6 { 40 } else { 20 };
        assert_eq!(reply[at..at + 4], [&request[at + 2..at + 4], &request[at..at + 2]].concat());
        let answer = &reply[at + 8..at + 8 + payload.len()];
        if port == 7 {
            assert_eq!(answer, payload);
        } else {
            let read = ReflectorPacket::read(None, answer).unwrap();
            assert_eq!((read.sender_ttl, read.sender_sequence), (61, 0x0101_0101));
        }
        // The class of the request (46) without ECN, the flow label as it was.
        let class = if v6 { &[0x6b, 0x81, 0x23][..] } else { &[0x45, 0xb8][..] };
        assert_eq!(reply[network..network + class.len()], *class, "v6 {v6}");
        assert_eq!(reply[reply.len() - padding..], vec![0xee; padding]);
    }
}

#[test]
fn what_is_no_request_is_left_alone() {
    let mut reflector = reflector();
    let mut tell = |frame: &mut Vec<u8>| {
        reflect(&mut reflector, &SERVICES, &came(), frame).map(|reply| reply.map(|_| ()))
    };
    assert_eq!(tell(&mut frame(false, false, 40_000, 8, b"x", 0)), None);
    assert_eq!(tell(&mut frame(false, false, 9, 7, b"x", 0)), Some(Err(Refusal::SourcePort)));
    let mut fragment = frame(false, false, 40_000, 7, b"x", 0);
    fragment[20] = 0x20;
    assert_eq!(tell(&mut fragment), None);
    let mut cut = frame(false, false, 40_000, 7, b"xyz", 0);
    cut.pop();
    assert_eq!(tell(&mut cut), None);
    let mut longer = frame(true, false, 40_000, 7, b"xyz", 5);
    longer[58..60].copy_from_slice(&16_u16.to_be_bytes());
    assert_eq!(tell(&mut longer), None);
    let mut damaged = frame(false, false, 40_000, 7, b"xyz", 0);
    damaged[40] ^= 1;
    assert_eq!(tell(&mut damaged), None);
    let mut unchecked = frame(true, false, 40_000, 7, b"xyz", 0);
    unchecked[60..62].copy_from_slice(&[0; 2]);
    assert_eq!(tell(&mut unchecked), None);
    assert_eq!(reflector.counters().received, 1);
    // Unless whoever redirects requests alone says that it was one.
    reflector.refuse(Refusal::Malformed);
    assert_eq!((reflector.counters().received, reflector.counters().refused.total()), (2, 2));
    assert!(reflector.counters().add_up());
}

proptest! {
    #[test]
    fn any_frame_does_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..120), shape in any::<[bool; 3]>(),
        at in any::<prop::sample::Index>(), value: u8,
    ) {
        let [v6, vlan, whole] = shape;
        let mut frame = if whole { frame(v6, vlan, 40_000, 862, &bytes, 0) } else { bytes };
        if !frame.is_empty() {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        let mut reflector = reflector();
        let length = frame.len();
        if let Some(Ok(reply)) = reflect(&mut reflector, &SERVICES, &came(), &mut frame) {
            finish(&reflector, &reply, &mut frame, 5);
        }
        prop_assert_eq!(frame.len(), length);
        prop_assert!(reflector.counters().add_up());
    }
}
