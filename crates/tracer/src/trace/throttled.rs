//! Detection of a control group that used up its quota of CPU time between two looks.

use tailtrim_sys::quota::Throttling;
use tailtrim_trace::lines::Throttled;

/// Looks at the group of a process.
#[derive(Debug)]
pub(super) struct Quota {
    device: Option<u32>,
    before: Option<(i64, Throttling)>,
}

impl Quota {
    /// Of this process; without one there is nothing to look at.
    pub(super) fn new(device: Option<u32>) -> Self {
        Self { device, before: None }
    }

    /// For how long it was throttled since the look before.
    pub(super) fn look(&mut self, ns: i64) -> Option<Throttled> {
        let now = Throttling::of(self.device?).map(|throttling| (ns, throttling));
        let before = std::mem::replace(&mut self.before, now);
        let ((from_ns, was), (until_ns, is)) = (before.as_ref()?, self.before.as_ref()?);
        (was.group == is.group && was.ns < is.ns).then(|| Throttled {
            from_ns: *from_ns,
            until_ns: *until_ns,
            throttled_ns: is.ns - was.ns,
        })
    }
}
