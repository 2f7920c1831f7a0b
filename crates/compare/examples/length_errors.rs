//! Simulates whether runs as long as `plan-length` says are as precise as it says. Prints a table in
//! Markdown.
//!
//!     cargo run --release -p tailtrim-compare --example length_errors [RUNS [FIRST_SEED [ASSURANCE [NAME [PILOT [LONGEST]]]]]]
//!
//! With a name, such as `stalls`, only for the processes that have it in theirs. A pilot has `PILOT` samples (100,000); runs
//! beyond `LONGEST` samples (2 million) are not simulated, and counted.

#[path = "../tests/it/processes.rs"]
mod processes;

use processes::{Process, latencies};
use std::io::Write;
use tailtrim_compare::{Pilot, length};
use tailtrim_stats::{BlockCounts, Probability, Ranked, ranks};

/// Runs that stand for the truth.
const TRUTH: u64 = 20;

/// Requested precision and assurance, and the simulated samples.
struct Case {
    process: Process,
    p: Probability,
    precision: f64,
    assurance: Probability,
    pilot: usize,
    longest: u64,
}

/// Results of runs of the planned length.
#[derive(Default)]
struct Tally {
    /// Lengths in samples.
    lengths: Vec<u64>,
    refused: u64,
    /// Planned, and too long to be simulated.
    longer: u64,
    /// The interval holds the true quantile.
    held: u64,
    /// The interval reaches from the quantile no further than the precision.
    within: u64,
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let whole = |place: usize| arguments.get(place).and_then(|n| n.parse::<u64>().ok());
    let (runs, first) = (whole(0).unwrap_or(300), whole(1).unwrap_or(0));
    let assurance = arguments.get(2).map_or("0.8", String::as_str);
    let assurance = assurance.parse::<Probability>().map_err(std::io::Error::other)?;
    let only = arguments.get(3).map_or("", String::as_str);
    let (pilot, longest) = (whole(4).unwrap_or(100_000) as usize, whole(5).unwrap_or(2_000_000));
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| process | quantile | precision | samples (median) | interval within | interval holds \
         the quantile | no length | longer |\n|---|---|---|---|---|---|---|---|"
    )?;
    for (name, process) in [
        ("independent", Process::Independent),
        ("independent, Pareto 1.5", Process::Pareto(1.5)),
        ("stalls of 8", Process::Clustered(8.0)),
        ("stalls of 30", Process::Clustered(30.0)),
        ("autoregression 0.9", Process::Autocorrelated(0.9)),
        ("autoregression 0.99", Process::Autocorrelated(0.99)),
    ] {
        if !name.contains(only) {
            continue;
        }
        let mut all: Vec<i64> =
            (0..TRUTH).flat_map(|seed| latencies(process, 1_000_000, 1.0, !seed)).collect();
        let truth = Ranked::from_values(&mut all);
        for (quantile, precision) in [("0.5", 0.01), ("0.99", 0.1), ("0.999", 0.1)] {
            let Ok(p) = quantile.parse::<Probability>() else { continue };
            let Some(expected) = truth.quantile(p) else { continue };
            let mut tally = Tally::default();
            for seed in first..first + runs {
                let case = Case { process, p, precision, assurance, pilot, longest };
                tally.add(&case, expected, seed);
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
    fn add(&mut self, case: &Case, truth: i64, seed: u64) {
        let &Case { process, p, precision, assurance, .. } = case;
        let (pilot, effect) = counted(&latencies(process, case.pilot, 1.0, 2 * seed), p);
        let pilot = Some(Pilot { latencies: &pilot });
        let planned = length(p, precision, Probability::P95, assurance, effect, pilot);
        let Ok(planned) = planned else {
            self.refused += 1;
            return;
        };
        self.lengths.push(planned.samples);
        if planned.samples > case.longest {
            self.longer += 1;
            return;
        }
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
        self.held += u64::from(low <= truth && truth <= high);
        self.within += u64::from(reach <= precision);
    }

    fn cells(mut self, runs: u64) -> Vec<String> {
        self.lengths.sort_unstable();
        let done = (self.lengths.len() as u64 - self.longer).max(1) as f64;
        let percent = |count: u64| format!("{:.1} %", 100.0 * count as f64 / done);
        vec![
            self.lengths.get(self.lengths.len() / 2).map_or("–".to_owned(), u64::to_string),
            percent(self.within),
            percent(self.held),
            format!("{:.1} %", 100.0 * self.refused as f64 / runs as f64),
            format!("{:.1} %", 100.0 * self.longer as f64 / runs as f64),
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
