//! Two captures made of anything: the counts add up, and the pieces in which the bytes arrive make no difference.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::ops::ControlFlow;
use tailtrim_fuzz::{Creeping, with_pcap_magic, with_pcapng_blocks};
use tailtrim_tail::analysis::{Analysis, AnalysisError, Options, Sample, Sink, analyze};
use tailtrim_tail::capture::{CaptureReader, Input, StampSource, Whole};
use tailtrim_tail::matching::Window;

/// Counts samples, and computes their latencies, which must not overflow.
#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn sample(&mut self, sample: &Sample) -> std::io::Result<()> {
        let _ = sample.latency_ns();
        self.0 += 1;
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    let [kind, window, early, trim, worst, program @ ..] = data else { return };
    let unit_ns = [1, 1_000, 1_000_000, 100_000_000][usize::from(kind >> 2 & 3)];
    let options = Options {
        window: Window {
            window_ns: (i64::from(*window) + 1) * unit_ns,
            early_ns: i64::from(*early) * unit_ns,
        },
        trim_ns: i64::from(*trim) * unit_ns,
        worst: usize::from(*worst),
        ..Options::default()
    };
    let moonsniff = kind & 3 == 3;
    let (ingress, egress) = match kind & 3 {
        0 => (pcap(program, 0, unit_ns), pcap(program, 1, unit_ns)),
        1 => (pcapng(program, 0), pcapng(program, 1)),
        2 => {
            let (ingress, egress) = program.split_at(program.len() / 2);
            (with_pcap_magic(ingress), with_pcapng_blocks(egress))
        }
        _ => {
            let (ingress, egress) = program.split_at(program.len() / 24 * 12);
            (ingress.to_vec(), egress.to_vec())
        }
    };
    let whole = |bytes: &[u8]| -> Box<dyn Input> { Box::new(Whole::new(bytes.to_vec())) };
    let creeping = |bytes: &[u8]| -> Box<dyn Input> { Box::new(Creeping::new(bytes.to_vec())) };
    let first = run(whole(&ingress), whole(&egress), moonsniff, &options);
    if data.len() % 8 == 0 {
        let second = run(creeping(&ingress), creeping(&egress), moonsniff, &options);
        assert_eq!(first, second);
    }
});

