//! Errors of captures: unknown formats, sources that fail, and the wording of each error.

use super::{signer, stamps};
use crate::support::frames::probe;
use crate::support::{Failing, How, NAME, Order, Pcap, drain, read, says};
use std::io;
use tailtrim_tail::capture::{CaptureError, Remedy, Streamed};

#[test]
fn what_no_reader_understands() {
    let magic = ["a1b2c3d4", "a1b23c4d", "0a0d0d0a", "zstd", "gzip", ".mscap"].as_slice();
    let links = ["1 ", "101", "228", "229", "113", "276"].as_slice();
    let cases = [
        (b"GIF89a\x01\x02, and then some more bytes".to_vec(), "magic number 47 49 46 38", magic),
        (vec![0; 24], "magic number 00 00 00 00", magic),
        (Pcap::new(Order::Little, true, 105).bytes, "link type 105", links),
        (Pcap::new(Order::Big, false, 65_535).bytes, "link type 65535", links),
    ];
    for (bytes, found, expected) in cases {
        for how in [How::default(), How::SALVAGE] {
            let content = read(&bytes, how, &signer());
            let error = content.error.unwrap();
            assert!(says(&error, &[NAME, "byte 0", found, "expected"]), "{error}");
            assert!(says(&error, expected), "{error}");
            assert_eq!(content.hint, None);
        }
    }
}

#[test]
fn an_empty_file_is_named() {
    for how in [How::default(), How::SALVAGE, How::MOONSNIFF] {
        let content = read(&[], how, &signer());
        let error = content.error.unwrap();
        assert!(says(&error, &[NAME, "empty", "expected", "pcap", "pcapng", "mscap"]), "{error}");
        assert_eq!(content.hint, None);
    }
}

#[test]
fn a_source_that_fails() {
    let mut file = Pcap::ethernet();
    file.frame(1, &probe(0)).frame(2, &probe(1));
    let signer = signer();
    for cut in [10, 24, 24 + 80, 24 + 80 + 30, 24 + 160] {
        let input = || Box::new(Streamed::new(Failing(file.bytes[..cut].to_vec())));
        let content = drain(input(), How::default(), &signer);
        let records = cut.saturating_sub(24) / 80;
        // Before the header is complete nothing was read that could be used.
        let offset = if cut < 24 { 0 } else { 24 + records * 80 };
        let error = content.error.unwrap();
        let facts = [NAME, &format!("byte {offset}:"), "the cable is cut"];
        assert!(says(&error, &facts), "{error}");
        assert_eq!(content.records.len(), records);
        let remedy = Remedy::Salvage { packets: None };
        assert_eq!(content.hint, (offset > 0).then_some(remedy));
        let salvaged = drain(input(), How::SALVAGE, &signer);
        assert_eq!(salvaged.records, content.records);
        if offset > 0 {
            assert_eq!((salvaged.error, salvaged.damage), (None, Some(error)));
        } else {
            assert_eq!((salvaged.error, salvaged.damage), (Some(error), None));
        }
    }
}

#[test]
fn peeking_at_a_source_that_fails_loses_nothing() {
    let mut file = Pcap::ethernet();
    file.frame(1, &probe(0)).frame(2, &probe(1));
    let input = Streamed::new(Failing(file.bytes[..24 + 80 + 30].to_vec()));
    let mut capture = How::SALVAGE.open(Box::new(input)).unwrap();
    let peeked = capture.peek(&signer()).unwrap();
    assert_eq!(stamps(&peeked), [1]);
    let mut batch = Vec::new();
    assert!(capture.read(&signer(), &mut batch).unwrap());
    assert_eq!(batch, peeked);
    assert!(!capture.read(&signer(), &mut batch).unwrap());
    assert!(matches!(capture.damage(), Some(CaptureError::Io { offset: 104, .. })));
}

