//! Periodic causes measured from their combs: frequency, excess, width and shares, with intervals.

use super::busy::Found;
use super::capture::{Capture, Level};
use super::comb::{self, Comb, SURE};
use super::late::Late;
use super::levels::{self, Members};
use super::marks;
use super::multiples;
use super::search;
use super::wander;
use crate::sampling::{Sampling, Schedule};
use serde::Serialize;

/// A value and its interval of 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The estimate.
    pub value_ns: f64,
    /// Lower bound.
    pub low_ns: f64,
    /// Upper bound.
    pub high_ns: f64,
}

/// A cause that recurs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeriodicCause {
    /// Its occurrences per second.
    pub frequency_hz: f64,
    /// Error of the frequency (95 %), on the clock of the capture.
    pub error_hz: f64,
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
    /// Share of the stalls that begin with a packet in its rows.
    pub share: f64,
    /// Mean latency of the packets in its window beyond that of the other packets. Of the source, as the fields below.
    pub excess: Interval,
    /// Time for which an occurrence delays packets.
    pub width: Interval,
    /// Share of all packets that arrive in its window.
    pub touched: f64,
    /// Share of the late packets that are in its rows.
    pub late_share: f64,
    /// Share of the late packets that arrive in its window.
    #[serde(skip)]
    pub(super) late_in_window: f64,
    /// Share of the occurrences that met a packet and delayed it until their end.
    pub purity: f64,
    /// The occurrences that met a packet.
    #[serde(skip)]
    pub(super) met_occurrences: usize,
    /// Other frequencies that the packets tell as much of, because of their schedule.
    pub aliases_hz: Vec<f64>,
    /// Frequency of a clock of which it may be every n-th occurrence: of another cause, or a usual one.
    pub clock_hz: Option<f64>,
    /// Whether its clock wanders, or only some of its occurrences delay packets: the frequency is a mean.
    pub wanders: bool,
    /// Samples that the packets' schedule takes of it.
    pub sampling: Sampling,
}

impl PeriodicCause {
    /// Whether it is rather a coincidence of few events: it delayed not even a quarter of the packets that packets
    /// at random times would have had delayed, and not even a half of those that came in time for it. Known ticks of
    /// published captures delayed 74 to 92 %; what a schedule that is locked to a clock leaves out is delayed
    /// wherever a packet meets it, so one of the two alone says nothing.
    pub(super) fn is_rare(&self) -> bool {
        self.every == 1 && self.purity < 0.5 && self.sampling.met < 0.25 * self.sampling.expected
    }

    /// Whether it has few events, and may have delayed not even a half of the packets that came in time for them (by a standard
    /// deviation): five of 1 Hz came in one third of a published capture, and none in the others.
    fn is_passing(&self) -> bool {
        let deviation = libm::sqrt(self.purity * (1.0 - self.purity) / self.met_occurrences as f64);
        self.every == 1 && self.events < FEWEST as u64 && self.purity - deviation < 0.5
    }

    /// Whether it explains no late packets, and delays not even most of those that it could: within the body of the latencies,
    /// traffic and devices have patterns of their own.
    fn is_of_body(&self) -> bool {
        self.purity < SURE && self.late_in_window < FEWEST_LATE
    }

    /// Whether it is not told: it is rare or passing, explains nothing that is late, or fits too many other frequencies.
    pub(super) fn is_doubtful(&self) -> bool {
        self.is_rare()
            || self.is_passing()
            || self.is_of_body()
            || (self.every == 1 && self.aliases_hz.len() > MOST_ALIASES)
    }
}

/// A cause with a smaller share of the late packets explains none of them.
const FEWEST_LATE: f64 = 1e-3;

/// A cause with more other frequencies than these is not reported: a few events fit many.
const MOST_ALIASES: usize = 12;

/// Normal law: 95 % lie within so many standard deviations.
const BOUND: f64 = 1.96;

/// The causes of the combs, each with its levels.
pub(super) fn causes(
    capture: &mut Capture,
    levels: &mut [Level],
    combs: &[Comb],
    late: &Late,
    schedule: &Schedule,
) -> Vec<PeriodicCause> {
    let mut found = Vec::new();
    for (source, comb) in combs.iter().enumerate() {
        let mut others = combs.to_vec();
        others.remove(source);
        marks::mark(capture, levels, &others);
        let Some(measured) = Measured::of(capture, levels, comb) else { continue };
        let clock_ns = comb.period_ns;
        for (index, level) in levels::levels(&measured.members).iter().enumerate() {
            // The shortest level is what happens each time; longer ones are something in addition.
            let each = index == 0;
            let share = level.residues / level.every as f64;
            let period_ns = if each { clock_ns } else { clock_ns / share };
            found.push(PeriodicCause {
                frequency_hz: 1e9 / period_ns,
                error_hz: measured.error * 1e9 / period_ns,
                height_ns: late.median_ns + level.delay_ns,
                events: level.events,
                delay_ns: level.delay_ns,
                period_ns,
                phase_ns: comb.phase_ns + if each { 0.0 } else { level.first as f64 * clock_ns },
                every: if each { 1 } else { libm::round(1.0 / share) as u64 },
                source,
                share: 0.0,
                excess: measured.effect.excess,
                width: measured.width,
                touched: measured.effect.touched,
                late_share: 0.0,
                late_in_window: measured.effect.late_in_window,
                purity: comb.purity(),
                met_occurrences: comb.met.max(1),
                aliases_hz: measured.aliases_hz.clone(),
                clock_hz: None,
                wanders: comb.track.is_some() || comb.purity() < search::PURE,
                sampling: schedule.sample(
                    (clock_ns, share),
                    level.delay_ns,
                    level.events,
                    capture.run_ns,
                ),
            });
        }
    }
    found
}

