//! Events folded at a period: the phases at which more of them lie than chance puts there.

use super::late::Stall;
use super::spectrum::FAST_HZ;

/// Stalls that end at one phase of one period.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Comb {
    /// The period.
    pub(super) period_ns: f64,
    /// Median of the ends' phases, from the first ingress stamp.
    pub(super) phase_ns: f64,
    /// The stalls, with the number of the period in which each ended.
    pub(super) stalls: Vec<(i64, Stall)>,
}

/// Bins of a period, at most: an interrupt's end varies by microseconds, and so does a bin of 4 ms / 500.
const BINS: f64 = 500.0;

/// Narrower bins would split the ends of one cause.
const NARROWEST_NS: f64 = 2_000.0;

/// A phase needs so many events. Where chance puts none, the deviations of [`SIGNIFICANT`] ask for seven, too.
const FEWEST: usize = 8;

/// Highest harmonic at which a comb may have been found.
const HIGHEST_HARMONIC: i64 = (FAST_HZ.1 / FAST_HZ.0) as i64;

/// At a harmonic, this share of a comb's stalls have numbers of one residue, and half of chance's share
/// more: the others are noise that lies at the same phase. By chance, 17 of 20 stalls are even or odd once in 400 times,
const CONCENTRATED: f64 = 0.6;

/// which the schedule would have shown less than this part of the way from chance's share to all: nearer to chance.
const SCHEDULED: f64 = 0.5;

/// A phase holds more than chance puts there by so many standard deviations. Of a Poisson number, that has a chance of
/// 5·10⁻⁷ at most, and up to 500 bins are tried. A bin alone needs five: it only proposes a phase.
const SIGNIFICANT: f64 = 6.0;

/// Phases spread wider than this part of the period do not count as periodic: stalls would take a quarter of all time.
const WIDEST: f64 = 0.25;

impl Comb {
    /// This comb at the multiple of its period at which it occurs, where it was found at a harmonic: its
    /// stalls then have numbers of one residue. They have such ones too where the packets' schedule meets
    /// no others, so that is counted: what the arrivals would show of a comb that occurs each time. With
    /// the stalls that are not of it.
    pub(super) fn fundamental(self, arrivals: &[i64]) -> (Self, Vec<Stall>) {
        let count = self.stalls.len() as f64;
        for multiple in (2..=HIGHEST_HARMONIC).rev() {
            let mut seen = vec![0_usize; multiple as usize];
            for (number, _) in &self.stalls {
                seen[number.rem_euclid(multiple) as usize] += 1;
            }
            let Some((residue, most)) = seen.iter().enumerate().max_by_key(|(_, seen)| **seen)
            else {
                continue;
            };
            if (*most as f64) < (CONCENTRATED + 0.5 / multiple as f64) * count {
                continue;
            }
            let met = self.met(arrivals, multiple);
            let all: usize = met.iter().sum();
            let chance = 1.0 / multiple as f64;
            if met[residue] as f64 <= (chance + SCHEDULED * (1.0 - chance)) * all as f64 {
                return self.thinned(multiple, residue as i64);
            }
        }
        (self, Vec::new())
    }

    /// Occurrences that an arrival meets, by the residue of their number.
    fn met(&self, arrivals: &[i64], multiple: i64) -> Vec<usize> {
        let mut delays: Vec<i64> = self.stalls.iter().map(|(_, stall)| stall.delay_ns()).collect();
        delays.sort_unstable();
        let delay_ns = delays[delays.len() * 3 / 4] as f64;
        let last_ns = arrivals.last().map_or(0.0, |last| *last as f64);
        let mut met = vec![0; multiple as usize];
        let mut next = 0;
        for number in 0..(last_ns / self.period_ns) as i64 {
            let end_ns = self.phase_ns + number as f64 * self.period_ns;
            while arrivals.get(next).is_some_and(|at| (*at as f64) < end_ns - delay_ns) {
                next += 1;
            }
            if arrivals.get(next).is_some_and(|at| (*at as f64) < end_ns) {
                met[number.rem_euclid(multiple) as usize] += 1;
            }
        }
        met
    }

    /// The period of its own stalls: the slope of their ends over their numbers (least squares).
    pub(super) fn fitted_period_ns(&self) -> f64 {
        let count = self.stalls.len() as f64;
        let mean_number = self.stalls.iter().map(|(n, _)| *n as f64).sum::<f64>() / count;
        let off_ns = |n: i64, stall: &Stall| stall.end_ns as f64 - n as f64 * self.period_ns;
        let (mut upper, mut lower) = (0.0, 0.0);
        for (number, stall) in &self.stalls {
            let deviation = *number as f64 - mean_number;
            upper += deviation * (off_ns(*number, stall) - self.phase_ns);
            lower += deviation * deviation;
        }
        if lower > 0.0 { self.period_ns + upper / lower } else { self.period_ns }
    }

