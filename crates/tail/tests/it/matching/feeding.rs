//! A matcher fed as an analysis does it.

use super::cases::{Case, merge};
use super::{Outcomes, Packet, SMALL, Side};
use tailtrim_tail::matching::{Fate, MEMORY, Matcher};

/// Runs the matcher over a case; `ask` decides when it is asked for fates. Returns its outcomes, with the stamps that
/// it gave out as lost and the time of each.
pub(crate) fn run(case: &Case, ask: impl Fn(usize) -> bool) -> (Outcomes, Vec<(i64, i64)>) {
    if case.memory == MEMORY {
        feed(Matcher::new(case.window), case, ask)
    } else {
        let matcher: Matcher<SMALL> = Matcher::with_memory(case.window, case.memory);
        feed(matcher, case, ask)
    }
}

/// Reader of a capture: its remaining packets, and the progress.
struct Reader<'a> {
    rest: &'a [Packet],
    batch: &'a [Packet],
    /// Whether the stamps of the batch ascend, from those before it on.
    ordered: bool,
    last_ns: i64,
}

impl<'a> Reader<'a> {
    fn new(packets: &'a [Packet]) -> Self {
        Self { rest: packets, batch: &[], ordered: true, last_ns: i64::MIN }
    }

    fn refill(&mut self, most: usize) {
        (self.batch, self.rest) = self.rest.split_at(most.min(self.rest.len()));
        self.ordered = true;
        for packet in self.batch {
            self.ordered &= self.last_ns <= packet.stamp_ns;
            self.last_ns = self.last_ns.max(packet.stamp_ns);
        }
    }
}

/// Feeds as an analysis does: a batch of each capture at a time, and the ingress packets ahead where they
/// make no difference.
pub(crate) fn run_in_batches<const N: usize>(
    mut matcher: Matcher<N>,
    case: &Case,
    sizes: &[usize],
) -> Outcomes {
    let mut outcomes = Outcomes::default();
    let mut tag = 0;
    let mut next_tag = |_| {
        tag += 1;
        tag - 1
    };
    let (mut entering, mut leaving) = (Reader::new(&case.ingress), Reader::new(&case.egress));
    let mut sizes = sizes.iter().copied().cycle();
    let by_signature = |packet: &Packet| (packet.signature, packet.stamp_ns);
    loop {
        if entering.batch.is_empty() && !entering.rest.is_empty() {
            entering.refill(sizes.next().unwrap());
        } else if leaving.batch.is_empty() && !leaving.rest.is_empty() {
            leaving.refill(sizes.next().unwrap());
        }
        if entering.batch.is_empty() && leaving.batch.is_empty() {
            break;
        }
        let mut pairs = Vec::new();
        if let (Some(last_in), Some(last_out)) = (entering.batch.last(), leaving.batch.last())
            && entering.ordered
            && leaving.ordered
        {
            let until_ns = last_in.stamp_ns.min(last_out.stamp_ns);
            let ahead = entering.batch.partition_point(|packet| packet.stamp_ns <= until_ns);
            let packets = entering.batch[..ahead].iter().map(by_signature);
            let next_out_ns = leaving.batch[0].stamp_ns;
            let entered = matcher.ingress_ahead(packets, next_out_ns, &mut next_tag);
            let all = entered == entering.batch.len();
            entering.batch = &entering.batch[entered..];
            if entered == ahead {
                let before_ns = if all { last_in.stamp_ns } else { i64::MAX };
                let left = leaving.batch.partition_point(|packet| packet.stamp_ns < before_ns);
                let packets = leaving.batch[..left].iter().map(by_signature);
                matcher.egress_all(packets, &mut pairs);
                leaving.batch = &leaving.batch[left..];
            }
        }
        loop {
            let from_ingress = match (entering.batch.first(), leaving.batch.first()) {
                (Some(next), Some(other)) => next.stamp_ns <= other.stamp_ns,
                (Some(_), None) if leaving.rest.is_empty() => true,
                (None, Some(_)) if entering.rest.is_empty() => false,
                _ => break,
            };
            let reader = if from_ingress { &mut entering } else { &mut leaving };
            let (packet, rest) = reader.batch.split_first().unwrap();
            reader.batch = rest;
            pairs.extend(if from_ingress {
                matcher.ingress(packet.signature, packet.stamp_ns, next_tag(packet.stamp_ns))
            } else {
                matcher.egress(packet.signature, packet.stamp_ns)
            });
        }
        pairs.iter().for_each(|pair| outcomes.pair(pair));
    }
    let (open, fates) = matcher.finish();
    fates.into_iter().for_each(|(fate, stamp_ns)| outcomes.fate(fate, stamp_ns));
    open.into_iter().for_each(|stamp_ns| outcomes.fate(Fate::Lost, stamp_ns));
    outcomes
}

fn feed<const N: usize>(
    mut matcher: Matcher<N>,
    case: &Case,
    ask: impl Fn(usize) -> bool,
) -> (Outcomes, Vec<(i64, i64)>) {
    let mut outcomes = Outcomes::default();
    let mut lost = Vec::new();
    let mut now_ns = i64::MIN;
    let mut tag = 0;
    for (index, (side, packet)) in merge(case).into_iter().enumerate() {
        now_ns = now_ns.max(packet.stamp_ns);
        let pair = match side {
            Side::Ingress => {
                tag += 1;
                matcher.ingress(packet.signature, packet.stamp_ns, tag - 1)
            }
            Side::Egress => matcher.egress(packet.signature, packet.stamp_ns),
        };
        if let Some(pair) = pair {
            outcomes.pair(&pair);
        }
        if ask(index) {
            for (fate, stamp_ns) in matcher.decided(now_ns) {
                outcomes.fate(fate, stamp_ns);
                if fate == Fate::Lost {
                    lost.push((stamp_ns, now_ns));
                }
            }
        }
    }
    let (open, fates) = matcher.finish();
    for (fate, stamp_ns) in fates {
        outcomes.fate(fate, stamp_ns);
        if fate == Fate::Lost {
            lost.push((stamp_ns, now_ns));
        }
    }
    for stamp_ns in open {
        outcomes.fate(Fate::Lost, stamp_ns);
    }
    (outcomes, lost)
}
