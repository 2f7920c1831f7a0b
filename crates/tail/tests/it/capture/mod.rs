//! Captures byte by byte: every format read back from a mapped file, a pipe and in single bytes, every
//! kind of damage with the complete text of its error, with and without salvage.

mod cards;
mod damage;
mod errors;
mod formats;
mod places;
mod unstamped;

use crate::support::{How, Order, Pcap, read};
use tailtrim_tail::capture::Record;
use tailtrim_tail::signature::{Rewrites, Signature, Signer};

fn signer() -> Signer {
    Signer::new(Rewrites::default())
}

/// The signature of a frame, taken on its own from a capture of one record.
fn signature_of(frame: &[u8]) -> Signature {
    record_of(1, frame).signature
}

fn record_of(link_type: u32, frame: &[u8]) -> Record {
    let mut file = Pcap::new(Order::Little, true, link_type);
    file.frame(0, frame);
    read(&file.bytes, How::default(), &signer()).sound()[0]
}

/// Expected record of a whole Ethernet frame.
fn record(stamp_ns: i64, frame: &[u8]) -> Record {
    Record {
        stamp_ns,
        signature: signature_of(frame),
        length: frame.len() as u32,
        signable: frame.len() as u16 - 14,
        cut: false,
        stamped: true,
    }
}

fn stamps(records: &[Record]) -> Vec<i64> {
    records.iter().map(|record| record.stamp_ns).collect()
}
