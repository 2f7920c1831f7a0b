//! Cuts of captures into stretches.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use tailtrim_reading::analysis::Answers;
use tailtrim_reading::analysis::remote::{self, Hosts, Ordered};
use tailtrim_reading::source::{Reading, open};
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