struct Measured {
    members: Members,
    /// Relative error of the period.
    error: f64,
    effect: Effect,
    width: Interval,
    aliases_hz: Vec<f64>,
}

impl Measured {
    fn of(capture: &Capture, levels: &[Level], comb: &Comb) -> Option<Self> {
        let level = &levels[comb.level];
        let stalls: Vec<_> = level
            .open()
            .filter(|stall| marks::belongs(comb, stall))
            .map(|stall| (comb.off(stall.end_ns as f64).0, *stall))
            .collect();
        if stalls.is_empty() {
            return None;
        }
        let members = Members { comb: *comb, stalls };
        let mut waits: Vec<f64> =
            members.stalls.iter().map(|(_, stall)| stall.delay_ns() as f64).collect();
        waits.sort_unstable_by(f64::total_cmp);
        let width = width(&waits);
        let effect = Effect::of(capture, &levels[0], comb, width.value_ns);
        Some(Self {
            error: members.relative_error(comb.width_ns)
                + comb.track.map_or(0.0, |track| track.deviation()),
            members,
            effect,
            width,
            aliases_hz: aliases_hz(capture, levels, comb),
        })
    }
}

fn aliases_hz(capture: &Capture, levels: &[Level], comb: &Comb) -> Vec<f64> {
    let likely = if comb.track.is_some() {
        wander::aliases(capture, levels, comb)
    } else {
        multiples::aliases(capture, levels, comb)
    };
    let likely = likely.into_iter().map(|one| 1e9 / one.period_ns);
    let all = multiples::all_aliases(capture, &levels[comb.level], comb, MOST_ALIASES);
    let mut found: Vec<f64> =
        likely.chain(all).filter(|hz| (hz * comb.period_ns / 1e9 - 1.0).abs() > 1e-6).collect();
    found.sort_by(f64::total_cmp);
    found.dedup_by(|a, b| (*a / *b - 1.0).abs() < 1e-6);
    found
}

/// Effect of a cause on the packets that come in its window.
struct Effect {
    excess: Interval,
    touched: f64,
    late_in_window: f64,
}

impl Effect {
    fn of(capture: &Capture, level: &Level, comb: &Comb, width_ns: f64) -> Self {
        // The phase is that of the mean end: half of the occurrences delay packets until later.
        let later_ns = comb.width_ns.min(LATER * width_ns);
        let latest = Comb { phase_ns: comb.phase_ns + later_ns, ..*comb };
        let occurrences = window(capture, &latest, width_ns + later_ns);
        let touched: Vec<usize> = occurrences.concat();
        let excess_ns = |packet: &usize| f64::from(capture.excess[*packet]);
        let number = touched.len().max(1) as f64;
        let mean_ns = touched.iter().map(excess_ns).sum::<f64>() / number;
        // Packets of one occurrence wait for one end: what is independent is the occurrences.
        let off = |packets: &Vec<usize>| {
            packets.iter().map(|packet| excess_ns(packet) - mean_ns).sum::<f64>()
        };
        let square = occurrences.iter().map(off).map(|off| off * off).sum::<f64>();
        let error_ns = BOUND * libm::sqrt(square) / number;
        // Excess over the other packets: other causes make their mean longer than their median.
        let added_ns = mean_ns - mean_of_others_ns(capture, mean_ns * number, number);
        let is_late = |packet: &&usize| i64::from(capture.excess[**packet]) > level.threshold_ns;
        let late = touched.iter().filter(is_late).count() as f64;
        Self {
            excess: Interval {
                value_ns: added_ns,
                low_ns: added_ns - error_ns,
                high_ns: added_ns + error_ns,
            },
            touched: touched.len() as f64 / capture.arrivals.len() as f64,
            late_in_window: late / (level.count() as f64).max(1.0),
        }
    }
}

/// The window ends later than the mean end by this part of the cause's width at most: behind that, most packets are not touched.
/// The excess is 72 to 90 % of that of the best window of the cause's width, in the published captures and the tutorial's.
const LATER: f64 = 0.15;

