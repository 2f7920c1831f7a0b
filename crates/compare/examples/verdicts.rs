//! Simulates comparisons of several runs a side, where the truth is known: how often each verdict is given, how often it
//! is wrong, and how often as many runs as were told to be needed decide. Prints a table in Markdown.
//!
//!     cargo run --release -p tailtrim-compare --example verdicts [COMPARISONS [FIRST_SEED]]

#[path = "../tests/it/processes.rs"]
mod processes;

use processes::{Process, repetitions};
use std::io::Write;
use tailtrim_compare::{Options, Repetition, Row, Verdict, compare};
use tailtrim_stats::{Probability, student};

/// Relative standard deviation of the levels of runs.
const SPREAD: f64 = 0.1;
/// Packets of a run.
const SAMPLES: usize = 2_000;
/// A comparison with more runs than these is not tried again.
const MOST_RUNS: u64 = 60;

/// The rows of p50 and p90 of a comparison.
fn simulate(runs: usize, scale: f64, seed: u64) -> Vec<Row> {
    let [a, b] = [(1.0, 0), (scale, 1)].map(|(scale, side)| {
        repetitions(Process::Independent, runs, SAMPLES, scale, SPREAD, 2 * seed + side)
    });
    let [a, b] = [a, b].map(|runs| runs.iter().map(|run| Repetition::of(run)).collect::<Vec<_>>());
    let quantiles = vec![Probability::P50, Probability::P90];
    let options = Options { quantiles, draws: 999, seed, margin: 0.01, ..Options::default() };
    compare(&a, &b, &options).quantiles
}

/// The difference of which `tailtrim run PLAN --check` says that it is shown in four of five cases (`shown_from` in
/// `python/tailtrim/verdict.py`).
fn shown_from(runs: usize) -> f64 {
    let reach = student::critical(0.025, 2.0 * (runs as f64 - 1.0)) + 0.841_621;
    (reach * SPREAD.ln_1p() * (2.0 / runs as f64).sqrt()).exp()
}

#[derive(Default)]
struct Tally {
    better: u64,
    worse: u64,
    none: u64,
    /// "No difference beyond X", of sides that differ by more than X.
    missed: u64,
    undecided: u64,
    beyond: Vec<f64>,
    needed: Vec<u64>,
    /// Comparisons with as many runs as were needed, and those of them that are decided.
    again: (u64, u64),
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let comparisons: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1_000);
    let first: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| runs a side | B is slower by | better | worse | no difference beyond X | X, median | wrong: they are farther apart \
         | not decided | runs needed, median | so many runs decide |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    let scales = |runs| [1.0, 1.1, 1.25, shown_from(runs)].map(|scale| (runs, scale));
    for (runs, scale) in [3, 4, 5, 8, 16].into_iter().flat_map(scales) {
        let mut tally = Tally::default();
        for seed in first..first + comparisons {
            // Two seeds a comparison, and no two comparisons share one.
            let seed = seed * 1_000 + runs as u64 * 10 + (scale * 10.0) as u64;
            match simulate(runs, scale, seed)[0].verdict {
                Verdict::Better => tally.better += 1,
                Verdict::Worse => tally.worse += 1,
                Verdict::NoDifference { beyond } => {
                    tally.none += 1;
                    tally.missed += u64::from(scale - 1.0 > beyond);
                    tally.beyond.push(100.0 * beyond);
                }
                Verdict::NotDecided { needed } => {
                    tally.undecided += 1;
                    let needed = needed.unwrap_or(u64::MAX);
                    tally.needed.push(needed);
                    if needed <= MOST_RUNS && tally.again.1 < 200 {
                        let more = &simulate(needed as usize, scale, seed + 500)[0];
                        let decided = !matches!(more.verdict, Verdict::NotDecided { .. });
                        tally.again.0 += u64::from(decided);
                        tally.again.1 += 1;
                    }
                }
            }
        }
        let share = |count: u64| format!("{:.1} %", 100.0 * count as f64 / comparisons as f64);
        tally.beyond.sort_unstable_by(f64::total_cmp);
        tally.needed.sort_unstable();
        let beyond = tally.beyond.get(tally.beyond.len() / 2);
        let needed = tally.needed.get(tally.needed.len() / 2);
        let again = match tally.again {
            (_, tried) if tried < 20 => "–".to_owned(),
            (decided, tried) => format!("{:.0} %", 100.0 * decided as f64 / tried as f64),
        };
        writeln!(
            out,
            "| {runs} | {:.0} % | {} | {} | {} | {} | {} | {} | {} | {again} |",
            100.0 * (scale - 1.0),
            share(tally.better),
            share(tally.worse),
            share(tally.none),
            beyond.map_or("–".to_owned(), |x| format!("{x:.0} %")),
            share(tally.missed),
            share(tally.undecided),
            needed.map_or("–".to_owned(), |n| format!("{n}")),
        )?;
        out.flush()?;
    }
    Ok(())
}
