//! Probes and replies in any order, compared with a list of all events.

use super::*;
use crate::LostWays;
use proptest::prelude::*;

const MS: i64 = 1_000_000;
const MEMORY: usize = 1 << 16;

fn session() -> Session {
    Session::new(Patience {
        timeout_ns: 1_000 * MS,
        stamps_ns: 100 * MS,
        remembered: MEMORY,
        software: true,
        hardware: false,
        follow_up: false,
    })
}

fn reply(at_ns: i64) -> Reply {
    Reply { app_receive_ns: at_ns, received_ns: Some(at_ns - 1), ..Reply::default() }
}

fn drain(session: &mut Session, now_ns: i64) -> Vec<RoundTrip> {
    std::iter::from_fn(|| session.settle(now_ns)).collect()
}

#[test]
fn an_answered_probe_waits_for_its_stamp_and_no_longer() {
    let mut session = session();
    session.sent(0, 5, 0);
    session.sent(0, 6, 0);
    assert_eq!(session.replied(0, &reply(10 * MS)), Kind::First);
    assert_eq!(session.replied(1, &reply(10 * MS)), Kind::First);
    assert!(session.settle(20 * MS).is_none());
    assert!(session.passed(0, Passed::Driver, 7));
    assert!(!session.passed(0, Passed::Driver, 8), "a second stamp");
    let trip = session.settle(20 * MS).unwrap();
    assert_eq!((trip.number, trip.stamps.sent_ns), (0, Some(7)));
    assert!(session.settle(20 * MS).is_none());
    let trip = session.settle(111 * MS).unwrap();
    assert_eq!((trip.number, trip.stamps.sent_ns), (1, None));
    assert_eq!(session.counts().probes.answered, 2);
}

#[test]
fn late_further_and_strange_replies() {
    let mut session = session();
    for _ in 0..4 {
        session.sent(0, 0, 0);
    }
    assert_eq!(session.replied(2, &reply(MS)), Kind::First);
    assert_eq!(session.replied(1, &reply(MS)), Kind::First);
    assert_eq!(session.replied(1, &reply(2 * MS)), Kind::Duplicate);
    // After the timeout, before and after the probe is decided.
    assert_eq!(session.replied(0, &reply(1_001 * MS + 1)), Kind::Late);
    assert_eq!(drain(&mut session, 1_002 * MS).len(), 4);
    assert_eq!(session.counts().probes.lost, 1);
    assert_eq!(session.replied(3, &reply(1_500 * MS)), Kind::Late);
    assert_eq!(session.replied(3, &reply(1_501 * MS)), Kind::Duplicate);
    assert_eq!(session.replied(0, &reply(1_501 * MS)), Kind::Duplicate);
    assert_eq!(session.replied(4, &reply(1_501 * MS)), Kind::Stray);
    let counts = session.counts();
    assert_eq!((counts.reordered, counts.probes.late, counts.probes.lost), (1, 2, 0));
    assert_eq!(counts.replies.datagrams, 8);
}

#[test]
fn what_was_not_delivered_may_still_be_answered() {
    let mut session = session();
    session.sent(0, 0, 0);
    session.sent(0, 0, 0);
    assert!(session.undelivered(0, Obstacle::Icmp(3, 3)));
    assert!(!session.undelivered(0, Obstacle::Icmp(3, 3)));
    assert!(session.undelivered(1, Obstacle::Icmp(3, 1)));
    assert_eq!(session.replied(1, &reply(MS)), Kind::First);
    session.refused(2, Obstacle::Local(101));
    let trips = drain(&mut session, 2_000 * MS);
    assert_eq!(trips[0].ending, Ending::Undelivered(Obstacle::Icmp(3, 3)));
    assert_eq!(trips[0].ending.status(), 104);
    assert_eq!(trips[1].ending, Ending::Answered);
    let probes = session.counts().probes;
    assert_eq!((probes.undelivered, probes.answered, probes.refused), (1, 1, 2));
    assert_eq!(session.counts().obstacles["port unreachable"], 1);
}

