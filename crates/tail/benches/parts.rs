//! Cost per packet of each step from a capture to a histogram.

use divan::Bencher;
use divan::counter::ItemsCount;
use std::hint::black_box;
use std::ops::ControlFlow;
use tailtrim_stats::{BlockCounts, Histogram, Probability, ranks};
use tailtrim_tail::analysis::{Options, analyze};
use tailtrim_tail::capture::{CaptureReader, Record, StampSource, Whole};
use tailtrim_tail::matching::{Matcher, Window};
use tailtrim_tail::signature::{Rewrites, Signer};

const PACKETS: u64 = 100_000;
const FRAME: usize = 60;
const INTERVAL_NS: u64 = 72;
const LATENCY_NS: u64 = 4_000;

/// A capture of `PACKETS` UDP frames of 60 bytes, `delay_ns` after their departure.
fn capture(delay_ns: u64) -> Vec<u8> {
    let mut bytes = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    let mut frame = [0; FRAME];
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame[17] = FRAME as u8 - 14;
    frame[22..24].copy_from_slice(&[64, 17]);
    for sequence in 0..PACKETS {
        let stamp_ns = 1_000_000_000 + sequence * INTERVAL_NS + delay_ns;
        bytes.extend(((stamp_ns / 1_000_000_000) as u32).to_le_bytes());
        bytes.extend(((stamp_ns % 1_000_000_000) as u32).to_le_bytes());
        bytes.extend([(FRAME as u32).to_le_bytes(), (FRAME as u32).to_le_bytes()].concat());
        frame[42..50].copy_from_slice(&sequence.to_le_bytes());
        bytes.extend(frame);
    }
    bytes
}

fn open(bytes: &[u8]) -> CaptureReader {
    let input = Box::new(Whole::new(bytes.to_vec()));
    CaptureReader::open("bench", input, StampSource::Header, false, false).expect("a sound capture")
}

fn records(bytes: &[u8]) -> Vec<Record> {
    let signer = Signer::new(Rewrites::default());
    let (mut capture, mut batch, mut all) = (open(bytes), Vec::new(), Vec::new());
    while capture.read(&signer, &mut batch).expect("a sound capture") {
        all.extend_from_slice(&batch);
    }
    all
}

/// Both captures.
fn captures() -> [Vec<u8>; 2] {
    [capture(0), capture(LATENCY_NS)]
}

#[divan::bench]
fn decode_and_sign(bencher: Bencher<'_, '_>) {
    let (ingress, signer) = (capture(0), Signer::new(Rewrites::default()));
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(|| (open(&ingress), Vec::new()))
        .bench_local_refs(|(capture, batch)| {
            while capture.read(&signer, batch).expect("a sound capture") {
                black_box(&batch);
            }
        });
}

/// The same where each frame is looked at for tunnels, and has none.
#[divan::bench]
fn decode_and_sign_innermost(bencher: Bencher<'_, '_>) {
    let (ingress, signer) =
        (capture(0), Signer::new(Rewrites { tunnel: true, ..Rewrites::default() }));
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(|| (open(&ingress), Vec::new()))
        .bench_local_refs(|(capture, batch)| {
            while capture.read(&signer, batch).expect("a sound capture") {
                black_box(&batch);
            }
        });
}

/// The same with the label of each, as when decoding.
#[divan::bench]
fn decode_and_label(bencher: Bencher<'_, '_>) {
    let (ingress, signer) = (capture(0), Signer::new(Rewrites::default()));
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(|| {
            let mut capture = open(&ingress);
            capture.take_labels();
            (capture, Vec::new())
        })
        .bench_local_refs(|(capture, batch)| {
            while capture.read(&signer, batch).expect("a sound capture") {
                black_box(&batch);
            }
        });
}

#[divan::bench]
fn match_pairs(bencher: Bencher<'_, '_>) {
    let [entering, leaving] = captures().map(|bytes| records(&bytes));
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(|| (<Matcher>::new(Window::default()), Vec::with_capacity(128)))
        .bench_local_refs(|(matcher, pairs)| {
            let packet = |record: &Record| (record.signature, record.stamp_ns);
            for (entering, leaving) in entering.chunks(100).zip(leaving.chunks(100)) {
                let next_out_ns = leaving[0].stamp_ns;
                matcher.ingress_ahead(entering.iter().map(packet), next_out_ns, |_| 0);
                matcher.egress_all(leaving.iter().map(packet), pairs);
                black_box(&pairs);
                pairs.clear();
            }
        });
}

#[divan::bench]
fn histogram_and_clusters(bencher: Bencher<'_, '_>) {
    let values_ns: Vec<i64> = (0..PACKETS as i64).map(|value| value & 0xfff).collect();
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(|| (Histogram::new(), BlockCounts::new()))
        .bench_local_refs(|(histogram, blocks)| {
            for batch_ns in values_ns.chunks(256) {
                histogram.record_all(batch_ns.iter().copied());
                blocks.record_all(batch_ns);
            }
        });
}

#[divan::bench]
fn analyze_pairs(bencher: Bencher<'_, '_>) {
    let [ingress, egress] = captures();
    let options = Options { trim_ns: 0, ..Options::default() };
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(|| (open(&ingress), open(&egress)))
        .bench_local_refs(|(ingress, egress)| {
            let go = |_, _| ControlFlow::Continue(());
            analyze(ingress, egress, &options, &mut (), go).expect("sound captures")
        });
}

/// Interval of p99.999 among a billion samples.
#[divan::bench]
fn interval() -> impl Sized {
    ranks(Probability::P99_999, 1_000_000_000, Probability::P95, black_box(1.5))
}

fn main() {
    divan::main();
}
