//! A capture being read: its format recognised, records handed out in batches, damage with its place.

use super::error::Damage;
use super::filter::{Choose, Filter};
use super::keep::{Encapsulations, Forms, Keep, Labels, Shown};
use super::side::Survey;
use super::track::{CHAIN, Track};
use super::{
    CaptureError, Decoder, Format, Input, Only, Progress, Record, Seen, StampSource, Unread, erf,
    mscap, pcap, pcapng,
};
use crate::signature::{Rewrites, Signer};
use tailtrim_wire::frame::Link;
use tailtrim_wire::label::Label;

/// Bytes that [`CaptureReader::peek`] looks at to learn what kind of traffic this is.
const PEEK_BYTES: usize = 256 * 1024;

/// Stamps behind a packet that tell whether its own is odd.
pub const NEXT_STAMPS: usize = 5;

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
    /// Labels of the records that were read last, if they are wanted.
    labels: Option<Labels>,
    /// The packets that are read, if not all are.
    filter: Option<Filter>,
    title: Option<String>,
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
            match pcap::Decoder::new(window, stamps) {
                Ok(decoder) => (Decoder::Pcap(decoder), pcap::HEADER_LEN),
                // It has no magic number: every other format comes first.
                Err(_) if Self::is_erf(&mut *input).map_err(io)? => {
                    (Decoder::Erf(erf::Decoder::default()), 0)
                }
                Err(Damage { found, expected, .. }) => {
                    return Err(CaptureError::Format { path: name.clone(), found, expected });
                }
            }
        };
        input.consume(header_len);
        Ok(Self::within(name, input, decoder, (header_len as u64, 0), salvage))
    }

    fn is_erf(input: &mut dyn Input) -> std::io::Result<bool> {
        loop {
            if let Some(known) = erf::Decoder::recognises(input.window()) {
                return Ok(known);
            }
            if !input.extend()? {
                return Ok(erf::Decoder::is_one(input.window()));
            }
        }
    }

    /// Reads only the packets of an interface, of a direction, or both. To be called before the first record is read.
    ///
    /// # Errors
    /// [`CaptureError::NoPlaces`] where the capture does not tell interfaces.
    pub fn take_only(&mut self, only: Only) -> Result<(), CaptureError> {
        let of_a_direction = self.look_at_places()?;
        let only = if of_a_direction { only.of_a_direction() } else { only };
        self.filter.get_or_insert_default().only = Some(only);
        Ok(())
    }

    fn look_at_places(&mut self) -> Result<bool, CaptureError> {
        let looked = self.decoder.look_at_places();
        looked.map_err(|found| CaptureError::NoPlaces { path: self.name.clone(), found })
    }

    /// Reads the capture to its end and counts its packets by interface and direction.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read), and [`CaptureError::NoPlaces`].
    pub fn survey(mut self) -> Result<Vec<Seen>, CaptureError> {
        self.look_at_places()?;
        let (signer, mut batch) = (Signer::new(Rewrites::default()), Vec::new());
        let mut survey = Survey::default();
        while self.read_keeping(&signer, &mut batch, &mut survey)? {}
        Ok(survey.seen())
    }

    /// A capture from `offset` on, where a record begins, and before which there are so many.
    pub(super) fn within(
        name: String,
        input: Box<dyn Input>,
        decoder: Decoder,
        (offset, records): (u64, u64),
        salvage: bool,
    ) -> Self {
        Self {
            name,
            input,
            decoder,
            offset,
            records,
            salvage,
            damage: None,
            failure: None,
            labels: None,
            filter: None,
            title: None,
            ended: false,
        }
    }

    /// The places at which the records of this capture begin, of which none was read yet; `None` where only reading it from
    /// its begin tells: other formats than classic pcap, stamps that are not in the record headers, and captures of which
    /// [not all packets](Self::choosing) count.
    #[must_use]
    pub fn track(&self) -> Option<Track> {
        match &self.decoder {
            _ if self.filter.is_some() => None,
            Decoder::Pcap(decoder) => Track::of(decoder, self.input.window()),
            Decoder::Pcapng(_) | Decoder::Erf(_) | Decoder::Mscap(_) => None,
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

    /// Reads only the packets that are chosen, as if the capture had no others, and those only that were chosen before.
    #[must_use]
    pub fn choosing(mut self, choose: impl Choose + 'static) -> Self {
        self.filter.get_or_insert_default().choose.push(Box::new(choose));
        self
    }

    /// Names the packets that are read, beside the capture that they are of.
    #[must_use]
    pub fn titled(self, title: String) -> Self {
        Self { title: Some(title), ..self }
    }

    /// Name of the packets that are read: that of the capture unless they are [titled](Self::titled).
    #[must_use]
    pub fn title(&self) -> &str {
        self.title.as_ref().unwrap_or(&self.name)
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
            Decoder::Erf(_) => Format::Erf,
            Decoder::Mscap(_) => Format::Mscap,
        }
    }

    /// The unit of the stamps in ps, at least 1,000: the coarsest of its interfaces so far.
    #[must_use]
    pub fn unit_ps(&self) -> u64 {
        match &self.decoder {
            Decoder::Pcap(decoder) => decoder.unit_ps(),
            Decoder::Pcapng(decoder) => decoder.unit_ps(),
            Decoder::Erf(_) | Decoder::Mscap(_) => 1_000,
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

    /// Frames that the program which wrote the capture says it missed (statistics of pcapng, counters of ERF; `None`
    /// where the format cannot tell). They never reached the file and must not count as lost in the
    /// device under test.
    #[must_use]
    pub fn tap_drops(&self) -> Option<u64> {
        match &self.decoder {
            Decoder::Pcapng(decoder) => Some(decoder.drops()),
            Decoder::Erf(decoder) => Some(decoder.drops()),
            Decoder::Pcap(_) | Decoder::Mscap(_) => None,
        }
    }

    /// Packets so far that are not read, because the link type of their interface is not understood.
    #[must_use]
    pub fn unread(&self) -> Vec<Unread> {
        let told = |((interface, link_type), packets): (&(u32, String), &u64)| Unread {
            interface: *interface,
            link_type: link_type.clone(),
            packets: *packets,
        };
        self.decoder.unread().into_iter().flatten().map(told).collect()
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
    /// The errors of [`peek`](Self::peek).
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
        let (records, decoder) = self.ahead(signer, keep);
        if let (Decoder::Mscap(decoder), Decoder::Mscap(ahead)) = (&mut self.decoder, decoder) {
            decoder.learn_width(&ahead);
        }
        Ok(records)
    }

    /// In what the frames of the records that [`peek`](Self::peek) shows differ beside what is signed, a value for each:
    /// L2 header and TTL.
    #[must_use]
    pub fn peek_forms(&self) -> Vec<u64> {
        let mut forms = Forms::default();
        let (records, _) = self.ahead(&Signer::new(Rewrites::default()), &mut forms);
        let mut forms = forms.0.into_iter();
        let form = |record: &Record| if record.stamped { forms.next() } else { Some(0) };
        records.iter().filter_map(form).collect()
    }

    /// The records at hand, and the decoder behind them.
    fn ahead(&self, signer: &Signer, keep: &mut impl Keep) -> (Vec<Record>, Decoder) {
        let window = self.input.window();
        let window = &window[..window.len().min(PEEK_BYTES)];
        let mut records = Vec::new();
        let Some(mut filter) = self.filter.clone() else {
            let decoder = self.decode_ahead(window, signer, &mut records, keep);
            return (records, decoder);
        };
        let decoder = self.decode_ahead(window, signer, &mut records, &mut filter.before(keep));
        filter.leave_out(&mut records);
        (records, decoder)
    }

    fn decode_ahead(
        &self,
        mut window: &[u8],
        signer: &Signer,
        records: &mut Vec<Record>,
        keep: &mut impl Keep,
    ) -> Decoder {
        let mut decoder = self.decoder.clone();
        loop {
            let Progress { consumed, damage } = decoder.decode(window, signer, records, keep);
            window = &window[consumed..];
            if consumed == 0 || damage.is_some() {
                return decoder;
            }
        }
    }

    /// The stamps of the next [`NEXT_STAMPS`] stamped records or more, without consuming them; fewer at the end of the
    /// capture.
    pub fn next_stamps(&mut self, signer: &Signer) -> Vec<i64> {
        loop {
            let (window, mut records) = (self.input.window(), Vec::new());
            let mut filter = self.filter.clone().unwrap_or_default();
            let mut decoder = self.decoder.clone();
            let progress =
                decoder.decode(window, signer, &mut records, &mut filter.before(&mut ()));
            filter.leave_out(&mut records);
            let enough = window.len() >= PEEK_BYTES || progress.damage.is_some();
            let stamps: Vec<i64> = records
                .iter()
                .filter(|record| record.stamped)
                .map(|record| record.stamp_ns)
                .collect();
            if stamps.len() >= NEXT_STAMPS || enough || self.failure.is_some() {
                return stamps;
            }
            match self.input.extend() {
                Ok(true) => {}
                Ok(false) => return stamps,
                Err(failure) => self.failure = Some(failure),
            }
        }
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
    /// The errors of [`read`](Self::read).
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
        let Some(mut filter) = self.filter.take() else {
            return self.read_all(signer, batch, keep);
        };
        let more = loop {
            let more = self.read_all(signer, batch, &mut filter.before(keep));
            filter.leave_out(batch);
            if !batch.is_empty() || !matches!(more, Ok(true)) {
                break more;
            }
        };
        self.filter = Some(filter);
        more
    }

    fn read_all(
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
                    match self.variant() {
                        Some(error) => {
                            self.ended = true;
                            return Err(error);
                        }
                        None => self.finish(self.damaged(window_at, damage))?,
                    }
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
                    let unread = self.unread();
                    if self.records == 0 && !unread.is_empty() {
                        let told: Vec<String> = unread.iter().map(Unread::to_string).collect();
                        let (path, unread) = (self.name.clone(), told.join(", "));
                        return Err(CaptureError::Unread { path, unread });
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

    /// The error where damage behind the first record is that of a variant of the format.
    #[cold]
    fn variant(&mut self) -> Option<CaptureError> {
        let Decoder::Pcap(decoder) = &self.decoder else { return None };
        if self.records != 1 {
            return None;
        }
        while self.input.window().len() < CHAIN && matches!(self.input.extend(), Ok(true)) {}
        let bytes = decoder.variant(self.input.window())?;
        Some(CaptureError::Format {
            path: self.name.clone(),
            found: format!("a variant of pcap with record headers of {bytes} bytes"),
            expected: "16 bytes, or 24 under the magic number a1b2cd34: convert it with editcap -F nsecpcap IN OUT"
                .to_owned(),
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
            nanoseconds: damage.nanoseconds,
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
