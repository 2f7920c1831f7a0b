//! The program's verdicts and replies against those of `Reflector`, on frames on which the kernel runs it.

mod frames;

use super::load;
use super::shared::Shared;
use crate::skip::skipped;
use aya::Ebpf;
use aya::programs::{TestRun, TestRunOptions, Xdp};
use frames::{frame, hops, is_v6, ones, random, udp_len, udp_sum};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tailtrim_ports::bpf::{self, Requests};
use tailtrim_roundtrip::frame::{Came, finish, reflect};
use tailtrim_roundtrip::reflect::{Class, Clock, Limit, Policy, Reflector, Refusal, Service};
use tailtrim_sys::{clock, process};
use tailtrim_wire::tlv::StampedBy;

const SERVICES: [(Service, u16); 3] =
    [(Service::Echo, 7), (Service::Stamp, 862), (Service::Twamp, 8_620)];
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OURS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)),
];
const DROP: u32 = 1;
const PASS: u32 = 2;
const SEND_BACK: u32 = 3;

/// The program, loaded and at no interface.
struct Judge {
    loaded: Ebpf,
    shared: Shared,
}

impl Judge {
    /// Loads the program. `None`, with a message, where the kernel does not load programs for this process.
    fn of(policy: &Policy) -> Option<Self> {
        if !process::is_root() {
            skipped("needs root");
            return None;
        }
        let requests = Requests::new(SERVICES.to_vec(), OURS.to_vec(), MAC).unwrap();
        let mut loaded = load::load(&requests, policy, false).unwrap();
        let shared = Shared::of(&mut loaded).unwrap();
        shared.set_clock();
        Some(Self { loaded, shared })
    }

    /// Verdict of the program on a frame, and the frame afterwards.
    fn run(&mut self, frame: &[u8]) -> (u32, Vec<u8>) {
        let program = bpf::program::<Xdp>(&mut self.loaded, load::PROGRAM).unwrap();
        let mut out = vec![0; frame.len()];
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.data_out = Some(&mut out);
        let result = program.test_run(options).unwrap();
        (result.return_value, out)
    }

    fn refused(&self, refusal: Refusal) -> u64 {
        self.shared.counters().refused.of(refusal)
    }
}

fn reflector(policy: Policy) -> Reflector {
    let bound_ns = clock::synchronized_within_ns();
    Reflector::new(policy, Clock { bound_ns, sent_by: StampedBy::Software }, 1)
}

fn policy() -> Policy {
    let ports = SERVICES.iter().map(|(_, port)| *port).collect();
    Policy { ports, repeats: None, ..Policy::default() }
}

