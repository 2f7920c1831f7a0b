//! Captures in: the records of classic pcap, pcapng and `MoonSniff` files as stamps and signatures.
//!
//! A [`CaptureReader`] turns an [`Input`] into batches of [`Record`]s. Decoding and signing happen in one pass
//! over the bytes, because a frame is touched only once while it is in the first-level cache.

mod error;
mod format;
mod input;
mod keep;
mod mscap;
mod pcap;
mod pcapng;
mod record;
mod track;
pub mod write;

pub use error::{CaptureError, Remedy};
pub use format::{Format, StampSource};
pub use input::{Input, Streamed, Whole};
pub use keep::Encapsulations;
pub(crate) use mscap::WRAP_NS;
pub use record::Record;
pub use track::{CHAIN, Track};

use crate::signature::Signer;
use error::Damage;
use keep::{Keep, Labels, Shown};
use tailtrim_wire::frame::Link;
use tailtrim_wire::label::Label;

#[derive(Debug, Clone)]
enum Decoder {
    Pcap(pcap::Decoder),
    Pcapng(pcapng::Decoder),
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

/// Bytes that [`CaptureReader::peek`] looks at to learn what kind of traffic this is.
const PEEK_BYTES: usize = 256 * 1024;

/// A capture being read.
pub struct CaptureReader {
    name: String,
    input: Box<dyn Input>,
    decoder: Decoder,
    offset: u64,
    records: u64,
    salvage: bool,
    damage: Option<CaptureError>,
    /// Error of the source while peeking.
    failure: Option<std::io::Error>,
    /// Those of the records that were read last, if they are wanted.
    labels: Option<Labels>,
    ended: bool,
}

impl CaptureReader {
    /// Recognises the format of `input` by its first bytes (`mscap` has none: `moonsniff` says that the
    /// caller knows it by the file's name) and reads the file header.
    ///
    /// `name` stands for the capture in errors. With `salvage`, damage ends the capture instead of
    /// failing and is kept for [`damage`](Self::damage).
    ///
    /// # Errors
    /// [`CaptureError::Empty`] without any byte, [`CaptureError::Format`] for unknown first bytes or a
    /// link type whose frames cannot be read, [`CaptureError::Io`] when the source fails.
    pub fn open(
        name: impl Into<String>,
        mut input: Box<dyn Input>,
        stamps: StampSource,
        moonsniff: bool,
        salvage: bool,
    ) -> Result<Self, CaptureError> {
        let name = name.into();
        let io = |source| CaptureError::Io { path: name.clone(), offset: 0, source };
        while input.window().len() < pcap::HEADER_LEN && input.extend().map_err(io)? {}
        let window = input.window();
        if window.is_empty() {
            return Err(CaptureError::Empty { path: name });
        }
        let (decoder, header_len) = if moonsniff {
            (Decoder::Mscap(mscap::Decoder::default()), 0)
        } else if pcapng::is_pcapng(window) {
            (Decoder::Pcapng(pcapng::Decoder::new(stamps)), 0)
        } else {
            let decoder =
                pcap::Decoder::new(window, stamps).map_err(|damage| CaptureError::Format {
                    path: name.clone(),
                    found: damage.found,
                    expected: damage.expected,
                })?;
            (Decoder::Pcap(decoder), pcap::HEADER_LEN)
        };
        input.consume(header_len);
        Ok(Self::within(name, input, decoder, header_len as u64, salvage))
    }

    /// A capture from `offset` on, where a record begins.
    fn within(
        name: String,
        input: Box<dyn Input>,
        decoder: Decoder,
        offset: u64,
        salvage: bool,
    ) -> Self {
        Self {
            name,
            input,
            decoder,
            offset,
            records: 0,
            salvage,
            damage: None,
            failure: None,
            labels: None,
            ended: false,
        }
    }

