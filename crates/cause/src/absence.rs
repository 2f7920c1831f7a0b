//! When the device's own thread was away from its CPU, and why.
//!
//! A thread that gave the CPU up by itself, was stopped, or used the quota of its group up leaves a CPU that idles,
//! or that others make use of. A thread that only ran because the device was away is not a cause.

use super::explanation::Trace;
use super::serving::{self, Thread};
use tailtrim_trace::lines::Throttled;
use tailtrim_trace::{Event, Kind, Left};

/// Details of the events that say why the device's thread was away.
pub(super) const ASLEEP: &str = "asleep";
/// See [`ASLEEP`].
pub(super) const STOPPED: &str = "stopped";
/// See [`ASLEEP`].
pub(super) const THROTTLED: &str = "throttled";
/// It could have run, and nothing that was seen says why it did not.
const UNCLEAR: &str = "runnable";

/// A device that sleeps more than once in so many packets waits for them. At a load ρ, 1 − ρ of the packets find such a
/// device idle (Poisson arrivals see time averages, Wolff 1982), so this holds up to a load of 90 %. A device that
/// polls sleeps only when something makes it.
const RARELY: usize = 10;
/// A thread that could run and does not while the CPU idles for a tenth of the time is kept from it. The scheduler never
/// leaves a CPU idle while a thread may run (kernel/sched/core.c, `__pick_next_task`), so any idle time would do if
/// all times were exact. Those of hidden switches, recovered from other records, are not.
const IDLE: i64 = 10;

/// Functions that give a group its quota back: the timers of a period, the call that tells another CPU of it, and the
/// change of a quota (`sched_cfs_period_timer`, `sched_cfs_slack_timer`, `__cfsb_csd_unthrottle` and
/// `tg_set_cfs_bandwidth` in kernel/sched of Linux 6.18).
const QUOTA: [&str; 4] = ["cfs_period", "cfs_slack", "unthrottle", "set_bandwidth"];

/// Of the time for which a group was throttled, what an absence must have been at least to be of it. The time is read
/// ten times a second: with the kernel's default period of 100 ms it is that of one absence, with periods of 10 ms
/// that of ten. Shorter periods are only seen by who refills the quota.
const PART: i64 = 10;

/// A time when the thread was away.
struct Absence {
    event: Event,
    /// Whether others only ran because of it.
    lets_in: bool,
}

impl Absence {
    fn is(&self, why: &str) -> bool {
        self.event.detail.as_deref() == Some(why)
    }

    fn long_ns(&self) -> i64 {
        self.event.end_ns - self.event.start_ns
    }
}

/// The events of others, and before them one for each time that the thread was away by itself or by decree. What
/// interrupted meanwhile goes first in the timeline.
pub(super) fn others(trace: &Trace<'_>, thread: &Thread, packets: usize) -> Vec<Event> {
    let Trace { events, cpu, .. } = *trace;
    let mut found = absences(events, cpu, thread);
    throttle(&mut found, trace.throttled);
    found.retain(|absence| !absence.is(UNCLEAR));
    if found.iter().filter(|absence| absence.is(ASLEEP)).count() * RARELY > packets {
        // It sleeps until a packet comes; who then has the CPU may be what it waits for.
        found.iter_mut().filter(|absence| absence.is(ASLEEP)).for_each(|a| a.lets_in = false);
    }
    let let_in = |event: &Event| {
        let next = found.partition_point(|absence| absence.event.end_ns < event.end_ns);
        event.cpu == cpu
            && event.kind == Kind::Thread
            && found
                .get(next)
                .is_some_and(|away| away.lets_in && away.event.start_ns <= event.start_ns)
    };
    let rest: Vec<Event> = events
        .iter()
        .filter(|event| !serving::is(event, thread) && !let_in(event))
        .cloned()
        .collect();
    found.into_iter().map(|absence| absence.event).chain(rest).collect()
}