#[test]
fn a_reply_with_another_t1_is_altered_and_no_answer() {
    let mut session = session();
    for _ in 0..3 {
        session.sent(0, 0, 7);
    }
    let wrong = |at_ns| Reply { sender_stamp: 8, ..reply(at_ns) };
    let right = |at_ns| Reply { sender_stamp: 7, ..reply(at_ns) };
    assert_eq!(session.replied(0, &wrong(MS)), Kind::Altered);
    assert_eq!(session.replied(1, &wrong(MS)), Kind::Altered);
    assert_eq!(session.replied(1, &right(2 * MS)), Kind::First);
    assert_eq!(session.replied(1, &wrong(3 * MS)), Kind::Altered);
    let trips = drain(&mut session, 1_001 * MS);
    assert_eq!(trips[0].ending, Ending::Altered);
    assert_eq!(trips[1].ending, Ending::Answered);
    assert_eq!(trips[2].ending, Ending::Lost);
    let probes = session.counts().probes;
    assert_eq!((probes.answered, probes.altered, probes.lost), (1, 1, 1));
    assert_eq!(probes.unanswered(), 2);
    // The right reply comes too late, after all; a wrong one changes nothing.
    assert_eq!(session.replied(2, &wrong(1_002 * MS)), Kind::Altered);
    assert_eq!(session.replied(0, &right(1_002 * MS)), Kind::Late);
    let counts = session.counts();
    assert_eq!((counts.probes.late, counts.probes.altered, counts.probes.lost), (1, 0, 1));
    assert_eq!((counts.replies.altered, counts.replies.datagrams), (4, 6));
}

#[test]
fn numbers_are_found_again_by_their_low_bits() {
    let mut session = session();
    assert_eq!(session.nearest(0xffff, 16), 0xffff);
    for _ in 0..70_000 {
        session.sent(0, 0, 0);
    }
    assert_eq!(session.nearest(0, 16), 65_536);
    assert_eq!(session.nearest(60_000, 16), 60_000);
    assert_eq!(session.nearest(5_000, 16), 70_536);
}

#[test]
fn what_is_long_over_is_not_remembered() {
    let mut session = session();
    for _ in 0..MEMORY + 10 {
        session.sent(0, 0, 0);
    }
    assert_eq!(drain(&mut session, 2_000 * MS).len() as u64, MEMORY as u64 + 10);
    assert_eq!(session.replied(9, &reply(2_001 * MS)), Kind::Stray);
    assert_eq!(session.replied(10, &reply(2_001 * MS)), Kind::Late);
    assert_eq!(session.replied(MEMORY as u64 + 9, &reply(2_001 * MS)), Kind::Late);
    assert_eq!(session.replied(MEMORY as u64 + 9, &reply(2_001 * MS)), Kind::Duplicate);
}

fn numbered(at_ns: i64, far: u32) -> Reply {
    Reply { far_number: Some(far), ..reply(at_ns) }
}

fn without_stamps(follow_up: bool) -> Session {
    let patience = Patience {
        timeout_ns: 1_000 * MS,
        stamps_ns: 0,
        remembered: MEMORY,
        software: false,
        hardware: false,
        follow_up,
    };
    Session::new(patience)
}

#[test]
fn telemetry_is_waited_for_as_long_as_it_may_come() {
    let mut session = without_stamps(true);
    for _ in 0..5 {
        session.sent(0, 0, 0);
    }
    assert_eq!(session.replied(0, &numbered(MS, 0)), Kind::First);
    assert!(session.settle(900 * MS).is_none());
    // Number 1 is skipped: the far host knew of number 2 already.
    session.replied(1, &numbered(MS, 1));
    session.replied(2, &Reply { follow_up: Some((0, 77)), ..numbered(2 * MS, 2) });
    assert_eq!(session.settle(3 * MS).unwrap().stamps.far_left_ns, Some(77));
    session.replied(3, &Reply { follow_up: Some((2, 99)), ..numbered(2 * MS, 3) });
    assert_eq!(session.settle(3 * MS).unwrap().stamps.far_left_ns, None);
    assert_eq!(session.settle(3 * MS).unwrap().stamps.far_left_ns, Some(99));
    // No reply comes that could report the departure of the last two.
    assert!(session.settle(3 * MS).is_none());
    session.no_more();
    assert!(session.settle(3 * MS).is_none(), "a reply may come, and tell");
    session.replied(4, &numbered(4 * MS, 4));
    assert_eq!(drain(&mut session, 4 * MS).len(), 2);
    let FollowUps { told, untold } = session.counts().follow_up.unwrap();
    assert_eq!((told, untold), (2, 3));
    // The wait is no longer than for a reply.
    let mut session = without_stamps(true);
    session.sent(0, 0, 0);
    session.replied(0, &numbered(MS, 0));
    assert!(session.settle(1_000 * MS).is_none());
    assert!(session.settle(1_001 * MS).is_some());
}

