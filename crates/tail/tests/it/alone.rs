//! One signature at a time gives what the streaming matcher gives of all at once.

use proptest::prelude::*;
use tailtrim_tail::matching::{Alone, Fate, Matcher, Pair, Seen, Window};
use tailtrim_tail::signature::Signature;

/// Stamps are multiples of this, so that every boundary is hit exactly now and then.
const TICK_NS: i64 = 100_000_000;
const SIGNATURES: i64 = 4;

/// A packet: whether it left, ticks since the one before, what it carries.
type Step = (bool, i64, i64);

/// Pairs (stamps and signature) and fates, sorted.
type Found = (Vec<(i64, i64, i64)>, Vec<(Fate, i64)>);

fn signature(low: i64) -> Signature {
    Signature { high: 7, low }
}

fn together(steps: &[Step], window: Window) -> Found {
    let mut matcher: Matcher = Matcher::new(window);
    let (mut pairs, mut fates, mut now_ns): (Vec<Pair>, Vec<_>, i64) = Default::default();
    for &(left, ticks, low) in steps {
        now_ns += ticks * TICK_NS;
        pairs.extend(if left {
            matcher.egress(signature(low), now_ns)
        } else {
            matcher.ingress(signature(low), now_ns, 0)
        });
        fates.extend(matcher.decided(now_ns));
    }
    let (open, rest) = matcher.finish();
    fates.extend(rest);
    fates.extend(open.into_iter().map(|stamp_ns| (Fate::Lost, stamp_ns)));
    sorted(&pairs, fates)
}

fn apart(steps: &[Step], window: Window) -> Found {
    let (mut pairs, mut fates): (Vec<Pair>, Vec<_>) = Default::default();
    for one in 0..SIGNATURES {
        let mut alone = Alone::new(window);
        let mut now_ns = 0;
        for &(left, ticks, low) in steps {
            now_ns += ticks * TICK_NS;
            if low != one {
                continue;
            }
            pairs.extend(if left {
                alone.egress(now_ns, now_ns)
            } else {
                alone.ingress(Seen {
                    stamp_ns: now_ns,
                    forgotten_ns: i64::MAX,
                    tag: 0,
                    signature: signature(low),
                })
            });
        }
        let (decided, open) = alone.finish();
        fates.extend(decided);
        fates.extend(open.map(|stamp_ns| (Fate::Lost, stamp_ns)));
    }
    sorted(&pairs, fates)
}

fn sorted(pairs: &[Pair], mut fates: Vec<(Fate, i64)>) -> Found {
    let mut pairs: Vec<_> =
        pairs.iter().map(|pair| (pair.ingress_ns, pair.egress_ns, pair.signature.low)).collect();
    pairs.sort_unstable();
    fates.sort_unstable();
    (pairs, fates)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn one_signature_at_a_time(
        steps in prop::collection::vec((any::<bool>(), 0_i64..8, 0..SIGNATURES), 0..120),
        window_ticks in 1_i64..30,
        early_ticks in 0_i64..12,
    ) {
        let window =
            Window { window_ns: window_ticks * TICK_NS, early_ns: early_ticks * TICK_NS };
        prop_assert_eq!(apart(&steps, window), together(&steps, window));
    }
}

#[test]
fn what_is_forgotten_is_no_copy() {
    let window = Window::default();
    let seen = Seen { stamp_ns: 0, forgotten_ns: 100, tag: 3, signature: signature(1) };
    for (left_ns, fate) in [(99, Fate::Copy), (100, Fate::Unmatched)] {
        let mut alone = Alone::new(window);
        alone.ingress(seen);
        assert_eq!(alone.egress(10, 10).map(|pair| pair.tag), Some(3));
        assert_eq!(alone.egress(left_ns, left_ns), None);
        assert_eq!(alone.finish(), (vec![(fate, left_ns)], None));
    }
}
