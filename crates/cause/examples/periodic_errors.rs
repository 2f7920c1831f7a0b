//! Simulates how well periodic causes are found from stamps alone: a queue with one server that stalls at known times.
//! Prints a table in Markdown.
//!
//!     cargo run --release -p tailtrim-cause --example periodic_errors [WORLDS [FIRST_SEED [names]]] [pairs]
//!
//! `pairs`: worlds of a frequent short source and a rare long one, 30 s each.
//!
//! A source counts as visible if folding at its true period shows it at 8 standard deviations: of the packets that came
//! while it stalled the device, one per occurrence, the mean excess (capped at twice the length of the stall), compared
//! with the standard deviation of all packets; and if at least 8 of its occurrences met a packet.

mod random;
mod worlds;

use std::io::Write;
use tailtrim_cause::periodic::explain;
use worlds::{SCHEDULES, World, by_schedule};

/// Deviations at which a source is visible, and occurrences.
const VISIBLE: f64 = 8.0;
const FEWEST: usize = 8;

/// Whether folding at the true period shows a source. Packets in its window that are late without it, too, as those of
/// another source at the same phase, do not count.
fn visible(world: &World, number: usize) -> bool {
    let source = &world.sources[number];
    let mut latencies: Vec<f64> = world.samples.iter().map(|(a, b)| (b - a) as f64).collect();
    let mut sorted = latencies.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    latencies.iter_mut().for_each(|ns| *ns = (*ns - median).min(2.0 * source.length_ns));
    let count = latencies.len() as f64;
    let mean = latencies.iter().sum::<f64>() / count;
    let deviation = (latencies.iter().map(|ns| (ns - mean).powi(2)).sum::<f64>() / count).sqrt();
    let period_ns = 1e9 / source.hz;
    let mut last = -1.0;
    let (mut met, mut sum) = (0, 0.0);
    for ((at_ns, _), added_ns) in world.samples.iter().zip(&world.added_ns[number]) {
        let turns = (*at_ns as f64 - source.phase_ns) / period_ns;
        let number = turns.floor();
        if (turns - number) * period_ns < source.length_ns && number > last && number >= 0.0 {
            last = number;
            met += 1;
            sum += added_ns.min(2.0 * source.length_ns);
        }
    }
    met >= FEWEST && sum / (met as f64).sqrt() > VISIBLE * deviation
}

/// Results of the worlds of a schedule.
#[derive(Default, Clone, Copy)]
struct Counts {
    worlds: usize,
    sources: usize,
    visible: usize,
    found: usize,
    /// Found under another frequency, among whose aliases the true one is.
    aliased: usize,
    invisible_found: usize,
    invented: usize,
    worlds_with_invented: usize,
    duplicates: usize,
}

/// The source of a frequency: of those that are as near as told, the nearest one.
fn nearest(world: &World, hz: f64) -> Option<usize> {
    let off_hz = |number: &usize| (hz - world.sources[*number].hz).abs();
    (0..world.sources.len())
        .filter(|number| off_hz(number) < (2e-4 * world.sources[*number].hz).max(0.03))
        .min_by(|a, b| off_hz(a).total_cmp(&off_hz(b)))
}

fn judge(world: &World, names: bool, counts: &mut Counts) -> std::io::Result<()> {
    let told = explain(&world.samples);
    counts.worlds += 1;
    let mut matched = vec![0_usize; world.sources.len()];
    let mut invented = 0;
    for cause in told.causes.iter().filter(|cause| cause.every == 1) {
        // The frequencies that a cause names as alike are as good: one that no other cause has named is first.
        let all = std::iter::once(&cause.frequency_hz).chain(&cause.aliases_hz);
        let near: Vec<usize> = all.filter_map(|hz| nearest(world, *hz)).collect();
        let free = near.iter().find(|number| matched[**number] == 0);
        match free.or(near.first()) {
            Some(&number) => {
                matched[number] += 1;
                let own = nearest(world, cause.frequency_hz) == Some(number);
                counts.aliased += usize::from(!own);
            }
            None => invented += 1,
        }
    }
    for batch in &told.batches {
        // Told as what every n-th packet or something of this frequency causes.
        match nearest(world, batch.frequency_hz) {
            Some(number) => {
                matched[number] += 1;
                counts.aliased += 1;
            }
            None => invented += 1,
        }
    }
    counts.invented += invented;
    counts.worlds_with_invented += usize::from(invented > 0);
    let mut missed = false;
    let mut lines = String::new();
    for (number, (source, matched)) in world.sources.iter().zip(&matched).enumerate() {
        counts.sources += 1;
        let visible = visible(world, number);
        counts.visible += usize::from(visible);
        counts.found += usize::from(visible && *matched > 0);
        counts.invisible_found += usize::from(!visible && *matched > 0);
        counts.duplicates += matched.saturating_sub(1);
        missed |= visible && *matched == 0;
        lines += &format!(
            "   true {:.4} Hz {:.0} ns visible {visible} found {matched}\n",
            source.hz, source.length_ns
        );
    }
    if names && (missed || invented > 0 || matched.iter().any(|count| *count > 1)) {
        let mut out = std::io::stderr().lock();
        writeln!(out, "{} jitter {} noise {}", world.schedule, world.jitter, world.noise)?;
        write!(out, "{lines}")?;
        for batch in &told.batches {
            writeln!(out, "   told batch of {}: {:.4} Hz", batch.packets, batch.frequency_hz)?;
        }
        for cause in &told.causes {
            writeln!(
                out,
                "   told {:.4} Hz delay {} events {} met {:.3} every {} aliases {:.2?}",
                cause.frequency_hz,
                cause.delay_ns,
                cause.events,
                cause.purity,
                cause.every,
                cause.aliases_hz
            )?;
        }
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let named = arguments.iter().any(|one| one == "names");
    let all = by_schedule(&arguments, |seed, world, counts| {
        if named {
            writeln!(std::io::stderr(), "seed {seed}")?;
        }
        judge(world, named, counts)
    })?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| schedule | worlds | sources | visible | found | by an alias | found though not visible | invented | worlds with invented | told twice |"
    )?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")?;
    for (name, c) in SCHEDULES.iter().zip(&all) {
        writeln!(
            out,
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            c.worlds,
            c.sources,
            c.visible,
            c.found,
            c.aliased,
            c.invisible_found,
            c.invented,
            c.worlds_with_invented,
            c.duplicates
        )?;
    }
    Ok(())
}