/// The packets of the window of each occurrence: of the windows of this width the one whose packets wait longest, as
/// folding shows it. Packets of a burst are delayed by what strikes while they are in the device, so that their window is
/// earlier than the stall by up to the time that a burst stays.
fn window(capture: &Capture, comb: &Comb, width_ns: f64) -> Vec<Vec<usize>> {
    let steps = libm::ceil(STEPS * capture.stay_ns as f64 / width_ns.max(1.0)).min(MOST_STEPS);
    let at = |step: i32| {
        let off_ns = f64::from(step) / steps.max(1.0) * capture.stay_ns as f64;
        let phase_ns = comb.phase_ns + off_ns;
        touched(capture, &Comb { phase_ns, ..*comb }, width_ns)
    };
    let mean_ns = |window: &Vec<Vec<usize>>| {
        let packets = || window.iter().flatten();
        let sum_ns = packets().map(|packet| f64::from(capture.excess[*packet])).sum::<f64>();
        sum_ns / packets().count().max(FEWEST) as f64
    };
    (-(steps as i32)..=steps as i32)
        .map(at)
        .max_by(|a, b| mean_ns(a).total_cmp(&mean_ns(b)))
        .unwrap_or_default()
}

/// Windows are tried at so many places for each width.
const STEPS: f64 = 4.0;
const MOST_STEPS: f64 = 64.0;

/// A window of fewer packets is as uncertain as one of so many.
const FEWEST: usize = 8;

/// The causes of clocks that strike in turns of bursts.
pub(super) fn of_turns(
    capture: &Capture,
    level: &Level,
    found: &[Found],
    late: &Late,
    schedule: &Schedule,
) -> Vec<PeriodicCause> {
    let mut causes = Vec::new();
    for (source, one) in found.iter().enumerate() {
        let strike = &one.strike;
        let mut waits: Vec<f64> = one.delayed.iter().map(|(_, turn)| turn.excess_ns).collect();
        waits.sort_unstable_by(f64::total_cmp);
        let width = width(&waits);
        let comb = comb::unscored(0, strike.period_ns, strike.phase_ns, 0.0);
        let effect = Effect::of(capture, level, &comb, width.value_ns);
        let numbers: Vec<f64> = one.delayed.iter().map(|(number, _)| *number as f64).collect();
        let events = waits.len() as u64;
        let delay_ns = width.value_ns as i64;
        let clock_ns = strike.period_ns;
        causes.push(PeriodicCause {
            frequency_hz: 1e9 / clock_ns,
            error_hz: levels::relative_error(&numbers, 0.5 * one.turn_ns, clock_ns) * 1e9
                / clock_ns,
            height_ns: late.median_ns + delay_ns,
            events,
            delay_ns,
            period_ns: clock_ns,
            phase_ns: strike.phase_ns,
            every: 1,
            source,
            share: 0.0,
            excess: effect.excess,
            width,
            touched: effect.touched,
            late_share: 0.0,
            late_in_window: effect.late_in_window,
            purity: strike.purity,
            met_occurrences: strike.met.max(1),
            aliases_hz: one.aliases_hz.clone(),
            clock_hz: None,
            wanders: false,
            sampling: schedule.sample((clock_ns, 1.0), delay_ns, events, capture.run_ns),
        });
    }
    causes
}

/// The 99th percentile of sorted waits, with an interval from order statistics. For few waits n, the upper bound is at
/// least the percentile divided by 0.025^(1/n): the largest of n uniform waits is shorter than that part of the width
/// in 2.5 % of cases.
fn width(waits: &[f64]) -> Interval {
    let count = waits.len() as f64;
    let spread = BOUND * libm::sqrt(count * LONGEST * (1.0 - LONGEST));
    let at = |place: f64| waits[place.clamp(0.0, count - 1.0) as usize];
    let value_ns = at((count - 1.0) * LONGEST);
    let largest_ns = value_ns * libm::pow(0.025, -1.0 / count);
    Interval {
        value_ns,
        low_ns: at(count * LONGEST - spread - 1.0),
        high_ns: at(count * LONGEST + spread).max(largest_ns),
    }
}

/// The part of the waits that are shorter than the width.
const LONGEST: f64 = 0.99;

/// The mean of the packets that no other cause accounts for, but so many, whose sum is given; there are so many others
/// that it has hardly an error.
fn mean_of_others_ns(capture: &Capture, sum_ns: f64, number: f64) -> f64 {
    let open = capture.excess.iter().zip(&capture.explained).filter(|(_, explained)| !**explained);
    let all_ns: f64 = open.map(|(ns, _)| f64::from(*ns)).sum();
    let open = (capture.excess.len() - capture.explained_count) as f64;
    (all_ns - sum_ns) / (open - number).max(1.0)
}

/// The packets that arrive in the window of each of a comb's occurrences.
fn touched(capture: &Capture, comb: &Comb, reach_ns: f64) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    let count = ((capture.run_ns as f64 - comb.phase_ns) / comb.period_ns) as i64;
    for number in 0..=count {
        let end_ns = comb.end_ns(number);
        let mut from = capture.at_or_after(end_ns - reach_ns);
        let mut packets = Vec::new();
        while capture.arrivals.get(from).is_some_and(|at| (*at as f64) < end_ns) {
            if !capture.explained[from] {
                packets.push(from);
            }
            from += 1;
        }
        found.push(packets);
    }
    found
}
