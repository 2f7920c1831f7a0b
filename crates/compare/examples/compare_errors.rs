//! Simulates comparisons where the truth is known: how often a difference is shown where there is
//! none, and where there is one. Prints a table in Markdown.
//!
//!     cargo run --release -p tailtrim-compare --example compare_errors [COMPARISONS [FIRST_SEED [SCENARIO]]]

#[path = "../tests/it/processes.rs"]
mod processes;

use processes::{Process, repetitions};
use std::io::Write;
use tailtrim_compare::{Comparison, Options, Repetition, Verdict, compare};
use tailtrim_stats::Probability;

struct Scenario {
    name: &'static str,
    processes: [Process; 2],
    runs: usize,
    samples: [usize; 2],
    spread: f64,
}

fn scenarios() -> Vec<Scenario> {
    let sides = |name, processes| Scenario {
        name,
        processes,
        runs: 1,
        samples: [100_000, 100_000],
        spread: 0.0,
    };
    let one = |name, process| sides(name, [process; 2]);
    let several = |name, runs, samples, process, spread| Scenario {
        runs,
        samples: [samples, samples],
        spread,
        ..one(name, process)
    };
    vec![
        one("independent", Process::Independent),
        one("tied stamps", Process::Tied),
        one("clusters of 8", Process::Clustered(8.0)),
        one("clusters of 30", Process::Clustered(30.0)),
        one("autocorrelation 0.9", Process::Autocorrelated(0.9)),
        one("autocorrelation 0.99", Process::Autocorrelated(0.99)),
        one("autocorrelation 0.999", Process::Autocorrelated(0.999)),
        one("level wanders by 0.2 %", Process::Wandering(0.002)),
        one("level wanders by 2 %", Process::Wandering(0.02)),
        Scenario {
            samples: [100_000, 25_000],
            ..one("unequal, clusters of 8", Process::Clustered(8.0))
        },
        Scenario {
            samples: [100_000, 51_000],
            ..one("half as many, clusters of 8", Process::Clustered(8.0))
        },
        several("3 repetitions alike", 3, 30_000, Process::Autocorrelated(0.9), 0.0),
        several("3 repetitions that differ", 3, 30_000, Process::Clustered(8.0), 0.02),
        several("5 repetitions that differ", 5, 20_000, Process::Clustered(8.0), 0.02),
        several("5 repetitions that wander", 5, 20_000, Process::Wandering(0.02), 0.02),
        sides("other dependence", [Process::Independent, Process::Autocorrelated(0.99)]),
        one("two regimes", Process::Regimes),
    ]
}

fn simulate(scenario: &Scenario, scale: f64, seed: u64) -> Comparison {
    let side = |index: usize, scale: f64| {
        let seed = seed * 2 + index as u64;
        let runs = repetitions(
            scenario.processes[index],
            scenario.runs,
            scenario.samples[index],
            scale,
            scenario.spread,
            seed,
        );
        runs.iter().map(|run| Repetition::of(run)).collect::<Vec<_>>()
    };
    let quantiles = ["0.5", "0.9", "0.99", "0.999", "0.9999"];
    let quantiles = quantiles.iter().filter_map(|p| p.parse().ok()).collect::<Vec<Probability>>();
    let options = Options { quantiles, draws: 1_999, seed, ..Options::default() };
    compare(&side(0, 1.0), &side(1, scale), &options)
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let comparisons: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(2_000);
    let first: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let only = arguments.next();
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| no difference | any verdict | of these told to drift | p50 | p90 | p99 | p99.9 | p99.99 \
         | intervals of p99 without 1 | p90 shown at its `worse_from` | told to drift \
         | `worse_from` of p50, p90, p99 \
         |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for scenario in scenarios() {
        if only.as_ref().is_some_and(|name| !scenario.name.contains(name.as_str())) {
            continue;
        }
        let mut tally = Tally::default();
        for seed in first..first + comparisons {
            let found = simulate(&scenario, 1.0, seed);
            tally.add(&found);
            // The smallest difference that this comparison claims to be able to show is put to the test by another
            // comparison.
            if let Some(ratio) = found.quantiles[1].worse_from.filter(|_| seed % 8 == 0) {
                let slower = simulate(&scenario, ratio, comparisons + seed);
                tally.tried += 1;
                tally.powerful += u64::from(slower.quantiles[1].verdict == Verdict::Worse);
            }
        }
        writeln!(out, "| {} | {} |", scenario.name, tally.cells().join(" | "))?;
        out.flush()?;
    }
    Ok(())
}

/// Results of comparisons of equal sides.
#[derive(Default)]
struct Tally {
    comparisons: u64,
    any: u64,
    /// Comparisons said to drift, and those with a verdict among them.
    drifts: (u64, u64),
    /// By quantile: p at most 0.05, and comparisons in which it was supported.
    alone: [(u64, u64); 5],
    /// Intervals of p99 that leave out 1, and those that there are.
    outside: (u64, u64),
    powerful: u64,
    tried: u64,
    /// Smallest slowdowns that would have been shown, for p50, p90 and p99, in percent.
    from: [Vec<f64>; 3],
}

impl Tally {
    fn add(&mut self, found: &Comparison) {
        self.comparisons += 1;
        let any = found.quantiles.iter().any(|row| row.verdict.differs());
        self.any += u64::from(any);
        self.drifts.0 += u64::from(found.drifts);
        self.drifts.1 += u64::from(found.drifts && any);
        for (row, alone) in found.quantiles.iter().zip(&mut self.alone) {
            if let Some(p) = row.p_value {
                alone.1 += 1;
                alone.0 += u64::from(p <= 0.05);
            }
        }
        for (row, from) in found.quantiles.iter().zip(&mut self.from) {
            from.extend(row.worse_from.map(|ratio| 100.0 * (ratio - 1.0)));
        }
        let p99 = &found.quantiles[2];
        let misses = p99.low.is_some_and(|low| low > 1.0) || p99.high.is_some_and(|h| h < 1.0);
        self.outside.0 += u64::from(misses);
        self.outside.1 += u64::from(p99.p_value.is_some());
    }

    fn cells(&mut self) -> Vec<String> {
        let share = |count: u64, of: u64| 100.0 * count as f64 / of.max(1) as f64;
        let alone = |(count, supported): (u64, u64)| match share(supported, self.comparisons) {
            part if part < 5.0 => "–".to_owned(),
            part if part > 99.5 => format!("{:.1} %", share(count, supported)),
            part => format!("{:.1} % of {part:.0} %", share(count, supported)),
        };
        let mut cells = vec![format!("{:.1} %", share(self.any, self.comparisons))];
        cells.push(format!("{:.1} %", share(self.drifts.1, self.comparisons)));
        cells.extend(self.alone.map(alone));
        cells.push(alone(self.outside));
        cells.push(format!("{:.0} %", share(self.powerful, self.tried)));
        cells.push(format!("{:.1} %", share(self.drifts.0, self.comparisons)));
        let median = |from: &mut Vec<f64>| {
            from.sort_unstable_by(f64::total_cmp);
            let told = 2 * from.len() as u64 > self.comparisons;
            from.get(from.len() / 2)
                .filter(|_| told)
                .map_or("–".to_owned(), |x| format!("{x:.1}"))
        };
        cells.push(format!("{} %", self.from.each_mut().map(median).join(", ")));
        cells
    }
}
