//! Periodic causes found in a capture alone.
//!
//! An interrupt keeps the CPU for some microseconds; a packet that arrives meanwhile leaves when it ends.
//! However long that packet waited, its departure says when the interrupt ended, so that the departures
//! of late packets are equidistant (modulo occurrences that met no packet) where the cause is periodic:
//!
//! 1. [`late`] takes the late packets, joins those that one stall delayed and dates the stall's end,
//! 2. [`batches`] takes out what comes with every n-th packet instead of with time,
//! 3. [`spectrum`] finds the frequency at which the ends are in step,
//! 4. [`folding`] folds them at its period and takes the phases at which more lie than chance puts there,
//! 5. [`levels`] asks of each phase whether every second, third, … occurrence takes longer,
//! 6. [`super::sampling`] says how well the packets' schedule samples it.
//!
//! Found causes are taken out and the rest is searched again. The search is an estimate and computes in
//! floating point; heights are latencies of packets, as integers.

mod batches;
mod folding;
mod late;
mod levels;
mod spectrum;

use super::sampling::{self, Sampling};
pub use batches::Batch;
use folding::{Comb, fold};
pub use late::{Late, Stall, late};
use serde::Serialize;

/// So much of a capture is searched: further away, the clocks of capture and host have drifted apart by
/// more than an interrupt lasts (1 µs in 60 s is 0.02 ppm, which a free-running clock barely holds).
pub const SEARCHED_NS: i64 = 60_000_000_000;

/// Fewer stalls show no period: of N stalls, N·R² is N at most and has to be 16 (see `spectrum`), so that N = 20 may be
/// out of step as far as R = 0.9.
const FEWEST: usize = 20;

/// After so many frequencies the rest counts as not periodic. A limit of time: each takes a search of its own. The
/// published captures have one or two.
const MOST_FREQUENCIES: usize = 4;

/// A cause that recurs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeriodicCause {
    /// How often it occurs.
    pub frequency_hz: f64,
    /// The largest latency of a packet that it delayed.
    pub height_ns: i64,
    /// Stalls of it that delayed a packet.
    pub events: u64,
    /// By how much it delayed that packet beyond the median.
    pub delay_ns: i64,
    /// Time between two occurrences.
    pub period_ns: f64,
    /// When the first occurrence ends, after the first ingress stamp.
    pub phase_ns: f64,
    /// Every how many-th occurrence of its clock this is: 3 is every third; 1 is each. What takes longer
    /// every third time counts as something every third time, beside the shorter one each time whose
    /// `events` are those of the other times.
    pub every: u64,
    /// Causes with the same number come from one clock and one phase of it.
    pub source: usize,
    /// Share of late packets' stalls that this accounts for.
    pub share: f64,
    /// How the packets' schedule samples it.
    pub sampling: Sampling,
}

/// What [`explain`] finds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Periodic {
    /// The median latency, which delays are counted from.
    pub median_ns: i64,
    /// Packets with a latency above this are late: here ends the body of the distribution.
    pub late_above_ns: i64,
    /// Late packets.
    pub late_packets: u64,
    /// Stalls that delayed them: packets that waited for the same one count once.
    pub stalls: u64,
    /// Stalls that no periodic cause accounts for.
    pub unexplained: u64,
    /// Time that was searched, from the first ingress stamp.
    pub searched_ns: i64,
    /// Whether the capture is longer than that.
    pub truncated: bool,
    /// Mean time between two packets.
    pub packet_interval_ns: f64,
    /// Whether the packets came at a constant rate.
    pub constant_rate: bool,
    /// The causes, in the order of their source and height.
    pub causes: Vec<PeriodicCause>,
    /// What recurs with packets instead of with time.
    pub batches: Vec<Batch>,
}

