//! Frames without a stamp, in every format.

use super::{record, signature_of, signer};
use crate::support::frames::probe;
use crate::support::{How, Order, Pcap, Pcapng, SECOND_NS, read};
use tailtrim_tail::capture::Record;
use tailtrim_tail::capture::write::NO_STAMP_NS;

#[test]
fn pcapng_simple_packets_have_no_stamp() {
    let frame = probe(1);
    let mut file = Pcapng::new(Order::Big);
    file.interface(1, None, None)
        .simple_packet(&frame, frame.len() as u32)
        .simple_packet(&frame[..40], frame.len() as u32)
        // Padding to a multiple of four is not part of the frame.
        .simple_packet(&frame[..41], 41);
    let records = read(&file.bytes, How::default(), &signer()).sound();
    let unstamped = Record { stamped: false, ..record(0, &frame) };
    assert_eq!(records[0], unstamped);
    assert_eq!((records[1].cut, records[1].signable), (true, 26));
    assert_eq!((records[2].cut, records[2].signable), (false, 27));
    assert_eq!(records[2].signature, signature_of(&frame[..41]));
}

/// A tap writes a frame without a stamp with the last stamp of the format; other programs copy it to their format and
/// resolution.
#[test]
fn a_frame_without_a_stamp_stays_one_when_its_capture_is_converted() {
    let frame = probe(1);
    let stamps_ns = [7 * SECOND_NS, NO_STAMP_NS, 8 * SECOND_NS];
    let (mut files, before) = (Vec::new(), NO_STAMP_NS - 1_000);
    for (nanoseconds, unit_ns) in [(true, 1), (false, 1_000)] {
        let mut pcap = Pcap::new(Order::Little, nanoseconds, 1);
        let mut pcapng = Pcapng::new(Order::Big);
        pcapng.interface(1, Some(if nanoseconds { 9 } else { 6 }), None);
        for stamp_ns in stamps_ns.into_iter().chain([before]) {
            pcap.frame(stamp_ns / unit_ns * unit_ns, &frame);
            pcapng.packet(0, (stamp_ns / unit_ns) as u64, &frame);
        }
        files.extend([pcap.bytes, pcapng.bytes]);
    }
    for bytes in files {
        let records = read(&bytes, How::default(), &signer()).sound();
        let stamped: Vec<bool> = records.iter().map(|record| record.stamped).collect();
        assert_eq!(stamped, [true, false, true, true]);
        assert!(records.iter().all(|record| record.signature == signature_of(&frame)));
    }
}