#[test]
fn the_text_and_the_remedy_of_every_error() {
    let path = || "a.pcap".to_owned();
    let cases: [(CaptureError, &str, Option<Remedy>); 9] = [
        (
            CaptureError::Open { path: path(), source: io::Error::other("no such luck") },
            "a.pcap: cannot be opened: no such luck",
            None,
        ),
        (
            CaptureError::Io { path: path(), offset: 0, source: io::Error::other("gone") },
            "a.pcap: reading failed after byte 0: gone",
            None,
        ),
        (
            CaptureError::Io { path: path(), offset: 7, source: io::Error::other("gone") },
            "a.pcap: reading failed after byte 7: gone",
            Some(Remedy::Salvage { packets: None }),
        ),
        (
            CaptureError::Empty { path: path() },
            "a.pcap: the file is empty, expected a capture (pcap, pcapng, ERF or mscap)",
            None,
        ),
        (
            CaptureError::Format {
                path: path(),
                found: "magic number 00 01 02 03".to_owned(),
                expected: "another one".to_owned(),
            },
            "a.pcap: byte 0: magic number 00 01 02 03, expected another one",
            None,
        ),
        (
            CaptureError::Damaged {
                path: path(),
                offset: 24,
                found: "this".to_owned(),
                expected: "that".to_owned(),
                records: 0,
                nanoseconds: false,
            },
            "a.pcap: byte 24: this, expected that",
            None,
        ),
        (
            CaptureError::Damaged {
                path: path(),
                offset: 99,
                found: "this".to_owned(),
                expected: "that".to_owned(),
                records: 3,
                nanoseconds: false,
            },
            "a.pcap: byte 99: this, expected that",
            Some(Remedy::Salvage { packets: Some(3) }),
        ),
        (
            CaptureError::Disorder { path: path(), packet: 17, back_ns: 2_000_000_000 },
            "a.pcap: packet 17: its stamp is 2.00 s before an earlier one, expected stamps in order within 1 s",
            Some(Remedy::Sort),
        ),
        (
            CaptureError::Damaged {
                path: path(),
                offset: 99,
                found: "this".to_owned(),
                expected: "that".to_owned(),
                records: 1,
                nanoseconds: false,
            },
            "a.pcap: byte 99: this, expected that",
            Some(Remedy::Salvage { packets: Some(1) }),
        ),
    ];
    for (error, text, remedy) in cases {
        assert_eq!(error.to_string(), text);
        assert_eq!(error.remedy(), remedy);
    }
}

#[test]
fn the_text_of_captures_that_are_read_in_another_way_or_not_at_all() {
    let path = || "a.pcap".to_owned();
    let cases: [(CaptureError, &str, Option<Remedy>); 3] = [
        (
            CaptureError::Damaged {
                path: path(),
                offset: 99,
                found: "this".to_owned(),
                expected: "that".to_owned(),
                records: 3,
                nanoseconds: true,
            },
            "a.pcap: byte 99: this, expected that",
            Some(Remedy::Nanoseconds { packets: 3 }),
        ),
        (
            CaptureError::Unread { path: path(), unread: "5 packets of interface 2".to_owned() },
            "a.pcap: no packet can be read: 5 packets of interface 2, expected link type 1 (Ethernet), 101, 228 or 229 \
             (raw IP), 113 or 276 (Linux cooked), 0 or 108 (BSD loopback), 9, 50 or 51 (PPP), 104 (C-HDLC), 239 (NFLOG), \
             281, 282, 284 or 285 (switch tags): record on the network interface itself",
            None,
        ),
        (
            CaptureError::NoPlaces { path: path(), found: "a pcap of one interface" },
            "a.pcap: is a pcap of one interface, which does not say of which interface or direction a packet is, expected a \
             second capture, or one that says it: pcapng, ERF, tcpdump -i any",
            None,
        ),
    ];
    for (error, text, remedy) in cases {
        assert_eq!(error.to_string(), text);
        assert_eq!(error.remedy(), remedy);
    }
}