#[test]
fn telemetry_of_strangers_is_not_believed() {
    let mut session = without_stamps(true);
    session.sent(0, 0, 0);
    session.replied(0, &numbered(MS, 0));
    session.replied(9, &Reply { follow_up: Some((0, 77)), ..numbered(MS, 1) });
    session.no_more();
    assert_eq!(session.settle(2 * MS).unwrap().stamps.far_left_ns, None);
}

/// Directions of losses, when probes and replies with these far numbers came; `None` is lost.
fn ways(numbers: &[Option<u32>]) -> LostWays {
    let mut session = without_stamps(false);
    for _ in numbers {
        session.sent(0, 0, 0);
    }
    for (number, far) in (0..).zip(numbers) {
        if let Some(far) = far {
            session.replied(number, &numbered(MS, *far));
        }
    }
    drain(&mut session, 2_000 * MS);
    session.finish();
    session.counts().lost_ways
}

#[test]
fn the_far_hosts_numbers_tell_the_way_of_losses() {
    let of = |there, back, unknown| LostWays { there, back, unknown };
    // Number 1 never came, the reply to number 3 is missing, and the last one is unknown.
    assert_eq!(ways(&[Some(0), None, Some(1), None, Some(3), None]), of(1, 1, 1));
    assert_eq!(ways(&[None, None, Some(1), Some(2)]), of(1, 1, 0));
    // Without state, or with all losses on the way back: both look alike.
    assert_eq!(ways(&[Some(0), None, Some(2)]), of(0, 0, 1));
    assert_eq!(ways(&[None, None]), of(0, 0, 2));
    // Overtaken on the way there.
    assert_eq!(ways(&[Some(1), Some(0), None, Some(2)]), of(1, 0, 0));
    // A far host that counted before begins anywhere; losses before its first number are unknown.
    assert_eq!(ways(&[None, Some(5_000), None, Some(5_001), None, Some(5_003)]), of(1, 1, 1));
    // Requests of another client are counted, too: the numbers show nothing.
    assert_eq!(ways(&[Some(0), None, Some(7)]), of(0, 0, 1));
}

#[test]
fn late_and_further_replies_count_for_the_way_of_losses() {
    let mut session = without_stamps(false);
    for _ in 0..6 {
        session.sent(0, 0, 0);
    }
    session.replied(0, &numbered(MS, 0));
    // Number 0 was doubled on its way: numbers 0 and 1 are both its replies.
    session.replied(0, &numbered(MS, 1));
    session.replied(0, &numbered(MS, 1_000));
    session.replied(3, &numbered(MS, 3));
    drain(&mut session, 1_500 * MS);
    assert_eq!(session.counts().probes.lost, 4);
    // A late one before the last that came, and one behind it.
    assert_eq!(session.replied(1, &numbered(1_600 * MS, 2)), Kind::Late);
    assert_eq!(session.replied(5, &numbered(1_600 * MS, 5)), Kind::Late);
    session.finish();
    let LostWays { there, back, unknown } = session.counts().lost_ways;
    assert_eq!(there + back + unknown, session.counts().probes.lost);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Send,
    Reply(u64),
    Undelivered(u64),
    Wait(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Send),
        3 => (0..40_u64).prop_map(Step::Reply),
        1 => (0..40_u64).prop_map(Step::Undelivered),
        2 => (0..700_i64).prop_map(|ms| Step::Wait(ms * MS)),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    /// Compared with a list of all events.
    #[test]
    fn everything_adds_up(steps in steps()) {
        let mut session = session();
        let (mut now, mut trips) = (0, Vec::new());
        let mut sent: Vec<(i64, u32)> = Vec::new();
        let (mut late, mut answered) = (0, 0);
        for step in steps {
            match step {
                Step::Send => {
                    session.sent(now, now, 0);
                    sent.push((now, 0));
                }
                Step::Reply(number) => {
                    let kind = session.replied(number, &reply(now));
                    let expected = match sent.get_mut(number as usize) {
                        None => Kind::Stray,
                        Some((_, replies)) if *replies > 0 => Kind::Duplicate,
                        Some((at, replies)) => {
                            *replies += 1;
                            if now - 1 - *at > 1_000 * MS {
                                late += 1;
                                Kind::Late
                            } else {
                                answered += 1;
                                Kind::First
                            }
                        }
                    };
                    prop_assert_eq!(kind, expected);
                }
                Step::Undelivered(number) => {
                    session.undelivered(number, Obstacle::Icmp(3, 0));
                }
                Step::Wait(ns) => {
                    now += ns;
                    trips.extend(drain(&mut session, now));
                }
            }
        }
        trips.extend(session.finish());
        prop_assert!(trips.is_sorted_by_key(|trip| trip.number));
        let Counts { probes, replies, .. } = session.counts().clone();
        prop_assert_eq!(probes.due, sent.len() as u64);
        prop_assert_eq!(probes.answered, answered);
        prop_assert_eq!(probes.late, late);
        let sum = probes.answered + probes.late + probes.lost + probes.undelivered
            + probes.refused + probes.cut;
        prop_assert_eq!(probes.due, sum);
        let sum = replies.first + replies.late + replies.duplicate + replies.stray;
        prop_assert_eq!(replies.datagrams, sum);
        prop_assert_eq!(trips.len() as u64, probes.due);
        let cut = trips.iter().filter(|trip| trip.ending == Ending::Cut).count();
        prop_assert_eq!(cut as u64, probes.cut);
    }
}

