//! Simulates how often a 95 % interval of a quantile holds the true one, for samples of many kinds of dependence, and
//! prints a table in Markdown, in percent: of the intervals that are supported, of the runs in which they are, and the
//! supported and wrong ones of all runs.
//!
//!     cargo run --release -p tailtrim-stats --example interval_errors [RUNS [FIRST_SEED [PACKETS]]]
#![allow(clippy::unwrap_used, reason = "a simulation that panics has failed")]

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::io::Write;
use tailtrim_stats::{Band, BlockCounts, Histogram, Probability, Ranked, Undelivered};

/// Latencies are this plus a deviate in microseconds.
const BODY_NS: f64 = 50_000.0;
const PERCENTILES: [&str; 4] = ["0.5", "0.9", "0.99", "0.999"];

struct Random(Pcg64Mcg);

impl Random {
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Dependence between the latencies of successive packets.
#[derive(Clone, Copy)]
enum Process {
    Independent,
    /// With the exponent 1.5.
    Pareto,
    /// First-order autoregression of normal deviates, which keeps this share of the one before.
    Autoregression(f64),
    /// Stays in a good and in a bad state for so many packets on average (exponential); 3 µs more in the bad one.
    Switching(f64, f64),
    /// Stalls begin every so many packets on average and last so many on average (exponential), and packets queue.
    Stalls(f64, f64),
    /// A stall of so many packets every so many packets, exactly.
    Ticks(u32, u32),
}

impl Process {
    fn name(self) -> String {
        match self {
            Self::Independent => "independent, normal".into(),
            Self::Pareto => "independent, Pareto 1.5".into(),
            Self::Autoregression(kept) => format!("autoregression {kept}"),
            Self::Switching(good, bad) => format!("good {good}, bad {bad} packets"),
            Self::Stalls(every, long) => format!("stalls of {long} every {every} packets"),
            Self::Ticks(every, long) => format!("ticks of {long} every {every} packets"),
        }
    }

    fn run(self, packets: usize, random: &mut Random) -> Vec<i64> {
        let mut latency_ns: Box<dyn FnMut(&mut Random) -> f64> = match self {
            Self::Independent => Box::new(Random::normal),
            Self::Pareto => Box::new(|random| random.uniform().powf(-1.0 / 1.5)),
            Self::Autoregression(kept) => {
                let mut last = random.normal();
                Box::new(move |random| {
                    last = kept * last + (1.0 - kept * kept).sqrt() * random.normal();
                    last
                })
            }
            Self::Switching(good, bad) => {
                let mut is_bad = random.uniform() < bad / (good + bad);
                let mut left = 0.0;
                let mut begun = false;
                Box::new(move |random| {
                    while left <= 0.0 {
                        // The first sojourn is cut where the run begins; an exponential one is as long as ever.
                        is_bad ^= begun;
                        begun = true;
                        left += random.exponential() * if is_bad { bad } else { good };
                    }
                    left -= 1.0;
                    random.normal() + if is_bad { 3.0 } else { 0.0 }
                })
            }
            Self::Stalls(every, long) => {
                let mut waiting = 0.0_f64;
                Box::new(move |random| {
                    waiting = (waiting - 1.0).max(0.0);
                    if random.uniform() < 1.0 / every {
                        waiting = waiting.max(random.exponential() * long);
                    }
                    5.0 * waiting + random.normal()
                })
            }
            Self::Ticks(every, long) => {
                let mut place = (random.uniform() * f64::from(every)) as u32;
                Box::new(move |random| {
                    place = (place + 1) % every;
                    5.0 * f64::from(long.saturating_sub(place)) + random.normal()
                })
            }
        };
        (0..packets).map(|_| (BODY_NS + 1e3 * latency_ns(random)) as i64).collect()
    }

    /// The quantiles of three hundred other runs: their error is a seventeenth of that of one.
    fn truth(self, packets: usize, random: &mut Random) -> Vec<i64> {
        let mut all = Histogram::new();
        for _ in 0..300 {
            all.record_all(self.run(packets, random).into_iter());
        }
        let ranked = Ranked::new(&all);
        PERCENTILES.iter().map(|p| ranked.quantile(p.parse().unwrap()).unwrap()).collect()
    }
}

#[derive(Default, Clone, Copy)]
struct Tally {
    supported: u32,
    right: u32,
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().unwrap());
    let runs = arguments.next().unwrap_or(200);
    let seed = arguments.next().unwrap_or(1);
    let packets = arguments.next().unwrap_or(30_000) as usize;
    let (p95, mut out) = (Probability::P95, std::io::stdout());
    writeln!(
        out,
        "| samples | {} |",
        PERCENTILES.map(|p| format!("p{}", 100.0 * p.parse::<f64>().unwrap())).join(" | ")
    )?;
    writeln!(out, "|---|{}", "---|".repeat(PERCENTILES.len()))?;
    for (number, process) in processes().into_iter().enumerate() {
        let mut random = Random(Pcg64Mcg::seed_from_u64(seed + ((number as u64) << 32)));
        let truth = process.truth(packets, &mut random);
        let mut tallies = [Tally::default(); PERCENTILES.len()];
        for _ in 0..runs {
            let latencies = process.run(packets, &mut random);
            let (mut histogram, mut blocks) = (Histogram::new(), BlockCounts::new());
            histogram.record_all(latencies.iter().copied());
            blocks.record_all(&latencies);
            let ranked = Ranked::new(&histogram);
            let band = Band::new(&ranked, &blocks, Undelivered::NONE, p95);
            for ((tally, text), truth_ns) in tallies.iter_mut().zip(PERCENTILES).zip(&truth) {
                let bounds = band.at(text.parse().unwrap());
                let at = |rank: Option<u64>| rank.and_then(|rank| ranked.at_rank(rank));
                let Some(high_ns) = at(bounds.interval.high).filter(|_| bounds.supported) else {
                    continue;
                };
                let low_ns = at(bounds.interval.low).unwrap_or(i64::MIN);
                tally.supported += 1;
                tally.right += u32::from((low_ns..=high_ns).contains(truth_ns));
            }
        }
        let cells = tallies.map(|tally| {
            let share = 100.0 * f64::from(tally.supported) / runs as f64;
            let right = 100.0 * f64::from(tally.right) / f64::from(tally.supported);
            match tally.supported {
                0 => "not supported".to_owned(),
                n => {
                    let wrong = 100.0 * f64::from(n - tally.right) / runs as f64;
                    format!("{right:.1} of {share:.1}, wrong {wrong:.1}")
                }
            }
        });
        writeln!(out, "| {} | {} |", process.name(), cells.join(" | "))?;
    }
    Ok(())
}

fn processes() -> Vec<Process> {
    let mut all = vec![Process::Independent, Process::Pareto];
    all.extend([0.9, 0.99, 0.999].map(Process::Autoregression));
    all.extend([200.0, 500.0, 1e3, 2e3, 5e3, 1e4].map(|each| Process::Switching(each, each)));
    for (good, bad) in [(900.0, 100.0), (1_900.0, 100.0), (9_500.0, 500.0)] {
        all.push(Process::Switching(good, bad));
    }
    all.extend(
        [(100.0, 3.0), (1_000.0, 10.0), (5_000.0, 20.0)]
            .map(|(every, long)| Process::Stalls(every, long)),
    );
    all.extend([(40, 2), (1_000, 10)].map(|(every, long)| Process::Ticks(every, long)));
    all
}
