//! Captures that are read from pipes while they are written.

use crate::analysis::{US, analyzed, hostile, write};
use crate::formats::pcap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

fn fifo(files: &TempDir, name: &str) -> PathBuf {
    let path = files.path().join(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

fn writing(path: &Path) -> File {
    File::options().write(true).open(path).unwrap()
}

/// A program writes both captures as the packets pass; few enter and many leave. It waits while a pipe is full. The
/// beginning is the part that is read before matching.
#[test]
fn pipes_that_are_written_in_turns() {
    const BEGINNING: u64 = 4_000;
    const STRANGERS: u64 = 200_000;
    let files = tempfile::tempdir().unwrap();
    let mut taps = hostile(2_000);
    for packet in 0..BEGINNING {
        let (stamp_ns, id) = (980_000_000 + packet * US, 9_000_000 + packet as u32);
        taps[0].push((stamp_ns, id));
        taps[1].push((stamp_ns, id));
    }
    taps[1].extend((0..STRANGERS).map(|n| (1_000_000_000 + n * 200, 5_000_000 + n as u32)));
    taps.iter_mut().for_each(|tap| tap.sort_unstable());
    let bytes = taps.map(|tap| pcap(&tap));
    let expected = analyzed(&write(&files, "plain.pcap", bytes.clone()), false, 1).unwrap();
    let pipes = ["a.fifo", "b.fifo"].map(|name| fifo(&files, name));
    for jobs in [2, 5] {
        let (paths, bytes) = (pipes.clone(), bytes.clone());
        let writer = thread::spawn(move || {
            let mut pipes = [0, 1].map(|side| {
                let mut pipe = writing(&paths[side]);
                // The other one is opened when this one was recognised as a capture.
                pipe.write_all(&bytes[side][..24]).unwrap();
                pipe
            });
            let (mut written, mut pieces) = ([24; 2], [BEGINNING as usize * 76; 2]);
            while written[0] < bytes[0].len() || written[1] < bytes[1].len() {
                for side in [0, 1] {
                    let until = bytes[side].len().min(written[side] + pieces[side]);
                    pipes[side].write_all(&bytes[side][written[side]..until]).unwrap();
                    written[side] = until;
                }
                pieces = [10 * 76, 1_000 * 76];
            }
        });
        let (paths, (done, result)) = (pipes.clone(), mpsc::channel());
        thread::spawn(move || done.send(analyzed(&paths, false, jobs)).is_ok());
        let found = result.recv_timeout(Duration::from_secs(120)).expect("one waits for the other");
        writer.join().unwrap();
        let found = found.unwrap();
        assert_eq!(found.samples, expected.samples);
        assert_eq!(found.histograms, expected.histograms);
    }
}

/// Regression: of a pipe that has one packet at a time, too few stamps behind an odd one were looked at to tell that it is odd.
#[test]
fn odd_stamps_of_a_pipe_that_is_written_slowly() {
    const ODD: usize = 5_000;
    let files = tempfile::tempdir().unwrap();
    let mut taps = [0, 5 * US].map(|late_ns| {
        let stamp_ns = |number: u64| 10_000_000_000 + number * 100 * US + late_ns;
        (0..6_000).map(|number| (stamp_ns(number), number as u32)).collect::<Vec<_>>()
    });
    taps[0][ODD..ODD + 2].iter_mut().for_each(|(stamp_ns, _)| *stamp_ns -= 3_000_000 * US);
    let bytes = taps.map(|tap| pcap(&tap));
    let mut paths = write(&files, "plain.pcap", bytes.clone());
    let expected = analyzed(&paths, false, 1).unwrap();
    paths[0] = fifo(&files, "slow.fifo");
    let path = paths[0].clone();
    let writer = thread::spawn(move || {
        let (mut pipe, slowly) = (writing(&path), 24 + ODD * 76);
        pipe.write_all(&bytes[0][..slowly]).unwrap();
        let (odd, rest) = bytes[0][slowly..].split_at(10 * 76);
        for packet in odd.chunks(76) {
            thread::sleep(Duration::from_millis(20));
            pipe.write_all(packet).unwrap();
        }
        pipe.write_all(rest).unwrap();
    });
    let found = analyzed(&paths, false, 2);
    writer.join().unwrap();
    assert_eq!(found.unwrap().samples, expected.samples);
}