    /// Where the records of this capture begin, of which none was read yet; `None` where only reading it from its begin tells: other formats than
    /// classic pcap, and stamps that are not in the record headers.
    #[must_use]
    pub fn track(&self) -> Option<Track> {
        match &self.decoder {
            Decoder::Pcap(decoder) => Track::of(decoder, self.input.window()),
            Decoder::Pcapng(_) | Decoder::Mscap(_) => None,
        }
    }

    /// Has [`read`](Self::read) take labels too. Matching needs none and goes without.
    pub fn take_labels(&mut self) {
        self.labels = Some(Labels::default());
    }

    /// The labels of the stamped records that were read last, in their order; none unless
    /// [wanted](Self::take_labels).
    #[must_use]
    pub fn labels(&self) -> &[Label] {
        self.labels.as_ref().map_or(&[], |kept| &kept.labels)
    }

    /// Numbers of the stamped frames so far by their encapsulations; of none unless labels are [wanted](Self::take_labels).
    #[must_use]
    pub fn encapsulations(&self) -> Encapsulations {
        self.labels.as_ref().map(|kept| kept.encapsulations.clone()).unwrap_or_default()
    }

    /// The capture, as the user named it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether damage ends this capture instead of failing.
    #[must_use]
    pub fn salvages(&self) -> bool {
        self.salvage
    }

    /// The format found.
    #[must_use]
    pub fn format(&self) -> Format {
        match self.decoder {
            Decoder::Pcap(_) => Format::Pcap,
            Decoder::Pcapng(_) => Format::Pcapng,
            Decoder::Mscap(_) => Format::Mscap,
        }
    }

    /// Bytes of the (decompressed) capture that are done with.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether there are bytes at hand that were not decoded yet.
    #[must_use]
    pub fn has_ahead(&self) -> bool {
        !self.input.window().is_empty()
    }

    /// The damage at which a salvaged capture ended.
    #[must_use]
    pub fn damage(&self) -> Option<&CaptureError> {
        self.damage.as_ref()
    }

    /// Whether every stamp so far is below 2^32 ns in a format that is known to wrap there, so that the
    /// two captures of a run may be off by multiples of it.
    #[must_use]
    pub fn wraps(&self) -> bool {
        matches!(&self.decoder, Decoder::Mscap(decoder) if decoder.wraps())
    }

    /// Frames that the program which wrote the capture says it missed (pcapng statistics only; `None`
    /// where the format cannot tell). They never reached the file and must not count as lost in the
    /// device under test.
    #[must_use]
    pub fn tap_drops(&self) -> Option<u64> {
        match &self.decoder {
            Decoder::Pcapng(decoder) => Some(decoder.drops()),
            Decoder::Pcap(_) | Decoder::Mscap(_) => None,
        }
    }

    /// Decodes the first records without consuming them.
    ///
    /// # Errors
    /// That of a source that gives nothing; any other failure and damage are left for
    /// [`read`](Self::read) to report.
    pub fn peek(&mut self, signer: &Signer) -> Result<Vec<Record>, CaptureError> {
        self.peek_keeping(signer, &mut ())
    }

    /// The same, and shows the frame of each stamped record, in their order.
    ///
    /// # Errors
    /// Those of [`peek`](Self::peek).
    pub fn peek_frames(
        &mut self,
        signer: &Signer,
        show: impl FnMut(Link, &[u8]),
    ) -> Result<Vec<Record>, CaptureError> {
        self.peek_keeping(signer, &mut Shown(show))
    }

    fn peek_keeping(
        &mut self,
        signer: &Signer,
        keep: &mut impl Keep,
    ) -> Result<Vec<Record>, CaptureError> {
        while self.failure.is_none() && self.input.window().len() < PEEK_BYTES {
            match self.input.extend() {
                Ok(true) => {}
                Ok(false) => break,
                Err(failure) => self.failure = Some(failure),
            }
        }
        if self.input.window().is_empty() && self.failure.is_some() {
            self.extend()?;
        }
        let window = self.input.window();
        let mut window = &window[..window.len().min(PEEK_BYTES)];
        let mut decoder = self.decoder.clone();
        let mut records = Vec::new();
        loop {
            let Progress { consumed, damage } = decoder.decode(window, signer, &mut records, keep);
            window = &window[consumed..];
            if consumed == 0 || damage.is_some() {
                break;
            }
        }
        if let (Decoder::Mscap(decoder), Decoder::Mscap(ahead)) = (&mut self.decoder, decoder) {
            decoder.learn_width(&ahead);
        }
        Ok(records)
    }

