//! Simulations of the whole way from samples to intervals: a 95 % interval must contain the true
//! quantile in 95 % of the runs, and one of another confidence as often as it says, whether the tail
//! is independent or clustered. More may hold: a band is wider than the interval of one quantile, since it takes the
//! largest variance from a quantile outward (docs/intervals.md).

use super::random::Random;
use super::{Band, BlockCounts, Histogram, Interval, Probability, Ranked, Undelivered, ranks};

/// The coverage found has itself a binomial error of 0.8 %.
const RUNS: u32 = 800;
/// Latency of all packets that no stall delays, in nanoseconds.
const BODY_NS: i64 = 1000;
/// Mean length of a stall in nanoseconds.
const STALL_NS: f64 = 20_000.0;

/// Stalls of exponential length begin at any packet with a fixed probability. The packet waits for
/// the whole stall, the following ones each `gap_ns` less, so that a stall puts a geometric number
/// of consecutive packets above any threshold. A packet in several stalls waits for the longest.
struct Stalls {
    rate: f64,
    /// Decrease of the wait from one packet to the next one behind it; infinite for independent samples.
    gap_ns: f64,
}

impl Stalls {
    /// Stalls that raise 8 q of the packets, in clusters of `cluster` on average.
    fn new(q: f64, cluster: f64) -> Self {
        let gap_ns = -(1.0 - 1.0 / cluster).ln() * STALL_NS;
        Self { rate: 8.0 * q / cluster, gap_ns }
    }

    /// The exact probability that a packet is delayed by more than `delay_ns`: of the stalls that
    /// began 0, 1, 2, … packets ago at least one is still so long.
    fn exceedance(&self, delay_ns: f64) -> f64 {
        let mut begun = self.rate * (-delay_ns / STALL_NS).exp();
        let mut log_none = 0.0;
        while begun > 1e-18 {
            log_none += (-begun).ln_1p();
            begun *= (-self.gap_ns / STALL_NS).exp();
        }
        -f64::exp_m1(log_none)
    }

    /// The latency in nanoseconds that a packet exceeds with probability `q`.
    fn quantile(&self, q: f64) -> f64 {
        let (mut low, mut high) = (0.0, 100.0 * STALL_NS);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.exceedance(middle) > q {
                low = middle;
            } else {
                high = middle;
            }
        }
        BODY_NS as f64 + low
    }

    fn packets_to_next(&self, random: &mut Random) -> u64 {
        (random.exponential() / -(-self.rate).ln_1p()) as u64
    }

    fn sample(&self, n: u64, random: &mut Random) -> (Ranked, BlockCounts) {
        let (mut histogram, mut blocks) = (Histogram::new(), BlockCounts::new());
        let (mut packet, mut delay_ns) = (0, 0.0_f64);
        let mut next = self.packets_to_next(random);
        while packet < n {
            if delay_ns <= 0.0 && packet < next {
                let quiet = next.min(n) - packet;
                histogram.record_n(BODY_NS, quiet);
                blocks.record_n(BODY_NS, quiet);
                packet += quiet;
                continue;
            }
            if packet == next {
                delay_ns = delay_ns.max(random.exponential() * STALL_NS);
                next = packet + 1 + self.packets_to_next(random);
            }
            let latency_ns = BODY_NS + delay_ns.round() as i64;
            histogram.record(latency_ns);
            blocks.record_all(&[latency_ns]);
            delay_ns -= self.gap_ns;
            packet += 1;
        }
        (Ranked::new(&histogram), blocks)
    }
}

/// The fractions of runs whose interval contains the true quantile, in the band and as if the samples were independent, and
/// of those that support the quantile with an interval without it.
fn coverage(p: Probability, n: u64, cluster: f64, confidence: Probability) -> [f64; 3] {
    let stalls = Stalls::new(p.complement_f64(), cluster);
    let truth_ns = stalls.quantile(p.complement_f64());
    let (mut honest, mut naive, mut wrong) = (0, 0, 0);
    for run in 0..RUNS {
        let (ranked, blocks) = stalls.sample(n, &mut Random::seeded(u64::from(run)));
        let band = Band::new(&ranked, &blocks, Undelivered::NONE, confidence);
        let contains = |interval: Interval| {
            let value_ns = |rank: Option<u64>| rank.map(|r| ranked.at_rank(r).unwrap() as f64);
            // Half a nanosecond of rounding either way.
            value_ns(interval.low).is_none_or(|low| low - 0.5 <= truth_ns)
                && value_ns(interval.high).is_none_or(|high| truth_ns <= high + 0.5)
        };
        let bounds = band.at(p);
        let holds = contains(bounds.interval);
        honest += u32::from(holds);
        wrong += u32::from(bounds.supported && !holds);
        naive += u32::from(contains(ranks(p, n, confidence, 1.0)));
    }
    let fraction = |count| f64::from(count) / f64::from(RUNS);
    let found = [honest, naive, wrong].map(fraction);
    println!(
        "p{} of {n} in clusters of {cluster}: {:.3}, without design effect {:.3}, supported and wrong {:.3}",
        p.percent_text(),
        found[0],
        found[1],
        found[2],
    );
    found
}

/// Returns the coverage that intervals for independent samples would have had.
fn assert_honest(p: Probability, n: u64, cluster: f64) -> f64 {
    let [honest, naive, wrong] = coverage(p, n, cluster, Probability::P95);
    assert!((0.93..=0.985).contains(&honest), "{honest}");
    assert!(wrong <= 0.07, "{wrong}");
    naive
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn independent_p99() {
    assert_honest(Probability::P99, 100_000, 1.0);
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn independent_p99_9() {
    assert_honest(Probability::P99_9, 1_000_000, 1.0);
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn independent_p99_99() {
    assert_honest(Probability::P99_99, 4_000_000, 1.0);
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn clustered_p99() {
    let naive = assert_honest(Probability::P99, 100_000, 8.0);
    assert!(naive < 0.6, "the clusters of this test should have fooled plain order statistics");
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn clustered_p99_9() {
    assert_honest(Probability::P99_9, 1_000_000, 8.0);
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn clustered_p99_99() {
    assert_honest(Probability::P99_99, 4_000_000, 8.0);
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn some_ten_long_clusters() {
    // The fewest that still yield a bound on both sides in most runs.
    assert_honest(Probability::P99, 30_000, 30.0);
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn the_asked_confidence_is_that_of_the_interval() {
    for (confidence, within) in [("0.8", 0.77..=0.87), ("0.99", 0.98..=1.0)] {
        let confidence = confidence.parse().unwrap();
        let [honest, ..] = coverage(Probability::P99, 100_000, 8.0, confidence);
        assert!(within.contains(&honest), "{honest}");
    }
}

/// Of quantiles that only some tens of samples exceed, which tell little of how they cluster
/// ([`BlockCounts::TELLING`]), intervals may be too wide, not too narrow.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn few_samples_beyond() {
    for (n, cluster) in [(10_000, 1.0), (20_000, 1.0), (20_000, 3.0), (40_000, 1.0), (40_000, 3.0)]
    {
        let [honest, naive, _] = coverage(Probability::P99_9, n, cluster, Probability::P95);
        assert!(honest >= 0.93, "{n} in clusters of {cluster}: {honest}");
        assert!(cluster == 1.0 || naive < 0.7, "{n} in clusters of {cluster}: {naive}");
    }
}
