//! Captures by chance.

use super::{DISORDER_TICKS, Packet, Side, TICK_NS};
use proptest::prelude::*;
use std::fmt;
use tailtrim_tail::matching::{MEMORY, Window};
use tailtrim_tail::signature::Signature;

/// Generated behaviour of a packet that enters.
#[derive(Debug, Clone)]
struct Passage {
    /// Ticks after the packet before.
    step: i64,
    identifier: u64,
    /// Latencies in ticks of everything that leaves on its behalf: none when lost, several for copies.
    latencies: Vec<i64>,
    /// Ticks after which it enters once more.
    again: Option<i64>,
    /// Number of other packets that enter and leave with it.
    others: u64,
    /// By how many ticks it is written later than it was stamped, at ingress and at egress.
    delays: (i64, i64),
}

#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) window: Window,
    pub(crate) memory: usize,
    pub(crate) ingress: Vec<Packet>,
    pub(crate) egress: Vec<Packet>,
    /// Decides after which packets to ask for decided fates.
    pub(crate) ask: u64,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |packets: &[Packet]| {
            let packets: Vec<String> = packets.iter().map(|packet| format!("{packet:?}")).collect();
            packets.join(" ")
        };
        let Window { window_ns, early_ns } = self.window;
        writeln!(
            f,
            "window {} early {} memory {} ask {}",
            window_ns / TICK_NS,
            early_ns / TICK_NS,
            self.memory,
            self.ask
        )?;
        writeln!(f, "ingress {}", list(&self.ingress))?;
        writeln!(f, "egress {}", list(&self.egress))
    }
}

fn passages(signatures: u64, disorder: i64) -> impl Strategy<Value = Vec<Passage>> {
    let step = prop_oneof![8 => 0..4_i64, 2 => 0..30_i64, 1 => 0..150_i64];
    let latency = prop_oneof![6 => 0..8_i64, 2 => -25..120_i64, 1 => -3..240_i64];
    let latencies = prop_oneof![
        6 => latency.clone().prop_map(|latency| vec![latency]),
        2 => Just(Vec::new()),
        1 => prop::collection::vec(latency, 2..4),
    ];
    let again = prop::option::weighted(0.1, prop_oneof![0..6_i64, 0..120_i64]);
    let delays = (0..=disorder, 0..=disorder);
    let others = prop_oneof![12 => Just(0_u64), 1 => 0..400_u64];
    let passage = (step, 0..signatures, latencies, again, delays, others);
    prop::collection::vec(
        passage.prop_map(|(step, identifier, latencies, again, delays, others)| Passage {
            step,
            identifier,
            latencies,
            again,
            others,
            delays,
        }),
        0..120,
    )
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let ticks = |ticks: i64| ticks * TICK_NS;
    let window = (1..=100_i64, 0..=20_i64).prop_map(move |(window, early)| Window {
        window_ns: ticks(window),
        early_ns: ticks(early),
    });
    let memory = prop_oneof![Just(1), Just(8), Just(16), Just(MEMORY)];
    let signatures = prop_oneof![Just(1), Just(3), Just(12), Just(60), Just(1 << 40)];
    let disorder = prop_oneof![Just(0), Just(2), Just(DISORDER_TICKS - 1)];
    let passages = (signatures, disorder)
        .prop_flat_map(|(signatures, disorder)| passages(signatures, disorder));
    (window, memory, passages, any::<u64>()).prop_map(|(window, memory, passages, ask)| {
        let (mut ingress, mut egress) = (Vec::new(), Vec::new());
        let mut now = 0;
        for passage in &passages {
            now += passage.step;
            let signature = Signature::of_identifier(passage.identifier);
            let packet = |at: i64, delay: i64| {
                let stamp_ns = at * TICK_NS;
                (at + delay, Packet { stamp_ns, signature })
            };
            for other in 0..passage.others {
                let stamp_ns = now * TICK_NS;
                let signature =
                    Signature::of_identifier((-1 - ingress.len() as i64).cast_unsigned());
                let packet = Packet { stamp_ns, signature };
                ingress.push((now, packet));
                // A few are lost: they fall out of the memory in flight.
                if !other.is_multiple_of(16) {
                    egress.push((now, packet));
                }
            }
            ingress.push(packet(now, passage.delays.0));
            ingress.extend(passage.again.map(|again| packet(now + again, 0)));
            let latencies = passage.latencies.iter();
            egress.extend(latencies.map(|latency| packet(now + latency, passage.delays.1)));
        }
        Case { window, memory, ingress: as_written(ingress), egress: as_written(egress), ask }
    })
}

/// Packets in the order in which they were written.
fn as_written(mut packets: Vec<(i64, Packet)>) -> Vec<Packet> {
    packets.sort_by_key(|(written, _)| *written);
    packets.into_iter().map(|(_, packet)| packet).collect()
}

/// The order in which an analysis feeds a matcher: the earlier one of the two captures' next packets.
pub(crate) fn merge(case: &Case) -> Vec<(Side, Packet)> {
    let (mut ingress, mut egress) = (case.ingress.iter().peekable(), case.egress.iter().peekable());
    let mut merged = Vec::new();
    loop {
        let from_ingress = match (ingress.peek(), egress.peek()) {
            (Some(entering), Some(leaving)) => entering.stamp_ns <= leaving.stamp_ns,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return merged,
        };
        if from_ingress {
            merged.extend(ingress.next().map(|&packet| (Side::Ingress, packet)));
        } else {
            merged.extend(egress.next().map(|&packet| (Side::Egress, packet)));
        }
    }
}
