//! Devices that take several packets at once: they leave together, after a service time for each.
//!
//! After a stall, packets leave close together, too, and the longer it was, the more of them. What tells the two
//! apart: a batch takes the same time for each of its packets, however many they are, while what precedes a queue that
//! is worked off is as long as the stall happened to be.

use super::queue::Passage;

/// Departures that are at most so many times the usual (median) spacing apart are of one batch. Where spacings are as
/// irregular as a Poisson process, 1 in 2⁴ = 16 is longer and cuts a batch in two.
const TOGETHER: i64 = 4;
/// Fewer batches do not show whether they are alike (see [`ALIKE`]).
const ENOUGH: usize = 20;
/// Batches take one time for each packet if the lower quartile is at most this part below the median; longer times may
/// have been stalled, so the upper half does not count.
///
/// Stalls whose times per packet have a density that does not increase, such as uniform or exponential ones, pass for
/// batches in fewer than one case in a thousand: of the 10 times below the median of 20, at least 5 would have to lie
/// in the last twelfth. That is 7·10⁻⁴ where they are uniform, and less otherwise or with more batches. A device passes
/// while the standard deviation of its time per packet is below 12 % (the quartile of a normal law is 0.67 of it away).
const ALIKE: i64 = 12;

/// Time that batches take for each packet, from samples in the order in which they left and the usual spacing of
/// packets that queued. `None` for a device that sends each packet alone.
pub(super) fn service_ns(ordered: &[(i64, i64)], spacing_ns: i64) -> Option<i64> {
    let together = |a: &(i64, i64), b: &(i64, i64)| b.1 - a.1 <= spacing_ns * TOGETHER;
    let mut each_ns = Vec::new();
    let mut left_ns = i64::MIN;
    let mut within = 0;
    for batch in ordered.chunk_by(together) {
        let count = i64::try_from(batch.len()).unwrap_or(i64::MAX);
        // One that waited for those ahead began when they left.
        if count > 1 && batch[0].0 < left_ns {
            each_ns.push((batch[0].1 - left_ns) / count);
            within += batch.len();
        }
        left_ns = batch[batch.len() - 1].1;
    }
    if each_ns.len() < ENOUGH {
        return None;
    }
    each_ns.sort_unstable();
    let quarter = |number: usize| each_ns[each_ns.len() * number / 4];
    let middle_ns = quarter(2);
    let alike = (middle_ns - quarter(1)) * ALIKE <= middle_ns;
    let keeps_up = middle_ns + spacing_ns < interval_ns(ordered) || within * 2 >= ordered.len();
    (alike && keeps_up && middle_ns > spacing_ns * TOGETHER).then_some(middle_ns)
}

/// The mean time between departures.
///
/// A stall of packets at a constant rate lets as many wait as it has intervals, so that its time for each is one
/// interval, less at most the spacing at which they are worked off, whatever the stall. A device that took that long for
/// each would be busy all the time: most packets would be in batches, and where they are not, it was stalled.
fn interval_ns(ordered: &[(i64, i64)]) -> i64 {
    let gaps = i64::try_from(ordered.len()).unwrap_or(i64::MAX) - 1;
    match ordered {
        [first, .., last] => (last.1 - first.1) / gaps,
        _ => 0,
    }
}

/// Gives the first of each batch the time of all of its packets. Returns the median length of batches of several.
pub(super) fn share(passages: &mut [Passage], spacing_ns: i64, service_ns: i64) -> u64 {
    let together = |a: &Passage, b: &Passage| {
        b.queued() && b.departure_ns - a.departure_ns <= spacing_ns * TOGETHER
    };
    let mut lengths = Vec::new();
    for batch in passages.chunk_by_mut(together) {
        let count = i64::try_from(batch.len()).unwrap_or(i64::MAX);
        batch.iter_mut().for_each(|passage| passage.own_ns = 0);
        batch[0].own_ns = service_ns * count;
        lengths.extend((count > 1).then_some(batch.len()));
    }
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).map_or(1, |length| *length as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailtrim_stats::binomial_tail;

    /// Probability that uniform times pass as alike: of those below the median, enough lie in the last part.
    fn passes_by_chance(batches: usize) -> f64 {
        let (below, within) = (batches / 2, batches / 2 - batches / 4);
        let part = 1.0 / ALIKE as f64;
        binomial_tail(within as f64, below as f64, part, 1.0 - part)
    }

    #[test]
    fn stalls_seldom_pass_for_batches() {
        assert!((passes_by_chance(ENOUGH) / 7.1e-4 - 1.0).abs() < 0.01);
        assert!((ENOUGH..200).all(|batches| passes_by_chance(batches) < 1e-3));
        assert!(passes_by_chance(ENOUGH - 4) > 1e-3);
    }

    /// At a constant rate, as many packets wait behind a stall as it has intervals, so that all stalls seem to take one
    /// interval for each packet.
    #[test]
    fn stalls_at_a_constant_rate_are_no_batches() {
        // On their way for 30 µs, then 100 ns of service, which is stalled every 40 packets, for 20 to 60 µs.
        let mut free_ns = 0;
        let samples: Vec<(i64, i64)> = (0..20_000_i64)
            .map(|number| {
                let arrival_ns = number * 10_000;
                let stall_ns = if number % 40 == 0 { 20_000 + number * 7919 % 40_000 } else { 0 };
                free_ns = free_ns.max(arrival_ns + 30_000) + stall_ns + 100;
                (arrival_ns, free_ns)
            })
            .collect();
        assert_eq!(service_ns(&samples, 100), None);
    }

    #[test]
    fn a_device_that_cannot_keep_up_has_batches_all_the_same() {
        // Eight packets at a time, of which each takes 12 µs and comes every 10.
        let samples: Vec<(i64, i64)> = (0..8_000_i64)
            .map(|number| (number * 10_000, (number / 8 + 1) * 96_000 + number % 8 * 50))
            .collect();
        let each_ns = service_ns(&samples, 50).unwrap_or_default();
        assert!((11_900..=12_000).contains(&each_ns), "{each_ns}");
    }
}
