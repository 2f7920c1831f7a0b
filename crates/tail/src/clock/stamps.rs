//! Stamps of one tap on its own: how fine they are, and whether they are taken in batches.

use tailtrim_stats::Ranked;

/// Steps of the stamps of clocks that people have, in ns, coarsest first: decimal ones, those of network interfaces, and
/// binary parts of a second.
const STEPS_NS: [f64; 25] = [
    1e6,
    1e9 / 1_024.0,
    1e5,
    1e4,
    1e3,
    1e9 / 1_048_576.0,
    1e9 / 2_097_152.0,
    1e9 / 4_194_304.0,
    1e9 / 8_388_608.0,
    100.0,
    80.0, // 12.5 MHz
    1e9 / 16_777_216.0,
    40.0, // 25 MHz
    1e9 / 33_554_432.0,
    20.0,
    16.0, // 62.5 MHz
    1e9 / 67_108_864.0,
    12.5, // 80 MHz
    10.0,
    8.0, // 125 MHz
    1e9 / 134_217_728.0,
    6.4, // 156.25 MHz
    5.0,
    4.0,
    3.2, // 312.5 MHz
];

/// Steps whose multiples are so near one another are not told from any numbers: stamps are rounded to 1 ns.
const ROUNDED_NS: f64 = 1.0;

/// Fewer different gaps may all be multiples of the interval of the packets.
const FEWEST: usize = 8;

/// Different gaps that are looked at, the shortest ones.
const LOOKED_AT: usize = 4_096;

/// Part of the gaps that are multiples of a step.
const MOST: f64 = 0.99;

/// The step of the stamps of a tap with these gaps, in ps; at least the unit of the capture.
pub(crate) fn resolution_ps(gaps: &Ranked, unit_ps: u64) -> u64 {
    let entries = gaps.entries();
    let short = entries.iter().filter(|(gap_ns, _)| *gap_ns > 0).take(LOOKED_AT);
    let all: u64 = short.clone().map(|(_, count)| count).sum();
    let is_step = |step: f64| {
        let is_multiple = |gap_ns: i64| {
            let gap = gap_ns as f64;
            (gap - (gap / step).round() * step).abs() < ROUNDED_NS
        };
        // By chance, two parts of a step in 1 ns hold all.
        let multiples = short.clone().filter(|(gap_ns, _)| is_multiple(*gap_ns));
        let held: u64 = multiples.clone().map(|(_, count)| count).sum();
        multiples.count() >= FEWEST && held as f64 >= MOST * all as f64
    };
    let mut steps = STEPS_NS.into_iter().filter(|step| *step > unit_ps as f64 / 1e3);
    steps.find(|step| is_step(*step)).map_or(unit_ps, |step| (step * 1e3).round() as u64)
}

/// Packets that are stamped at almost the same time, again and again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Batches {
    /// Packets of one.
    pub(crate) packets: f64,
    /// Time between two.
    pub(crate) every_ns: i64,
    /// The longest gap within one.
    pub(crate) short_ns: i64,
    /// From the first to the last packet of one.
    pub(crate) span_ns: i64,
}

/// Gaps within a batch are shorter than this part of the mean gap, where the other tap has none.
const WITHIN: i64 = 10;

/// Fewest packets of a batch on average, and most of the other tap's.
const BATCHED: f64 = 4.0;
const EVEN: f64 = 1.25;

/// Fewest gaps between batches, and part of them that may be longer than those within and shorter than those between.
const REPEATED: u64 = 32;
const BETWEEN: u64 = 8;

/// Gaps between bursts are so many times longer than those within, also where a device makes those longer.
const APART: i64 = 2;

impl Batches {
    /// Batches with gaps up to this.
    fn up_to(short_ns: i64, gaps: &Ranked) -> Option<Self> {
        let sum = |of: &[(i64, u64)]| -> i128 {
            of.iter().map(|&(ns, count)| i128::from(ns) * i128::from(count)).sum()
        };
        let entries = gaps.entries();
        let within = entries.partition_point(|(ns, _)| *ns <= short_ns);
        let between = gaps.count_above(short_ns);
        let each = |sum: i128| i64::try_from(sum / i128::from(between.max(1))).unwrap_or(i64::MAX);
        (between >= REPEATED).then(|| Self {
            packets: gaps.count() as f64 / between as f64,
            every_ns: each(sum(entries)),
            short_ns,
            span_ns: each(sum(&entries[..within])),
        })
    }

