//! Captures in: the records of pcap, pcapng, ERF and `MoonSniff` files as stamps and signatures.
//!
//! A [`CaptureReader`] turns an [`Input`] into batches of [`Record`]s. Decoding and signing happen in one pass
//! over the bytes, because a frame is touched only once while it is in the first-level cache.

mod block;
mod erf;
mod error;
mod filter;
mod foreign;
mod format;
mod input;
mod keep;
mod mscap;
mod pcap;
mod pcapng;
mod reader;
mod record;
mod side;
mod track;
pub mod write;

pub use error::{CaptureError, Remedy};
pub use filter::{Choice, Choose};
pub use foreign::Unread;
pub use format::{Format, StampSource};
pub use input::{Input, Streamed, Whole};
pub use keep::Encapsulations;
pub(crate) use mscap::WRAP_NS;
pub use reader::{CaptureReader, NEXT_STAMPS};
pub use record::Record;
pub use side::{InterfaceDirection, Only, Seen};
pub use track::{CHAIN, Track};

use crate::signature::Signer;
use crate::summary::in_bytes;
use error::Damage;
use keep::Keep;
use std::collections::BTreeMap;
pub use tailtrim_wire::frame::Link;

#[derive(Debug, Clone)]
enum Decoder {
    Pcap(pcap::Decoder),
    Pcapng(pcapng::Decoder),
    Erf(erf::Decoder),
    Mscap(mscap::Decoder),
}

/// Result of one call of a decoder.
#[derive(Debug, Default)]
struct Progress {
    /// Bytes of the window that are done with.
    consumed: usize,
    /// Damage found after the records decoded by this call.
    damage: Option<Damage>,
}

/// Most records decoded in one go: few enough to stay in the first-level cache beside those of the other
/// capture, enough to pay for the call.
const BATCH: usize = 256;

impl Decoder {
    fn decode(
        &mut self,
        window: &[u8],
        signer: &Signer,
        records: &mut Vec<Record>,
        keep: &mut impl Keep,
    ) -> Progress {
        match self {
            Self::Pcap(decoder) => decoder.decode(window, signer, records, keep),
            Self::Pcapng(decoder) => decoder.decode(window, signer, records, keep),
            Self::Erf(decoder) => decoder.decode(window, signer, records, keep),
            Self::Mscap(decoder) => decoder.decode(window, records, keep),
        }
    }

    /// Has the place of each record looked at, and says whether each record tells a direction. The error names a format that
    /// does not tell interfaces.
    fn look_at_places(&mut self) -> Result<bool, &'static str> {
        match self {
            Self::Pcap(decoder) if decoder.has_places() => {
                decoder.look_at_each();
                Ok(true)
            }
            Self::Pcapng(_) | Self::Erf(_) => Ok(false),
            Self::Pcap(_) => Err("a pcap of one interface"),
            Self::Mscap(_) => Err("a MoonSniff capture"),
        }
    }

    /// Packets that are not read, by interface and link type.
    fn unread(&self) -> Option<&BTreeMap<(u32, String), u64>> {
        match self {
            Self::Pcapng(decoder) => Some(&decoder.unread),
            Self::Erf(decoder) => Some(&decoder.unread),
            Self::Pcap(_) | Self::Mscap(_) => None,
        }
    }

    /// Describes the partial record `rest` at the end of the capture.
    fn truncated(&self, rest: &[u8]) -> Damage {
        let (found, expected) = match self {
            Self::Pcap(decoder) => decoder.truncated(rest),
            Self::Pcapng(_) => (
                format!("the capture ends inside a block, {} into it", in_bytes(rest.len())),
                "a whole block".to_owned(),
            ),
            Self::Erf(_) => erf::Decoder::truncated(rest),
            Self::Mscap(_) => (
                format!("the capture ends {} into a record", in_bytes(rest.len())),
                format!("{} bytes", mscap::RECORD_LEN),
            ),
        };
        Damage::of(found, expected)
    }
}