    /// Clears `batch` and fills it with the next records. Returns `false` at the end of the capture.
    ///
    /// # Errors
    /// [`CaptureError::Damaged`] and [`CaptureError::Io`], once every record before them was handed out.
    pub fn read(&mut self, signer: &Signer, batch: &mut Vec<Record>) -> Result<bool, CaptureError> {
        let Some(mut labels) = self.labels.take() else {
            return self.read_keeping(signer, batch, &mut ());
        };
        labels.clear();
        let more = self.read_keeping(signer, batch, &mut labels);
        self.labels = Some(labels);
        more
    }

    /// The same, and shows the frame of each stamped record, in their order. Records of formats without frames have none.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub fn read_frames(
        &mut self,
        signer: &Signer,
        batch: &mut Vec<Record>,
        show: impl FnMut(Link, &[u8]),
    ) -> Result<bool, CaptureError> {
        self.read_keeping(signer, batch, &mut Shown(show))
    }

    fn read_keeping(
        &mut self,
        signer: &Signer,
        batch: &mut Vec<Record>,
        keep: &mut impl Keep,
    ) -> Result<bool, CaptureError> {
        batch.clear();
        while !self.ended {
            let (window_at, window) = (self.offset, self.input.window());
            let progress = self.decoder.decode(window, signer, batch, keep);
            self.input.consume(progress.consumed);
            self.offset += progress.consumed as u64;
            self.records += batch.len() as u64;
            if let Some(damage) = progress.damage {
                // Records before the damage go out first; the decoder meets the damage again.
                if batch.is_empty() {
                    self.finish(self.damaged(window_at, damage))?;
                }
            } else if batch.is_empty() {
                let more = self.extend().or_else(|failure| self.finish(failure).map(|()| false))?;
                if !more && !self.ended {
                    self.ended = true;
                    let left = self.input.window().len();
                    if left > 0 {
                        let damage = self.decoder.truncated(self.input.window());
                        self.finish(self.damaged(self.offset, damage))?;
                    }
                }
            }
            if !batch.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn extend(&mut self) -> Result<bool, CaptureError> {
        let more = self.failure.take().map_or_else(|| self.input.extend(), Err);
        more.map_err(|source| CaptureError::Io {
            path: self.name.clone(),
            offset: self.offset,
            source,
        })
    }

    /// Places damage found in the window that starts at `window_at`.
    fn damaged(&self, window_at: u64, damage: Damage) -> CaptureError {
        CaptureError::Damaged {
            path: self.name.clone(),
            offset: window_at + damage.at as u64,
            found: damage.found,
            expected: damage.expected,
            records: self.records,
        }
    }

    /// Ends the capture at `error`: kept when salvaging, returned otherwise.
    fn finish(&mut self, error: CaptureError) -> Result<(), CaptureError> {
        self.ended = true;
        if self.salvage && error.leaves_records() {
            self.damage = Some(error);
            Ok(())
        } else {
            Err(error)
        }
    }
}

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
            Self::Mscap(decoder) => decoder.decode(window, records, keep),
        }
    }

    /// Describes the partial record `rest` at the end of the capture.
    fn truncated(&self, rest: &[u8]) -> Damage {
        let (found, expected) = match self {
            Self::Pcap(decoder) => decoder.truncated(rest),
            Self::Pcapng(_) => (
                format!("the capture ends inside a block, {} bytes into it", rest.len()),
                "a whole block".to_owned(),
            ),
            Self::Mscap(_) => (
                format!("the capture ends {} bytes into a record", rest.len()),
                format!("{} bytes", mscap::RECORD_LEN),
            ),
        };
        Damage { at: 0, found, expected }
    }
}
