//! Clocks that delay a device that is busy with bursts.
//!
//! Such a device takes as long for a burst as for dozens of packets: where in a turn it stalled, stamps do not tell, so
//! the ends of stalls have no phase that is sharper than a turn. Each turn has a time of its own, though, and is longer
//! by the stall if the clock struck in it. So the turns are folded with what their clock would strike (box least squares,
//! Kovács 2002): at the right frequency and phase the turns that the clock meets are longer, all others are not. The
//! length of the turns is known, which tells a frequency from its sums with the rate of bursts.

use super::capture::Capture;
use super::comb::{self, BELIEVED_NATS};
use super::spectrum;
use super::turns::{Turn, Turns};
use super::wander::MORE;
use realfft::RealFftPlanner;

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
}

impl Strike {
    /// Whether it strikes in a turn, and in which period.
    pub(super) fn number(&self, turn: &Turn) -> Option<i64> {
        let number = libm::ceil((turn.from_ns - self.phase_ns) / self.period_ns);
        (self.phase_ns + number * self.period_ns < turn.until_ns).then_some(number as i64)
    }

    fn hz(&self) -> f64 {
        1e9 / self.period_ns
    }

    fn nats(&self) -> f64 {
        0.5 * self.deviations * self.deviations
    }
}

/// What was found, with the turns that each delayed: their number of the period and their excess.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) strike: Strike,
    pub(super) delayed: Vec<(i64, Turn)>,
    /// All turns near it.
    pub(super) taken: Vec<Turn>,
    pub(super) aliases_hz: Vec<f64>,
    /// How long a turn is, usually.
    pub(super) turn_ns: f64,
}

/// Clocks that are found at most: a limit of time.
const MOST: usize = 6;

/// A clock delays more than this share of the turns that it meets, beyond those that are as long without it. A multiple
/// of its frequency delays a half at most.
const MOST_TURNS: f64 = 0.5;

/// A turn's excess counts up to that of one turn in so many: few long stalls would hide what many turns have in common.
const CAPPED: usize = 200;

/// Excess of up to so many usual turns counts in any case: a rare clock is not in one turn in [`CAPPED`].
const LONGER: f64 = 2.0;

/// Bins of phases for each usual turn, and at most in all.
const FINE: f64 = 4.0;
const MOST_BINS: f64 = 65_536.0;

/// A phase at which fewer turns were met is as uncertain as one with so many.
const FEWEST: f64 = 8.0;

/// Candidates that are compared with their aliases.
const COMPARED: usize = 3;

/// Sums of a frequency with so many times the rate of bursts are compared, and fractions up to this one.
const TIMES: i32 = 8;
const FRACTIONS: i32 = 6;

/// Times that a clock moves through the interval of bursts: parts of the run in which its phase is compared.
const FEWEST_BEATS: f64 = PARTS as f64;

/// Multiples of two frequencies that are compared.
const MULTIPLES: i32 = 4;

/// Frequencies whose likelihood is lower by less than this tell as much.
const ALIKE_NATS: f64 = 6.0;

/// Parts of the run in each of which a clock keeps its phase, and other phases that are tried.
const PARTS: usize = 8;
const SHIFTS: i32 = 8;

/// The likeliest of these phases is by so much likelier than another one by chance: 4 turns have 5 phases or fewer that
/// are independent, and of as many normal deviates the largest exceeds 2.8 (4 nats) in one case in 80.
const CHANCE_NATS: f64 = 4.0;

/// The turns of a run, with what is not explained of their excess.
struct Search<'a> {
    capture: &'a Capture,
    turns: Vec<Turn>,
    deviation_ns: f64,
    turn_ns: f64,
}

/// The clocks that strike in turns.
pub(super) fn search(capture: &Capture, turns: &Turns) -> Vec<Found> {
    let Some(mut search) = Search::new(capture, turns.turns.clone()) else {
        return Vec::new();
    };
    let mut plan = RealFftPlanner::new();
    let mut found: Vec<Found> = Vec::new();
    let mut chance = None;
    for _ in 0..MOST {
        let Some((strike, aliases_hz)) = search.next(&mut plan) else { break };
        if search.of_bursts(strike.hz())
            || strike.purity < MOST_TURNS
            || strike.nats() < search.price(&strike) + BELIEVED_NATS
        {
            break;
        }
        let chance = *chance.get_or_insert_with(|| {
            search.surrogate().next(&mut plan).map_or(0.0, |(one, _)| one.nats())
        });
        if strike.nats() < chance + BELIEVED_NATS {
            break;
        }
        let delayed = search.delayed(&strike);
        let wanders = search.wanders(&strike);
        let taken = search.take(&strike);
        let told = |other: &Found| {
            search.same(&strike, &other.strike) || search.folded(&strike, &other.strike)
        };
        if !wanders && !found.iter().any(told) {
            found.push(Found { strike, delayed, taken, aliases_hz, turn_ns: search.turn_ns });
        }
    }
    found
}

