//! Grace period of a server after the first signal to end.

use tailtrim_sys::clock;

/// Length of the period: packets that leave later are beyond the usual window.
const LAST_NS: i64 = 5_000_000_000;

/// The end of a loop that serves whatever comes: a sender that never pauses must not keep it from ending.
#[derive(Debug, Default)]
pub struct GracePeriod {
    until_ns: Option<i64>,
}

impl GracePeriod {
    /// Whether the period is over; it begins with the first call. Packets that were on their way then have come.
    pub fn is_over(&mut self) -> bool {
        let now_ns = clock::monotonic_ns();
        now_ns >= *self.until_ns.get_or_insert(now_ns + LAST_NS)
    }
}