/// The summary as text, or the error.
fn run(
    ingress: Box<dyn Input>,
    egress: Box<dyn Input>,
    moonsniff: bool,
    options: &Options,
) -> Result<String, String> {
    let open = |name: &str, input| {
        CaptureReader::open(name, input, StampSource::Header, moonsniff, true)
            .map_err(|error| error.to_string())
    };
    let (mut ingress, mut egress) = (open("in", ingress)?, open("out", egress)?);
    let mut count = Count::default();
    let progress = |_, _| ControlFlow::Continue(());
    let analysis = analyze(&mut ingress, &mut egress, options, &mut count, progress);
    match analysis {
        Ok(analysis) => {
            check(&analysis, options, count.0);
            Ok(serde_json::to_string(&analysis.summary).unwrap())
        }
        Err(error @ AnalysisError::Capture(_)) => Err(error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

fn check(analysis: &Analysis, options: &Options, sunk: u64) {
    let summary = &analysis.summary;
    let (ingress, egress, samples) = (summary.ingress, summary.egress, summary.samples);
    let undelivered = ingress.lost + ingress.beyond_window;
    assert_eq!(
        ingress.packets,
        ingress.matched
            + undelivered
            + ingress.duplicate
            + ingress.copy
            + ingress.cut
            + ingress.stalled
            + ingress.trimmed
            + ingress.unstamped
    );
    assert_eq!(
        egress.packets,
        egress.matched
            + egress.unmatched
            + egress.copy
            + egress.cut
            + egress.trimmed
            + egress.unstamped
    );
    assert_eq!([ingress.matched, egress.matched, analysis.latencies.count(), sunk], [samples; 4]);
    assert_eq!(analysis.worst.len() as u64, samples.min(options.worst as u64));
    assert!(analysis.worst.is_sorted_by_key(|w| std::cmp::Reverse(w.sample.latency_ns())));
    assert_eq!(analysis.delay_variation.count(), samples.saturating_sub(1));
    assert!(analysis.ingress_gaps.count() <= ingress.packets);
    assert!(analysis.egress_gaps.count() <= egress.packets);
    let seconds = &analysis.seconds;
    let sum =
        |of: fn(&tailtrim_tail::analysis::Second) -> u64| -> u64 { seconds.iter().map(of).sum() };
    assert_eq!(sum(|second| second.samples), samples);
    // Packets whose other half has no stamp count as unstamped, too, and are in their seconds.
    let without = |packets: u64, here: u64| packets.checked_sub(here).unwrap();
    let no_stamp = [
        without(ingress.packets - ingress.copy, sum(|second| second.ingress_packets)),
        without(egress.packets, sum(|second| second.egress_packets)),
    ];
    assert!(without(ingress.unstamped, no_stamp[0]) <= no_stamp[1]);
    assert!(without(egress.unstamped, no_stamp[1]) <= no_stamp[0]);
    assert!(seconds.is_sorted_by(|a, b| a.second < b.second));
    if let Some(bursts) = &analysis.bursts {
        assert_eq!(bursts.positions.iter().map(|p| p.count()).sum::<u64>(), samples);
    }
}

/// The program's steps for one side: four bytes a packet (flags, identifier, two of time).
fn steps(program: &[u8], side: u8) -> impl Iterator<Item = (u8, u8, u16)> {
    program
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&[flags, identifier, low, high]| (flags, identifier, u16::from_le_bytes([low, high])))
        // Bit 0 leaves the packet out at this side.
        .filter(move |(flags, _, _)| flags & (1 << side) == 0)
}

fn frame(identifier: u8) -> [u8; 16] {
    let mut frame = [0; 16];
    (frame[12], frame[15]) = (0x90, identifier);
    frame
}

fn pcap(program: &[u8], side: u8, unit_ns: i64) -> Vec<u8> {
    let mut file = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
    file.extend([1, 0, 0, 0]);
    let mut now_ns = 1_000_000_000_i64;
    for (flags, identifier, time) in steps(program, side) {
        now_ns += i64::from(time & 0xff) * unit_ns;
        // The egress side sees it later; sometimes it is written late.
        let shift_ns = i64::from(time >> 8) * unit_ns * i64::from(side);
        let back_ns = if flags & 4 != 0 { i64::from(flags >> 4) * 50_000_000 } else { 0 };
        let stamp_ns = (now_ns + shift_ns - back_ns).max(0);
        let length = if flags & 8 != 0 { 60 } else { 16_u32 };
        file.extend(((stamp_ns / 1_000_000_000) as u32).to_le_bytes());
        file.extend(((stamp_ns % 1_000_000_000) as u32).to_le_bytes());
        file.extend(16_u32.to_le_bytes());
        file.extend(length.to_le_bytes());
        file.extend(frame(identifier));
    }
    file
}

/// Stamps all over the range of time.
fn pcapng(program: &[u8], side: u8) -> Vec<u8> {
    let mut file = Vec::new();
    let mut block = |words: &[u32], body: &[u8]| {
        let length = (8 + words.len() * 4 + body.len()) as u32;
        file.extend(words[0].to_le_bytes());
        file.extend(length.to_le_bytes());
        file.extend(words[1..].iter().flat_map(|word| word.to_le_bytes()));
        file.extend(body);
        file.extend(length.to_le_bytes());
    };
    block(&[0x0a0d_0d0a, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX], &[]);
    // Nanoseconds, from 146 years before 1970 on.
    let earliest = (i64::MIN / 2 / 1_000_000_000).to_le_bytes();
    let options = [&[9, 0, 1, 0, 9, 0, 0, 0, 14, 0, 8, 0][..], &earliest, &[0; 4]].concat();
    block(&[1, 1, 0], &options);
    let mut ticks = 0_u64;
    for (flags, identifier, time) in steps(program, side) {
        let shift = [0, 10, 29, 48][usize::from(flags >> 2 & 3)];
        ticks = ticks.saturating_add(u64::from(time) << shift);
        if flags & 16 != 0 {
            block(&[3, 16], &frame(identifier));
        } else {
            block(&[6, 0, (ticks >> 32) as u32, ticks as u32, 16, 16], &frame(identifier));
        }
    }
    file
}
