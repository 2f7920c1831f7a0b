//! A clock that strikes in turns, and how turns are folded at its frequency.

use super::capture::Capture;
use super::comb;
use super::turns::Turn;
use super::wander::MORE;

/// A clock that strikes in turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Strike {
    pub(super) period_ns: f64,
    /// When it first strikes, less than a period after the first arrival.
    pub(super) phase_ns: f64,
    /// By how much the turns that it meets are longer.
    pub(super) longer_ns: f64,
    /// Turns that it meets.
    pub(super) met: usize,
    /// Deviations of their mean from that of all turns.
    pub(super) deviations: f64,
    /// Share of them that it delays, if it delays them alike.
    pub(super) purity: f64,
    /// Likelihood (natural logarithm) of how many it delays, against the share of other turns that are as long. Where
    /// few turns are long, their excess is far from normal, and two of them are many deviations.
    pub(super) counted_nats: f64,
}

impl Strike {
    /// Whether it strikes in a turn, and in which period.
    pub(super) fn number(&self, turn: &Turn) -> Option<i64> {
        let number = libm::ceil((turn.from_ns - self.phase_ns) / self.period_ns);
        (self.phase_ns + number * self.period_ns < turn.until_ns).then_some(number as i64)
    }

    pub(super) fn hz(&self) -> f64 {
        1e9 / self.period_ns
    }

    pub(super) fn nats(&self) -> f64 {
        0.5 * self.deviations * self.deviations
    }

    /// Merit among strikes in the same turns: likelihood, weighted by the share of turns met that it delays.
    pub(super) fn merit(&self) -> f64 {
        self.nats() * self.purity
    }
}

/// A turn's excess counts up to that of one turn in so many: few long stalls would hide what many turns have in common.
const CAPPED: usize = 200;

/// Excess of up to so many usual turns counts in any case: a rare clock is not in one turn in [`CAPPED`].
const LONGER: f64 = 2.0;

/// Bins of phases for each usual turn, and at most in all.
pub(super) const FINE: f64 = 4.0;
const MOST_BINS: f64 = 65_536.0;

/// A phase at which fewer turns were met is as uncertain as one with so many.
const FEWEST: f64 = 8.0;

/// Parts of the run in each of which a clock keeps its phase, and other phases that are tried.
pub(super) const PARTS: usize = 8;
const SHIFTS: i32 = 8;

/// The likeliest of these phases is by so much likelier than another one by chance: 4 turns have 5 phases or fewer that
/// are independent, and of as many normal deviates the largest exceeds 2.8 (4 nats) in one case in 80.
const CHANCE_NATS: f64 = 4.0;

/// By how much likelier `delayed` of `met` turns are at their own share than at that of others; 0 if they are fewer.
fn counted_nats(delayed: f64, met: f64, others: f64) -> f64 {
    let share = delayed / met.max(1.0);
    if share <= others {
        return 0.0;
    }
    let spared =
        if share < 1.0 { (1.0 - share) * libm::log((1.0 - share) / (1.0 - others)) } else { 0.0 };
    met * (share * libm::log(share / others) + spared)
}

/// The turns of a run, with what is not explained of their excess.
pub(super) struct Folding<'a> {
    pub(super) capture: &'a Capture,
    pub(super) turns: Vec<Turn>,
    pub(super) deviation_ns: f64,
    pub(super) turn_ns: f64,
}

impl<'a> Folding<'a> {
    pub(super) fn new(capture: &'a Capture, mut turns: Vec<Turn>) -> Option<Self> {
        if turns.len() < CAPPED {
            return None;
        }
        let mut sorted: Vec<f64> = turns.iter().map(|turn| turn.excess_ns).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let end = sorted.len() / CAPPED;
        let (low_ns, high_ns) = (sorted[end], sorted[sorted.len() - 1 - end]);
        let mut long: Vec<f64> = turns.iter().map(|turn| turn.until_ns - turn.from_ns).collect();
        let middle = long.len() / 2;
        let turn_ns = *long.select_nth_unstable_by(middle, f64::total_cmp).1;
        let high_ns = high_ns.max(LONGER * turn_ns);
        turns.iter_mut().for_each(|turn| turn.excess_ns = turn.excess_ns.clamp(low_ns, high_ns));
        let mut search = Self { capture, turns, deviation_ns: 1.0, turn_ns };
        search.centre();
        Some(search)
    }

