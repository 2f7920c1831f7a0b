//! The contract of every port: one suite for all kinds.

use crate::memory::now_ns;
use std::thread;
use std::time::{Duration, Instant};
use tailtrim_ports::port::{Counters, Port, Stamp, Stamping};

/// Two ports, each of which receives what the other sends.
pub(crate) type Pair = (Box<dyn Port>, Box<dyn Port>);

/// Timeout for events that must happen: a busy machine is not a broken port.
const PATIENCE: Duration = Duration::from_secs(60);
/// Wait for events that must not happen.
const MOMENT: Duration = Duration::from_millis(30);

/// Handling of VLAN tags between the ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tags {
    Kept,
    /// The kernel has taken them out of the frame before the port sees it, as for interfaces on top of
    /// others; an XDP program cannot see where it noted them.
    TakenOut,
}

/// A frame that differs from those of every other number and length.
pub(crate) fn frame(number: usize, bytes: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    frame.extend((number as u32).to_be_bytes());
    frame.extend((frame.len()..bytes).map(|at| (at * 7 + number * 13) as u8));
    frame
}

/// Sends all of them, `batch` at a time.
fn send_all(port: &mut dyn Port, frames: &[Vec<u8>], batch: usize) {
    for batch in frames.chunks(batch) {
        let batch: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
        let (mut sent, end) = (0, Instant::now() + PATIENCE);
        while sent < batch.len() {
            sent += port.send(&batch[sent..]).unwrap();
            assert!(Instant::now() < end, "{sent} of {} sent", batch.len());
        }
    }
}

/// Receives so many frames, at most `most` in one call.
fn receive_all(port: &mut dyn Port, count: usize, most: usize) -> Vec<(Vec<u8>, Option<Stamp>)> {
    let (mut frames, end) = (Vec::new(), Instant::now() + PATIENCE);
    while frames.len() < count {
        let before = frames.len();
        let came = port
            .receive(most, &mut |frame| {
                assert_eq!(frame.length, frame.bytes.len());
                frames.push((frame.bytes.to_vec(), frame.stamp));
            })
            .unwrap();
        assert!(came <= most);
        assert_eq!(came, frames.len() - before);
        let now = Instant::now();
        assert!(now < end, "{} of {count} frames came: {:?}", frames.len(), port.counters());
    }
    frames
}

/// Frames of these lengths, by each batch size, both ways.
pub(crate) fn in_order_and_unchanged((mut near, mut far): Pair, lengths: &[usize]) {
    for batch in [1, 2, 3, 7, 32, 33, 63, 64] {
        let frames: Vec<_> =
            (0..64).map(|number| frame(number, lengths[number % lengths.len()])).collect();
        for back in [false, true] {
            let (from, to) = if back { (&mut far, &mut near) } else { (&mut near, &mut far) };
            send_all(from.as_mut(), &frames, batch);
            let came = receive_all(to.as_mut(), frames.len(), batch);
            for (number, (sent, (came, _))) in frames.iter().zip(&came).enumerate() {
                assert!(sent == came, "frame {number} of batches of {batch}, back: {back}");
            }
        }
    }
    let (near, far) = (near.counters().unwrap(), far.counters().unwrap());
    for (counters, other) in [(near, far), (far, near)] {
        assert_eq!((counters.received, counters.sent), (8 * 64, 8 * 64));
        assert_eq!(counters.received_bytes, other.sent_bytes);
        assert_eq!((counters.dropped, counters.discarded, counters.elsewhere), (0, 0, 0));
    }
}

pub(crate) fn nothing_is_nothing((mut near, mut far): Pair) {
    for port in [near.as_mut(), far.as_mut()] {
        assert_eq!(port.receive(64, &mut |_| ()).unwrap(), 0);
        assert_eq!(port.send(&[]).unwrap(), 0);
        assert!(!port.wait(Duration::ZERO).unwrap());
        assert!(!port.is_pressed());
        // A driver may ask for memory before there is any, but no frame came then.
        let counters = Counters { fill_empty: 0, ..port.counters().unwrap() };
        assert_eq!(counters, Counters::default());
    }
}

pub(crate) fn waits_as_long_as_asked((mut near, mut far): Pair) {
    for timeout in [Duration::from_micros(300), MOMENT] {
        let start = Instant::now();
        assert!(!far.wait(timeout).unwrap());
        // Below a millisecond, a port that waits in whole milliseconds may not wait at all.
        if timeout.as_millis() > 0 {
            assert!(start.elapsed() >= timeout, "{:?} of {timeout:?}", start.elapsed());
        }
    }
    // Already there.
    send_all(near.as_mut(), &[frame(1, 60)], 1);
    assert!(far.wait(PATIENCE).unwrap());
    assert_eq!(receive_all(far.as_mut(), 1, 64)[0].0, frame(1, 60));
    assert!(!far.wait(Duration::ZERO).unwrap());
    // Comes meanwhile.
    let waiting = thread::spawn(move || {
        let start = Instant::now();
        assert!(far.wait(PATIENCE).unwrap());
        assert!(start.elapsed() < PATIENCE, "what came did not end the waiting");
        assert_eq!(receive_all(far.as_mut(), 1, 64)[0].0, frame(2, 60));
    });
    thread::sleep(MOMENT);
    send_all(near.as_mut(), &[frame(2, 60)], 1);
    waiting.join().unwrap();
}

