//! The polling loop, as of oslat, hiccups and sysjitter.

use super::Measured;
use std::sync::atomic::{AtomicBool, Ordering};
use tailtrim_sys::tsc;

/// Turns between two looks at the flag.
const TURNS: u32 = 1 << 10;

/// Reads the counter in turns, and keeps gaps of `threshold` ticks or more.
pub(super) fn run(threshold: u64, stopped: &AtomicBool, measured: &mut Measured) {
    let start = tsc::ticks();
    let mut last = start;
    let mut shortest = u64::MAX;
    let mut turns = 0;
    while !stopped.load(Ordering::Relaxed) {
        for _ in 0..TURNS {
            let now = tsc::ticks();
            let apart = now.saturating_sub(last);
            shortest = shortest.min(apart);
            if apart >= threshold {
                measured.keep(last, now);
                // The time that keeping took is not a gap.
                last = tsc::ticks();
            } else {
                last = now;
            }
        }
        turns += u64::from(TURNS);
    }
    measured.turns = turns;
    measured.shortest_turn = shortest;
    measured.span = (start, last);
}
