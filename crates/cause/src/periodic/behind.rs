//! The packet behind an occurrence: what interrupted the device has taken its caches, so that the next packet takes longer
//! whenever it arrives. In a published capture (Snort on hardware) that is 2.8 µs with each packet behind a clock of 945 Hz;
//! such packets are late at phases of their own schedule, which looked like further clocks.

use super::capture::Capture;
use super::comb::Comb;

/// The part of packets that are above the upper quartile by chance.
const QUARTER: f64 = 0.25;

/// Packets behind an occurrence take longer if so many of them are above the upper quartile of all packets.
const MOST: f64 = 0.75;

/// Of fewer packets nothing is known: 15 of 20 are above the upper quartile with a chance of 4·10⁻⁶.
const FEWEST: usize = 20;

/// The time behind the occurrences of a comb in which it makes the next packet slower: the mean time between packets,
/// or 0 if it does not.
pub(super) fn behind_ns(capture: &Capture, comb: &Comb) -> f64 {
    // Packets of a burst wait for each other.
    if capture.bursts {
        return 0.0;
    }
    let mut excess = capture.excess.clone();
    let place = (excess.len() as f64 * (1.0 - QUARTER)) as usize;
    let (_, quartile_ns, _) = excess.select_nth_unstable(place);
    let behind_ns = capture.interval_ns().min(comb.period_ns / 2.0);
    let comb = Comb { behind_ns, ..*comb };
    let all = packets(capture, &comb);
    let above = all.iter().filter(|packet| capture.excess[**packet] > *quartile_ns).count();
    let slower = all.len() >= FEWEST && above as f64 >= MOST * all.len() as f64;
    if slower { behind_ns } else { 0.0 }
}

/// The packets behind the occurrences of a comb.
pub(super) fn packets(capture: &Capture, comb: &Comb) -> Vec<usize> {
    if comb.behind_ns == 0.0 {
        return Vec::new();
    }
    let count = (capture.run_ns as f64 / comb.period_ns) as i64 + 1;
    (0..=count)
        .filter_map(|number| {
            let end_ns = comb.end_ns(number);
            let packet = capture.at_or_after(end_ns + comb.width_ns);
            let at_ns = *capture.arrivals.get(packet)? as f64;
            (at_ns < end_ns + comb.width_ns + comb.behind_ns).then_some(packet)
        })
        .collect()
}
