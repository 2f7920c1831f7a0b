//! Clocks that delay a device that is busy with bursts.
//!
//! Such a device takes as long for a burst as for dozens of packets: where in a turn it stalled, stamps do not tell, so
//! the ends of stalls have no phase that is sharper than a turn. Each turn has a time of its own, though, and is longer
//! by the stall if the clock struck in it. So the turns are folded with what their clock would strike (box least squares,
//! Kovács 2002): at the right frequency and phase the turns that the clock meets are longer, all others are not. The
//! length of the turns is known, which tells a frequency from its sums with the rate of bursts.

use super::capture::Capture;
use super::comb::BELIEVED_NATS;
use super::spectrum;
use super::strike::{FINE, Folding, PARTS, Strike};
use super::turns::{Turn, Turns};
use crate::rows::Struck;
use realfft::RealFftPlanner;

/// A clock that was found, with the turns that it delayed: the number of the period, and the turn with its excess.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) strike: Strike,
    pub(super) delayed: Vec<(i64, Turn)>,
    /// All turns near it.
    pub(super) taken: Vec<Turn>,
    pub(super) aliases_hz: Vec<f64>,
    /// Usual length of a turn.
    pub(super) turn_ns: f64,
}

impl Found {
    /// Returns the turns that it prolonged: stamps do not tell when within a turn the device stood still.
    pub(super) fn struck(&self, turns: &Turns) -> Struck {
        // The search limits the excess of turns.
        let turn = |packet| turns.turns.binary_search_by_key(&packet, |turn| turn.packet).ok();
        let delayed = self.delayed.iter().filter_map(|(_, one)| turn(one.packet));
        let mut waits: Vec<f64> = delayed.map(|turn| turns.turns[turn].excess_ns).collect();
        waits.sort_unstable_by(f64::total_cmp);
        let longest_ns = waits.get(waits.len() * 99 / 100).copied().unwrap_or(0.0);
        let packets = self.taken.iter().map(|turn| turn.packet).collect();
        Struck { packets, longest_ns: (LONGER * longest_ns) as i64, ..Struck::default() }
    }
}

/// A strike takes up to so many times as long as 99 % of them, as a comb's do.
const LONGER: f64 = 1.3;

/// Clocks that are found at most: a limit of time.
const MOST: usize = 6;

/// A clock delays more than this share of the turns that it meets, beyond those that are as long without it. A multiple
/// of its frequency delays a half at most.
const MOST_TURNS: f64 = 0.5;

/// Its stalls are so many times as long as turns vary without them (one standard deviation): a normal law puts 16 % of the turns above
/// half of that, so that chance cannot delay a half of those that a wrong frequency meets.
const CLEAR: f64 = 2.0;

/// A strike that is not clear may owe up to this factor of its merit to the turns of two clocks of one frequency. So it
/// replaces a clear one only if its merit is higher by more.
const SHARED: f64 = 2.0;

/// Candidates that are compared with their aliases.
const COMPARED: usize = 3;

/// Sums of a frequency with so many times the rate of bursts are compared, and fractions up to this one.
const TIMES: i32 = 8;
const FRACTIONS: i32 = 8;

/// Multiples of a frequency that are compared.
const MOST_MULTIPLES: usize = 64;

/// So many turns tell whether a frequency may strike in all.
const SOME: usize = 256;

/// Times that a clock moves through the interval of bursts: parts of the run in which its phase is compared.
const FEWEST_BEATS: f64 = PARTS as f64;

/// A fraction of the rate of bursts with a denominator up to this one strikes in few places of bursts.
const PLACES: i32 = 64;

/// Multiples of two frequencies that are compared.
const MULTIPLES: i32 = 4;

/// Frequencies whose likelihood is lower by less than this tell as much.
const ALIKE_NATS: f64 = 6.0;

/// A clock that wanders a little delays only a part of the turns that its mean frequency meets, and may be likelier at a sum
/// with the rate of bursts. In a published capture, 941.3 Hz (1 ms of sleep) had 0.47 to 0.72 of the merit of 1,254.1 Hz.
const UNSURE_SHARE: f64 = 0.4;

