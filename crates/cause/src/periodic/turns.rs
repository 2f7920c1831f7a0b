//! The turns of a device that is busy with a burst: when it began with a packet, and when that left.
//!
//! A stall delays the packet whose turn it is and all behind it in the queue. In turns, the queue is gone: a turn begins
//! when the packet ahead has left, and takes longer than usual only if the device stalled in it.

use super::schedule::median;
use std::collections::BTreeMap;

/// A packet's turn, or that of several that leave together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Turn {
    /// The first of its packets.
    pub(super) packet: usize,
    /// When the packet ahead left or, of a device that was idle, when this one came; after the first arrival.
    pub(super) from_ns: f64,
    /// When it would have left if it took as long as usual: a strike in it comes before that.
    pub(super) until_ns: f64,
    /// By how much longer it took than turns of as many packets usually do.
    pub(super) excess_ns: f64,
}

/// Turns of a device in the bursts of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turns {
    /// In order of time.
    pub(super) turns: Vec<Turn>,
    /// From the first arrival of a burst until its last packet left, usually.
    pub(super) stay_ns: i64,
}

/// A device is busy with bursts if their packets leave this many times as far apart as they came, or as close together.
/// One that serves each packet before the next one comes leaves the gaps as they are: 1.
const BUSY: i64 = 2;

/// Where a burst stays for less than one in so many parts of the time between bursts, nearly all stalls begin when the
/// device is idle, and end at a sharp phase.
const LEAST: i64 = 20;

/// Packets that leave within this part of the time for each packet have one turn.
const TOGETHER: i64 = 4;

/// The fewest turns of as many packets whose usual time is known: with fewer, the error of their median is a tenth of
/// their spread or more (1.25/√100).
const FEWEST: usize = 100;

impl Turns {
    /// The turns of samples (ingress stamp, egress stamp) in order of the ingress stamp, with the place of each in its
    /// burst. None of a device that is not busy with bursts.
    pub(super) fn of(samples: &[(i64, i64)], places: &[usize]) -> Option<Self> {
        let starts = (0..places.len()).filter(|packet| places[*packet] == 0);
        let starts: Vec<usize> = starts.chain([places.len()]).collect();
        let bursts = || starts.windows(2).map(|pair| &samples[pair[0]..pair[1]]);
        let of = |of: fn(&[(i64, i64)]) -> i64| median(bursts().map(of).collect());
        let came_ns = of(|burst| burst[burst.len() - 1].0 - burst[0].0);
        let left_ns = of(|burst| burst[burst.len() - 1].1 - burst[0].1);
        let gaps = of(|burst| burst.len() as i64 - 1).max(1);
        let apart = left_ns >= BUSY * came_ns;
        let stay_ns = of(|burst| burst[burst.len() - 1].1 - burst[0].0);
        let run_ns = samples[samples.len() - 1].0 - samples[0].0;
        let idle = stay_ns * LEAST * (starts.len() as i64 - 1) < run_ns;
        if idle || (!apart && left_ns * BUSY > came_ns) {
            return None;
        }
        let together_ns = if apart { left_ns / gaps / TOGETHER } else { came_ns / gaps };
        Some(Self { turns: turns(samples, together_ns), stay_ns })
    }
}

fn turns(samples: &[(i64, i64)], together_ns: i64) -> Vec<Turn> {
    let first_ns = samples.first().map_or(0, |sample| sample.0);
    let mut found = Vec::new();
    let mut usual: BTreeMap<(usize, bool), Vec<i64>> = BTreeMap::new();
    let mut kinds = Vec::new();
    let (mut packet, mut before_ns) = (0, i64::MIN);
    let together = |a: &(i64, i64), b: &(i64, i64)| b.0 < a.1 && b.1 - a.1 <= together_ns;
    for turn in samples.chunk_by(together) {
        let (in_ns, out_ns) = turn[0];
        let from_ns = in_ns.max(before_ns);
        let kind = (turn.len(), before_ns > in_ns);
        // Packets that overtook others have no turn.
        if out_ns > from_ns {
            usual.entry(kind).or_default().push(out_ns - from_ns);
            kinds.push(kind);
            found.push(Turn {
                packet,
                from_ns: (from_ns - first_ns) as f64,
                until_ns: (out_ns - first_ns) as f64,
                excess_ns: (out_ns - from_ns) as f64,
            });
        }
        packet += turn.len();
        before_ns = turn.iter().map(|sample| sample.1).fold(before_ns, i64::max);
    }
    usual.retain(|_, taken| taken.len() >= FEWEST);
    let usual: BTreeMap<_, i64> =
        usual.into_iter().map(|(kind, taken)| (kind, median(taken))).collect();
    let known = found.into_iter().zip(kinds).filter_map(|(turn, kind)| {
        let usual_ns = *usual.get(&kind)?;
        let usual_ns = usual_ns as f64;
        let until_ns = turn.from_ns + usual_ns;
        Some(Turn { until_ns, excess_ns: turn.excess_ns - usual_ns, ..turn })
    });
    known.collect()
}