    /// Makes the mean excess 0.
    pub(super) fn centre(&mut self) {
        let count = self.turns.len() as f64;
        let mean_ns = self.turns.iter().map(|turn| turn.excess_ns).sum::<f64>() / count;
        self.turns.iter_mut().for_each(|turn| turn.excess_ns -= mean_ns);
        let squares = self.turns.iter().map(|turn| turn.excess_ns * turn.excess_ns).sum::<f64>();
        self.deviation_ns = libm::sqrt(squares / count).max(1.0);
    }

    /// The likeliest strike at a frequency that may be wrong by so much.
    pub(super) fn near(&self, hz: f64, mut off_hz: f64) -> Option<Strike> {
        let mut best = self.fold(hz, 0.0)?;
        loop {
            let step_hz = off_hz / 4.0;
            // By how much the phase is off at the run's ends if the frequency is off by half a step.
            let wider_ns = 0.25 * step_hz / hz * self.capture.run_ns as f64;
            let middle_hz = best.hz();
            let fine = wider_ns < self.turn_ns / FINE;
            let tried = (-4..=4)
                .filter_map(|step| {
                    let wider_ns = if fine { 0.0 } else { wider_ns };
                    self.fold(middle_hz + f64::from(step) * step_hz, wider_ns)
                })
                .max_by(|a, b| a.deviations.total_cmp(&b.deviations))?;
            best = tried;
            if fine {
                return Some(best);
            }
            off_hz = step_hz;
        }
    }

    /// The likeliest phase at a frequency, if turns were longer by so much at both ends.
    pub(super) fn fold(&self, hz: f64, wider_ns: f64) -> Option<Strike> {
        let period_ns = 1e9 / hz;
        let bin_ns = ((self.turn_ns + 2.0 * wider_ns) / FINE).max(period_ns / MOST_BINS);
        let bins = ((period_ns / bin_ns) as usize).max(4);
        let mut changes = vec![(0.0_f64, 0_i32); bins + 1];
        let bins_per_ns = bins as f64 / period_ns;
        for turn in &self.turns {
            // A period later, it is not negative.
            let turns = (turn.from_ns - wider_ns) / period_ns + 1.0;
            let from = (turns - (turns as u64) as f64) * bins as f64;
            let long = (turn.until_ns - turn.from_ns + 2.0 * wider_ns) * bins_per_ns;
            let (low, high) = (from as usize, (from + long) as usize + 1);
            let high = high.min(low + bins);
            let mut add = |bin: usize, sign: i32| {
                changes[bin].0 += f64::from(sign) * turn.excess_ns;
                changes[bin].1 += sign;
            };
            add(low, 1);
            if high > bins {
                add(0, 1);
                add(high - bins, -1);
            } else {
                add(high, -1);
            }
        }
        let (mut sum_ns, mut met) = (0.0, 0);
        let mut best: Option<Strike> = None;
        for (bin, (change_ns, change)) in changes[..bins].iter().enumerate() {
            sum_ns += change_ns;
            met += change;
            let deviations = self.deviations(sum_ns, f64::from(met));
            if best.is_none_or(|best| deviations > best.deviations) {
                best = Some(Strike {
                    period_ns,
                    phase_ns: (bin as f64 + 0.5) * period_ns / bins as f64,
                    deviations,
                    longer_ns: 0.0,
                    met: 0,
                    purity: 0.0,
                    counted_nats: 0.0,
                });
            }
        }
        best
    }

