//! Stalls of the sender's CPU: differences between the looks at the clock that its loop takes anyway.
//!
//! A stall between two probes makes departures late and affects no packet. While a probe is handed over it may affect
//! one: where the way to the device runs in the sender's system call, as between virtual interfaces, the packet has its
//! ingress stamp and does not go on.

use crate::disturb::Span;
use serde::Serialize;

/// A look at the clock that comes so much later than usual is a stall; so is a departure late that is delayed by as
/// much. As for the loop of the reference forwarder: an interrupt of the timer takes less.
pub(super) const STALL_NS: i64 = 20_000;
/// Spans of a kind that are kept one by one: 1 MB.
const KEPT: usize = 1 << 16;
/// The usual time of a call is a running median (Ma, Muthukrishnan and Sandler 2013): each call moves it by this share of
/// itself, so that it is there after some hundred calls.
const STEPS: i64 = 256;
/// The longest stalls that the result names.
const WORST: usize = 10;

/// Stalls of the sender's CPU, and late departures.
#[derive(Debug, Clone, Serialize)]
pub struct Stalls {
    /// Least delay that counts as a stall or as a late departure.
    pub threshold_ns: i64,
    /// Stalls between two probes.
    pub waiting: Sum,
    /// Stalls while probes were handed over.
    pub sending: Sum,
    /// Probes that departed later than intended by more than the threshold.
    pub departed_late: u64,
    /// The longest stalls, longest first.
    pub worst: Vec<Stall>,
    /// Spans that are in no list, since there were too many.
    pub not_kept: u64,
    /// Stalls while probes were handed over.
    #[serde(skip)]
    pub stalled: Vec<Span>,
    /// Times at which it sent late probes, and the largest lateness then, in ns.
    #[serde(skip)]
    pub late: Vec<(Span, i64)>,
}

/// Number and length of stalls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// Number of stalls.
    pub count: u64,
    /// Total length.
    pub total_ns: i64,
    /// The longest.
    pub longest_ns: i64,
}

/// One stall, in ns of `CLOCK_REALTIME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stall {
    /// The last look at the clock before.
    pub from_ns: i64,
    /// The first one after.
    pub to_ns: i64,
    /// Whether a probe was being handed over.
    pub sending: bool,
}

impl Sum {
    fn add(&mut self, ns: i64) {
        *self += Self { count: 1, total_ns: ns, longest_ns: ns };
    }
}

impl std::ops::AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.total_ns += other.total_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// Watches a sender.
#[derive(Debug)]
pub(super) struct Watch {
    seen: Stalls,
    /// The last look at the clock of a loop that waits.
    before_ns: i64,
    /// Usual time of a call for each probe.
    usual_ns: i64,
}

impl Default for Stalls {
    fn default() -> Self {
        Self {
            threshold_ns: STALL_NS,
            waiting: Sum::default(),
            sending: Sum::default(),
            departed_late: 0,
            worst: Vec::with_capacity(WORST + 1),
            not_kept: 0,
            stalled: Vec::new(),
            late: Vec::new(),
        }
    }
}

impl Stalls {
    /// Adds the stalls of another sender.
    pub(super) fn add(&mut self, other: Self) {
        self.waiting += other.waiting;
        self.sending += other.sending;
        self.departed_late += other.departed_late;
        self.not_kept += other.not_kept;
        other.worst.into_iter().for_each(|stall| self.rank(stall));
        self.stalled.extend(other.stalled);
        self.late.extend(other.late);
        self.stalled.sort_unstable();
        self.late.sort_unstable();
    }

    fn rank(&mut self, stall: Stall) {
        let length_ns = |stall: &Stall| stall.from_ns - stall.to_ns;
        let place = self.worst.partition_point(|other| length_ns(other) <= length_ns(&stall));
        if place < WORST {
            self.worst.insert(place, stall);
            self.worst.truncate(WORST);
        }
    }
}

impl Watch {
    /// Allocates the memory for all spans that are kept, and writes to it.
    pub(super) fn new() -> Self {
        let span = (i64::MAX, i64::MAX);
        let (stalled, late) = (room(span), room((span, i64::MAX)));
        let seen = Stalls { stalled, late, ..Stalls::default() };
        Self { seen, before_ns: i64::MAX, usual_ns: 0 }
    }

    /// Notes a look at the clock by the waiting loop.
    pub(super) fn waited(&mut self, now_ns: i64) {
        if now_ns.saturating_sub(self.before_ns) > STALL_NS {
            self.stood(self.before_ns, now_ns, false);
        }
        self.before_ns = now_ns;
    }

