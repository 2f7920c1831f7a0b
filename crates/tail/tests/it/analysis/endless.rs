//! Captures without an end: the sink is told all that the result of others has.

use super::*;
use std::collections::BTreeMap;
use tailtrim_tail::analysis::{Outcome, Passed, Tally};

/// Counts what it is told.
#[derive(Debug, Default)]
struct Told {
    samples: Vec<Sample>,
    unpaired: BTreeMap<Outcome, Vec<i64>>,
    passed: [Passed; 2],
    /// When each loss was told: the time until which all packets are known.
    lost: Vec<(i64, i64)>,
    fresh: Vec<i64>,
}

impl Sink for Told {
    fn sample(&mut self, sample: &Sample) -> io::Result<()> {
        self.samples.push(*sample);
        Ok(())
    }

    fn unpaired(&mut self, outcome: Outcome, stamp_ns: i64, packets: u64) {
        let stamps = self.unpaired.entry(outcome).or_default();
        (0..packets).for_each(|_| stamps.push(stamp_ns));
        if outcome == Outcome::Lost {
            self.fresh.push(stamp_ns);
        }
    }

    fn passed(&mut self, passed: [Passed; 2]) {
        self.passed = passed;
    }

    fn decided(&mut self, now_ns: i64, _: &Tally, _: &dyn Fn() -> u64) {
        self.lost.extend(self.fresh.drain(..).map(|stamp_ns| (stamp_ns, now_ns)));
    }

    fn follows(&self) -> bool {
        true
    }
}

/// A minute of ten packets a second, with losses, copies, duplicates, strangers, and packets that take too long.
fn odd_minute() -> [Vec<(i64, u32)>; 2] {
    let (mut ingress, mut egress) = (Vec::new(), Vec::new());
    for id in 0..600_u32 {
        let at_ns = START_NS + i64::from(id) * 100 * MS;
        ingress.push((at_ns, id));
        match id % 50 {
            7 => {}
            11 => egress.push((at_ns + 70 * MS, id)),
            13 => {
                ingress.push((at_ns + US, id));
                egress.push((at_ns + 30 * US, id));
            }
            17 => egress.extend([(at_ns + 20 * US, id), (at_ns + 25 * US, id)]),
            19 => egress.extend([(at_ns + 20 * US, id), (at_ns + 22 * US, 100_000 + id)]),
            _ => egress.push((at_ns + 30 * US, id)),
        }
    }
    [ingress, egress]
}

fn told(options: &Options) -> (Told, Analysis) {
    let [ingress, egress] = odd_minute().map(|packets| pcap(&packets));
    let mut told = Told::default();
    let mut ingress = open("in", &ingress, How::default(), Arrival::Mapped);
    let mut egress = open("out", &egress, How::default(), Arrival::Mapped);
    let go_on = |_, _| ControlFlow::Continue(());
    let analysis = analyze(&mut ingress, &mut egress, options, &mut told, go_on).unwrap();
    (told, analysis)
}

#[test]
fn the_sink_is_told_each_packet_with_its_outcome() {
    let (usual, analysis) = told(&options());
    let (endless, empty) = told(&Options { endless: true, ..options() });
    let summary = &analysis.summary;
    let count = |of: &Told, outcome| of.unpaired.get(&outcome).map_or(0, Vec::len) as u64;
    for told in [&usual, &endless] {
        assert_eq!(told.samples, usual.samples);
        assert_eq!(told.samples.len() as u64, summary.samples);
        assert_eq!(count(told, Outcome::Lost), summary.ingress.lost);
        assert_eq!(count(told, Outcome::BeyondWindow), summary.ingress.beyond_window);
        assert_eq!(count(told, Outcome::Duplicate), summary.ingress.duplicate);
        assert_eq!(count(told, Outcome::InFlight), summary.ingress.cut);
        assert_eq!(count(told, Outcome::Copy), summary.egress.copy);
        assert_eq!(count(told, Outcome::Unmatched), summary.egress.unmatched);
        assert_eq!(count(told, Outcome::EnteredBefore), summary.egress.cut);
        let packets = told.passed.map(|passed| passed.packets);
        assert_eq!(packets, [summary.ingress.packets, summary.egress.packets]);
    }
    assert!(summary.ingress.lost == 12 && summary.ingress.beyond_window == 12);
    assert!(summary.ingress.duplicate == 24 && summary.egress.copy == 12);
    assert!(empty.latencies.entries().is_empty() && empty.seconds.is_empty());
}

#[test]
fn losses_are_told_before_the_end_however_few_packets_come() {
    let early = |told: &Told| told.lost.iter().filter(|(_, now_ns)| *now_ns < i64::MAX).count();
    let (usual, _) = told(&options());
    let (endless, _) = told(&Options { endless: true, ..options() });
    assert_eq!(early(&usual), 0);
    // All but those of the last batches of records.
    assert!(early(&endless) >= 6, "{:?}", endless.lost);
    let least_ns = 2 * 50 * MS;
    assert!(endless.lost.iter().all(|(stamp_ns, now_ns)| now_ns - stamp_ns >= least_ns));
}