impl<'a> Search<'a> {
    fn new(capture: &'a Capture, mut turns: Vec<Turn>) -> Option<Self> {
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
    fn centre(&mut self) {
        let count = self.turns.len() as f64;
        let mean_ns = self.turns.iter().map(|turn| turn.excess_ns).sum::<f64>() / count;
        self.turns.iter_mut().for_each(|turn| turn.excess_ns -= mean_ns);
        let squares = self.turns.iter().map(|turn| turn.excess_ns * turn.excess_ns).sum::<f64>();
        self.deviation_ns = libm::sqrt(squares / count).max(1.0);
    }

    /// The same turns with the excess of others: blocks of turns in another order keep what is near in time.
    fn surrogate(&self) -> Self {
        let order = self.capture.shuffled_order(self.turns.len());
        let excess: Vec<f64> = order.into_iter().map(|turn| self.turns[turn].excess_ns).collect();
        let turns = self.turns.iter().zip(excess);
        let turns = turns.map(|(turn, excess_ns)| Turn { excess_ns, ..*turn }).collect();
        Self { turns, ..*self }
    }

    /// The likeliest clock, and the frequencies that the turns tell as much of.
    fn next(&self, plan: &mut RealFftPlanner<f32>) -> Option<(Strike, Vec<f64>)> {
        let candidates = spectrum::proposed(plan, self.capture, spectrum::MOST, |add| {
            for turn in &self.turns {
                add(0.5 * (turn.from_ns + turn.until_ns), turn.excess_ns as f32);
            }
        });
        let run_s = self.capture.run_ns as f64 / 1e9;
        let merit = |one: &Strike| one.nats() * one.purity;
        let mut all: Vec<(f64, Strike)> = candidates
            .iter()
            .filter(|candidate| !self.of_bursts(candidate.hz))
            .filter_map(|one| self.near(one.hz, 1.0 / (one.harmonics as f64 * run_s)))
            .map(|one| self.measured(one))
            .map(|one| (merit(&one), one))
            .collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        all.truncate(COMPARED);
        for number in 0..all.len() {
            let strike = self.polished(all[number].1);
            all[number] = (merit(&strike), strike);
            let others = self.others(strike.hz());
            let folded = others.into_iter().filter_map(|hz| self.fold(hz, 0.0));
            let folded = folded.map(|one| self.measured(one));
            all.extend(folded.map(|one| (merit(&one), one)));
        }
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        let best = all.first()?.1;
        // The phase moves by a turn over the run if a frequency is off by this part.
        let part = self.turn_ns / self.capture.run_ns as f64;
        let best = self.near(best.hz(), part * best.hz()).map_or(best, |one| self.polished(one));
        let alike = all.iter().filter(|one| one.1.nats() > best.nats() - ALIKE_NATS);
        let alike = alike.map(|one| one.1.hz());
        let mut aliases_hz: Vec<f64> =
            alike.filter(|hz| (hz / best.hz() - 1.0).abs() > 1e-4).collect();
        aliases_hz.sort_by(f64::total_cmp);
        aliases_hz.dedup_by(|a, b| (*a / *b - 1.0).abs() < 1e-4);
        Some((best, aliases_hz))
    }

    /// Whether a frequency is nearly a simple fraction of that of bursts. It strikes in few places of bursts, or moves
    /// through them so slowly that a clock that wanders, or a device that changes, cannot be told from another frequency.
    fn of_bursts(&self, hz: f64) -> bool {
        let bursts_hz = self.capture.pattern_hz.unwrap_or(0.0);
        let run_s = self.capture.run_ns as f64 / 1e9;
        (1..=TIMES).map(f64::from).any(|denominator| {
            let off_hz = hz - libm::round(hz * denominator / bursts_hz) * bursts_hz / denominator;
            off_hz.abs() * run_s * denominator < FEWEST_BEATS
        })
    }

    /// Simple fractions of a frequency, and its sums with multiples of the rate of bursts.
    fn others(&self, hz: f64) -> Vec<f64> {
        let bursts_hz = self.capture.pattern_hz.unwrap_or(0.0);
        let sums = (-TIMES..=TIMES).map(|times| (hz + f64::from(times) * bursts_hz).abs());
        let fractions = (1..=FRACTIONS)
            .flat_map(|n| (1..=FRACTIONS).map(move |d| hz * f64::from(n) / f64::from(d)));
        let mut all: Vec<f64> = sums
            .chain(fractions)
            .filter(|one| (spectrum::SEARCHED_HZ.0..=spectrum::SEARCHED_HZ.1).contains(one))
            .filter(|one| (one / hz - 1.0).abs() > 1e-6 && !self.of_bursts(*one))
            .collect();
        all.sort_by(f64::total_cmp);
        all.dedup_by(|a, b| (*a / *b - 1.0).abs() < 1e-9);
        all
    }

    /// The likeliest strike at a frequency that may be wrong by so much.
    fn near(&self, hz: f64, mut off_hz: f64) -> Option<Strike> {
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
    fn fold(&self, hz: f64, wider_ns: f64) -> Option<Strike> {
        let period_ns = 1e9 / hz;
        let bin_ns = ((self.turn_ns + 2.0 * wider_ns) / FINE).max(period_ns / MOST_BINS);
        let bins = ((period_ns / bin_ns) as usize).max(4);
        let mut changes = vec![(0.0_f64, 0_i32); bins + 1];
        for turn in &self.turns {
            let turns = (turn.from_ns - wider_ns) / period_ns;
            let from = (turns - libm::floor(turns)) * bins as f64;
            let long = (turn.until_ns - turn.from_ns + 2.0 * wider_ns) / period_ns * bins as f64;
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
                });
            }
        }
        best
    }

    /// Frequency and phase by least squares: a clock strikes anywhere in the turns that it meets, in their middles on
    /// average.
    fn polished(&self, strike: Strike) -> Strike {
        let strike = self.measured(strike);
        let middle =
            |(_, turn): &(i64, Turn)| 0.5 * (turn.from_ns + turn.until_ns - strike.longer_ns);
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
    fn measured(&self, strike: Strike) -> Strike {
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
            ..strike
        }
    }

    /// Whether the phase moves: in parts of the run, other phases are likelier by far.
    fn wanders(&self, strike: &Strike) -> bool {
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
    fn delayed(&self, strike: &Strike) -> Vec<(i64, Turn)> {
        self.turns
            .iter()
            .filter(|turn| turn.excess_ns > 0.5 * strike.longer_ns)
            .filter_map(|turn| Some((strike.number(turn)?, *turn)))
            .collect()
    }

    /// Takes out the turns near a strike, and returns them: those that it may delay in part, too.
    fn take(&mut self, strike: &Strike) -> Vec<Turn> {
        let before_ns = strike.longer_ns + self.turn_ns / FINE;
        let near = |turn: &Turn| {
            let from_ns = turn.from_ns - before_ns;
            strike
                .number(&Turn { from_ns, until_ns: turn.until_ns + self.turn_ns / FINE, ..*turn })
                .is_some()
        };
        let (taken, left) = self.turns.iter().partition(|turn| near(turn));
        self.turns = left;
        self.centre();
        taken
    }

    /// The logarithm of the number of frequencies and phases that are tried.
    fn price(&self, strike: &Strike) -> f64 {
        libm::log(self.capture.run_ns as f64 / self.turn_ns)
            + libm::log((strike.period_ns / self.turn_ns).max(2.0))
            + libm::log(100.0)
    }

    /// Whether a strike is another one, or each of its times one of the other's, within a turn.
    fn same(&self, one: &Strike, other: &Strike) -> bool {
        let ratio = one.period_ns / other.period_ns;
        let times = libm::round(ratio).max(1.0);
        let periods = self.capture.run_ns as f64 / one.period_ns;
        let near_ns = self.turn_ns + one.longer_ns.max(other.longer_ns);
        let off_ns = one.phase_ns - other.phase_ns;
        let off_ns = off_ns - libm::round(off_ns / other.period_ns) * other.period_ns;
        (ratio - times).abs() * other.period_ns * periods < near_ns && off_ns.abs() < near_ns
    }

    /// Whether a multiple of a frequency and one of the other are as far apart as multiples of the rate of bursts: what
    /// is left of the other, as shorter turns behind it, recurs in bursts at both.
    fn folded(&self, one: &Strike, other: &Strike) -> bool {
        let bursts_hz = self.capture.pattern_hz.unwrap_or(0.0);
        let run_s = self.capture.run_ns as f64 / 1e9;
        (1..=MULTIPLES).any(|multiple| {
            (-MULTIPLES..=MULTIPLES).any(|times| {
                let apart_hz = one.hz() * f64::from(multiple) - other.hz() * f64::from(times);
                let bursts = libm::round(apart_hz / bursts_hz);
                let off_hz = (apart_hz - bursts * bursts_hz).abs();
                times != 0 && bursts != 0.0 && off_hz * run_s < f64::from(multiple)
            })
        })
    }
}
