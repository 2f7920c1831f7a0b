//! Simulates whether runs as long as `plan-length` says are as precise as it says. Prints a table in
//! Markdown.
//!
//!     cargo run --release -p tailtrim-compare --example length_errors [RUNS [FIRST_SEED]]

#[path = "../tests/support/processes.rs"]
mod processes;

use processes::{Process, latencies};
use std::io::Write;
use tailtrim_compare::{Pilot, length};
use tailtrim_stats::{BlockCounts, Probability, Ranked, ranks};

/// A pilot of so many samples.
const PILOT: usize = 100_000;
/// Runs that stand for the truth.
const TRUTH: u64 = 20;

/// What became of runs of the planned length.
#[derive(Default)]
struct Tally {
    /// Lengths in samples.
    lengths: Vec<u64>,
    refused: u64,
    /// The quantile is off the true one by no more than the precision.
    near: u64,
    /// The interval holds the true quantile.
    held: u64,
    /// The interval reaches from the quantile no further than the precision, and than half more.
    within: [u64; 2],
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1).filter_map(|n| n.parse::<u64>().ok());
    let runs = arguments.next().unwrap_or(300);
    let first = arguments.next().unwrap_or(0);
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| process | quantile | precision | samples (median) | quantile within | interval holds it \
         | interval within | within 1.5 times | no length |\n|---|---|---|---|---|---|---|---|---|"
    )?;
    for (name, process) in [
        ("independent", Process::Independent),
        ("clusters of 8", Process::Clustered(8.0)),
        ("autocorrelation 0.9", Process::Autocorrelated(0.9)),
    ] {
        let mut all: Vec<i64> =
            (0..TRUTH).flat_map(|seed| latencies(process, 1_000_000, 1.0, !seed)).collect();
        let truth = Ranked::from_values(&mut all);
        for (quantile, precision) in [("0.5", 0.005), ("0.99", 0.05), ("0.999", 0.05)] {
            let Ok(p) = quantile.parse::<Probability>() else { continue };
            let Some(expected) = truth.quantile(p) else { continue };
            let mut tally = Tally::default();
            for seed in first..first + runs {
                tally.add(process, p, precision, expected, seed);
            }
            let cells = tally.cells(runs).join(" | ");
            let percent = p.percent_text();
            writeln!(out, "| {name} | p{percent} | {:.1} % | {cells} |", 100.0 * precision)?;
            out.flush()?;
        }
    }
    Ok(())
}

impl Tally {
    fn add(&mut self, process: Process, p: Probability, precision: f64, truth: i64, seed: u64) {
        let (pilot, effect) = counted(&latencies(process, PILOT, 1.0, 2 * seed), p);
        let planned =
            length(p, precision, Probability::P95, effect, Some(Pilot { latencies: &pilot }));
        // What would not fit a simulation is not tried.
        let Some(planned) = planned.ok().filter(|planned| planned.samples < 20_000_000) else {
            self.refused += 1;
            return;
        };
        self.lengths.push(planned.samples);
        let values = latencies(process, planned.samples as usize, 1.0, 2 * seed + 1);
        let (run, effect) = counted(&values, p);
        let interval = ranks(p, planned.samples, Probability::P95, effect);
        let at = |rank: Option<u64>| rank.and_then(|rank| run.at_rank(rank));
        let (Some(low), Some(high), Some(value)) =
            (at(interval.low), at(interval.high), run.quantile(p))
        else {
            return;
        };
        let off = |ns: i64| (ns as f64 / value as f64 - 1.0).abs();
        let reach = off(low).max(off(high));
        self.near += u64::from((value as f64 / truth as f64 - 1.0).abs() <= precision);
        self.held += u64::from(low <= truth && truth <= high);
        for (count, times) in self.within.iter_mut().zip([1.0, 1.5]) {
            *count += u64::from(reach <= times * precision);
        }
    }

    fn cells(mut self, runs: u64) -> Vec<String> {
        self.lengths.sort_unstable();
        let done = self.lengths.len().max(1) as f64;
        let percent = |count: u64| format!("{:.1} %", 100.0 * count as f64 / done);
        vec![
            self.lengths.get(self.lengths.len() / 2).map_or("–".to_owned(), u64::to_string),
            percent(self.near),
            percent(self.held),
            percent(self.within[0]),
            percent(self.within[1]),
            format!("{:.1} %", 100.0 * self.refused as f64 / runs as f64),
        ]
    }
}

/// The distribution, and how many samples are worth one independent one at the quantile.
fn counted(values: &[i64], p: Probability) -> (Ranked, f64) {
    let mut blocks = BlockCounts::new();
    blocks.record_all(values);
    let latencies = Ranked::from_values(&mut values.to_vec());
    let effect = latencies
        .quantile(p)
        .map_or(1.0, |ns| blocks.design_effect(ns, latencies.count_above(ns), Probability::P95));
    (latencies, effect)
}
