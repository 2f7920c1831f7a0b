//! Which echoes are answered, and with which TTL, so that no two reflectors keep one going.

use proptest::prelude::*;
use tailtrim_roundtrip::reflect::{Arrival, Clock, Limit, Policy, Reflector, Refusal, Service};
use tailtrim_wire::EchoProbe;
use tailtrim_wire::tlv::StampedBy;

const MS: i64 = 1_000_000;

fn reflector(policy: Policy) -> Reflector {
    let policy = Policy { ports: vec![7007], ..policy };
    Reflector::new(policy, Clock { bound_ns: None, sent_by: StampedBy::Software }, 1)
}

fn arrival(hops: Option<u8>, now_ns: i64) -> Arrival {
    Arrival {
        from: "192.0.2.7:40000".parse().unwrap(),
        to: None,
        port: 7007,
        received_ns: 0,
        by: StampedBy::Control,
        now_ns,
        hops,
        traffic_class: None,
        mac: None,
        truncated: false,
    }
}

/// TTL of the reply.
fn ask(
    reflector: &mut Reflector,
    hops: Option<u8>,
    now_ns: i64,
    payload: &[u8],
) -> Result<u8, Refusal> {
    let mut packet = payload.to_vec();
    let reply = reflector.reflect(Service::Echo, &arrival(hops, now_ns), &mut packet);
    assert_eq!(packet, payload);
    assert!(reflector.counters().add_up());
    reply.map(|reply| reply.hops)
}

#[test]
fn a_reply_has_less_ttl_than_its_request() {
    for (hops, expected) in [
        (None, 63),
        (Some(255), 63),
        (Some(65), 63),
        (Some(64), 63),
        (Some(63), 62),
        (Some(33), 32),
    ] {
        let mut reflector = reflector(Policy::default());
        for _ in 0..3 {
            assert_eq!(ask(&mut reflector, hops, 0, b"x"), Ok(expected), "{hops:?}");
        }
    }
}

#[test]
fn the_last_probe_of_a_traceroute_gets_a_reply_that_arrives() {
    for policy in [Policy::default(), Policy { repeats: None, ..Policy::default() }] {
        let mut reflector = reflector(policy);
        for (payload, hops) in [(b"1", 1), (b"2", 1), (b"3", 2), (b"4", 32)] {
            assert_eq!(ask(&mut reflector, Some(hops), 0, payload), Ok(32), "{hops}");
        }
        // The same again may be in a loop: with less each time, and in the end nothing.
        for (payload, hops, reply) in
            [(b"4", 32, Ok(31)), (b"3", 2, Ok(1)), (b"1", 1, Err(Refusal::Loop))]
        {
            assert_eq!(ask(&mut reflector, Some(hops), 0, payload), reply, "{hops}");
        }
    }
}

#[test]
fn a_payload_that_comes_again_and_again_is_answered_only_so_often() {
    let mut reflector = reflector(Policy::default());
    let answered = |reflector: &mut Reflector, period_ns: i64, from_ns: i64| {
        (0..1_000)
            .filter(|n| ask(reflector, Some(64), from_ns + n * period_ns, &[0; 56]).is_ok())
            .count()
    };
    // 50 a second, as a client with a constant payload does.
    assert_eq!(answered(&mut reflector, 20 * MS, 0), 1_000);
    // 1,000 within a second: those of the limit, those at once, and the rounding of both.
    assert!((160..170).contains(&answered(&mut reflector, MS, 30_000 * MS)));
    // Another payload of the same client is answered all the same, and another client's.
    assert_eq!(ask(&mut reflector, Some(64), 31_000 * MS, b"y"), Ok(63));
    let counters = reflector.counters();
    assert_eq!(counters.refused.of(Refusal::Loop), counters.refused.total());
    // Not so without the limit.
    let mut reflector = self::reflector(Policy { repeats: None, ..Policy::default() });
    assert_eq!(answered(&mut reflector, MS, 0), 1_000);
}

