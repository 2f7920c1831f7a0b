//! Cuts of captures into stretches.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use tailtrim_reading::analysis::remote::{self, Hosts, Ordered};
use tailtrim_reading::analysis::{Answers, StretchError, analyze};
use tailtrim_reading::source::{CaptureInput, Reading, open};
use tailtrim_tail::analysis::Options;
use tailtrim_tail::capture::write::{header, record_header};

/// Takes note of how many stretches there are, and does nothing.
#[derive(Default)]
struct Noting(Cell<usize>);

impl Hosts for Noting {
    type Error = &'static str;

    fn outlines(
        &self,
        tasks: Vec<Vec<u8>>,
    ) -> Result<Answers<'_, Vec<u8>, Self::Error>, Self::Error> {
        self.0.set(tasks.len());
        Err("noted")
    }

    fn counts(&self, _: Vec<Ordered>) -> Result<Answers<'_, Vec<u8>, Self::Error>, Self::Error> {
        Err("nothing is joined")
    }
}

/// Matches the stretches of an ingress and an egress capture.
struct Here<'a>([&'a Path; 2], &'a Options);

impl Here<'_> {
    fn each(
        &self,
        tasks: Vec<(usize, Vec<u8>, Vec<u8>)>,
        answer: Answer,
    ) -> Answers<'_, Vec<u8>, &'static str> {
        Box::new(tasks.into_iter().map(move |(index, task, order)| {
            let [ingress, egress] = self.0.map(|path| open(path, Reading::default()).unwrap());
            Ok((index, answer((ingress, egress), &task, &order, self.1)))
        }))
    }
}

type Answer = fn((CaptureInput, CaptureInput), &[u8], &[u8], &Options) -> Option<Vec<u8>>;

impl Hosts for Here<'_> {
    type Error = &'static str;

    fn outlines(
        &self,
        tasks: Vec<Vec<u8>>,
    ) -> Result<Answers<'_, Vec<u8>, Self::Error>, Self::Error> {
        let tasks = tasks.into_iter().enumerate().map(|(at, task)| (at, task, Vec::new()));
        Ok(self.each(tasks.collect(), |(ingress, egress), task, _, options| {
            remote::outline(ingress, egress, task, options).unwrap()
        }))
    }

    fn counts(
        &self,
        ordered: Vec<Ordered>,
    ) -> Result<Answers<'_, Vec<u8>, Self::Error>, Self::Error> {
        let tasks = ordered.into_iter().map(|one| (one.index, one.task, one.order));
        Ok(self.each(tasks.collect(), |(ingress, egress), task, order, options| {
            remote::counts(ingress, egress, (task, order), options).unwrap()
        }))
    }
}

/// A pcap of so many frames of one length after the other, 10 µs apart.
fn write(path: &Path, lengths: &[(u32, u32)]) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let frames = lengths.iter().flat_map(|&(frames, length)| (0..frames).map(move |_| length));
    file.write_all(&header(2_048)).unwrap();
    for (index, length) in frames.enumerate() {
        let stamp_ns = 1_000_000_000 + index as i64 * 10_000;
        file.write_all(&record_header(stamp_ns, length, length)).unwrap();
        let mut frame = vec![0; length as usize];
        frame[20..24].copy_from_slice(&(index as u32).to_le_bytes());
        file.write_all(&frame).unwrap();
    }
    file.flush().unwrap();
}

/// Failed where frames became shorter: a stretch had the packets of twenty, and needed their memory.
#[test]
fn stretches_have_as_many_packets_wherever_they_lie() {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("both.pcap");
    write(&path, &[(20_000, 1_400), (300_000, 60)]);
    let side = || open(&path, Reading::default()).unwrap();
    let options = Options { trim_ns: 1_000_000, ..Options::default() };
    let noting = Noting::default();
    let told =
        remote::analyze(
            side(),
            side(),
            20_000,
            &options,
            &noting,
            |_, _| ControlFlow::Continue(()),
        );
    assert!(told.is_err());
    assert!((14..=16).contains(&noting.0.get()), "{} stretches", noting.0.get());
}