/// The clocks that strike in turns.
pub(super) fn search(capture: &Capture, turns: &Turns) -> Vec<Found> {
    let Some(mut search) = Folding::new(capture, turns.turns.clone()) else {
        return Vec::new();
    };
    let mut plan = RealFftPlanner::new();
    let mut found: Vec<Found> = Vec::new();
    let mut chance = None;
    for _ in 0..MOST {
        let Some((strike, aliases_hz)) = search.next(&mut plan) else { break };
        if search.of_bursts(strike.hz()) || !search.is_clear(&strike) {
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

impl Folding<'_> {
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
        let best_first = |a: &Strike, b: &Strike| b.merit().total_cmp(&a.merit());
        let mut all: Vec<Strike> = candidates
            .iter()
            .filter(|candidate| !self.of_bursts(candidate.hz))
            .filter_map(|one| self.near(one.hz, 1.0 / (one.harmonics as f64 * run_s)))
            .map(|one| self.measured(one))
            .collect();
        all.sort_by(best_first);
        all.truncate(COMPARED);
        for number in 0..all.len() {
            all[number] = self.polished(all[number]);
            let strike = all[number];
            if !self.is_believed(&strike) {
                continue;
            }
            let others = self.others(&strike);
            let folded = others.into_iter().filter_map(|hz| self.fold(hz, 0.0));
            all.extend(folded.map(|one| self.measured(one)));
        }
        all.sort_by(best_first);
        let likeliest = all.first()?;
        let enough = likeliest.merit() / SHARED;
        let best = *all
            .iter()
            .take_while(|one| one.merit() >= enough)
            .find(|one| self.is_clear(one))
            .unwrap_or(likeliest);
        let mut best = self.refined(best);
        while let Some(better) = self.better(&best) {
            best = self.refined(better);
        }
        let shared = |one: &Strike| {
            self.is_sum(one.hz(), best.hz()) && one.merit() > UNSURE_SHARE * best.merit()
        };
        let alike = all.iter().filter(|one| one.nats() > best.nats() - ALIKE_NATS || shared(one));
        let alike = alike.map(Strike::hz);
        let mut aliases_hz: Vec<f64> =
            alike.filter(|hz| (hz / best.hz() - 1.0).abs() > 1e-4).collect();
        aliases_hz.sort_by(f64::total_cmp);
        aliases_hz.dedup_by(|a, b| (*a / *b - 1.0).abs() < 1e-4);
        Some((best, aliases_hz))
    }

    /// The strike at the frequency near its own that is likeliest.
    fn refined(&self, strike: Strike) -> Strike {
        // The phase moves by a turn over the run if a frequency is off by this part.
        let part = self.turn_ns / self.capture.run_ns as f64;
        let near = self.near(strike.hz(), part * strike.hz()).map(|one| self.polished(one));
        near.filter(|one| one.merit() > strike.merit()).unwrap_or(strike)
    }

    /// The strike at another frequency that has more merit.
    fn better(&self, strike: &Strike) -> Option<Strike> {
        if !self.is_believed(strike) {
            return None;
        }
        let folded = self.others(strike).into_iter().filter_map(|hz| self.fold(hz, 0.0));
        folded
            .map(|one| self.measured(one))
            .filter(|one| {
                let times = if self.is_clear(one) { 1.0 } else { SHARED };
                one.merit() > times * strike.merit()
            })
            .max_by(|a, b| a.merit().total_cmp(&b.merit()))
    }

    /// Whether a frequency is nearly a simple fraction of that of bursts. It strikes in few places of bursts, or moves
    /// through them so slowly that a clock that wanders, or a device that changes, cannot be told from another frequency.
    fn of_bursts(&self, hz: f64) -> bool {
        let bursts_hz = self.capture.pattern_hz.unwrap_or(0.0);
        let run_s = self.capture.run_ns as f64 / 1e9;
        (1..=PLACES).map(f64::from).any(|denominator| {
            let off_hz = hz - libm::round(hz * denominator / bursts_hz) * bursts_hz / denominator;
            off_hz.abs() * run_s * denominator < FEWEST_BEATS
        })
    }

    /// Other frequencies that may strike in the turns that a strike delays: simple fractions of its sums with multiples of
    /// the rate of bursts. Those that are nearly fractions of that rate are among them: what is one of theirs is not told.
    fn others(&self, strike: &Strike) -> Vec<f64> {
        let bursts_hz = self.capture.pattern_hz.unwrap_or(0.0);
        let sums = (1..=FRACTIONS).flat_map(|numerator| {
            let hz = f64::from(numerator) * strike.hz();
            (-TIMES..=TIMES).map(move |times| (hz + f64::from(times) * bursts_hz).abs())
        });
        // A clock of which only the turns of some phases are seen, as one that is nearly a fraction of the rate of bursts.
        let multiples = (1..).map(|times| f64::from(times) * strike.hz());
        let multiples =
            multiples.take_while(|hz| *hz <= spectrum::SEARCHED_HZ.1).take(MOST_MULTIPLES);
        let mut all: Vec<f64> = sums
            .flat_map(|sum| (1..=FRACTIONS).map(move |denominator| sum / f64::from(denominator)))
            .chain(multiples)
            .filter(|hz| (spectrum::SEARCHED_HZ.0..=spectrum::SEARCHED_HZ.1).contains(hz))
            .filter(|hz| (hz / strike.hz() - 1.0).abs() > 1e-6)
            .collect();
        all.sort_by(f64::total_cmp);
        all.dedup_by(|a, b| (*a / *b - 1.0).abs() < 1e-9);
        let delayed = self.delayed(strike);
        let some: Vec<Turn> =
            delayed.iter().step_by(delayed.len() / SOME + 1).map(|(_, turn)| *turn).collect();
        all.retain(|hz| self.together(&some, 1e9 / hz) > MOST_TURNS / SHARED);
        all
    }

    /// Whether a frequency is the sum of another one and a multiple of the rate of bursts.
    fn is_sum(&self, hz: f64, other_hz: f64) -> bool {
        let bursts_hz = self.capture.pattern_hz.unwrap_or(0.0);
        let resolved_hz = 1e9 / self.capture.run_ns as f64;
        [hz - other_hz, hz + other_hz].into_iter().any(|apart_hz| {
            let times = libm::round(apart_hz / bursts_hz);
            times != 0.0 && (apart_hz - times * bursts_hz).abs() < resolved_hz
        })
    }

    /// Share of turns that have a phase of a period in common.
    fn together(&self, turns: &[Turn], period_ns: f64) -> f64 {
        let slack_ns = self.turn_ns / FINE;
        let mut edges: Vec<(f64, i32)> = Vec::with_capacity(turns.len() * 3);
        let mut always = 0;
        for turn in turns {
            let (from_ns, until_ns) = (turn.from_ns - slack_ns, turn.until_ns + slack_ns);
            if until_ns - from_ns >= period_ns {
                always += 1;
                continue;
            }
            let [from, until] = [from_ns, until_ns]
                .map(|ns| ns / period_ns)
                .map(|turns| turns - libm::floor(turns));
            edges.extend([(from, 1), (until, -1)]);
            if until < from {
                edges.push((0.0, 1));
            }
        }
        edges.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let (mut here, mut most) = (0, 0);
        for (_, change) in edges {
            here += change;
            most = most.max(here);
        }
        f64::from(always + most) / turns.len().max(1) as f64
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

    /// Whether it is believed and delays most of the turns that it meets, by more than these vary.
    fn is_clear(&self, strike: &Strike) -> bool {
        // Variance of the turns that the strike explains.
        let share = strike.met as f64 / self.turns.len() as f64;
        let square = share * (1.0 - share) * strike.longer_ns * strike.longer_ns;
        let left_ns = libm::sqrt((self.deviation_ns * self.deviation_ns - square).max(0.0));
        self.is_believed(strike)
            && strike.purity >= MOST_TURNS
            && strike.longer_ns >= CLEAR * left_ns
    }

    fn is_believed(&self, strike: &Strike) -> bool {
        strike.nats().min(strike.counted_nats) >= self.price(strike) + BELIEVED_NATS
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
