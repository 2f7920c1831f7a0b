//! What wraps a port does what it says, and counts it.

use super::contract::{frame, now_ns};
use std::time::Duration;
use tailtrim_linux::port::{
    Faults, Faulty, MemoryPort, Port, PortError, Recorded, Stamp, Stamping, memory_pair,
};
use tailtrim_wire::traffic::Delay;

const COUNT: usize = 10_000;

/// Sends so many frames through faults. Returns the port and the numbers as they came, with their stamps.
fn spoilt(faults: Faults, count: usize) -> (Faulty<MemoryPort>, Vec<(usize, Stamp)>) {
    let (mut near, far) = memory_pair(count);
    let frames: Vec<_> = (0..count).map(|number| frame(number, 60)).collect();
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let mut far = Faulty::new(far, faults);
    assert_eq!(near.send(&frames).unwrap(), count);
    let mut came = Vec::new();
    while far.wait(Duration::from_millis(20)).unwrap() {
        far.receive(32, &mut |received| {
            let number = u32::from_be_bytes(received.bytes[14..18].try_into().unwrap()) as usize;
            assert_eq!(received.bytes, frame(number, 60));
            came.push((number, received.stamp.unwrap()));
        })
        .unwrap();
    }
    let (counters, done) = (far.counters().unwrap(), far.spoilt());
    assert_eq!(counters.received, came.len() as u64);
    assert_eq!(counters.received_bytes, 60 * counters.received);
    assert_eq!(done.held, 0, "nothing sits in the port");
    assert_eq!(count as u64 + done.duplicated, counters.received + done.lost);
    (far, came)
}

fn numbers(came: &[(usize, Stamp)]) -> Vec<usize> {
    came.iter().map(|(number, _)| *number).collect()
}

/// Of so many frames with this share in millionths: within five standard deviations.
fn is_plausible(hit: u64, count: usize, share: u32) -> bool {
    let share = f64::from(share) / 1e6;
    let expected = count as f64 * share;
    (hit as f64 - expected).abs() < 5.0 * (expected * (1.0 - share)).sqrt()
}

#[test]
fn loss_takes_frames_away_and_leaves_the_others() {
    let faults = Faults { seed: 3, lost: 20_000, ..Faults::default() };
    let (port, came) = spoilt(faults, COUNT);
    let lost = port.spoilt().lost;
    assert!(is_plausible(lost, COUNT, 20_000), "{lost}");
    let numbers_first = numbers(&came);
    assert!(numbers_first.is_sorted_by(|one, next| one < next));
    assert!(came.iter().all(|(_, stamp)| stamp.stamping == Stamping::Process));
    assert_eq!(numbers(&spoilt(faults, COUNT).1), numbers_first, "the same seed, the same frames");
    let other = Faults { seed: 4, ..faults };
    assert_ne!(numbers(&spoilt(other, COUNT).1), numbers_first);
    let all = Faults { lost: 1_000_000, ..faults };
    assert_eq!(spoilt(all, 100).1.len(), 0);
}

#[test]
fn duplicates_follow_their_frames() {
    let faults = Faults { seed: 1, duplicated: 50_000, ..Faults::default() };
    let (port, came) = spoilt(faults, COUNT);
    let mut numbers = numbers(&came);
    let twice = numbers.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
    assert_eq!(twice, port.spoilt().duplicated);
    assert!(is_plausible(twice, COUNT, 50_000), "{twice}");
    numbers.dedup();
    assert_eq!(numbers, (0..COUNT).collect::<Vec<_>>());
}

#[test]
fn the_next_frame_overtakes() {
    let faults = Faults { seed: 1, reordered: 10_000, ..Faults::default() };
    let (port, came) = spoilt(faults, COUNT);
    let mut numbers = numbers(&came);
    let overtaken = numbers.windows(2).filter(|pair| pair[0] == pair[1] + 1).count() as u64;
    assert_eq!(overtaken, port.spoilt().reordered);
    assert!(is_plausible(overtaken, COUNT, 10_000), "{overtaken}");
    assert!(came.is_sorted_by_key(|(_, stamp)| stamp.ns), "stamps say when frames were handed on");
    numbers.sort_unstable();
    assert_eq!(numbers, (0..COUNT).collect::<Vec<_>>());
    // One that nobody overtakes comes all the same.
    let (port, came) = spoilt(Faults { reordered: 1_000_000, ..faults }, 1);
    assert_eq!((came.len(), port.spoilt().reordered), (1, 0));
}