/// Sends more frames than there is room for, while nothing is received.
pub(crate) fn counts_add_up((mut near, mut far): Pair) {
    let frames: Vec<_> = (0..64).map(|number| frame(number, 100)).collect();
    let batch: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let (mut offered, mut taken) = (0, 0);
    for _ in 0..400 {
        offered += batch.len();
        taken += near.send(&batch).unwrap();
    }
    let end = Instant::now() + PATIENCE;
    while !far.is_pressed() {
        assert!(Instant::now() < end, "room for all of {taken}");
        thread::sleep(Duration::from_millis(1));
    }
    let sent = near.counters().unwrap();
    assert_eq!(sent.sent, taken as u64);
    assert_eq!(sent.sent + sent.refused, offered as u64);
    assert_eq!(sent.sent_bytes, 100 * sent.sent);
    let mut received = 0;
    let counters = loop {
        far.wait(MOMENT).unwrap();
        received += far.receive(64, &mut |frame| assert_eq!(frame.length, 100)).unwrap();
        let counters = far.counters().unwrap();
        let came = counters.received + counters.dropped + counters.elsewhere;
        if came >= sent.sent - sent.discarded || Instant::now() >= end {
            break counters;
        }
    };
    assert!(!far.wait(Duration::ZERO).unwrap(), "more than was sent");
    assert_eq!(counters.received, received as u64);
    assert_eq!(counters.received_bytes, 100 * counters.received);
    assert_eq!(
        counters.received + counters.dropped + counters.elsewhere,
        sent.sent - sent.discarded,
        "{sent:?} {counters:?}"
    );
    assert!(!far.is_pressed());
}

pub(crate) fn capabilities_are_honest((mut near, mut far): Pair, tags: Tags) {
    let most = near.capabilities();
    assert!(most.most_frames >= 64);
    let mut tagged = frame(1, most.most_bytes);
    tagged[12..14].copy_from_slice(&[0x81, 0x00]);
    let untagged = frame(2, most.most_bytes - 4);
    let (before_ns, frames) = (now_ns(), [tagged, untagged, frame(3, 60)]);
    for frame in &frames {
        assert!(most.carries(frame));
        send_all(near.as_mut(), std::slice::from_ref(frame), 1);
    }
    let came = receive_all(far.as_mut(), frames.len(), 64);
    let stamping = far.capabilities().stamping;
    for (number, (sent, (came, stamp))) in frames.iter().zip(&came).enumerate() {
        assert!(sent == came || number == 0 && tags == Tags::TakenOut, "frame {number}");
        // The clock of a NIC is another one, and its driver may have no stamp.
        if stamping == Stamping::Hardware {
            continue;
        }
        let stamp = stamp.unwrap();
        assert_eq!(stamp.stamping, stamping);
        assert!((before_ns..=now_ns()).contains(&stamp.ns), "{stamp:?} from {before_ns}");
    }
    // Instead of stamps for which the driver left no room, AF_XDP has those of the process.
    let late = far.capabilities().xdp.is_some() && stamping == Stamping::Process;
    let unstamped = came.iter().filter(|(_, stamp)| late || stamp.is_none()).count();
    assert_eq!(far.counters().unwrap().unstamped, unstamped as u64);
    let too_long = frame(4, most.most_bytes + 1);
    assert!(!most.carries(&too_long) && !most.carries(&frame(5, most.most_bytes)));
    near.send(&[&too_long]).unwrap_err();
    assert!(!far.wait(MOMENT).unwrap());
    // The error was about that frame only.
    send_all(near.as_mut(), &[frame(6, 60)], 1);
    assert_eq!(receive_all(far.as_mut(), 1, 64)[0].0, frame(6, 60));
}

/// A port whose interface is taken away by `remove` returns an error.
pub(crate) fn a_port_that_is_gone_says_so((mut near, mut far): Pair, remove: impl FnOnce()) {
    send_all(near.as_mut(), &[frame(1, 60)], 1);
    receive_all(far.as_mut(), 1, 64);
    remove();
    for (port, interface) in [(&mut near, "near"), (&mut far, "far")] {
        let end = Instant::now() + PATIENCE;
        let error = loop {
            if let Err(error) = port.wait(MOMENT) {
                break error.to_string();
            }
            assert!(Instant::now() < end, "{interface} is gone and nobody said so");
        };
        assert!(error.contains(&format!(":{interface}: ")), "{error}");
        let error = port.send(&[&frame(2, 60)]).unwrap_err().to_string();
        assert!(error.contains(&format!(":{interface}: ")), "{error}");
    }
}