    fn thinned(self, multiple: i64, residue: i64) -> (Self, Vec<Stall>) {
        let (members, others): (Vec<_>, Vec<_>) =
            self.stalls.into_iter().partition(|(number, _)| number.rem_euclid(multiple) == residue);
        let renumber = |(number, stall)| ((number - residue) / multiple, stall);
        let comb = Self {
            period_ns: self.period_ns * multiple as f64,
            phase_ns: self.phase_ns + residue as f64 * self.period_ns,
            stalls: members.into_iter().map(renumber).collect(),
        };
        (comb, others.into_iter().map(|(_, stall)| stall).collect())
    }
}

/// The combs at a period, largest first, and the stalls in none of them.
pub(super) fn fold(stalls: &[Stall], period_ns: f64) -> (Vec<Comb>, Vec<Stall>) {
    let phase = |stall: &Stall| {
        let turns = stall.end_ns as f64 / period_ns;
        (turns - libm::floor(turns)) * period_ns
    };
    let bins = (period_ns / NARROWEST_NS).clamp(4.0, BINS) as usize;
    let bin = |phase_ns: f64| ((phase_ns / period_ns * bins as f64) as usize).min(bins - 1);
    let mut counts = vec![0_usize; bins];
    for stall in stalls {
        counts[bin(phase(stall))] += 1;
    }
    let mut comb_of: Vec<Option<usize>> = vec![None; bins];
    let background = background(&counts);
    let groups = groups(&counts, background);
    for (group, members) in groups.iter().enumerate() {
        for member in members {
            comb_of[*member] = Some(group);
        }
    }
    let mut found: Vec<Vec<Stall>> = vec![Vec::new(); groups.len()];
    let mut rest = Vec::new();
    for stall in stalls {
        match comb_of[bin(phase(stall))] {
            Some(group) => found[group].push(*stall),
            None => rest.push(*stall),
        }
    }
    let mut combs = Vec::new();
    for (stalls, members) in found.into_iter().zip(&groups) {
        let chance = background * members.len() as f64;
        let least = (chance + SIGNIFICANT * libm::sqrt(chance + 1.0)).max(FEWEST as f64);
        if (stalls.len() as f64) < least || members.len() as f64 > WIDEST * bins as f64 {
            rest.extend(stalls);
            continue;
        }
        let start_ns = members[0] as f64 / bins as f64 * period_ns;
        combs.push(comb(stalls, period_ns, start_ns));
    }
    combs.sort_by_key(|comb| std::cmp::Reverse(comb.stalls.len()));
    rest.sort_by_key(|stall| stall.end_ns);
    (combs, rest)
}

/// What a bin holds by chance: the median.
fn background(counts: &[usize]) -> f64 {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2] as f64
}

/// Runs of neighbouring bins, around the end of the period too, that hold more than chance puts there,
/// each with one bin more on both sides: what a bin's edge cut off.
fn groups(counts: &[usize], background: f64) -> Vec<Vec<usize>> {
    let least = (background + 5.0 * libm::sqrt(background + 1.0)).max(FEWEST as f64 / 2.0);
    let bins = counts.len();
    let full = |n: usize| counts[n % bins] as f64 >= least;
    let near = |n: usize| full(n) || full(n + 1) || full(n + bins - 1);
    let Some(gap) = (0..bins).find(|n| !near(*n)) else {
        return Vec::new();
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut open = false;
    for n in gap..gap + bins {
        if !near(n) {
            open = false;
        } else if let (true, Some(last)) = (open, groups.last_mut()) {
            last.push(n % bins);
        } else {
            groups.push(vec![n % bins]);
            open = true;
        }
    }
    groups
}

/// Numbers the periods so that the group's beginning is the beginning of a period.
fn comb(stalls: Vec<Stall>, period_ns: f64, start_ns: f64) -> Comb {
    let numbered: Vec<(i64, Stall)> = stalls
        .into_iter()
        .map(|stall| {
            let number = libm::floor((stall.end_ns as f64 - start_ns) / period_ns);
            (number as i64, stall)
        })
        .collect();
    let mut phases: Vec<f64> = numbered
        .iter()
        .map(|(number, stall)| stall.end_ns as f64 - *number as f64 * period_ns)
        .collect();
    phases.sort_by(f64::total_cmp);
    Comb { period_ns, phase_ns: phases[phases.len() / 2], stalls: numbered }
}
