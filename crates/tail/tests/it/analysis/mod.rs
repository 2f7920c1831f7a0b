//! Whole analyses of synthetic captures against a naive computation that knows what became of every
//! packet, because it made them.
#![allow(clippy::type_complexity, clippy::single_match, reason = "said once, read once")]

mod boundaries;
mod clocks;
mod corrections;
mod departures;
mod endless;
mod ends;
mod inputs;
mod ledger;
mod losses;
mod naive;
mod numbers;
mod odd_stamps;
mod quiet;
mod results;
mod stretches;
mod warnings;
mod worlds;

use crate::support::frames::probe;
use crate::support::{Creeping, How, Pcap, SECOND_NS, Trickle, says};
use std::io;
use std::ops::ControlFlow;
use tailtrim_tail::analysis::{Analysis, AnalysisError, Options, Sample, Sink, analyze};
use tailtrim_tail::capture::{CaptureReader, Input, Streamed, Whole};
use tailtrim_tail::matching::Window;
use tailtrim_tail::summary::Warning;

const MS: i64 = 1_000_000;
const US: i64 = 1_000;

/// The time at which all captures of these tests begin, more or less.
const START_NS: i64 = 1_000 * SECOND_NS;

/// Keeps the samples in the order in which they come.
#[derive(Debug, Default)]
struct Kept(Vec<Sample>);

impl Sink for Kept {
    fn sample(&mut self, sample: &Sample) -> io::Result<()> {
        self.0.push(*sample);
        Ok(())
    }
}

/// Ways in which the bytes of a capture arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrival {
    Mapped,
    Piped,
    ByteByByte,
}

impl Arrival {
    fn input(self, bytes: &[u8]) -> Box<dyn Input> {
        match self {
            Self::Mapped => Box::new(Whole::new(bytes.to_vec())),
            Self::Piped => Box::new(Streamed::new(Trickle::new(bytes.to_vec()))),
            Self::ByteByByte => Box::new(Creeping::new(bytes.to_vec())),
        }
    }
}

fn open(name: &str, bytes: &[u8], how: How, arrival: Arrival) -> CaptureReader {
    let input = arrival.input(bytes);
    CaptureReader::open(name, input, how.stamps, how.moonsniff, how.salvage).unwrap()
}

fn try_run(
    files: (&[u8], &[u8]),
    how: How,
    arrival: Arrival,
    options: &Options,
) -> Result<(Analysis, Vec<Sample>), AnalysisError> {
    let mut ingress = open("in", files.0, how, arrival);
    let mut egress = open("out", files.1, how, arrival);
    let mut kept = Kept::default();
    let progress = |_, _| ControlFlow::Continue(());
    let analysis = analyze(&mut ingress, &mut egress, options, &mut kept, progress)?;
    Ok((analysis, kept.0))
}

fn run(ingress: &[u8], egress: &[u8], options: &Options) -> Analysis {
    try_run((ingress, egress), How::default(), Arrival::Mapped, options).unwrap().0
}

/// That there are these warnings and no others, by name, number of packets and what they say.
#[track_caller]
fn warned(warnings: &[Warning], expected: &[(&str, u64, &[&str])]) {
    let found: Vec<_> = warnings.iter().map(|warning| (warning.code, warning.count)).collect();
    let names: Vec<_> = expected.iter().map(|(code, count, _)| (*code, *count)).collect();
    assert_eq!(found, names);
    for (warning, (_, _, facts)) in warnings.iter().zip(expected) {
        assert!(says(&warning.text, facts), "{warning:?}");
    }
}

/// Stamps and identifiers of frames as a pcap.
fn pcap(packets: &[(i64, u32)]) -> Vec<u8> {
    pcap_of_length(packets, probe(0).len())
}

/// The same with longer frames.
fn pcap_of_length(packets: &[(i64, u32)], length: usize) -> Vec<u8> {
    let mut file = Pcap::ethernet();
    for &(stamp_ns, identifier) in packets {
        let mut frame = probe(identifier);
        frame.resize(length, 0);
        file.frame(stamp_ns, &frame);
    }
    file.bytes
}

/// So long that only the first hundred frames or so of a capture are at hand from the start.
const LONG: usize = 2_500;

fn options() -> Options {
    Options {
        window: Window { window_ns: 50 * MS, early_ns: MS },
        trim_ns: 0,
        worst: 7,
        ..Options::default()
    }
}

/// `count` packets every 100 µs, and the same 30 µs later.
fn steady(count: u32) -> (Vec<(i64, u32)>, Vec<(i64, u32)>) {
    let at = |id: u32| START_NS + i64::from(id) * 100 * US;
    let ingress: Vec<(i64, u32)> = (0..count).map(|id| (at(id), id)).collect();
    let egress = ingress.iter().map(|&(stamp_ns, id)| (stamp_ns + 30 * US, id)).collect();
    (ingress, egress)
}