    /// Notes that so many probes were handed over, and the departure lateness of the first one.
    pub(super) fn sent(&mut self, from_ns: i64, to_ns: i64, probes: usize, lateness_ns: i64) {
        let (took_ns, probes) = (to_ns - from_ns, probes.max(1) as i64);
        if self.usual_ns == 0 {
            self.usual_ns = took_ns / probes;
        }
        if took_ns - probes * self.usual_ns > STALL_NS {
            self.stood(from_ns, to_ns, true);
            keep(&mut self.seen.stalled, &mut self.seen.not_kept, (from_ns, to_ns));
        }
        if probes == 1 {
            let step_ns = (self.usual_ns / STEPS).max(1);
            self.usual_ns += if took_ns > self.usual_ns { step_ns } else { -step_ns };
        }
        self.late((from_ns, to_ns), lateness_ns);
        self.before_ns = to_ns;
    }

    /// Notes from when to when probes departed, and the largest lateness of them, if that is much.
    pub(super) fn late(&mut self, (from_ns, to_ns): (i64, i64), lateness_ns: i64) {
        if lateness_ns <= STALL_NS {
            return;
        }
        match self.seen.late.last_mut() {
            // One batch after the other, until the schedule is met again.
            Some(((_, until_ns), largest_ns)) if from_ns - *until_ns < STALL_NS => {
                *until_ns = to_ns;
                *largest_ns = lateness_ns.max(*largest_ns);
            }
            _ => {
                let late = ((from_ns, to_ns), lateness_ns);
                keep(&mut self.seen.late, &mut self.seen.not_kept, late);
            }
        }
    }

    /// Notes the lateness of a departure.
    pub(super) fn departed(&mut self, lateness_ns: i64) {
        self.seen.departed_late += u64::from(lateness_ns > STALL_NS);
    }

    /// The stalls that were seen.
    pub(super) fn end(self) -> Stalls {
        self.seen
    }

    fn stood(&mut self, from_ns: i64, to_ns: i64, sending: bool) {
        let sum = if sending { &mut self.seen.sending } else { &mut self.seen.waiting };
        sum.add(to_ns - from_ns);
        self.seen.rank(Stall { from_ns, to_ns, sending });
    }
}

/// Memory for as many as are kept. It has been written to, so that there are pages behind it.
fn room<T: Clone>(one: T) -> Vec<T> {
    let mut spans = vec![one; KEPT];
    spans.clear();
    spans
}

fn keep<T>(spans: &mut Vec<T>, not_kept: &mut u64, span: T) {
    if spans.len() < KEPT {
        spans.push(span);
    } else {
        *not_kept += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_between_probes_and_one_while_a_probe_is_handed_over_are_told_apart() {
        let mut watch = Watch::new();
        // Calls of 8 µs each, also where 64 probes need 500 µs.
        for turn in 0..2_000 {
            let at_ns = turn * 100_000;
            watch.waited(at_ns - 100);
            watch.waited(at_ns);
            watch.sent(at_ns, at_ns + 8_000, 1, 100);
        }
        watch.sent(300_000_000, 300_500_000, 64, 100);
        watch.sent(400_000_000, 400_030_000, 1, 100);
        watch.waited(400_030_100);
        watch.waited(400_090_100);
        let seen = watch.end();
        // The test itself waits 92 µs after each call.
        assert_eq!(seen.waiting.count, 2_000);
        assert_eq!((seen.sending.count, seen.sending.longest_ns), (1, 30_000));
        assert_eq!(seen.stalled, [(400_000_000, 400_030_000)]);
        assert_eq!(seen.worst.len(), WORST);
    }

    #[test]
    fn batches_that_depart_late_one_after_the_other_are_one_span() {
        let mut watch = Watch::new();
        watch.sent(0, 8_000, 1, 0);
        watch.sent(1_000_000, 1_008_000, 1, 500_000);
        watch.sent(1_009_000, 1_017_000, 1, 400_000);
        watch.sent(2_000_000, 2_008_000, 1, 30_000);
        let seen = watch.end();
        assert_eq!(
            seen.late,
            [((1_000_000, 1_017_000), 500_000), ((2_000_000, 2_008_000), 30_000)]
        );
    }

    #[test]
    fn more_stalls_than_are_kept_are_counted() {
        let mut watch = Watch::new();
        for turn in 0..KEPT as i64 + 5 {
            watch.sent(turn * 1_000_000, turn * 1_000_000 + 1_000, 1, 0);
            watch.sent(turn * 1_000_000 + 50_000, turn * 1_000_000 + 950_000, 1, 0);
        }
        let seen = watch.end();
        assert_eq!((seen.stalled.len(), seen.not_kept), (KEPT, 5));
        assert_eq!(seen.sending.count, KEPT as u64 + 5);
    }
}