/// Whether the kernel itself drops or judges the frame, so that the program has to leave it to the kernel.
fn is_for_kernel(frame: &[u8]) -> bool {
    let v6 = frame.get(12) == Some(&0x86);
    let Some(header) = frame.get(14..if v6 { 54 } else { 34 }) else { return true };
    let source: &[u8] = if v6 { &header[8..24] } else { &header[12..16] };
    let destination: &[u8] = if v6 { &header[24..40] } else { &header[16..20] };
    let ours = match OURS[usize::from(v6)] {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let martian = if v6 {
        let source = Ipv6Addr::from(<[u8; 16]>::try_from(source).unwrap());
        source.is_loopback() || source.to_ipv4_mapped().is_some()
    } else {
        source[0] == 127 || ones(&[header]) != 0xffff
    };
    frame[..6] != MAC || destination != ours || source == destination || martian
}

/// A reply without its times and their consequences, which differ in every reply; and without the TTL of an echo.
fn comparable(mut frame: Vec<u8>) -> Vec<u8> {
    let (v6, udp) = (is_v6(&frame), if is_v6(&frame) { 54 } else { 34 });
    let at = udp + 8;
    if u16::from_be_bytes([frame[udp], frame[udp + 1]]) == 7 {
        frame[if v6 { 21 } else { 22 }] = 0;
        if !v6 {
            frame[24..26].fill(0);
        }
    } else {
        frame[at + 4..at + 12].fill(0);
        // The format of times stays, the estimate grows.
        (frame[at + 12], frame[at + 13]) = (frame[at + 12] & 0x40, 0);
        frame[at + 16..at + 24].fill(0);
        frame[udp + 6..udp + 8].fill(0);
    }
    frame
}

/// Asserts that the program treats a frame as the reflector does, or leaves it to the sockets.
fn compare(judge: &mut Judge, reflector: &mut Reflector, request: &[u8]) -> &'static str {
    let before = judge.shared.counters().refused;
    let (verdict, out) = judge.run(request);
    let after = judge.shared.counters().refused;
    let dropped_for =
        Refusal::ALL.into_iter().find(|refusal| after.of(*refusal) > before.of(*refusal));
    assert_eq!(verdict == DROP, dropped_for.is_some(), "{request:02x?}");
    if is_for_kernel(request) {
        assert_eq!(verdict, PASS, "{request:02x?}");
        return "for the kernel";
    }
    let mut frame = request.to_vec();
    let came =
        Came { received_ns: 5_000_000_000, by: StampedBy::Software, now_ns: 0, truncated: false };
    let udp = if is_v6(request) { 54 } else { 34 };
    match reflect(reflector, &SERVICES, &came, &mut frame) {
        Some(Ok(reply)) => {
            finish(reflector, &reply, &mut frame, 5_000_000_000);
            let length = u16::from_be_bytes(udp_len(request));
            let port = u16::from_be_bytes([request[udp + 2], request[udp + 3]]);
            if port == 862 && length != 52 || port == 8_620 && length < 52 {
                assert_eq!(verdict, PASS, "the sockets': {request:02x?}");
                return "for the sockets";
            }
            assert_eq!(verdict, SEND_BACK, "{request:02x?}");
            if port == 7 {
                let came = hops(request);
                // The same payload may have come before.
                let fresh = if came <= 32 { 32 } else { came.min(64) - 1 };
                assert!(hops(&out) == fresh || came <= 32 && hops(&out) == came - 1);
            }
            assert!(is_v6(&out) || ones(&[&out[14..34]]) == u16::MAX, "{out:02x?}");
            let is_summed = request[udp + 6..udp + 8] != [0; 2];
            assert!(!is_summed || udp_sum(&out) == u16::MAX, "{request:02x?}: {out:02x?}");
            assert_eq!(comparable(out), comparable(frame), "{request:02x?}");
            "answered"
        }
        Some(Err(Refusal::Short)) => {
            assert_eq!(verdict, PASS, "{request:02x?}");
            "for the sockets"
        }
        Some(Err(refusal)) => {
            assert_eq!(dropped_for, Some(refusal), "{request:02x?}");
            "refused"
        }
        None if verdict == PASS => "no request",
        None if dropped_for == Some(Refusal::Malformed) => "malformed",
        // The program does not compute this checksum.
        None => {
            assert_ne!(udp_sum(request), u16::MAX, "{request:02x?}");
            assert!(verdict == DROP || udp_sum(&out) != u16::MAX, "as damaged: {request:02x?}");
            "damaged"
        }
    }
}

#[test]
fn random_frames_are_judged_as_the_reflector_judges_them() {
    let fixed = Policy { class: Class::Fixed(0b10_1011), ..policy() };
    for (seed, policy) in [(1, policy()), (2, fixed)] {
        let Some(mut judge) = Judge::of(&policy) else { return };
        let mut reflector = reflector(policy);
        let mut chance = Pcg64::seed_from_u64(seed);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..20_000 {
            *seen.entry(compare(&mut judge, &mut reflector, &random(&mut chance))).or_insert(0) +=
                1;
        }
        assert!(seen.len() == 7 && seen.values().all(|count| *count > 20), "{seen:?}");
    }
}

#[test]
fn an_echo_between_two_reflectors_ends_by_its_ttl() {
    for v6 in [false, true] {
        let Some(mut judge) = Judge::of(&policy()) else { return };
        // One payload, and two that take turns.
        for payloads in [&[b"same"][..], &[b"this", b"that"]] {
            let mut next = 64;
            let mut replies = 0;
            loop {
                let payload = payloads[replies % payloads.len()];
                let (verdict, out) = judge.run(&frame(v6, 40_000, 7, next, payload));
                if verdict == DROP {
                    break;
                }
                (next, replies) = (hops(&out), replies + 1);
                assert!(replies <= 64, "{next} left");
            }
            assert_eq!(next, 1);
        }
        assert_eq!(judge.refused(Refusal::Loop), 2);
        // The last hop of a traceroute.
        let (verdict, out) = judge.run(&frame(v6, 40_000, 7, 1, b"new"));
        assert_eq!((verdict, hops(&out)), (SEND_BACK, 32));
    }
}

