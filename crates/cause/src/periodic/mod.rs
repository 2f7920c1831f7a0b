//! Periodic causes found in a capture alone.
//!
//! An interrupt keeps the CPU for some microseconds; a packet that arrives meanwhile leaves when it ends. So the ends of
//! stalls tell the frequency, and every packet, late or not, tells whether a cause of this frequency is there:
//!
//! 1. [`schedule`] takes out what packets wait because of their place in a burst,
//! 2. [`late`] takes the late packets, at several thresholds, joins those that one stall delayed and dates its end,
//! 3. [`batches`] takes out what comes with every n-th packet instead of with time, if no comb accounts for it,
//! 4. [`spectrum`] proposes frequencies: the power of the ends at their harmonics; [`pairs`] those of a few stalls;
//!    [`proposals`] keeps them until one explains something,
//! 5. [`comb`] fits phase and width; [`met`] tells the likelihood, for which each packet in a window counts,
//! 6. [`multiples`] chooses among the multiples and fractions of a frequency that explain the same stalls,
//! 7. [`wander`] follows a clock whose phase moves, [`behind`] takes to a clock the packets behind it,
//! 8. [`search`] takes one source after the other, and fits each once more to what the others leave; then it searches what is
//!    late beside them, at further thresholds,
//! 9. [`levels`] asks of each whether every second, third, … occurrence takes longer,
//! 10. [`cause`] measures it, [`related`] tells of which clock it may be every n-th occurrence, [`limits`] tells what could not have been seen.
//!
//! Bursts that keep a device busy hide the ends of stalls. There, [`turns`] takes the queue out, [`strike`] folds what is
//! left, and [`busy`] searches the clocks that strike in turns, in place of 2 to 9.
//!
//! The search is an estimate and computes in floating point; heights are latencies of packets, as integers.

mod batches;
mod behind;
mod busy;
mod capture;
mod cause;
mod cluster;
mod comb;
mod late;
mod levels;
mod limits;
mod marks;
mod met;
mod multiples;
mod pairs;
mod proposals;
mod related;
mod schedule;
mod search;
mod spectrum;
mod strike;
mod turns;
mod wander;

use super::phase::{self, PhaseDifference};
use super::rows::{self, LatePacket, LatePackets, Row, Struck};
use super::sampling;
pub use batches::Batch;
use capture::{Capture, Level};
pub use cause::{Interval, PeriodicCause};
use comb::Comb;
pub use late::{Late, Stall, late};
pub use limits::Limit;
use serde::Serialize;
use turns::Turns;

/// So much of a capture is searched: further away, the clocks of capture and host have drifted apart by
/// more than an interrupt lasts (1 µs in 60 s is 0.02 ppm, which a free-running clock barely holds).
pub const SEARCHED_NS: i64 = 60_000_000_000;

/// Packets that are late at a threshold beyond the end of the distribution's body: one in so many. A cause that is short
/// beside the body's width is seen at a low one, one that is rare among other late packets at a high one.
const THRESHOLDS: [f64; 4] = [2_500.0, 500.0, 100.0, 20.0];

/// Fewer packets show no period.
const FEWEST_PACKETS: usize = 100;

/// Result of [`explain`].
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
    /// Delays that recur with the number of packets instead of with time.
    pub batches: Vec<Batch>,
    /// The late packets by cause, as an index of the causes and, behind these, of the batches. They add up.
    pub rows: Vec<Row>,
    /// Causes of one frequency.
    pub phase_differences: Vec<PhaseDifference>,
    /// Detection limits of usual clocks that were not found.
    pub limits: Vec<Limit>,
    /// The late packets, each with its row.
    #[serde(skip)]
    pub late: Vec<LatePacket>,
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
    let places = schedule::places(&samples);
    let turns = places.as_ref().and_then(|places| Turns::of(&samples, places));
    let bursts_hz = places.and_then(|places| schedule::level_bursts(&mut samples, &places));
    let late = late(&samples);
    let bursts = bursts_hz.map(|hz| (hz, turns));
    let mut found = Found::of(&samples, &late, &schedule, bursts);
    let Late { median_ns, threshold_ns, .. } = late;
    let packets = LatePackets { samples: &samples, median_ns, threshold_ns };
    let stalls = late.stalls.iter().map(|stall| stall.packet);
    let (rows, late_packets) = rows::rows(packets, &found.struck, stalls);
    found.count(&rows, &late);
    Periodic {
        median_ns,
        late_above_ns: threshold_ns,
        late_packets: late.packets,
        stalls: late.stalls.len() as u64,
        searched_ns,
        truncated: end < all,
        packet_interval_ns: schedule.interval_ns,
        constant_rate: schedule.constant,
        phase_differences: phase::differences(&found.causes, searched_ns),
        causes: found.causes,
        batches: found.batches,
        rows,
        limits: found.limits,
        late: late_packets,
    }
}