/// In order.
fn absences(events: &[Event], cpu: u32, thread: &Thread) -> Vec<Absence> {
    let here = || events.iter().filter(|event| event.cpu == cpu);
    let mut own: Vec<&Event> = here().filter(|event| serving::is(event, thread)).collect();
    own.sort_by_key(|event| event.start_ns);
    let mut holes: Vec<(i64, i64)> = here()
        .filter(|event| event.kind == Kind::Hole)
        .map(|event| (event.start_ns, event.end_ns))
        .collect();
    holes.sort_unstable();
    // When all holes up to each one have ended.
    let ended_ns: Vec<i64> = holes
        .iter()
        .scan(i64::MIN, |until_ns, hole| {
            *until_ns = hole.1.max(*until_ns);
            Some(*until_ns)
        })
        .collect();
    let mut rest: Vec<&Event> =
        here().filter(|event| event.kind == Kind::Thread && !serving::is(event, thread)).collect();
    rest.sort_by_key(|event| event.start_ns);
    let mut refills: Vec<i64> =
        here().filter(|event| refills(event)).map(|event| event.start_ns).collect();
    refills.sort_unstable();
    let mut found = Vec::new();
    for (before, after) in own.iter().zip(own.iter().skip(1)) {
        let (start_ns, end_ns) = (before.end_ns, after.start_ns);
        let begun = holes.partition_point(|hole| hole.0 < end_ns);
        let unseen = ended_ns[..begun].last().is_some_and(|until_ns| *until_ns > start_ns);
        let next = refills.get(refills.partition_point(|at_ns| *at_ns < start_ns));
        let refilled =
            before.left == Some(Left::Runnable) && next.is_some_and(|at_ns| *at_ns < end_ns);
        if start_ns >= end_ns || !refilled && unseen {
            continue;
        }
        let first = rest.partition_point(|event| event.start_ns < start_ns);
        let busy_ns: i64 = rest[first..]
            .iter()
            .take_while(|event| event.start_ns < end_ns)
            .map(|event| event.end_ns.min(end_ns) - event.start_ns)
            .sum();
        let idle_ns = end_ns - start_ns - busy_ns;
        let idle = idle_ns * IDLE > end_ns - start_ns;
        // Whoever was let in may have had all of the time until the group was given more.
        let why = match before.left {
            Some(Left::Runnable) if idle || refilled => THROTTLED,
            Some(Left::Sleeping) => ASLEEP,
            Some(Left::Stopped) => STOPPED,
            Some(Left::Runnable) => UNCLEAR,
            Some(Left::Ended) | None => continue,
        };
        let detail = Some(why.to_owned());
        let event = Event { start_ns, end_ns, detail, left: None, ..(*before).clone() };
        found.push(Absence { event, lets_in: true });
    }
    found
}

/// Says which absences were those for which the group is known to have been throttled: those that are known already,
/// then those most nearly as long as it was, as far as they fit in what is left.
fn throttle(found: &mut [Absence], throttled: &[Throttled]) {
    for known in throttled {
        // They are in order and apart.
        let first = found.partition_point(|away| away.event.end_ns <= known.from_ns);
        let end = found.partition_point(|away| away.event.start_ns < known.until_ns);
        let mut within: Vec<&mut Absence> = found[first..end.max(first)]
            .iter_mut()
            .filter(|away| away.is(UNCLEAR) || away.is(THROTTLED))
            .collect();
        within.sort_by_key(|away| (away.is(UNCLEAR), (away.long_ns() - known.throttled_ns).abs()));
        let mut left_ns = known.throttled_ns;
        for away in within {
            let long_ns = away.long_ns();
            // The threads that were let in may have kept the CPU for as long again.
            if left_ns * 2 >= long_ns && long_ns * PART >= known.throttled_ns {
                away.event.detail = Some(THROTTLED.to_owned());
                left_ns -= long_ns;
            }
        }
    }
}