#[test]
fn repeated_and_far_echoes_are_limited_by_flow() {
    let repeats = Some(Limit::new(1, 4));
    let Some(mut judge) = Judge::of(&Policy { repeats, ..policy() }) else { return };
    let mut answered = |port, hops, payload: &dyn Fn(u8) -> Vec<u8>| {
        let verdicts = (0..20).map(|n| judge.run(&frame(false, port, 7, hops, &payload(n))).0);
        verdicts.filter(|verdict| *verdict == SEND_BACK).count()
    };
    assert_eq!(answered(40_000, 64, &|number| vec![number; 80]), 20);
    // The first one is new.
    assert!((5..=6).contains(&answered(40_001, 64, &|_| vec![7; 80])));
    // Compared are the length and the first 64 bytes.
    assert!((5..=6).contains(&answered(40_002, 64, &|n| [vec![7; 64], vec![n; 9]].concat())));
    assert_eq!(answered(40_003, 64, &|number| vec![7; usize::from(number)]), 20);
    assert!((4..=5).contains(&answered(40_004, 32, &|number| vec![number; 11])));
    assert_eq!(judge.refused(Refusal::Loop), judge.shared.counters().refused.total());
}

#[test]
fn echoes_need_the_cookie() {
    let cookie = Some(*b"a cookie");
    let Some(mut judge) = Judge::of(&Policy { cookie, ..policy() }) else { return };
    for (payload, verdict) in [
        (&b"a cookie"[..], SEND_BACK),
        (b"a cookie and more", SEND_BACK),
        (b"a cooki", DROP),
        (b"", DROP),
        (b"A cookie", DROP),
    ] {
        for v6 in [false, true] {
            assert_eq!(judge.run(&frame(v6, 40_000, 7, 64, payload)).0, verdict, "{payload:?}");
        }
    }
    // Bytes behind the datagram are none of it.
    let mut padded = frame(false, 40_000, 7, 64, b"a cooki");
    padded.extend(b"e and padding");
    assert_eq!(judge.run(&padded).0, DROP);
    assert_eq!(judge.refused(Refusal::Cookie), 7);
}

#[test]
fn replies_of_test_packets_are_not_answered() {
    let Some(mut judge) = Judge::of(&policy()) else { return };
    for port in [862, 8_620] {
        let mut request = [0; 44];
        request[4..8].copy_from_slice(&3_900_000_000_u32.to_be_bytes());
        request[12..14].copy_from_slice(&[0x80, 1]);
        let (verdict, out) = judge.run(&frame(false, 40_000, port, 64, &request));
        assert_eq!((verdict, hops(&out)), (SEND_BACK, 255));
        let reply = out[42..].to_vec();
        let (verdict, _) = judge.run(&frame(false, 40_000, port, 64, &reply));
        assert_eq!(verdict, DROP);
        // Each field by which a reply can be recognised: T2, the times together, the sender's estimate, zeros, the
        // sender's TTL.
        for (at, bytes) in
            [(16, &[0; 8][..]), (16, &[1, 2, 3, 4]), (36, &[0; 2]), (38, &[0, 1]), (40, &[0])]
        {
            let mut request = reply.clone();
            request[at..at + bytes.len()].copy_from_slice(bytes);
            let (verdict, _) = judge.run(&frame(true, 40_000, port, 64, &request));
            assert_eq!(verdict, SEND_BACK, "{at}");
        }
    }
    assert_eq!(judge.refused(Refusal::Reply), 2);
}

#[test]
fn prefixes_and_rates_hold() {
    let allowed = ["10.0.0.0/31", "fd01::/16"].map(|text| text.parse().unwrap()).to_vec();
    let limit = Some(Limit::new(1, 3));
    let Some(mut judge) = Judge::of(&Policy { allowed, limit, ..policy() }) else { return };
    let verdicts: Vec<u32> =
        (0..6_u8).map(|number| judge.run(&frame(false, 40_000, 7, 64, &[number])).0).collect();
    assert_eq!(verdicts, [3, 3, 3, 1, 1, 1]);
    assert_eq!(judge.run(&frame(true, 40_000, 7, 64, b"x")).0, DROP);
    assert_eq!((judge.refused(Refusal::Rate), judge.refused(Refusal::NotAllowed)), (3, 1));
    // No prefix of IPv6 has IPv4 in it.
    let allowed = vec!["::/0".parse().unwrap()];
    let Some(mut judge) = Judge::of(&Policy { allowed, ..policy() }) else { return };
    assert_eq!(judge.run(&frame(false, 40_000, 7, 64, b"x")).0, DROP);
    assert_eq!(judge.run(&frame(true, 40_000, 7, 64, b"x")).0, SEND_BACK);
}