/// Treatment of a probe by the simulated path.
#[derive(Debug, Clone, Copy)]
enum Fared {
    LostThere,
    LostBack,
    Answered,
    Late,
}

proptest! {
    /// Compared with a simulated path that records its losses; within `spread` places, replies overtake each other.
    #[test]
    fn ways_of_losses_are_those_of_the_path(
        path in prop::collection::vec(prop_oneof![
            1 => Just(Fared::LostThere), 1 => Just(Fared::LostBack),
            6 => Just(Fared::Answered), 1 => Just(Fared::Late),
        ], 1..300),
        spread in 1_usize..8, before in prop_oneof![Just(0_u32), Just(u32::MAX - 20)],
    ) {
        let mut session = without_stamps(false);
        let (mut far, mut replies, mut late) = (before, Vec::new(), Vec::new());
        for (number, fared) in (0..).zip(&path) {
            session.sent(0, 0, 0);
            match fared {
                Fared::LostThere => continue,
                Fared::LostBack => {}
                Fared::Answered => replies.push((number, far)),
                Fared::Late => late.push((number, far)),
            }
            far = far.wrapping_add(1);
        }
        for chunk in replies.chunks(spread) {
            for (number, far) in chunk.iter().rev() {
                session.replied(*number, &numbered(MS, *far));
            }
        }
        drain(&mut session, 1_001 * MS);
        for (number, far) in &late {
            prop_assert_eq!(session.replied(*number, &numbered(1_002 * MS, *far)), Kind::Late);
        }
        session.finish();
        let Counts { probes, lost_ways: ways, .. } = session.counts().clone();
        prop_assert_eq!(ways.there + ways.back + ways.unknown, probes.lost);
        let count = |from: usize, to: usize, wanted: fn(&Fared) -> bool| {
            path[from..to].iter().filter(|fared| wanted(fared)).count() as u64
        };
        let came: Vec<u64> = replies.iter().chain(&late).map(|(number, _)| *number).collect();
        let end = came.iter().max().map_or(0, |last| *last as usize + 1);
        let is_lost_there = |fared: &Fared| matches!(fared, Fared::LostThere);
        let is_lost_back = |fared: &Fared| matches!(fared, Fared::LostBack);
        if before == 0 && count(0, end, is_lost_there) > 0 && ways.unknown < probes.lost {
            prop_assert_eq!(ways.there, count(0, end, is_lost_there));
            prop_assert_eq!(ways.back, count(0, end, is_lost_back));
        }
        // Where a number that came differs from that of its probe, everything up to the last reply is known.
        let differs = replies.iter().chain(&late).any(|(number, far)| *number != u64::from(*far));
        if before == 0 && differs {
            prop_assert_eq!(ways.unknown, count(end, path.len(), |fared| {
                matches!(fared, Fared::LostThere | Fared::LostBack)
            }));
        }
    }
}
