//! Analyses on several cores: byte for byte the result of one core, whatever the captures contain.

use crate::formats::{gzip, mscap, pcap, pcapng, zstd};
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use tailtrim_reading::analysis::{all_cores, analyze};
use tailtrim_reading::source::{Reading, open};
use tailtrim_tail::analysis::{AnalysisError, Options, Sample, Second, Sink};
use tailtrim_tail::matching::Window;
use tempfile::TempDir;

pub(crate) const US: u64 = 1_000;
const MS: i64 = 1_000_000;

/// Packets of a capture: several times as many as are handed over at once.
const PACKETS: u64 = 30_000;

/// Stamps and identifiers of the packets at two taps.
pub(crate) type Taps = [Vec<(u64, u32)>; 2];

/// Packets with losses, duplicates, late ones and strangers, with signatures that come again, written out of order.
pub(crate) fn hostile(packets: u64) -> Taps {
    hostile_of(packets, 20_000)
}

/// The same with so many identifiers.
fn hostile_of(packets: u64, ids: u64) -> Taps {
    let mut state = 1_u64;
    let mut below = |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut taps = Taps::default();
    for index in 0..packets {
        let (entered_ns, id) = (1_000_000_000 + index * 20 * US, (index % ids) as u32);
        let left_ns = entered_ns + 10 * US + below(90) * US;
        let [entering, leaving] = &mut taps;
        let mut enter = |after_ns, id| entering.push((entered_ns + after_ns, id));
        let mut leave = |after_ns, id| leaving.push((left_ns + after_ns, id));
        enter(0, id);
        match below(100) {
            0 => {}
            1 => enter(5 * US, id),
            2 => leave(60_000 * US, id),
            3 => leave(0, 1_000_000 + id),
            4 => {
                leave(0, id);
                leave(7 * US, id);
            }
            _ => leave(0, id),
        }
    }
    for tap in &mut taps {
        tap.sort_unstable();
        for place in 0..tap.len() / 50 {
            tap.swap(50 * place, 50 * place + below(40) as usize);
        }
    }
    taps
}

/// Results of an analysis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    summary: String,
    pub(crate) samples: Vec<Sample>,
    pub(crate) histograms: [Vec<(i64, u64)>; 4],
    seconds: Vec<Second>,
    worst: Vec<(Sample, u64)>,
}

/// Keeps the samples if they are wanted.
#[derive(Debug)]
struct Kept {
    wanted: bool,
    samples: Vec<Sample>,
}

impl Sink for Kept {
    fn sample(&mut self, sample: &Sample) -> io::Result<()> {
        if self.wanted {
            self.samples.push(*sample);
        }
        Ok(())
    }

    fn takes_samples(&self) -> bool {
        self.wanted
    }
}

