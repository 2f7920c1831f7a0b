//! Probes and replies in any order, compared with a list of all events.

use super::*;
use crate::LostWays;
use proptest::prelude::*;

mod ways;

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
