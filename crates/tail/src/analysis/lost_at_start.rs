//! Losses of a device only when it begins: a longer run has a smaller loss ratio, and a search for the highest load without loss
//! finds what the device bears while it is cold.

use super::findings::Findings;
use super::report::counted_ms;
use super::seconds::millisecond;
use crate::summary::{Warning, all_do};

/// Fewer lost packets have no pattern: `--lost` tells the time of each.
const FEWEST: u64 = 3;

/// Share of the captures with losses at any time that have all of them so early by chance.
const BY_CHANCE: f64 = 0.01;

/// Says that all packets that were not delivered entered at the beginning, if they did.
pub(super) fn warning(run: &Findings) -> Option<Warning> {
    let lost = run.ingress.lost + run.ingress.beyond_window;
    let (until_ms, stretches) = run.undelivered.reach()?;
    let counted = counted_ms(run);
    let length_ms = counted.end.saturating_sub(counted.start);
    let reach_ms = until_ms.saturating_sub(counted.start);
    // Each of the stretches would be so early with the probability of the first factor.
    let by_chance = (reach_ms as f64 / length_ms as f64).powf(f64::from(stretches));
    if run.latencies.histogram.count() == 0 || lost < FEWEST || by_chance > BY_CHANCE {
        return None;
    }
    // Before the first packet left, an egress tap may not have recorded yet.
    let first_left_ms = millisecond(run.taps.egress.first_ns?, run.taps.ingress.first_ns?);
    if i64::try_from(until_ms).is_ok_and(|until_ms| until_ms <= first_left_ms + 1) {
        return None;
    }
    let text = format!(
        "{} not delivered entered in the first {reach_ms} ms of {:.1} s: a device that is cold or asks for \
         addresses loses no more of them in a longer run; --skip {until_ms}ms leaves them out",
        all_do(lost, "packet", ["that was", "that were"]),
        length_ms as f64 / 1e3,
    );
    Some(Warning { code: "lost_at_start", count: lost, text, invalidates: false })
}
