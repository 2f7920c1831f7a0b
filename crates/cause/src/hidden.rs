//! Cost of an interrupt beyond the time of its handler.
//!
//! Between entry and exit, a trace sees the handler. The entry, and in a guest the hypervisor's part, lie outside: on
//! virtual machines work stood still for 2 to 9 µs before handlers of 0.6 to 2 µs, and for 0.4 µs behind them. So the
//! cost is taken from packets that met one interrupt and nothing else: their latency less that of the last packet that
//! met nothing at all, less the handler. Where the trace says when the interrupt was sent, the cost is the time from
//! then on: now and then three times as much.

use super::alone::{Met, alone};
use super::groups::Groups;
use super::queue::Passage;
use super::timeline::Slice;
use std::collections::HashSet;
use tailtrim_trace::{Event, Kind};

/// The fewest packets of which the 95 % interval of the median (ranks 6 to 15 of 20) lies between the quartiles.
pub(super) const ENOUGH: usize = 20;
/// The largest number of parts into which the events of a cause are split, by the length of their handlers.
const PARTS: usize = 4;

/// Cost of an event of a cause beyond its handler, by the length of the handler. A CPU that shares its core takes
/// longer for both at times: 2.2 µs before handlers of 1.5 µs, 3.1 before those of 2.5 µs (Intel Sapphire Rapids).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cost {
    /// The median over all its events.
    pub(super) median_ns: i64,
    /// The shortest handler of each part, and the median cost of that part.
    parts: Vec<(i64, i64)>,
}

impl Cost {
    /// From times of handlers and what was seen beyond them; none where they are few.
    fn of(mut seen: Vec<(i64, i64)>) -> Option<Self> {
        seen.sort_unstable();
        let median_ns = median(&seen)?;
        let parts = (seen.len() / ENOUGH).min(PARTS);
        let parts = seen.chunks(seen.len().div_ceil(parts));
        let parts = parts.filter_map(|part| Some((part.first()?.0, median(part)?))).collect();
        Some(Self { median_ns, parts })
    }

    /// The same for all events.
    fn always(median_ns: i64) -> Self {
        Self { median_ns, parts: Vec::new() }
    }

    fn ns(&self, event: &Event) -> i64 {
        let handler_ns = event.end_ns - event.start_ns;
        let part = self.parts.iter().rev().find(|(from_ns, _)| *from_ns <= handler_ns);
        part.or(self.parts.first()).map_or(self.median_ns, |(_, cost_ns)| *cost_ns)
    }
}

/// Of each cause what an event of it costs beyond its slices: the median over the packets that met one of it alone,
/// or where those are few, over those that met any interrupt alone.
pub(super) fn costs(
    passages: &[Passage],
    slices: &[Slice],
    events: &[Event],
    groups: &Groups,
) -> Vec<Cost> {
    // The last one: how fast a CPU is changes within seconds, by a quarter where another one shares its core.
    let mut undisturbed_ns = None;
    let mut beyond: Vec<Vec<(i64, i64)>> = vec![Vec::new(); groups.len()];
    for (passage, met) in alone(passages, slices, events) {
        match (met, undisturbed_ns) {
            (Met::Nothing, _) => undisturbed_ns = Some(passage.latency_ns()),
            (Met::Interrupt { event, handler_ns }, Some(usual_ns)) => {
                let beyond_ns = passage.latency_ns() - usual_ns - handler_ns;
                let whole_ns = events[event].end_ns - events[event].start_ns;
                beyond[groups.of(event)].push((whole_ns, beyond_ns));
            }
            _ => {}
        }
    }
    let any = Cost::always(median(&beyond.concat()).unwrap_or(0));
    let interrupts = groups.indices().map(|cause| groups.key(cause).0 == Kind::Irq);
    let of_cause = |(seen, interrupt)| {
        if interrupt { Cost::of(seen).unwrap_or_else(|| any.clone()) } else { Cost::always(0) }
    };
    beyond.into_iter().zip(interrupts).map(of_cause).collect()
}

