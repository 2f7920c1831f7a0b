//! Simulated clocks: the bound holds whatever they do, and steps are told.

use super::*;
use crate::phc::{Triple, narrowest};
use proptest::prelude::*;

const START_NS: i64 = 1_790_000_000_000_000_000;
const INTERVAL_NS: i64 = 250_000_000;
/// Clocks change their pace this often at most.
const TICK_NS: i64 = 1_000_000;

/// Random numbers: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % end as u64) as i64
    }

    fn around(&mut self, most: i64) -> i64 {
        self.below(2 * most + 1) - most
    }
}

/// Causes for which a clock is uneven.
#[derive(Debug, Clone, Copy)]
struct Unsteady {
    /// Its pace, in 10⁻⁹.
    ppb: i64,
    /// The pace walks at random by up to this each tick, in 10⁻¹².
    walk_ppt: i64,
    /// A servo sets the pace by up to this each `servo_ns`, in 10⁻⁹.
    servo_ppb: i64,
    servo_ns: i64,
    /// Set by so many ns at one time.
    step: Option<(i64, i64)>,
}

/// A clock as a table of its surplus by true time, and when it is set.
struct Simulated(Vec<i64>, Option<(i64, i64)>);

impl Simulated {
    fn of(unsteady: Unsteady, span_ns: i64, ahead_ns: i64, random: &mut Random) -> Self {
        let (mut walked_ppt, mut servo_ppb, mut next_ns) = (0, 0, random.below(unsteady.servo_ns));
        let mut surplus_fs = 0_i128;
        let tick = |at: i64| {
            let now_ns = ahead_ns + (surplus_fs / 1_000_000) as i64;
            walked_ppt += random.around(unsteady.walk_ppt);
            if at * TICK_NS >= next_ns {
                servo_ppb = random.around(unsteady.servo_ppb);
                next_ns += unsteady.servo_ns;
            }
            let ppt = (unsteady.ppb + servo_ppb) * 1_000 + walked_ppt;
            surplus_fs += i128::from(ppt) * i128::from(TICK_NS) / 1_000_000;
            now_ns
        };
        Self((0..span_ns / TICK_NS + 2).map(tick).collect(), unsteady.step)
    }

    /// Its time, `true_ns` after the begin.
    fn at(&self, true_ns: i64) -> i64 {
        let tick = (true_ns / TICK_NS) as usize;
        let (from, to) = (self.0[tick], self.0[tick + 1]);
        let set_ns = self.1.filter(|(when, _)| true_ns >= *when).map_or(0, |(_, by_ns)| by_ns);
        START_NS + true_ns + from + (to - from) * (true_ns % TICK_NS) / TICK_NS + set_ns
    }
}

struct World {
    system: Simulated,
    reference: Simulated,
    compared: Simulated,
    /// The longest time that a register is on its way, in ns.
    delay_ns: i64,
}

impl World {
    /// The best of 25 readings, which takes some time.
    fn read(&self, clock: &Simulated, now_ns: &mut i64, random: &mut Random) -> Offset {
        let triples: Vec<Triple> = (0..25)
            .map(|_| {
                let before_ns = self.system.at(*now_ns);
                *now_ns += 100 + random.below(self.delay_ns);
                let phc_ns = clock.at(*now_ns);
                *now_ns += 100 + random.below(self.delay_ns);
                Triple { before_ns, phc_ns, after_ns: self.system.at(*now_ns) }
            })
            .collect();
        narrowest(&triples, 1).unwrap()
    }

    fn compare(&self, mut now_ns: i64, random: &mut Random) -> Comparison {
        let before = self.read(&self.reference, &mut now_ns, random);
        let compared = self.read(&self.compared, &mut now_ns, random);
        Comparison::of(before, compared, self.read(&self.reference, &mut now_ns, random))
    }

    /// Compares for so many intervals. Returns the largest errors of stamps that are converted as they come, and when all is
    /// known.
    fn run(&self, intervals: i64, random: &mut Random) -> (Compared, [i64; 2]) {
        let mut compared = Compared::default();
        let (mut stamps, mut worst) = (Vec::new(), [0; 2]);
        let off = |compared: &Compared, at: i64| {
            let stamp_ns = self.compared.at(at);
            let told_ns = compared.piece(stamp_ns).unwrap().of_reference(stamp_ns);
            (told_ns - self.reference.at(at)).abs()
        };
        for interval in 0..intervals {
            // The thread that reads is late, too.
            let late_ns = if random.below(9) == 0 { random.below(INTERVAL_NS) } else { 0 };
            let now_ns = interval * INTERVAL_NS + late_ns;
            compared.push(self.compare(now_ns, random));
            // Taps begin when there can be a bound.
            if interval >= FEWEST as i64 - 1 && interval + 1 < intervals {
                for _ in 0..40 {
                    let at = now_ns + 1_000_000 + random.below(INTERVAL_NS - 1_000_000);
                    if at < (interval + 1) * INTERVAL_NS {
                        worst[0] = worst[0].max(off(&compared, at));
                        stamps.push(at);
                    }
                }
            }
        }
        for at in stamps {
            worst[1] = worst[1].max(off(&compared, at));
        }
        (compared, worst)
    }
}

const EVEN: Unsteady =
    Unsteady { ppb: 0, walk_ppt: 0, servo_ppb: 0, servo_ns: i64::MAX, step: None };