    /// Frequency and phase by least squares: a clock strikes anywhere in the turns that it meets, in their middles on
    /// average.
    pub(super) fn polished(&self, strike: Strike) -> Strike {
        let strike = self.measured(strike);
        let middle = |(_, turn): &(i64, Turn)| 0.5 * (turn.from_ns + turn.until_ns);
        let middles: Vec<f64> = self.delayed(&strike).iter().map(middle).collect();
        let line = comb::line(&middles, strike.period_ns, strike.phase_ns);
        let Some((period_ns, at_ns)) = line else { return strike };
        let phase_ns = at_ns - libm::floor(at_ns / period_ns) * period_ns;
        let polished = self.measured(Strike { period_ns, phase_ns, ..strike });
        if polished.deviations > strike.deviations { polished } else { strike }
    }

    /// By how many standard deviations the sum of the excess of so many turns differs from that of any.
    fn deviations(&self, sum_ns: f64, met: f64) -> f64 {
        let rest = (1.0 - met / self.turns.len() as f64).max(0.1);
        sum_ns / libm::sqrt(met.max(FEWEST) * rest) / self.deviation_ns
    }

    /// A strike with what its turns say of it.
    pub(super) fn measured(&self, strike: Strike) -> Strike {
        let mut of = [(0.0, 0.0); 2];
        for turn in &self.turns {
            let (count, sum_ns) = &mut of[usize::from(strike.number(turn).is_some())];
            *count += 1.0;
            *sum_ns += turn.excess_ns;
        }
        let [(rest, rest_ns), (met, met_ns)] = of;
        let longer_ns = met_ns / f64::max(met, 1.0) - rest_ns / f64::max(rest, 1.0);
        let long = self.turns.iter().filter(|turn| turn.excess_ns > 0.5 * longer_ns);
        let (mut others, mut delayed) = (0.0, 0.0);
        for turn in long {
            *(if strike.number(turn).is_some() { &mut delayed } else { &mut others }) += 1.0;
        }
        // So many would be as long without it.
        let chance = others / f64::max(rest, 1.0);
        Strike {
            met: met as usize,
            longer_ns,
            deviations: self.deviations(met_ns, met),
            purity: (delayed / f64::max(met, 1.0) - chance) / f64::max(1.0 - chance, 0.1),
            counted_nats: counted_nats(delayed, met, (others + 0.5) / (rest + 1.0)),
            ..strike
        }
    }

    /// Whether the phase moves: in parts of the run, other phases are likelier by far.
    pub(super) fn wanders(&self, strike: &Strike) -> bool {
        let shift_ns = self.turn_ns / FINE;
        let nats = |turns: &[Turn], shift: i32| {
            let phase_ns = strike.phase_ns + f64::from(shift) * shift_ns;
            let moved = Strike { phase_ns, ..*strike };
            let met = turns.iter().filter(|turn| moved.number(turn).is_some());
            let (count, sum_ns) =
                met.fold((0.0, 0.0), |(count, sum), turn| (count + 1.0, sum + turn.excess_ns));
            let deviations = self.deviations(f64::max(sum_ns, 0.0), count);
            0.5 * deviations * deviations
        };
        let (mut kept, mut followed) = (0.0, 0.0);
        for turns in self.turns.chunks(self.turns.len().div_ceil(PARTS)) {
            kept += nats(turns, 0);
            let likeliest = (-SHIFTS..=SHIFTS).map(|shift| nats(turns, shift)).fold(0.0, f64::max);
            followed += likeliest - CHANCE_NATS;
        }
        followed > MORE * kept
    }

    /// The turns that a strike makes longer, by at least half of what it does on average.
    pub(super) fn delayed(&self, strike: &Strike) -> Vec<(i64, Turn)> {
        self.turns
            .iter()
            .filter(|turn| turn.excess_ns > 0.5 * strike.longer_ns)
            .filter_map(|turn| Some((strike.number(turn)?, *turn)))
            .collect()
    }
}