fn cores(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// Result of an analysis, or the error at which it ended.
pub(crate) fn analyzed(paths: &[PathBuf; 2], salvage: bool, jobs: usize) -> Result<Found, String> {
    analyzed_with(paths, salvage, jobs, true)
}

/// The same, and whether the samples are wanted.
fn analyzed_with(
    paths: &[PathBuf; 2],
    salvage: bool,
    jobs: usize,
    wanted: bool,
) -> Result<Found, String> {
    let reading = Reading { salvage, ..Reading::default() };
    let [ingress, egress] = paths.each_ref().map(|path| open(path, reading.clone()).unwrap());
    let window = Window { window_ns: 50 * MS, early_ns: MS };
    let options = Options { window, trim_ns: 5 * MS, worst: 100, ..Options::default() };
    let mut kept = Kept { wanted, samples: Vec::new() };
    let go = |_, _| ControlFlow::Continue(());
    let found = analyze(ingress, egress, cores(jobs), &options, &mut kept, go);
    let found = found.map_err(|error| error.to_string())?;
    let gaps = [&found.ingress_gaps, &found.egress_gaps, &found.delay_variation];
    let [ingress, egress, variation] = gaps.map(|histogram| histogram.sorted());
    Ok(Found {
        summary: serde_json::to_string(&found.summary).unwrap(),
        samples: kept.samples,
        histograms: [found.latencies.entries().to_vec(), ingress, egress, variation],
        seconds: found.seconds,
        worst: found.worst.iter().map(|worst| (worst.sample, worst.index)).collect(),
    })
}

pub(crate) fn write(files: &TempDir, name: &str, bytes: [Vec<u8>; 2]) -> [PathBuf; 2] {
    let paths = ["in", "out"].map(|side| files.path().join(format!("{side}-{name}")));
    for (path, bytes) in paths.iter().zip(bytes) {
        fs::write(path, bytes).unwrap();
    }
    paths
}

/// The same on one, two and five cores.
fn same(paths: &[PathBuf; 2], salvage: bool) -> Result<Found, String> {
    let one = analyzed(paths, salvage, 1);
    for jobs in [2, 5] {
        let several = analyzed(paths, salvage, jobs);
        assert!(several == one, "{paths:?} with {jobs} jobs differ from one");
        let without = analyzed_with(paths, salvage, jobs, false);
        let one = one.clone().map(|found| Found { samples: Vec::new(), ..found });
        assert!(without == one, "{paths:?} with {jobs} jobs and no samples");
    }
    one
}

#[test]
fn the_number_of_cores_makes_no_difference() {
    let files = tempfile::tempdir().unwrap();
    let taps = hostile(PACKETS);
    let [pcap, pcapng, mscap] =
        [pcap, pcapng, mscap].map(|format| taps.each_ref().map(|tap| format(tap)));
    let compressed = pcap.each_ref().map(|bytes| zstd(bytes));
    let in_frames = pcap.each_ref().map(|bytes| bytes.chunks(100_000).flat_map(zstd).collect());
    let gzipped = pcapng.each_ref().map(|bytes| gzip(bytes));
    let of = |name, bytes| same(&write(&files, name, bytes), false).unwrap();
    let plain = of("plain.pcap", pcap);
    assert!(plain.samples.len() > 20_000 && plain.worst.len() == 100);
    assert_eq!(of("plain.pcapng", pcapng).samples, plain.samples);
    assert_eq!(of("a.pcap.zst", compressed).histograms, plain.histograms);
    assert_eq!(of("frames.pcap.zst", in_frames).histograms, plain.histograms);
    assert_eq!(of("a.pcapng.gz", gzipped).seconds, plain.seconds);
    assert!(of("a.mscap", mscap).samples.len() > 20_000);
    // Less than is handed over at once, and none on one side.
    for few in [0, 3] {
        let taps = hostile(few);
        let bytes = taps.each_ref().map(|tap| self::pcap(tap));
        of("few.pcap", bytes);
    }
    assert!(all_cores().get() >= 1);
}

/// So many that the captures are cut into stretches.
const MANY: u64 = 1_000_000;

#[test]
fn captures_that_are_cut_into_stretches() {
    let files = tempfile::tempdir().unwrap();
    // Signatures that return are looked for in each stretch, and stretches that one of them touches are matched again.
    for ids in [MANY, 4_000] {
        let [ingress, egress] = hostile_of(MANY, ids).map(|tap| pcap(&tap));
        let whole = write(&files, "many.pcap", [ingress.clone(), egress.clone()]);
        assert!(same(&whole, false).unwrap().samples.len() > 100_000);
        if ids == MANY {
            let left = 24 + 76 * 600_000 + 50;
            let cut = write(&files, "cut.pcap", [ingress, egress[..left].to_vec()]);
            assert!(same(&cut, false).unwrap_err().contains("the capture ends"));
            assert!(same(&cut, true).unwrap().summary.contains("the capture ends"));
        }
    }
}

/// Failed: on several cores the damage was an error although it is to be salvaged.
#[test]
fn captures_of_strangers_that_end_in_damage() {
    let files = tempfile::tempdir().unwrap();
    let [ingress, egress] = hostile_of(MANY / 2, MANY);
    let strangers: Vec<_> = egress.iter().map(|&(ns, id)| (ns, id | 1 << 30)).collect();
    let (ingress, mut egress) = (pcap(&ingress), pcap(&strangers));
    egress.truncate(egress.len() - 7);
    let found = same(&write(&files, "cut.pcap", [ingress, egress]), true).unwrap();
    assert!(found.summary.contains("the capture ends") && found.samples.is_empty());
}

/// Packets without a loss until so many have passed, and then with some; in place of each lost one, a stranger leaves.
fn lossless_until(lost: u64, strangers: bool) -> Taps {
    let passing = |index: u64| {
        let (entered_ns, id) = (1_000_000_000 + index * 20 * US, index as u32);
        (entered_ns, entered_ns + 10 * US + index * 7_919 % 90 * US, id)
    };
    let mut egress: Vec<(u64, u32)> = (0..MANY)
        .map(passing)
        .map(|(_, left_ns, id)| (left_ns, id))
        .filter_map(|(left_ns, id)| match u64::from(id) >= lost && id % 1_000 == 0 {
            true => strangers.then_some((left_ns, 0xffff_ffff)),
            false => Some((left_ns, id)),
        })
        .collect();
    egress.sort_unstable();
    [(0..MANY).map(passing).map(|(entered_ns, _, id)| (entered_ns, id)).collect(), egress]
}

/// The number of samples before a stretch is known from the length of the captures, or turns out to be another one.
#[test]
fn captures_that_are_counted_as_they_are_matched() {
    let files = tempfile::tempdir().unwrap();
    for (lost, strangers) in [(MANY, false), (MANY / 2, false), (MANY / 2, true), (0, true)] {
        let bytes = lossless_until(lost, strangers).map(|tap| pcap(&tap));
        let found = same(&write(&files, "once.pcap", bytes), false).unwrap();
        assert!(found.samples.len() > 900_000, "{lost}: {}", found.samples.len());
    }
}

#[test]
fn payload_that_looks_like_records() {
    let files = tempfile::tempdir().unwrap();
    let taps = hostile_of(MANY, MANY);
    // Each frame holds a header behind which as many bytes follow to the one in the next frame.
    let bytes = taps.map(|tap| {
        let mut bytes = pcap(&tap);
        for (record, &(_, id)) in bytes[24..].chunks_exact_mut(76).zip(&tap) {
            for (place, word) in [1, id, 60, 60].into_iter().enumerate() {
                record[44 + 4 * place..48 + 4 * place].copy_from_slice(&word.to_le_bytes());
            }
        }
        bytes
    });
    assert!(same(&write(&files, "false.pcap", bytes), false).unwrap().samples.len() > 500_000);
}

#[test]
fn captures_that_end_in_damage_end_alike() {
    let files = tempfile::tempdir().unwrap();
    let taps = hostile(PACKETS);
    let [ingress, egress] = taps.each_ref().map(|tap| pcap(tap));
    // In the first block, within a later one, and in the last record.
    for left in [24 + 76 * 100 + 7, 24 + 76 * 20_000 + 50, egress.len() - 1] {
        let cut = write(&files, "cut.pcap", [ingress.clone(), egress[..left].to_vec()]);
        assert!(same(&cut, false).unwrap_err().contains("the capture ends"));
        assert!(same(&cut, true).unwrap().summary.contains("the capture ends"));
    }
    let half = zstd(&egress);
    let half = write(&files, "half.zst", [ingress, half[..half.len() / 2].to_vec()]);
    assert!(same(&half, false).unwrap_err().contains("reading failed after byte"));
    assert!(same(&half, true).unwrap().summary.contains("reading failed after byte"));
    // The clock was set back: the error names the first capture in which that is found.
    let back = taps.map(|mut tap| {
        tap[25_000..25_004].iter_mut().for_each(|packet| packet.0 = 1);
        pcap(&tap)
    });
    let told = same(&write(&files, "back.pcap", back), true).unwrap_err();
    assert!(told.contains("packet 25001: its stamp is"), "{told}");
}

struct Full;

impl Sink for Full {
    fn sample(&mut self, _: &Sample) -> io::Result<()> {
        Err(io::Error::other("no space left"))
    }
}

#[test]
fn who_has_enough_ends_the_analysis() {
    let files = tempfile::tempdir().unwrap();
    let bytes = hostile(PACKETS).map(|tap| pcap(&tap));
    let paths = write(&files, "a.pcap", bytes);
    let options = Options { trim_ns: 0, ..Options::default() };
    let [ingress, egress] = paths.map(|path| open(&path, Reading::default()).unwrap());
    let go = |_, _| ControlFlow::Continue(());
    let error = analyze(ingress, egress, cores(3), &options, &mut Full, go).err().unwrap();
    assert!(matches!(&error, AnalysisError::Sink(cause) if cause.to_string() == "no space left"));

    // Progress is reported every 4,096 batches. Shorter captures are not read ahead.
    let records = (0..2_900_000).map(|index| (1_000_000_000 + index * US, index as u32));
    let long = mscap(&records.collect::<Vec<_>>());
    let [ingress, egress] = write(&files, "long.mscap", [long.clone(), long]);
    let [ingress, egress] = [ingress, egress].map(|path| open(&path, Reading::default()).unwrap());
    let mut told = Vec::new();
    let error = analyze(ingress, egress, cores(3), &options, &mut (), |entered, left| {
        told.push((entered, left));
        ControlFlow::Break(())
    });
    assert_eq!(error.err().unwrap().to_string(), "stopped on request");
    // Progress counts analysed packets, not those that were read ahead.
    let expected = 12 * 500_000..12 * 550_000;
    assert!(
        matches!(&told[..], [(entered, left)] if expected.contains(entered) && expected.contains(left)),
        "{told:?}"
    );
}
