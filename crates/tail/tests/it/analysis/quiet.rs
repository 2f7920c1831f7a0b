//! Captures that arrive while they are matched: packets in small pieces, and in between the time up to which nothing came.

use super::stretches::said;
use super::worlds::{World, worlds_of};
use super::{Arrival, Kept, MS, open, options, pcap, steady};
use crate::support::{How, SECOND_NS};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use tailtrim_tail::analysis::{Analysis, Options, Source, analyze};
use tailtrim_tail::capture::{CaptureError, CaptureReader, Record};
use tailtrim_tail::signature::Signer;

/// A capture of which as many packets arrive at a time as it is told, again and again; 0: it tells how long it has been
/// quiet.
struct Arriving {
    capture: CaptureReader,
    pieces: Vec<usize>,
    next: usize,
    records: VecDeque<Record>,
    /// The smallest stamp of each record and all behind it.
    earliest_ns: VecDeque<i64>,
    quiet_until_ns: i64,
    /// The tap watched until then.
    end_ns: i64,
    read: bool,
}

impl Arriving {
    fn new(name: &str, packets: &[(i64, u32)], pieces: &[usize], end_ns: i64) -> Self {
        Self {
            capture: open(name, &pcap(packets), How::default(), Arrival::Mapped),
            pieces: pieces.to_vec(),
            next: 0,
            records: VecDeque::new(),
            earliest_ns: VecDeque::new(),
            quiet_until_ns: i64::MIN,
            end_ns,
            read: false,
        }
    }

    fn read_all(&mut self, signer: &Signer) -> Result<(), CaptureError> {
        let mut batch = Vec::new();
        while !self.read && self.capture.read(signer, &mut batch)? {
            self.records.extend(batch.iter().copied());
        }
        if !self.read {
            let mut earliest_ns = i64::MAX;
            for record in self.records.iter().rev() {
                earliest_ns = earliest_ns.min(record.stamp_ns);
                self.earliest_ns.push_front(earliest_ns);
            }
        }
        self.read = true;
        Ok(())
    }
}

impl Source for Arriving {
    fn name(&self) -> &str {
        self.capture.name()
    }

    fn peek(&mut self, signer: &Signer) -> Result<Vec<Record>, CaptureError> {
        self.capture.peek(signer)
    }

    fn read(&mut self, signer: &Signer, batch: &mut Vec<Record>) -> Result<bool, CaptureError> {
        self.read_all(signer)?;
        let count = self.pieces[self.next % self.pieces.len()].min(self.records.len());
        self.next += 1;
        batch.clear();
        batch.extend(self.records.drain(..count));
        self.earliest_ns.drain(..count);
        match self.earliest_ns.front() {
            Some(next_ns) => {
                if batch.is_empty() {
                    self.quiet_until_ns = *next_ns;
                }
                Ok(true)
            }
            None if batch.is_empty() && self.quiet_until_ns < self.end_ns => {
                self.quiet_until_ns = self.end_ns;
                Ok(true)
            }
            None => Ok(!batch.is_empty()),
        }
    }

    fn offset(&self) -> u64 {
        self.capture.offset()
    }

    fn quiet_until_ns(&self) -> i64 {
        self.quiet_until_ns
    }
}

/// Analyses packets that arrive in pieces, while the taps watch until `end_ns`.
fn arriving(
    world: &World,
    pieces: [&[usize]; 2],
    end_ns: i64,
    options: &Options,
) -> (Analysis, Kept) {
    let mut ingress = Arriving::new("in", &world.ingress, pieces[0], end_ns);
    let mut egress = Arriving::new("out", &world.egress, pieces[1], end_ns);
    let mut kept = Kept::default();
    let go_on = |_, _| ControlFlow::Continue(());
    let analysis = analyze(&mut ingress, &mut egress, options, &mut kept, go_on).unwrap();
    (analysis, kept)
}

/// Analyses the same packets in two files.
fn in_files(world: &World, options: &Options) -> (Analysis, Kept) {
    let [mut ingress, mut egress] = [("in", &world.ingress), ("out", &world.egress)]
        .map(|(name, packets)| open(name, &pcap(packets), How::default(), Arrival::Mapped));
    let mut kept = Kept::default();
    let go_on = |_, _| ControlFlow::Continue(());
    let analysis = analyze(&mut ingress, &mut egress, options, &mut kept, go_on).unwrap();
    (analysis, kept)
}

/// Numbers of packets that arrive at a time; every list has one that is not 0.
fn pieces() -> impl Strategy<Value = Vec<usize>> {
    let several = prop::collection::vec(prop_oneof![Just(0), 1..400_usize], 0..12);
    (several, 1..300_usize).prop_map(|(mut pieces, last)| {
        pieces.push(last);
        pieces
    })
}

fn same(world: &World, pieces: [&[usize]; 2], options: &Options) -> Result<(), TestCaseError> {
    let (analysis, kept) = arriving(world, pieces, i64::MIN, options);
    let (whole, samples) = in_files(world, options);
    prop_assert!(said(&analysis, &kept.0) == said(&whole, &samples.0));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn packets_that_arrive_in_any_pieces_are_matched_as_in_files(
        world in worlds_of(500..2_000),
        ingress in pieces(),
        egress in pieces(),
        trim_ms in prop_oneof![Just(0), 100..2_000_i64],
    ) {
        let options = Options { trim_ns: trim_ms * MS, ..options() };
        same(&world, [&ingress, &egress], &options)?;
    }

    #[test]
    fn also_where_nothing_leaves_for_a_while(
        mut world in worlds_of(500..2_000),
        ingress in pieces(),
        egress in pieces(),
        from_ms in 0..4_000_i64,
        length_ms in 20..2_000_i64,
    ) {
        let from_ns = super::START_NS + from_ms * MS;
        world.egress.retain(|packet| packet.0 < from_ns || packet.0 > from_ns + length_ms * MS);
        same(&world, [&ingress, &egress], &options())?;
    }
}

#[test]
fn a_device_that_dies_is_told_as_one_while_its_tap_watches() {
    let (ingress, mut egress) = steady(20_000);
    egress.truncate(5_000);
    let end_ns = ingress.last().unwrap().0 + SECOND_NS;
    let world = World { ingress, egress, ..World::default() };
    let pieces: &[usize] = &[100, 0];
    let (analysis, _) = arriving(&world, [pieces, pieces], end_ns, &options());
    assert_eq!(analysis.summary.ingress.lost, 15_000);
    assert_eq!(analysis.summary.ingress.cut, 0);
    // A file does not say until when its tap watched: what entered last may have left behind its end.
    let (analysis, _) = in_files(&world, &options());
    assert_eq!(analysis.summary.ingress.lost, 0);
    assert_eq!(analysis.summary.ingress.cut, 15_000);
    // A pause at the end that is shorter than the window does not count.
    let (analysis, _) =
        arriving(&world, [pieces, pieces], world.egress[4_999].0 + 40 * MS, &options());
    assert_eq!(analysis.summary.ingress.lost, 0);
}