#[test]
fn delay_keeps_frames_and_their_order() {
    let long =
        Faults { seed: 1, delay: Some(Delay::Constant { ns: 50_000_000 }), ..Faults::default() };
    let (mut near, far) = memory_pair(COUNT);
    let mut far = Faulty::new(far, long);
    let before_ns = now_ns();
    near.send(&[&frame(0, 60)]).unwrap();
    let (mut came, mut handed_on_ns) = (0, 0);
    while came == 0 {
        came = far.receive(64, &mut |frame| handed_on_ns = frame.stamp.unwrap().ns).unwrap();
        assert_eq!(far.spoilt().held as usize, 1 - came);
        assert!(came == 1 || far.wait(Duration::from_secs(60)).unwrap());
    }
    assert!(handed_on_ns >= before_ns + 50_000_000, "{}", handed_on_ns - before_ns);
    let delay = "bimodal:50us,2ms,0.01".parse().unwrap();
    let (port, came) = spoilt(Faults { delay: Some(delay), ..long }, 1_000);
    assert_eq!(numbers(&came), (0..1_000).collect::<Vec<_>>());
    assert_eq!(port.spoilt().delayed, 1_000);
    assert!(came.is_sorted_by_key(|(_, stamp)| stamp.ns));
    assert_eq!(port.capabilities().stamping, Stamping::Process);
}

/// Stamps and frames of a nanosecond pcap.
fn records(pcap: &[u8]) -> Vec<(i64, &[u8])> {
    let (header, mut rest) = pcap.split_at(24);
    assert_eq!(header[..4], 0xa1b2_3c4d_u32.to_le_bytes());
    let mut records = Vec::new();
    while let Some((head, behind)) = rest.split_at_checked(16) {
        let field = |at| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let (frame, behind) = behind.split_at(field(8) as usize);
        assert_eq!(field(8), field(12));
        records.push((i64::from(field(0)) * 1_000_000_000 + i64::from(field(4)), frame));
        rest = behind;
    }
    assert_eq!(rest.len(), 0);
    records
}

#[test]
fn a_record_has_every_frame_with_its_stamp() {
    let (near, mut far) = memory_pair(100);
    let mut near = Recorded::new(near, Vec::new(), Vec::new()).unwrap();
    let frames: Vec<_> = (0..120).map(|number| frame(number, 60 + number)).collect();
    let batch: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    far.send(&batch[..50]).unwrap();
    let mut came = Vec::new();
    while near.receive(7, &mut |frame| came.push(frame.stamp.unwrap().ns)).unwrap() > 0 {}
    assert_eq!(near.send(&batch).unwrap(), 100, "what was refused is not on record");
    let mut left = Vec::new();
    far.receive(200, &mut |frame| left.push(frame.stamp.unwrap().ns)).unwrap();
    let (_, received, sent) = near.finish().unwrap();
    let (received, sent) = (records(&received), records(&sent));
    assert_eq!(received.iter().map(|record| record.0).collect::<Vec<_>>(), came);
    assert!(received.iter().zip(&frames).all(|(record, frame)| record.1 == frame));
    assert_eq!((received.len(), sent.len()), (50, 100));
    assert!(sent.iter().zip(&frames).all(|(record, frame)| record.1 == frame));
    assert!(sent.iter().zip(&left).all(|(record, left)| record.0 <= *left));
}

#[test]
fn a_record_that_cannot_be_written_is_an_error() {
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let (near, mut far) = memory_pair(1_000);
    let mut near = Recorded::new(near, full(), full()).unwrap();
    let long = vec![0; 9_000];
    far.send(&[&long, &long]).unwrap();
    let error = near.receive(2, &mut |_| ()).unwrap_err();
    assert!(matches!(error, PortError::Record { name: "received", frames: 0, .. }), "{error}");
    let error = near.send(&[&long]).unwrap_err();
    assert!(matches!(error, PortError::Record { name: "sent", frames: 0, .. }), "{error}");
}