/// An interrupt sent longer ago than this waited for something else, such as a section with interrupts disabled, which
/// is not its cost. The longest way that was measured is 27 µs (see the module); a slower host gets four times that.
const ON_ITS_WAY_NS: i64 = 100_000;

/// The slices with what their events cost before them, as far as nothing else had the CPU then.
pub(super) fn widened(
    slices: &[Slice],
    events: &[Event],
    costs: &[Cost],
    groups: &Groups,
) -> Vec<Slice> {
    let mut begun = HashSet::new();
    let mut before_ns = i64::MIN;
    slices
        .iter()
        .map(|slice| {
            let event = &events[slice.event];
            let mut start_ns = slice.start_ns;
            if begun.insert(slice.event) {
                start_ns -= costs[groups.of(slice.event)].ns(event);
                let sent_ns = event.sender.as_ref().and_then(|sender| sender.sent_ns);
                if let Some(way_ns) = sent_ns.map(|sent_ns| event.start_ns - sent_ns)
                    && (0..ON_ITS_WAY_NS).contains(&way_ns)
                {
                    start_ns = start_ns.min(slice.start_ns - way_ns);
                }
            }
            let start_ns = start_ns.max(before_ns).min(slice.start_ns);
            before_ns = slice.end_ns;
            Slice { start_ns, ..*slice }
        })
        .collect()
}