/// Whether an interrupt gives a group its quota back.
fn refills(event: &Event) -> bool {
    let sender = event.sender.as_ref().and_then(|sender| sender.function.as_deref());
    let functions = [event.detail.as_deref(), sender];
    let is = |function: &str| QUOTA.iter().any(|name| function.contains(name));
    event.kind == Kind::Irq && functions.into_iter().flatten().any(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(name: &str, start_ns: i64, end_ns: i64, left: Left) -> Event {
        Event {
            cpu: 1,
            start_ns,
            end_ns,
            kind: Kind::Thread,
            name: name.to_owned(),
            detail: None,
            sender: None,
            left: Some(left),
        }
    }

    fn told(events: &[Event], packets: usize) -> Vec<(i64, i64, String)> {
        told_of(events, &[], packets)
    }

    fn told_of(
        events: &[Event],
        throttled: &[Throttled],
        packets: usize,
    ) -> Vec<(i64, i64, String)> {
        let trace = Trace { events, cpu: 1, error_ns: 0, throttled };
        others(&trace, &("dut".to_owned(), None), packets)
            .into_iter()
            .map(|event| (event.start_ns, event.end_ns, event.detail.unwrap_or(event.name)))
            .collect()
    }

    fn expected<const N: usize>(list: [(i64, i64, &str); N]) -> Vec<(i64, i64, String)> {
        list.into_iter().map(|(start, end, name)| (start, end, name.to_owned())).collect()
    }

    #[test]
    fn who_ran_because_the_device_was_away_is_no_cause() {
        let events = [
            ran("dut", 0, 10, Left::Stopped),
            ran("passer-by", 12, 15, Left::Sleeping),
            ran("dut", 20, 30, Left::Runnable),
            ran("other", 30, 36, Left::Runnable),
            ran("dut", 36, 40, Left::Sleeping),
            ran("passer-by", 41, 43, Left::Sleeping),
            ran("dut", 50, 60, Left::Runnable),
            ran("passer-by", 60, 65, Left::Sleeping),
            // The CPU was idle although the device could run.
            ran("dut", 70, 80, Left::Runnable),
        ];
        let polls = told(&events, 100);
        assert_eq!(
            polls,
            expected([(10, 20, STOPPED), (40, 50, ASLEEP), (60, 70, THROTTLED), (30, 36, "other")])
        );
        // One that sleeps for every packet finds the CPU taken when it wakes up.
        let waits = told(&events, 1);
        assert!(waits.contains(&(41, 43, "passer-by".to_owned())), "{waits:?}");
    }

    #[test]
    fn whoever_ran_until_the_quota_came_back_was_let_in() {
        let refill = |function: &str| Event {
            kind: Kind::Irq,
            detail: Some(function.to_owned()),
            ..ran("local_timer", 17, 18, Left::Runnable)
        };
        let events = |function| {
            [
                ran("dut", 0, 10, Left::Runnable),
                ran("passer-by", 10, 17, Left::Runnable),
                refill(function),
                ran("passer-by", 18, 20, Left::Runnable),
                ran("dut", 20, 30, Left::Runnable),
            ]
        };
        let found = told(&events("sched_cfs_period_timer"), 100);
        assert_eq!(found, expected([(10, 20, THROTTLED), (17, 18, "sched_cfs_period_timer")]));
        let found = told(&events("tick_nohz_handler"), 100);
        assert_eq!(
            found,
            expected([(10, 17, "passer-by"), (17, 18, "tick_nohz_handler"), (18, 20, "passer-by")])
        );
    }

    #[test]
    fn absences_as_long_as_the_group_was_throttled_are_of_that() {
        let events = [
            ran("dut", 0, 100, Left::Runnable),
            ran("other", 100, 130, Left::Runnable),
            ran("dut", 130, 200, Left::Runnable),
            ran("passer-by", 200, 600, Left::Runnable),
            ran("dut", 600, 700, Left::Runnable),
            ran("other", 700, 1_000, Left::Runnable),
            ran("dut", 1_000, 1_100, Left::Runnable),
            ran("other", 1_100, 2_000, Left::Runnable),
            ran("dut", 2_000, 2_100, Left::Runnable),
        ];
        let known = [Throttled { from_ns: 50, until_ns: 1_150, throttled_ns: 360 }];
        assert_eq!(
            told_of(&events, &known, 100),
            expected([
                (200, 600, THROTTLED),
                (100, 130, "other"),
                (700, 1_000, "other"),
                (1_100, 2_000, "other")
            ])
        );
    }

    #[test]
    fn nothing_is_known_across_a_hole_but_a_quota_that_came_back() {
        let hole = Event { kind: Kind::Hole, ..ran("lost", 12, 15, Left::Runnable) };
        let detail = Some("sched_cfs_period_timer".to_owned());
        let refill =
            Event { kind: Kind::Irq, detail, ..ran("local_timer", 17, 18, Left::Runnable) };
        let back = [
            ran("dut", 0, 10, Left::Runnable),
            hole.clone(),
            refill,
            ran("dut", 20, 30, Left::Runnable),
        ];
        assert_eq!(
            told(&back, 100),
            expected([(10, 20, THROTTLED), (12, 15, "lost"), (17, 18, "sched_cfs_period_timer")])
        );
        let events = [ran("dut", 0, 10, Left::Stopped), hole, ran("dut", 20, 30, Left::Runnable)];
        assert_eq!(told(&events, 100), expected([(12, 15, "lost")]));
    }
}