/// A pcap of numbered frames with these stamps.
fn write_numbered(path: &Path, frames: impl Iterator<Item = (i64, u32)>) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    file.write_all(&header(2_048)).unwrap();
    for (stamp_ns, number) in frames {
        file.write_all(&record_header(stamp_ns, 60, 60)).unwrap();
        let mut frame = [0; 60];
        frame[20..24].copy_from_slice(&number.to_le_bytes());
        file.write_all(&frame).unwrap();
    }
    file.flush().unwrap();
}

/// Hosts counted them as duplicates.
#[test]
fn captures_with_copies_of_a_mirror_port_are_left_to_one_host() {
    let files = tempfile::tempdir().unwrap();
    let paths = ["ingress.pcap", "egress.pcap"].map(|name| files.path().join(name));
    let entered_ns = |number: u32| 1_000_000_000 + i64::from(number) * 10_000;
    for copies_from in [60_000, u32::MAX] {
        let entered = (0..120_000).flat_map(|number| {
            let copies = if number < copies_from { 1 } else { 2 };
            (0..copies).map(move |copy| (entered_ns(number) + copy * 500, number))
        });
        write_numbered(&paths[0], entered);
        let left_ns = |number| entered_ns(number) + 4_000 + i64::from(number % 7) * 100;
        write_numbered(&paths[1], (0..120_000).map(|number| (left_ns(number), number)));
        let options = Options { trim_ns: 1_000_000, ..Options::default() };
        let side = |at: usize| open(&paths[at], Reading::default()).unwrap();
        let go_on = |_, _| ControlFlow::Continue(());
        let jobs = NonZeroUsize::MIN;
        let one = analyze(side(0), side(1), jobs, &options, &mut (), go_on).unwrap().summary;
        let hosts = Here([&paths[0], &paths[1]], &options);
        let told = remote::analyze(side(0), side(1), 20_000, &options, &hosts, go_on);
        if copies_from == u32::MAX {
            let several = serde_json::to_string(&told.unwrap().summary).unwrap();
            assert_eq!(several, serde_json::to_string(&one).unwrap());
        } else {
            assert_eq!(one.ingress.copy, 60_000);
            assert!(matches!(told, Err(StretchError::OnePiece)));
        }
    }
}

/// Regression: a cut at an odd stamp made packets of one stretch lost, and unmatched.
#[test]
fn odd_stamps_are_no_cuts() {
    let files = tempfile::tempdir().unwrap();
    let paths = ["ingress.pcap", "egress.pcap"].map(|name| files.path().join(name));
    let stamp_ns = |number: u32, late_ns: i64, every: u32, by_ns: i64| {
        let odd_ns = if number % every == 17 { by_ns } else { 0 };
        100_000_000_000 + i64::from(number) * 100_000 + late_ns + odd_ns
    };
    // Some before each place that is tried.
    let cases = [[61, u32::MAX], [u32::MAX, 61], [67, 61]];
    let by_ns = [60_000_000_000, -60_000_000_000];
    for (every, by_ns) in by_ns.into_iter().flat_map(|by_ns| cases.map(|every| (every, by_ns))) {
        let entered = |number| (stamp_ns(number, 0, every[0], by_ns), number);
        let left = |number| {
            (stamp_ns(number, 5_000 + i64::from(number % 7) * 100, every[1], by_ns), number)
        };
        write_numbered(&paths[0], (0..120_000).map(entered));
        write_numbered(&paths[1], (0..120_000).map(left));
        let options = Options { trim_ns: 1_000_000, ..Options::default() };
        let side = |at: usize| open(&paths[at], Reading::default()).unwrap();
        let go_on = |_, _| ControlFlow::Continue(());
        let one = analyze(side(0), side(1), NonZeroUsize::MIN, &options, &mut (), go_on).unwrap();
        let hosts = Here([&paths[0], &paths[1]], &options);
        let several = remote::analyze(side(0), side(1), 20_000, &options, &hosts, go_on).unwrap();
        let text = |summary| serde_json::to_string(summary).unwrap();
        assert_eq!(text(&several.summary), text(&one.summary), "{every:?} {by_ns}");
    }
}