/// The median of what was seen beyond handlers.
fn median(seen: &[(i64, i64)]) -> Option<i64> {
    let mut beyond_ns: Vec<i64> = seen.iter().map(|(_, beyond_ns)| *beyond_ns).collect();
    beyond_ns.sort_unstable();
    (seen.len() >= ENOUGH).then(|| beyond_ns[seen.len() / 2].max(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailtrim_trace::Sender;

    fn packet(arrival_ns: i64, latency_ns: i64) -> Passage {
        let departure_ns = arrival_ns + latency_ns;
        let (begin_ns, served_ns) = (arrival_ns, departure_ns);
        Passage { arrival_ns, begin_ns, served_ns, departure_ns, own_ns: 20_000 }
    }

    fn event(kind: Kind, start_ns: i64, long_ns: i64) -> Event {
        Event {
            cpu: 1,
            start_ns,
            end_ns: start_ns + long_ns,
            kind,
            name: String::new(),
            detail: None,
            sender: None,
            left: None,
        }
    }

    /// Each event in a slice of its own.
    fn slices(events: &[Event]) -> Vec<Slice> {
        let one =
            |(event, e): (usize, &Event)| Slice { start_ns: e.start_ns, end_ns: e.end_ns, event };
        events.iter().enumerate().map(one).collect()
    }

    #[test]
    fn what_packets_took_longer_than_the_handler() {
        // Every fourth packet meets an interrupt of 600 ns that costs 12 µs, every tenth a thread of 5 µs, too.
        let (mut passages, mut events) = (Vec::new(), Vec::new());
        for number in 0..1000 {
            let at_ns = number * 100_000;
            let (irq, thread) = (number % 4 == 0, number % 10 == 0);
            let longer_ns = i64::from(irq) * 12_000 + i64::from(thread) * 5_000;
            passages.push(packet(at_ns, 20_000 + longer_ns));
            if irq {
                events.push(event(Kind::Irq, at_ns + 3_000, 600));
            }
            if thread {
                events.push(event(Kind::Thread, at_ns + 9_000, 5_000));
            }
        }
        let slices = slices(&events);
        let groups = Groups::new(&events, 1);
        let found = costs(&passages, &slices, &events, &groups);
        let medians = |costs: &[Cost]| costs.iter().map(|c| c.median_ns).collect::<Vec<_>>();
        assert_eq!(medians(&found), [11_400, 0]);
        let wide = widened(&slices, &events, &found, &groups);
        let long_ns = |slice: &Slice| slice.end_ns - slice.start_ns;
        assert!(
            wide.iter().all(|s| long_ns(s) == if groups.of(s.event) == 0 { 12_000 } else { 5_000 })
        );
    }

    #[test]
    fn a_cpu_that_changes_its_speed_does_not_change_what_an_interrupt_costs() {
        let (mut passages, mut events) = (Vec::new(), Vec::new());
        for number in 0..1000 {
            let (at_ns, irq) = (number * 100_000, number % 4 == 0);
            let slow_ns = i64::from(number % 200 < 90) * 15_000;
            passages.push(packet(at_ns, 20_000 + slow_ns + i64::from(irq) * 12_000));
            if irq {
                events.push(event(Kind::Irq, at_ns + 3_000, 600));
            }
        }
        let slices = slices(&events);
        let groups = Groups::new(&events, 1);
        assert_eq!(costs(&passages, &slices, &events, &groups)[0].median_ns, 11_400);
    }

    #[test]
    fn a_cpu_that_is_slow_for_a_moment_takes_longer_for_both() {
        // A third of the handlers, and the ways to them, take half as long again; the packets do not.
        let (mut passages, mut events) = (Vec::new(), Vec::new());
        for number in 0..1000 {
            let at_ns = number * 100_000;
            let (handler_ns, way_ns) =
                if number % 3 == 0 { (2_500, 3_000) } else { (1_500, 2_000) };
            let irq = number % 2 == 0;
            passages.push(packet(at_ns, 20_000 + i64::from(irq) * (handler_ns + way_ns)));
            if irq {
                events.push(event(Kind::Irq, at_ns + 5_000, handler_ns));
            }
        }
        let slices = slices(&events);
        let groups = Groups::new(&events, 1);
        let found = costs(&passages, &slices, &events, &groups);
        assert_eq!(found[0].median_ns, 2_000);
        for (slice, wide) in slices.iter().zip(widened(&slices, &events, &found, &groups)) {
            let handler_ns = slice.end_ns - slice.start_ns;
            assert_eq!(
                slice.start_ns - wide.start_ns,
                if handler_ns == 2_500 { 3_000 } else { 2_000 }
            );
        }
    }

    #[test]
    fn it_begins_when_it_was_sent_unless_others_had_the_cpu_then() {
        let sent = |sent_ns, event| {
            let (comm, function, sent_ns) = ("stress".to_owned(), None, Some(sent_ns));
            Event { sender: Some(Sender { pid: 812, comm, function, sent_ns }), ..event }
        };
        let events = [
            sent(20_000, event(Kind::Irq, 50_000, 600)),
            event(Kind::Softirq, 90_000, 5_000),
            sent(80_000, event(Kind::Irq, 110_000, 600)),
            sent(120_000, event(Kind::Irq, 230_000, 600)),
        ];
        let slices = slices(&events);
        let wide = widened(
            &slices,
            &events,
            &[Cost::always(7_000), Cost::always(0)],
            &Groups::new(&events, 1),
        );
        let starts: Vec<i64> = wide.iter().map(|slice| slice.start_ns).collect();
        assert_eq!(starts, [20_000, 90_000, 95_000, 223_000]);
    }

    #[test]
    fn enough_is_where_the_median_lies_between_the_quartiles() {
        use tailtrim_stats::{Probability, ranks};
        let between = |count: usize| {
            let count = count as u64;
            let interval = ranks(Probability::P50, count, Probability::P95, 1.0);
            interval.low.is_some_and(|low| low * 4 >= count)
                && interval.high.is_some_and(|high| high * 4 <= count * 3)
        };
        assert_eq!((1..100).find(|count| between(*count)), Some(ENOUGH));
    }

    #[test]
    fn few_packets_say_nothing() {
        let passages: Vec<Passage> = (0..100).map(|n| packet(n * 100_000, 20_000)).collect();
        let events = [event(Kind::Irq, 5_000, 600)];
        let slices = [Slice { start_ns: 5_000, end_ns: 5_600, event: 0 }];
        let found = costs(&passages, &slices, &events, &Groups::new(&events, 1));
        assert_eq!(found, [Cost::always(0)]);
    }
}
