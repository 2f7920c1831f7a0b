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
}

/// Gaps within a batch are shorter than this part of the mean gap.
const WITHIN: i64 = 10;

/// Fewest packets of a batch on average, and most of the other tap's.
const BATCHED: f64 = 4.0;
const EVEN: f64 = 1.25;

/// Fewest gaps between batches.
const REPEATED: u64 = 32;

/// Batches at a tap with these gaps, of packets that pass the other tap one by one.
pub(crate) fn batches(gaps: &Ranked, other: &Ranked) -> Option<Batches> {
    let (packets, every_ns) = batched(gaps)?;
    let (others, _) = batched(other)?;
    (packets >= BATCHED && others <= EVEN).then_some(Batches { packets, every_ns })
}

/// Mean number of packets between gaps that are not short, and the mean of those gaps.
fn batched(gaps: &Ranked) -> Option<(f64, i64)> {
    let entries = gaps.entries();
    let sum: i128 = entries.iter().map(|&(ns, count)| i128::from(ns) * i128::from(count)).sum();
    let mean_ns = i64::try_from(sum / i128::from(gaps.count().max(1))).ok()?;
    let (short, long): (Vec<_>, Vec<_>) =
        entries.iter().partition(|(gap_ns, _)| *gap_ns < mean_ns / WITHIN);
    let count = |of: &[(i64, u64)]| of.iter().map(|(_, count)| count).sum::<u64>();
    let (short, between) = (count(&short), count(&long));
    (between >= REPEATED)
        .then(|| (1.0 + short as f64 / between as f64, (sum / i128::from(between)) as i64))
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
        let found = batches(&gaps(&held), &gaps(&even)).unwrap();
        assert_eq!((found.packets.round() as i64, found.every_ns / 1_000), (10, 100));
        assert_eq!(batches(&gaps(&held), &gaps(&held)), None);
        assert_eq!(batches(&gaps(&even), &gaps(&held)), None);
        assert_eq!(batches(&gaps(&stamps(1.0)), &gaps(&even)), None);
    }
}
