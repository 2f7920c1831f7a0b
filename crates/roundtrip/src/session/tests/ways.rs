//! Ways on which probes were lost, by the far host's own numbers.

use super::*;

/// Directions of losses, when probes and replies with these far numbers came; `None` is lost.
fn ways(numbers: &[Option<u32>]) -> LostWays {
    let replies = (0..).zip(numbers).filter_map(|(number, far)| Some((number, (*far)?)));
    ways_of(numbers.len() as u64, &replies.collect::<Vec<_>>())
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

/// Directions of losses of so many probes, when replies with these far numbers came, in this order.
fn ways_of(probes: u64, replies: &[(u64, u32)]) -> LostWays {
    let mut session = without_stamps(false);
    (0..probes).for_each(|_| session.sent(0, 0, 0));
    for (number, far) in replies {
        session.replied(*number, &numbered(MS, *far));
    }
    drain(&mut session, 2_000 * MS);
    session.finish();
    session.counts().lost_ways
}

/// Regression: second replies to the first probe were not counted, others each time that they came; a far host that counted
/// before was taken to begin with its number for the first probe.
#[test]
fn probes_that_are_doubled_or_overtaken_keep_the_way_of_losses() {
    let of = |there, back, unknown| LostWays { there, back, unknown };
    // Number 0 is doubled on its way there, number 2 is lost there.
    assert_eq!(ways_of(4, &[(0, 0), (0, 1), (1, 2), (3, 3)]), of(1, 0, 0));
    // The second reply to number 1 comes twice; the reply to number 3 is lost.
    let replies = [(0, 0), (1, 1), (1, 2), (1, 2), (2, 3), (4, 5)];
    assert_eq!(ways_of(5, &replies), of(0, 1, 0));
    // The first two change places on their way to a far host that counted before; a reply is lost.
    assert_eq!(ways_of(4, &[(1, 5_000), (0, 5_001), (3, 5_003)]), of(0, 1, 0));
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