    /// Batches whose gaps are clearly shorter than those between them, so many times. Stamps have these steps.
    pub(crate) fn clear(gaps: &Ranked, step_ns: i64, times: i64) -> Option<Self> {
        let holes = gaps.entries().iter().map(|&(short_ns, _)| {
            let long_ns = short_ns.max(step_ns).saturating_mul(times);
            let long = gaps.count_above(long_ns - 1);
            (short_ns, long, gaps.count_above(short_ns) - long)
        });
        let clear =
            holes.filter(|(_, long, between)| *long >= REPEATED && between * BETWEEN <= *long);
        // Of those that are equally clear the last one: drivers take their time now and then.
        let (short_ns, ..) = clear.max_by(|one, other| {
            let part = |hole: &(i64, u64, u64)| hole.2 as f64 / hole.1 as f64;
            part(other).total_cmp(&part(one))
        })?;
        Self::up_to(short_ns, gaps)
    }
}

/// Batches at a tap with these gaps, of packets that pass the other tap one by one. Stamps have steps of so many ns.
pub(crate) fn batches(gaps: &Ranked, other: &Ranked, step_ns: i64) -> Option<Batches> {
    let short_ns = |gaps: &Ranked| {
        let entries = gaps.entries().iter();
        let sum: i128 = entries.map(|&(ns, count)| i128::from(ns) * i128::from(count)).sum();
        let mean_ns = i64::try_from(sum / i128::from(gaps.count().max(1))).ok()?;
        Some(mean_ns / WITHIN - 1)
    };
    let found = Batches::up_to(short_ns(gaps)?, gaps)?;
    let others = Batches::up_to(short_ns(other)?, other)?;
    let bursts = || Batches::clear(other, step_ns, APART).is_some_and(|other| other.packets >= 2.0);
    (found.packets >= BATCHED && others.packets <= EVEN && !bursts()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::Pcg64Mcg;
    use rand_pcg::rand_core::Rng;

    fn gaps(stamps: &[i64]) -> Ranked {
        let mut gaps: Vec<i64> = stamps.windows(2).map(|pair| pair[1] - pair[0]).collect();
        Ranked::from_values(&mut gaps)
    }

    /// Stamps of packets every 10 µs or so.
    fn stamps(step: f64) -> Vec<i64> {
        let mut random = Pcg64Mcg::new(7);
        let times = (0..5_000).map(|n| n as f64 * 10_000.0 + (random.next_u64() % 9_000) as f64);
        times.map(|time| ((time / step).floor() * step) as i64).collect()
    }

    #[test]
    fn the_step_of_stamps_is_found() {
        for (step, ps) in
            [(1_000.0, 1_000_000), (12.5, 12_500), (1e9 / 1_048_576.0, 953_674), (8.0, 8_000)]
        {
            assert_eq!(resolution_ps(&gaps(&stamps(step)), 1_000), ps, "{step}");
        }
        assert_eq!(resolution_ps(&gaps(&stamps(1.0)), 1_000), 1_000);
        // Packets at a constant rate say nothing of the clock.
        let even: Vec<i64> = (0..1_000).map(|n| n * 100_000).collect();
        assert_eq!(resolution_ps(&gaps(&even), 1_000_000), 1_000_000);
    }

    #[test]
    fn stamps_that_are_taken_in_batches_are_found() {
        let even: Vec<i64> = (0..10_000).map(|n| n * 10_000).collect();
        let held: Vec<i64> = (0..10_000).map(|n| (n / 10 + 1) * 100_000 + n % 10 * 20).collect();
        let found = batches(&gaps(&held), &gaps(&even), 1).unwrap();
        assert_eq!((found.packets.round() as i64, found.every_ns / 1_000), (10, 100));
        assert_eq!(batches(&gaps(&held), &gaps(&held), 1), None);
        assert_eq!(batches(&gaps(&even), &gaps(&held), 1), None);
        assert_eq!(batches(&gaps(&stamps(1.0)), &gaps(&even), 1), None);
        // Bursts that a device takes its time for are bursts behind it, too.
        let slow: Vec<i64> = (0..10_000).map(|n| (n / 10) * 100_000 + n % 10 * 6_000).collect();
        assert_eq!(batches(&gaps(&held), &gaps(&slow), 1), None);
    }
}
