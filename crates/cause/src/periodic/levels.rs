//! Causes of which every second, third, … occurrence takes longer than the others.

use super::comb::Comb;
use super::late::Stall;

/// The stalls of a comb, with the number of the period in which each ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Members {
    pub(super) comb: Comb,
    pub(super) stalls: Vec<(i64, Stall)>,
}

impl Members {
    /// Relative error of the period (95 %) if ends vary by at most so much: that of a line through them.
    pub(super) fn relative_error(&self, width_ns: f64) -> f64 {
        let numbers: Vec<f64> = self.stalls.iter().map(|(number, _)| *number as f64).collect();
        relative_error(&numbers, width_ns, self.comb.period_ns)
    }
}

/// Relative error of the period (95 %) of a line through times of occurrences with these numbers, which vary by at most
/// so much in both directions.
pub(super) fn relative_error(numbers: &[f64], width_ns: f64, period_ns: f64) -> f64 {
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let square = |number: &f64| (number - mean) * (number - mean);
    let spread = libm::sqrt(numbers.iter().map(square).sum::<f64>());
    // Uniform within the width.
    let deviation_ns = width_ns / libm::sqrt(3.0);
    1.96 * deviation_ns / spread.max(1.0) / period_ns
}

/// Occurrences of a comb that take equally long.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DelayLevel {
    /// The longest wait for one of them.
    pub(super) delay_ns: i64,
    /// Stalls seen.
    pub(super) events: u64,
    /// Every how many-th occurrence belongs to this level, where `residues` is 1.
    pub(super) every: u64,
    /// So many of each `every` occurrences belong to it.
    pub(super) residues: f64,
    /// Number of the first one, from the start.
    pub(super) first: i64,
}

/// Longest pattern of occurrences that is tried. A limit of time, and of evidence: each residue needs [`FEWEST`] stalls.
pub(super) const LONGEST: usize = 12;

/// Occurrences of each kind that must have been seen: the fewest whose extremes bound the median with more than 90 %
/// (1 − 2·2⁻⁵ = 94 %; four do with 88 %).
const FEWEST: usize = 5;

/// Ends that differ by less than this part of the height are one level. The published captures differ by 30 % (5.5 and
/// 8.2 µs).
const SAME: f64 = 0.1;

/// An occurrence: the stall, and the phase of its end less that of the comb.
type Occurrence = (Stall, f64);

/// The levels of a comb, shortest first. One where all occurrences take equally long.
///
/// What takes longer ends later. Ends tell it better than waits: which wait a packet meets depends on
/// when packets arrive, and under a constant rate that repeats with a pattern of its own.
pub(super) fn levels(members: &Members) -> Vec<DelayLevel> {
    let whole = by_residue(members, 1);
    let mut best = (0.0, group(&whole));
    for every in 2..=LONGEST {
        let parts = by_residue(members, every);
        if parts.iter().any(|part| part.len() < FEWEST) {
            continue;
        }
        let gain = gain(&whole[0], &parts);
        // A multiple of the pattern gains as much, and a little more by chance.
        if gain > 1.1 * best.0 {
            let levels = group(&parts);
            // More than two are a length that varies.
            if let [_, longer] = &levels[..]
                && longer.residues == 1.0
            {
                best = (gain, levels);
            }
        }
    }
    best.1
}

/// Occurrences by their number modulo `every`.
fn by_residue(members: &Members, every: usize) -> Vec<Vec<Occurrence>> {
    let mut parts = vec![Vec::new(); every];
    for (number, stall) in &members.stalls {
        let (_, end_ns) = members.comb.off(stall.end_ns as f64);
        parts[number.rem_euclid(every as i64) as usize].push((*stall, end_ns));
    }
    parts
}

/// By how much the logarithm of the likelihood grows when each residue has an end of its own, less what
/// as many more parameters gain by chance. Deviations count by their amount, not its square, so that a
/// few ends that something else delayed do not decide (Laplace's distribution).
fn gain(whole: &[Occurrence], parts: &[Vec<Occurrence>]) -> f64 {
    let count = whole.len() as f64;
    let deviations = |part: &Vec<Occurrence>| {
        let middle_ns = median(part);
        part.iter().map(|(_, end_ns)| (end_ns - middle_ns).abs()).sum::<f64>()
    };
    let fitted = parts.iter().map(deviations).sum::<f64>() / count + 1.0;
    let alike = deviations(&whole.to_vec()) / count + 1.0;
    let more = (parts.len() - 1) as f64;
    count * (libm::log(alike) - libm::log(fitted)) - more * (libm::log(count) + 2.0)
}

fn median(part: &[Occurrence]) -> f64 {
    let mut ends: Vec<f64> = part.iter().map(|(_, end_ns)| *end_ns).collect();
    ends.sort_by(f64::total_cmp);
    ends.get(ends.len() / 2).copied().unwrap_or(0.0)
}

/// The longest wait, without stragglers that something else delayed in addition: under uniform waits
/// the longest are a part in n from each other, eight parts come once in three thousand times.
fn height_ns(part: &[Occurrence]) -> i64 {
    let mut waits: Vec<i64> = part.iter().map(|(stall, _)| stall.delay_ns()).collect();
    waits.sort_unstable();
    let count = waits.len() as i64;
    while let [.., second, largest] = waits[..]
        && waits.len() > FEWEST
        && (largest - second) * count > 8 * largest
    {
        waits.pop();
    }
    waits.last().copied().unwrap_or(1).max(1)
}

/// Residues that end at the same phase as one level.
fn group(parts: &[Vec<Occurrence>]) -> Vec<DelayLevel> {
    let mut sorted: Vec<(f64, usize)> =
        parts.iter().enumerate().map(|(residue, part)| (median(part), residue)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: Vec<Occurrence> = parts.concat();
    let same_ns = SAME * height_ns(&all) as f64;
    sorted
        .chunk_by(|a, b| b.0 - a.0 <= same_ns)
        .map(|members| {
            let together: Vec<Occurrence> =
                members.iter().flat_map(|(_, residue)| parts[*residue].iter().copied()).collect();
            DelayLevel {
                delay_ns: height_ns(&together),
                events: together.len() as u64,
                every: parts.len() as u64,
                residues: members.len() as f64,
                first: members.iter().map(|(_, residue)| *residue as i64).min().unwrap_or(0),
            }
        })
        .collect()
}