#[derive(Default)]
struct Found {
    causes: Vec<PeriodicCause>,
    batches: Vec<Batch>,
    limits: Vec<Limit>,
    /// The causes and behind them the batches, as they struck.
    struck: Vec<Struck>,
}

impl Found {
    fn of(
        samples: &[(i64, i64)],
        late: &Late,
        schedule: &sampling::Schedule,
        bursts: Option<(f64, Option<Turns>)>,
    ) -> Self {
        if samples.len() < FEWEST_PACKETS {
            return Self::default();
        }
        let mut capture = Capture::new(samples, late.median_ns);
        let packets_hz = schedule.constant.then(|| 1e9 / schedule.interval_ns);
        capture.bursts = bursts.is_some();
        capture.pattern_hz = bursts.as_ref().map(|bursts| bursts.0).or(packets_hz);
        let turns = bursts.and_then(|bursts| bursts.1);
        capture.stay_ns = turns.as_ref().map_or(0, |turns| turns.stay_ns);
        let mut levels =
            vec![Level::new(&capture, samples, (late.threshold_ns - late.median_ns).max(1))];
        if let Some(turns) = turns {
            let struck = busy::search(&capture, &turns);
            let causes = cause::of_turns(&capture, &levels[0], &struck, late, schedule);
            let limits = limits::unknown(capture.run_ns, &causes);
            let struck = struck.iter().map(|one| one.struck(&turns)).collect();
            return Self { causes, limits, struck, ..Self::default() };
        }
        let mut banned = Vec::new();
        let mut combs = all_combs(&mut capture, samples, &mut levels, &banned);
        let (mut batches, mut of_batches) = (Vec::new(), Vec::new());
        let open: Vec<Stall> = levels[0].open().copied().collect();
        // Stalls begin with a burst's first packet; that these are every so many says nothing of the device.
        if !capture.bursts
            && let Some((batch, residue)) =
                batches::batch(&open, capture.interval_ns(), samples.len())
        {
            let (every, longest_ns) = (batch.packets as usize, batches::ALIKE * batch.delay_ns);
            capture.set_aside(every, residue, longest_ns);
            combs = all_combs(&mut capture, samples, &mut levels, &banned);
            batches.push(batch);
            let packets = (residue..samples.len()).step_by(every).collect();
            of_batches.push(Struck { packets, longest_ns, ..Struck::default() });
        }
        let mut causes = loop {
            let causes = cause::causes(&mut capture, &mut levels, &combs, late, schedule);
            let of = |source: usize| causes.iter().filter(move |cause| cause.source == source);
            let sources = || combs.iter().enumerate();
            let rare = sources().filter(|(source, _)| of(*source).any(PeriodicCause::is_rare));
            let rare: Vec<Comb> = rare.map(|(_, comb)| *comb).collect();
            if !rare.is_empty() && banned.is_empty() {
                // It may have taken the place of another one in the search, of which there is then no doubt.
                banned = rare;
                let again = all_combs(&mut capture, samples, &mut levels, &banned);
                let known =
                    |one: &Comb| combs.iter().any(|other| one.is_same(other, capture.run_ns));
                if again.iter().all(|one| one.is_sure() || known(one)) {
                    combs = again;
                    continue;
                }
            }
            let part = |one: &PeriodicCause| {
                causes.iter().any(|other| related::is_part(one, other, capture.run_ns))
            };
            let believed = |source: usize| !of(source).any(|one| one.is_doubtful() || part(one));
            let kept: Vec<Comb> =
                sources().filter(|(source, _)| believed(*source)).map(|(_, comb)| *comb).collect();
            if kept.len() == combs.len() {
                break causes;
            }
            combs = kept;
        };
        // Causes that may as well have the frequency of a batch are reported as the batch only.
        causes.retain(|cause| {
            let mut all = cause.aliases_hz.iter().chain([&cause.frequency_hz]);
            let of_batch = |hz: &f64| batches.iter().any(|one| one.is_at(*hz, capture.run_ns));
            !all.any(of_batch)
        });
        related::relate(&mut causes, capture.run_ns);
        let limits = limits::limits(&capture, &levels[0], &combs);
        let mut struck: Vec<Struck> =
            causes.iter().map(|cause| marks::struck(&capture, &combs, &causes, cause)).collect();
        struck.append(&mut of_batches);
        Self { causes, batches, limits, struck }
    }