fn unsteady() -> impl Strategy<Value = Unsteady> {
    // Crystals to 100 ppm; their pace walks by up to 0.1 ppm within a second; servos set it each 1/16 s to 4 s.
    let servos = (0_i64..20_000, 62_500_000_i64..4_000_000_000);
    (-100_000_i64..100_000, 0_i64..6_000, prop_oneof![Just((0, i64::MAX)), servos]).prop_map(
        |(ppb, walk_ppt, (servo_ppb, servo_ns))| Unsteady {
            ppb,
            walk_ppt,
            servo_ppb,
            servo_ns,
            step: None,
        },
    )
}

fn world(
    [system, reference, compared]: [Unsteady; 3],
    delay_ns: i64,
    intervals: i64,
    random: &mut Random,
) -> World {
    let span_ns = (intervals + 3) * INTERVAL_NS;
    let ahead = |random: &mut Random| random.around(40_000_000_000);
    World {
        system: Simulated::of(system, span_ns, 0, random),
        reference: Simulated::of(reference, span_ns, ahead(random), random),
        compared: Simulated::of(compared, span_ns, ahead(random), random),
        delay_ns,
    }
}

proptest! {
    /// No stamp is off by more than the bound, and a step is one of the bound or is told. The system's clock is steered, and set.
    #[test]
    fn the_bound_holds(
        system in unsteady(),
        clocks in [unsteady(), unsteady()],
        set_ns in prop_oneof![Just(0), -1_000_000_000_i64..1_000_000_000],
        step in proptest::option::of((0_i64..8_000_000_000, prop_oneof![-1_000_i64..1_000, -500_000_i64..500_000])),
        delay_ns in 10_i64..3_000,
        intervals in 10_i64..40,
        seed: u64,
    ) {
        let mut random = Random(seed);
        let when = random.below(intervals * INTERVAL_NS);
        let system = Unsteady { step: Some((when, set_ns)), ..system };
        let [reference, compared] = clocks;
        let compared = Unsteady { step, ..compared };
        let world = world([system, reference, compared], delay_ns, intervals, &mut random);
        let (told, worst) = world.run(intervals, &mut random);
        if let Some(bound_ns) = told.error_ns() {
            prop_assert!(worst[0].max(worst[1]) <= bound_ns, "{worst:?} {bound_ns} {told:?}");
        } else {
            prop_assert!(step.is_some(), "{told:?}");
        }
    }

    /// Crystals that are not steered: the bound is little more than the error of a reading.
    #[test]
    fn the_bound_of_quiet_clocks_is_narrow(ppb in [-100_000_i64..100_000, -100_000_i64..100_000], seed: u64) {
        let mut random = Random(seed);
        let quiet = ppb.map(|ppb| Unsteady { ppb, walk_ppt: 20, ..EVEN });
        let world = world([Unsteady { ppb: 30_000, ..EVEN }, quiet[0], quiet[1]], 1_000, 30, &mut random);
        let (told, _) = world.run(30, &mut random);
        let bound_ns = told.error_ns().unwrap();
        prop_assert!(bound_ns < 4 * told.reading_error_ns(), "{bound_ns} {}", told.reading_error_ns());
        let drift = (ppb[1] - ppb[0]) as f64 / 1e3;
        prop_assert!((told.drift_ppm().unwrap() - drift).abs() < 2.0);
    }
}

#[test]
fn a_step_is_told_once_and_leaves_no_bound() {
    // 2,199 s, as an emulated igb makes it, and half a millisecond back.
    for by_ns in [1_i64 << 41, -500_000] {
        let mut random = Random(by_ns.cast_unsigned());
        let stepped = Unsteady { step: Some((2_600_000_000, by_ns)), ..EVEN };
        let world = world([EVEN, EVEN, stepped], 500, 20, &mut random);
        let (told, _) = world.run(20, &mut random);
        assert_eq!(told.steps().len(), 1, "{told:?}");
        assert!((told.steps()[0].by_ns - by_ns).abs() < 5_000, "{told:?}");
        assert_eq!(told.error_ns(), None);
    }
}

#[test]
fn too_few_comparisons_and_gaps_are_told() {
    let mut told = Compared::default();
    let point = |n: i64, at_ns: i64| Comparison { at_ns, ahead_ns: 7 * n, error_ns: 100 };
    assert_eq!(told.piece(5), None);
    for n in 0..FEWEST as i64 {
        assert_eq!(told.error_ns(), None);
        told.push(point(n, n * INTERVAL_NS));
    }
    assert_eq!((told.error_ns(), told.longest_gap_ns()), (Some(101), INTERVAL_NS));
    told.push(point(20, 20 * INTERVAL_NS));
    assert!(told.longest_gap_ns() > LONGEST_GAP_NS);
    assert_eq!((told.readings(), told.ends_ns()), (10, Some([0, 140])));
}

#[test]
fn pieces_join_and_the_last_one_is_open() {
    let mut told = Compared::default();
    for (at_ns, ahead_ns) in [(1_000, 10), (2_000, 20), (3_000, 40)] {
        told.push(Comparison { at_ns, ahead_ns, error_ns: 50 });
    }
    let at = |stamp_ns| told.piece(stamp_ns).unwrap();
    assert_eq!(
        [500, 1_500, 2_500, 4_000].map(|ns| at(ns).of_reference(ns)),
        [490, 1_485, 2_470, 3_945]
    );
    assert!(at(500).has(999) && !at(500).has(1_000));
    assert!(at(1_000).has(1_999) && !at(1_999).has(2_000) && !at(1_500).is_last());
    assert!(at(3_000).is_last() && at(3_000).has(i64::MAX));
}