/// Finds the periodic causes of the late packets among samples (ingress stamp, egress stamp).
#[must_use]
pub fn explain(samples: &[(i64, i64)]) -> Periodic {
    let mut samples = samples.to_vec();
    samples.sort_unstable();
    let first_ns = samples.first().map_or(0, |sample| sample.0);
    let all = samples.len();
    let end = samples.partition_point(|sample| sample.0 - first_ns < SEARCHED_NS);
    samples.truncate(end);
    let searched_ns = samples.last().map_or(0, |sample| sample.0) - first_ns;
    let schedule = sampling::Schedule::of(&samples);
    let late = late(&samples);
    let mut left = late.stalls.clone();
    let mut causes = Vec::new();
    let mut batches = Vec::new();
    if let Some((batch, rest)) = batches::batch(&left, schedule.interval_ns) {
        batches.push(batch);
        left = rest;
    }
    let arrivals: Vec<i64> = samples.iter().map(|sample| sample.0 - first_ns).collect();
    let mut source = 0;
    for _ in 0..MOST_FREQUENCIES {
        let Some((combs, mut rest)) = in_step(&left, &samples, searched_ns) else { break };
        for comb in combs {
            let (comb, others) = comb.fundamental(&arrivals);
            rest.extend(others);
            causes.extend(of_comb(&comb, source, &late, searched_ns, &schedule));
            source += 1;
        }
        rest.sort_by_key(|stall| stall.end_ns);
        left = rest;
    }
    Periodic {
        median_ns: late.median_ns,
        late_above_ns: late.threshold_ns,
        late_packets: late.packets,
        stalls: late.stalls.len() as u64,
        unexplained: left.len() as u64,
        searched_ns,
        truncated: end < all,
        packet_interval_ns: schedule.interval_ns,
        constant_rate: schedule.constant,
        causes,
        batches,
    }
}

/// The combs of the stalls at the frequency at which they are in step and the stalls in none; where most
/// of them are noise, as under a load that queues, at that of the longest ones.
fn in_step(
    stalls: &[Stall],
    samples: &[(i64, i64)],
    searched_ns: i64,
) -> Option<(Vec<Comb>, Vec<Stall>)> {
    let mut longest = stalls.to_vec();
    longest.sort_by_key(|stall| std::cmp::Reverse(stall.delay_ns()));
    while longest.len() >= FEWEST {
        let mut some = longest.clone();
        some.sort_by_key(|stall| stall.end_ns);
        if let Some(hz) = spectrum::frequency(&some, samples, searched_ns) {
            // Noise bends the frequency a little; the stalls that it found tell it better.
            let (found, _) = fold(&some, 1e9 / hz);
            if let Some(first) = found.first() {
                let period_ns = first.fitted_period_ns();
                let all = fold(stalls, period_ns);
                if !all.0.is_empty() {
                    return Some(all);
                }
            }
        }
        longest.truncate(longest.len() / 3);
    }
    None
}

fn of_comb(
    comb: &Comb,
    source: usize,
    late: &Late,
    searched_ns: i64,
    schedule: &sampling::Schedule,
) -> Vec<PeriodicCause> {
    let found = levels::levels(comb);
    let clock_ns = comb.period_ns;
    found
        .iter()
        .enumerate()
        .map(|(index, level)| {
            // The shortest level is what happens each time; longer ones are something in addition.
            let each = index == 0;
            let share = level.residues / level.every as f64;
            let period_ns = if each { clock_ns } else { clock_ns / share };
            PeriodicCause {
                frequency_hz: 1e9 / period_ns,
                height_ns: late.median_ns + level.delay_ns,
                events: level.events,
                delay_ns: level.delay_ns,
                period_ns,
                phase_ns: comb.phase_ns + if each { 0.0 } else { level.first as f64 * clock_ns },
                every: if each { 1 } else { libm::round(1.0 / share) as u64 },
                source,
                share: level.events as f64 / late.stalls.len() as f64,
                sampling: schedule.sample(
                    (clock_ns, share),
                    level.delay_ns,
                    level.events,
                    searched_ns,
                ),
            }
        })
        .collect()
}
