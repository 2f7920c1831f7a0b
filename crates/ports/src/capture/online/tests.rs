use super::*;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use tailtrim_reading::source::{self, Reading};
use tailtrim_tail::analysis::{Analysis, Options, analyze};
use tailtrim_tail::capture::write::record_header;

const MS: i64 = 1_000_000;
const START_NS: i64 = 1_700_000_000_000_000_000;
/// Long enough for whatever ends at all.
const HANGS: Duration = Duration::from_secs(60);

/// A record of a frame that no other has, but one of the same number.
fn record(stamp_ns: i64, number: u32) -> ([u8; 16], [u8; 64]) {
    let mut frame = [0; 64];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[20..24].copy_from_slice(&number.to_be_bytes());
    (record_header(stamp_ns, 64, 64), frame)
}

fn feed_all(feed: &mut Feed, packets: &[(i64, u32)]) {
    for (stamp_ns, number) in packets {
        let (head, frame) = record(*stamp_ns, *number);
        feed.record(&head, &frame);
    }
}

/// 600 packets, 60 in a second, with one signature again each second.
fn packets(late_ns: i64) -> Vec<(i64, u32)> {
    let stamp_ns = |index: u32| START_NS + i64::from(index) * 1_000 / 60 * MS + late_ns;
    let number = |index: u32| if index.is_multiple_of(60) { 0 } else { index };
    (0..600).map(|index| (stamp_ns(index), number(index))).collect()
}

fn analyzed<S: Source>([mut ingress, mut egress]: [S; 2]) -> Analysis {
    let options = Options { trim_ns: 0, ..Options::default() };
    let go_on = |_, _| ControlFlow::Continue(());
    analyze(&mut ingress, &mut egress, &options, &mut (), go_on).unwrap()
}

fn in_file(folder: &Path, name: &str, packets: &[(i64, u32)]) -> CaptureReader {
    let mut content = header(96).to_vec();
    for (stamp_ns, number) in packets {
        let (head, frame) = record(*stamp_ns, *number);
        content.extend(head.iter().chain(&frame));
    }
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    source::open(&path, Reading::default()).unwrap().capture
}

#[test]
fn a_tap_at_a_low_rate_never_waits_for_an_analysis_that_does_not_read_yet() {
    let (mut feed, _online) = online("ingress", 96, false).unwrap();
    let (ended, end) = channel();
    thread::spawn(move || {
        for (stamp_ns, number) in packets(0) {
            feed_all(&mut feed, &[(stamp_ns, number)]);
            feed.quiet_until(stamp_ns);
        }
        ended.send(()).unwrap();
    });
    end.recv_timeout(HANGS).unwrap();
}

#[test]
fn what_waits_is_bounded_in_bytes_and_all_of_it_comes() {
    let (mut feed, mut online) = online("ingress", 96, false).unwrap();
    let handing = Arc::clone(&online.handing);
    let records = (handing::WAITING + 4 * BLOCK) / 80;
    let feeding = thread::spawn(move || {
        for index in 0..records {
            feed_all(&mut feed, &[(START_NS, index as u32)]);
            if index.is_multiple_of(100) {
                feed.quiet_until(START_NS);
            }
        }
    });
    while handing.bytes() + 2 * BLOCK < handing::WAITING {
        thread::yield_now();
    }
    assert!(handing.bytes() <= handing::WAITING);
    let mut bytes = 0;
    while let Some(more) = online.take(None) {
        assert!(more <= BLOCK);
        bytes += more;
    }
    assert_eq!(bytes, records * 80);
    feeding.join().unwrap();
}

#[test]
fn an_analysis_that_is_gone_ends_the_waiting() {
    let (mut feed, online) = online("ingress", 96, false).unwrap();
    let (ended, end) = channel();
    thread::spawn(move || {
        for index in 0..2 * handing::WAITING / 80 {
            feed_all(&mut feed, &[(START_NS, index as u32)]);
        }
        ended.send(()).unwrap();
    });
    drop(online);
    end.recv_timeout(HANGS).unwrap();
}

#[test]
fn how_long_nothing_came_is_told_behind_all_packets_that_came_before() {
    let packets = packets(0);
    let (mut feed, mut online) = online("ingress", 96, false).unwrap();
    feed_all(&mut feed, &packets);
    feed.quiet_until(packets[599].0 + 1);
    drop(feed);
    let signer = Signer::new(Default::default());
    assert_eq!(online.peek(&signer).unwrap().len(), 600);
    let (mut batch, mut read) = (Vec::new(), 0);
    while online.read(&signer, &mut batch).unwrap() {
        read += batch.len();
        let next_ns = packets.get(read).map_or(packets[599].0 + 1, |packet| packet.0);
        assert!(online.quiet_until_ns() <= next_ns, "{read}");
    }
    assert_eq!((read, online.quiet_until_ns()), (600, packets[599].0 + 1));
}

#[test]
fn a_signature_that_comes_again_while_the_first_packets_are_looked_at_is_matched_as_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let (entered, left) = (packets(0), packets(MS));
    let online = |packets: &[(i64, u32)], name: &str| {
        let (mut feed, online) = online(name, 96, name == "egress").unwrap();
        feed_all(&mut feed, packets);
        feed.quiet_until(packets[599].0 + 1);
        online
    };
    let came = analyzed([online(&entered, "ingress"), online(&left, "egress")]);
    let file = |name, packets| in_file(folder.path(), name, packets);
    let files = analyzed([file("ingress", &entered), file("egress", &left)]);
    assert_eq!(files.summary.ingress.matched, 600);
    let (came, files) = (came.summary, files.summary);
    assert_eq!(format!("{:?}", came.ingress), format!("{:?}", files.ingress));
    assert_eq!(format!("{:?}", came.egress), format!("{:?}", files.egress));
    assert_eq!(format!("{:?}", came.latency_ns), format!("{:?}", files.latency_ns));
}

#[test]
fn seconds_count_from_the_first_packet_however_late_it_comes() {
    let (mut into, mut ingress) = online("ingress", 96, false).unwrap();
    let (mut out_of, mut egress) = online("egress", 96, true).unwrap();
    (ingress.patience_ns, egress.patience_ns) = (MS, MS);
    let feeding = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        feed_all(&mut into, &packets(0));
        feed_all(&mut out_of, &packets(MS));
    });
    let analysis = analyzed([ingress, egress]);
    feeding.join().unwrap();
    assert_eq!(analysis.summary.ingress.matched, 600);
    assert_eq!(analysis.seconds[0].second, 0);
}