#[test]
fn several_payloads_in_turn_have_one_budget() {
    for payloads in [2, 16, 100] {
        let mut reflector = reflector(Policy::default());
        let turns = (0..100 * payloads)
            .filter(|n| ask(&mut reflector, Some(64), *n, &(n % payloads).to_be_bytes()).is_ok());
        // Each once as a payload that is new, then those at once.
        assert_eq!(turns.count() as i64, payloads + 64);
    }
}

#[test]
fn the_first_64_bytes_and_the_length_tell_payloads_apart() {
    let policy = || Policy { repeats: Some(Limit::new(1, 1)), ..Policy::default() };
    let payload = vec![7; 100];
    for (at, same) in [(0, false), (63, false), (64, true), (99, true)] {
        let mut reflector = reflector(policy());
        let mut other = payload.clone();
        other[at] ^= 1;
        let told: Vec<bool> = [&payload, &other, &payload]
            .iter()
            .map(|payload| ask(&mut reflector, Some(64), 0, payload).is_ok())
            .collect();
        // The second time is within the limit, the third one is not.
        assert_eq!(told, [true, true, !same], "byte {at}");
    }
    let mut reflector = reflector(policy());
    for length in 0..100 {
        assert!(ask(&mut reflector, Some(64), 0, &payload[..length]).is_ok());
    }
}

#[test]
fn without_the_cookie_nothing_is_answered() {
    let mut reflector = reflector(Policy { cookie: Some(*b"8 bytes!"), ..Policy::default() });
    for (payload, expected) in [
        (&b"8 bytes!"[..], Ok(63)),
        (b"8 bytes! and more", Ok(63)),
        (b"8 bytes", Err(Refusal::Cookie)),
        (b"8 bytes?", Err(Refusal::Cookie)),
        (b"", Err(Refusal::Cookie)),
        (b" 8 bytes!", Err(Refusal::Cookie)),
    ] {
        assert_eq!(ask(&mut reflector, Some(64), 0, payload), expected, "{payload:?}");
    }
    assert_eq!(reflector.counters().refused.of(Refusal::Cookie), 4);
}

#[test]
fn probes_that_differ_are_never_taken_for_a_loop() {
    let mut reflector = reflector(Policy::default());
    // 20,000 a second, more than are remembered.
    for sequence in 0..200_000_u64 {
        let now_ns = i64::try_from(sequence).unwrap() * 50_000;
        let probe = EchoProbe { session: 5, sequence, unix_ns: now_ns }.encode();
        assert_eq!(ask(&mut reflector, Some(64), now_ns, &probe), Ok(63));
    }
    let counters = reflector.counters();
    assert_eq!((counters.reflected, counters.forgotten_flows), (200_000, 0));
    assert!(counters.forgotten_payloads >= 200_000 - 16_384);
}

proptest! {
    #[test]
    fn any_sequence_of_echoes_keeps_the_rules(
        asked in prop::collection::vec((any::<Option<u8>>(), 0..4_u8, 0..200_i64), 1..300),
        limited: bool, cookie: bool,
    ) {
        let limit = Limit::new(100, 64);
        let policy = Policy {
            repeats: limited.then_some(limit),
            cookie: cookie.then_some([1; 8]),
            remembered: 64,
            ..Policy::default()
        };
        let mut reflector = reflector(policy);
        let (mut now_ns, mut spent) = (0, 0);
        for (hops, letter, later_ms) in asked {
            now_ns += later_ms * MS / 10;
            let mut payload = vec![1; 8];
            payload.push(letter);
            match ask(&mut reflector, hops, now_ns, &payload) {
                Ok(reply) => {
                    prop_assert!((1..64).contains(&reply));
                    // Less than came, but for a low one, which costs of the budget.
                    if hops.is_some_and(|hops| reply >= hops) {
                        prop_assert_eq!(reply, 32);
                        spent += 1;
                    }
                }
                Err(refusal) => prop_assert_eq!(refusal, Refusal::Loop),
            }
        }
        prop_assert!(!limited || spent <= 64 + now_ns / 10 / MS);
        // Nothing makes room for more than four payloads that chance did not put together.
        prop_assert_eq!(reflector.counters().forgotten_payloads, 0);
    }
}
