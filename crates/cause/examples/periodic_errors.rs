//! Simulates how well periodic causes are found from stamps alone: a queue with one server that stalls at known times.
//! Prints a table in Markdown.
//!
//!     cargo run --release -p tailtrim-cause --example periodic_errors [WORLDS [FIRST_SEED [names]]]
//!
//! A source counts as visible if folding at its true period shows it at 8 standard deviations: of the packets that came
//! while it stalled the device, one per occurrence, the mean excess (capped at twice the length of the stall), compared
//! with the standard deviation of all packets; and if at least 8 of its occurrences met a packet.

mod random;

use random::Random;
use std::io::Write;
use tailtrim_cause::periodic::explain;

/// Length of a run.
const RUN_NS: f64 = 20e9;
/// Time that a packet needs without a stall, besides its service; then the service.
const WAY_NS: f64 = 10_000.0;
const SERVICE_NS: f64 = 800.0;
/// Deviations at which a source is visible, and occurrences.
const VISIBLE: f64 = 8.0;
const FEWEST: usize = 8;

fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    low * (high / low).powf(random.uniform())
}

fn of<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[(random.uniform() * all.len() as f64) as usize]
}

/// Something that stalls the device.
struct Source {
    hz: f64,
    length_ns: f64,
    phase_ns: f64,
}

/// A simulated run.
struct World {
    schedule: &'static str,
    jitter: f64,
    sources: Vec<Source>,
    /// Whether there are stalls at random times, too.
    noise: bool,
    samples: Vec<(i64, i64)>,
    /// By how much each source makes each packet later.
    added_ns: Vec<Vec<f64>>,
}

const SCHEDULES: [&str; 5] = ["CBR", "CBR 7 ppm off", "CBR 0.17 % off", "Poisson", "bursts"];

fn arrivals(schedule: &str, random: &mut Random) -> Vec<f64> {
    let interval_ns = match schedule {
        "CBR 7 ppm off" => 100_000.7,
        "CBR 0.17 % off" => 100_170.0,
        _ => 100_000.0,
    };
    let size = of(random, &[4.0, 8.0, 16.0, 32.0]);
    let count = (RUN_NS / interval_ns) as usize;
    let mut at_ns = 0.0;
    (0..count)
        .map(|number| {
            let number = number as f64;
            match schedule {
                "Poisson" => {
                    at_ns += interval_ns * random.exponential();
                    at_ns
                }
                "bursts" => {
                    let burst = (number / size).floor();
                    burst * size * 99_921.0
                        + (number - burst * size) * 1_000.0
                        + 50.0 * random.uniform()
                }
                _ => number * interval_ns + 50.0 * random.uniform(),
            }
        })
        .collect()
}

fn world(seed: u64) -> World {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let schedule = SCHEDULES[(seed % 5) as usize];
    let jitter = of(&mut random, &[0.02, 0.1, 0.3]);
    let noise = random.uniform() < 0.5;
    let mut sources: Vec<Source> = Vec::new();
    let count = (seed / 5 % 5) as usize;
    while sources.len() < count {
        let hz = match sources.last() {
            // Commensurable, with the same clock.
            Some(last) if random.uniform() < 0.4 => {
                last.hz
                    * of(
                        &mut random,
                        &[0.2, 0.25, 1.0 / 3.0, 0.4, 0.5, 2.0 / 3.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0],
                    )
            }
            _ if random.uniform() < 0.3 => {
                of(&mut random, &[1.0, 4.0, 10.0, 25.0, 100.0, 250.0, 300.0, 1_000.0])
            }
            _ => between(&mut random, 1.0, 2_000.0),
        };
        let length_ns = between(&mut random, 2_000.0, 500_000.0);
        let near = |other: &Source| (other.hz / hz - 1.0).abs() < 0.01;
        if (1.0..=2_000.0).contains(&hz) && hz * length_ns < 0.1e9 && !sources.iter().any(near) {
            sources.push(Source { hz, length_ns, phase_ns: random.uniform() * 1e9 / hz });
        }
    }
    // From, until, and the source's number.
    let mut stalls: Vec<(f64, f64, usize)> = Vec::new();
    for (source, one) in sources.iter().enumerate() {
        for number in 0..(RUN_NS * one.hz / 1e9) as usize {
            let from_ns = one.phase_ns + number as f64 * 1e9 / one.hz + 300.0 * random.normal();
            let until_ns = from_ns + one.length_ns * (0.05 * random.normal()).exp();
            stalls.push((from_ns, until_ns, source));
        }
    }
    if noise {
        for _ in 0..600 {
            let from_ns = random.uniform() * RUN_NS;
            stalls.push((from_ns, from_ns + 20_000.0 * random.exponential(), usize::MAX));
        }
    }
    stalls.sort_by(|a, b| a.0.total_cmp(&b.0));
    let arrivals = arrivals(schedule, &mut random);
    let samples = served(&arrivals, &stalls, jitter, &mut Random(random.0));
    let added_ns = (0..sources.len())
        .map(|source| {
            let mut others = stalls.clone();
            others.retain(|stall| stall.2 != source);
            let without = served(&arrivals, &others, jitter, &mut Random(random.0));
            samples.iter().zip(without).map(|(with, without)| (with.1 - without.1) as f64).collect()
        })
        .collect();
    World { schedule, jitter, sources, noise, samples, added_ns }
}

/// Ingress and egress stamps of packets that one server serves in turn, except while it is stalled.
fn served(
    arrivals: &[f64],
    stalls: &[(f64, f64, usize)],
    jitter: f64,
    random: &mut Random,
) -> Vec<(i64, i64)> {
    let (mut next, mut stalled_until_ns, mut free_ns) = (0, 0.0_f64, 0.0_f64);
    arrivals
        .iter()
        .map(|at_ns| {
            let mut from_ns = at_ns.max(free_ns);
            loop {
                while next < stalls.len() && stalls[next].0 <= from_ns {
                    stalled_until_ns = stalled_until_ns.max(stalls[next].1);
                    next += 1;
                }
                if stalled_until_ns <= from_ns {
                    break;
                }
                from_ns = stalled_until_ns;
            }
            free_ns = from_ns + SERVICE_NS * (1.0 + jitter * random.normal()).max(0.1);
            let left_ns = free_ns + WAY_NS + 300.0 * jitter * random.exponential();
            (*at_ns as i64, left_ns as i64)
        })
        .collect()
}

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
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<u64>().ok());
    let (worlds, first) = (number(0).unwrap_or(300), number(1).unwrap_or(0));
    let mut all = [Counts::default(); SCHEDULES.len()];
    for seed in first..first + worlds {
        let world = world(seed);
        let row = SCHEDULES.iter().position(|name| *name == world.schedule).unwrap_or(0);
        if arguments.len() > 2 {
            writeln!(std::io::stderr(), "seed {seed}")?;
        }
        judge(&world, arguments.len() > 2, &mut all[row])?;
    }
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
