//! Bursts in a schedule: places of packets in their burst, and the wait that comes with each place.

/// Packets come in bursts where most of them follow within this part of the mean interval. Of random (Poisson) gaps, the
/// median is 0.69 of it.
const WITHIN: f64 = 0.25;

/// Places that are told apart; later ones are one.
const PLACES: usize = 1_024;

/// The place of each packet in its burst, from 0. None of a schedule without bursts.
pub(super) fn places(samples: &[(i64, i64)]) -> Option<Vec<usize>> {
    let mut gaps: Vec<i64> = samples.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    if gaps.is_empty() {
        return None;
    }
    let mean_ns = gaps.iter().sum::<i64>() as f64 / gaps.len() as f64;
    let middle = gaps.len() / 2;
    let median_ns = *gaps.select_nth_unstable(middle).1 as f64;
    if median_ns >= WITHIN * mean_ns {
        return None;
    }
    let apart_ns = mean_ns as i64;
    let mut place = 0;
    let mut previous_ns = i64::MIN / 2;
    let place_of = |(in_ns, _): &(i64, i64)| {
        place = if in_ns - previous_ns > apart_ns { 0 } else { (place + 1).min(PLACES - 1) };
        previous_ns = *in_ns;
        place
    };
    Some(samples.iter().map(place_of).collect())
}

/// Takes from each packet of a burst the latency that packets at its place usually have beyond the others, so that a
/// burst's own queue is not taken for a cause. Returns how many bursts come in a second.
pub(super) fn level_bursts(samples: &mut [(i64, i64)], places: &[usize]) -> Option<f64> {
    let mut latencies: Vec<Vec<i64>> = vec![Vec::new(); PLACES];
    for ((in_ns, out_ns), place) in samples.iter().zip(places) {
        latencies[*place].push(out_ns - in_ns);
    }
    let medians: Vec<i64> = latencies.into_iter().map(median).collect();
    let all_ns = median(samples.iter().map(|(in_ns, out_ns)| out_ns - in_ns).collect());
    for (sample, place) in samples.iter_mut().zip(places) {
        sample.1 -= medians[*place] - all_ns;
    }
    let bursts = places.iter().filter(|place| **place == 0).count() as f64 - 1.0;
    let last = places.iter().rposition(|place| *place == 0).unwrap_or(0);
    let run_ns = samples[last].0 - samples[0].0;
    (run_ns > 0).then(|| bursts * 1e9 / run_ns as f64)
}

/// The median, 0 of nothing.
pub(super) fn median(mut some: Vec<i64>) -> i64 {
    let middle = some.len() / 2;
    if some.is_empty() { 0 } else { *some.select_nth_unstable(middle).1 }
}
