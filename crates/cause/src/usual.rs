//! The usual latency of a packet, and the events that most packets meet, such as the softirq that sends them. Neither
//! makes a packet late.

use super::alone::{Met, alone};
use super::groups::Groups;
use super::hidden::ENOUGH;
use super::queue::{Passage, Service};
use super::timeline::Slice;
use tailtrim_trace::Event;

/// The median latency of packets that neither queued nor met anything; `None` where they are few.
///
/// What a packet takes longer than the fastest has no cause in a trace as long as most packets take it: work of 100 µs
/// takes between 90 and 97 µs on a virtual machine, by the clock rate of its CPU, and an interrupt costs 2 µs there.
pub(super) fn latency_ns(passages: &[Passage], slices: &[Slice], events: &[Event]) -> Option<i64> {
    let met_nothing = |(passage, met): (&Passage, Met)| {
        matches!(met, Met::Nothing).then_some(passage.latency_ns())
    };
    let mut latencies_ns: Vec<i64> =
        alone(passages, slices, events).filter_map(met_nothing).collect();
    latencies_ns.sort_unstable();
    (latencies_ns.len() >= ENOUGH).then(|| latencies_ns[latencies_ns.len() / 2])
}

/// Events that begin within this part of the base latency after a packet left still belong to it, such as the rest of
/// the softirq that sent it. The value only matters for events that more than half of all packets meet in that time:
/// all others have a usual time of zero. A cause independent of packets would need a rate of ln 2 / 1.25 = 0.55 in a
/// base latency (28,000 a second at 20 µs).
const SOON: i64 = 4;

/// The slices without what most packets meet anyway: of such a cause only what it takes longer than that remains.
pub(super) fn beyond(
    slices: Vec<Slice>,
    passages: &[Passage],
    service: &Service,
    groups: &Groups,
) -> Vec<Slice> {
    let mut met: Vec<Vec<i64>> = vec![Vec::new(); groups.len()];
    let mut first = 0;
    for (number, passage) in passages.iter().enumerate() {
        let next_ns = passages.get(number + 1).map_or(i64::MAX, |next| next.begin_ns);
        let until_ns = next_ns.min(passage.departure_ns + service.base_ns / SOON);
        let until_ns = until_ns.max(passage.departure_ns);
        while slices.get(first).is_some_and(|slice| slice.end_ns <= passage.begin_ns) {
            first += 1;
        }
        let here = slices[first..].iter().take_while(|slice| slice.start_ns < until_ns);
        let mut of_packet: Vec<(usize, i64)> =
            here.map(|slice| (groups.of(slice.event), slice.end_ns - slice.start_ns)).collect();
        of_packet.sort_unstable();
        for same in of_packet.chunk_by(|a, b| a.0 == b.0) {
            met[same[0].0].push(same.iter().map(|(_, long_ns)| long_ns).sum());
        }
    }
    let usual_ns: Vec<i64> =
        met.into_iter().map(|times| median_of(times, passages.len())).collect();
    slices
        .into_iter()
        .map(|slice| Slice { start_ns: slice.start_ns + usual_ns[groups.of(slice.event)], ..slice })
        .filter(|slice| slice.start_ns < slice.end_ns)
        .collect()
}

/// The median of so many times of which only those above 0 are given.
fn median_of(mut times: Vec<i64>, count: usize) -> i64 {
    times.sort_unstable();
    let zeros = count.saturating_sub(times.len());
    (count / 2).checked_sub(zeros).and_then(|place| times.get(place)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::timeline::timeline;
    use super::*;
    use tailtrim_trace::Kind;

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

    #[test]
    fn what_every_packet_meets_is_no_cause_and_what_is_as_frequent_is() {
        // Packets of 20 us every 50; each meets a softirq of 2 us, which takes 9 for every tenth. An interrupt comes
        // as often as packets do, but mostly when there is none.
        let (mut passages, mut events) = (Vec::new(), Vec::new());
        for number in 0..1_000 {
            let at_ns = number * 50_000;
            let departure_ns = at_ns + 20_000;
            passages.push(Passage {
                arrival_ns: at_ns,
                begin_ns: at_ns,
                served_ns: departure_ns,
                departure_ns,
                own_ns: 20_000,
            });
            // It begins when the packet has just left.
            let long_ns = if number % 10 == 0 { 9_000 } else { 2_000 };
            events.push(event(Kind::Softirq, departure_ns + 100, long_ns));
            let after_ns = if number % 3 == 0 { 16_000 } else { 30_000 };
            events.push(event(Kind::Irq, at_ns + after_ns, 600));
        }
        let slices = timeline(&events, 1);
        let (base_ns, service_ns, batch, busy_periods, queued) = (20_000, 20_000, 1, 1_000, 0);
        let service = Service { base_ns, service_ns, batch, busy_periods, queued };
        let rest = beyond(slices, &passages, &service, &Groups::new(&events, 1));
        let left = |kind| -> Vec<i64> {
            let of_kind = rest.iter().filter(|slice| events[slice.event].kind == kind);
            of_kind.map(|slice| slice.end_ns - slice.start_ns).collect()
        };
        assert_eq!(left(Kind::Softirq), vec![7_000; 100]);
        // A third of them interrupt the work itself; the others may meet the softirq.
        assert_eq!(left(Kind::Irq), vec![600; 1_000]);
    }
}
