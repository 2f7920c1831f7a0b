//! The time-stamp counter compared with the clocks.

use super::*;

#[test]
fn a_third_reading_lies_on_the_line_within_the_error() {
    if let Err(error) = clock::check_counter() {
        return skipped(error);
    }
    for kind in [Clock::MonotonicRaw, Clock::Realtime] {
        let before = clock::read(kind);
        thread::sleep(Duration::from_millis(20));
        let between = clock::read(kind);
        thread::sleep(Duration::from_millis(20));
        let axis = Axis::fit(before, clock::read(kind), &[between]).unwrap();
        let off_ns = (axis.ns(between.ticks) - between.ns).abs();
        assert!(off_ns <= 2 * axis.error_ns, "{off_ns} {axis:?}");
    }
}