    /// Takes note of the late packets and stalls in the rows of each cause.
    fn count(&mut self, rows: &[Row], late: &Late) {
        for (cause, one) in self.causes.iter_mut().enumerate() {
            let of_cause = || rows.iter().filter(|row| row.cause == Some(cause));
            let packets = of_cause().map(|row| row.packets).sum::<u64>();
            let stalls = of_cause().map(|row| row.stalls).sum::<u64>();
            one.late_share = packets as f64 / late.packets.max(1) as f64;
            one.share = stalls as f64 / late.stalls.len().max(1) as f64;
        }
    }
}

/// The combs of a capture. What they do not explain has another body and other late packets, of which levels are added; within
/// the body, traffic and device have patterns of their own.
fn all_combs(
    capture: &mut Capture,
    samples: &[(i64, i64)],
    levels: &mut Vec<Level>,
    banned: &[Comb],
) -> Vec<Comb> {
    let (mut combs, mut searched) = (Vec::new(), 0);
    marks::mark(capture, levels, &[]);
    loop {
        let (body_ns, thresholds) = thresholds(capture, levels);
        for ns in thresholds {
            if searched == 0 || ns >= body_ns {
                levels.push(Level::new(capture, samples, ns));
            }
        }
        marks::mark(capture, levels, &combs);
        let before = combs.len();
        combs = search::search(capture, levels, searched, combs, banned);
        searched = levels.len();
        if combs.len() == before {
            return combs;
        }
    }
}

/// Where the body of the packets that are not explained ends, and thresholds of their excess beside those of the levels: this
/// end, and quantiles.
fn thresholds(capture: &Capture, levels: &[Level]) -> (i64, Vec<i64>) {
    let packets = capture.excess.iter().zip(&capture.explained);
    let mut excess: Vec<i64> =
        packets.filter(|(_, explained)| !**explained).map(|(ns, _)| i64::from(*ns)).collect();
    excess.sort_unstable();
    if excess.len() < FEWEST_PACKETS {
        return (i64::MAX, Vec::new());
    }
    let late = |ns: i64| (excess.len() - excess.partition_point(|one| *one <= ns)) as f64;
    let mut sizes: Vec<f64> = levels.iter().map(|level| late(level.threshold_ns)).collect();
    let count = excess.len() as f64;
    let quantile = |part: f64| excess[(count - 1.0 - count / part) as usize].max(1);
    // Packets that a cause of most of them leaves are faster than the median, and not late.
    let body_ns = late::end_of_body(&excess, excess[excess.len() / 2]).max(1);
    let mut chosen = Vec::new();
    for ns in std::iter::once(body_ns).chain(THRESHOLDS.map(quantile)) {
        let size = late(ns);
        // Nearly as many late packets say nearly the same.
        let differs = |other: &f64| size > 1.7 * other || other > &(1.7 * size);
        if size >= 8.0 && sizes.iter().all(differs) {
            chosen.push(ns);
            sizes.push(size);
        }
    }
    (body_ns, chosen)
}
