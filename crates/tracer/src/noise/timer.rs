//! Wake-ups at absolute times, as of cyclictest and timerlat.

use super::Measured;
use std::sync::atomic::{AtomicBool, Ordering};
use tailtrim_sys::{clock, tsc};

/// Sleeps until one time after the other and keeps when it woke.
pub(super) fn run(interval_ns: i64, stopped: &AtomicBool, measured: &mut Measured) {
    let start = tsc::ticks();
    let mut due_ns = clock::monotonic_ns() + interval_ns;
    while !stopped.load(Ordering::Relaxed) {
        clock::sleep_until(due_ns);
        let now_ns = clock::monotonic_ns();
        if now_ns < due_ns {
            // A signal came.
            continue;
        }
        measured.turns += 1;
        measured.keep(due_ns.cast_unsigned(), now_ns.cast_unsigned());
        // Those whose time has passed meanwhile are not made up for.
        let late = (now_ns - due_ns) / interval_ns;
        measured.skipped += late.cast_unsigned();
        due_ns += (late + 1) * interval_ns;
    }
    measured.span = (start, tsc::ticks());
}
