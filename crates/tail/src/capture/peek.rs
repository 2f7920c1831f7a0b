//! The first records of a capture, before any is read.

use super::keep::{Forms, Keep};
use super::{CaptureError, CaptureReader, Decoder, Progress, Record};
use crate::signature::{Rewrites, Signer};

/// Bytes that [`CaptureReader::peek`] looks at to learn what kind of traffic this is.
const PEEK_BYTES: usize = 256 * 1024;

impl CaptureReader {
    /// Decodes the first records without consuming them.
    ///
    /// # Errors
    /// That of a source that gives nothing; any other failure and damage are left for
    /// [`read`](Self::read) to report.
    pub fn peek(&mut self, signer: &Signer) -> Result<Vec<Record>, CaptureError> {
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
        let (records, decoder) = match self.filter.clone() {
            None => self.ahead(signer, &mut ()),
            Some(mut filter) => {
                let (mut records, decoder) = self.ahead(signer, &mut filter);
                filter.leave_out(&mut records);
                (records, decoder)
            }
        };
        if let (Decoder::Mscap(decoder), Decoder::Mscap(ahead)) = (&mut self.decoder, decoder) {
            decoder.learn_width(&ahead);
        }
        Ok(records)
    }

    /// In what the frames of the records that [`peek`](Self::peek) shows differ beside what is signed, a value for each:
    /// L2 header and TTL.
    #[must_use]
    pub fn peek_forms(&self) -> Vec<u64> {
        let wanted = self.filter.as_ref().map(|filter| filter.wanted.clone());
        let mut forms = Forms { wanted, forms: Vec::new() };
        let (records, _) = self.ahead(&Signer::new(Rewrites::default()), &mut forms);
        let mut forms = forms.forms.into_iter();
        let form = |record: &Record| if record.stamped { forms.next().flatten() } else { Some(0) };
        records.iter().filter_map(form).collect()
    }

    /// The records at hand, and the decoder behind them.
    fn ahead(&self, signer: &Signer, keep: &mut impl Keep) -> (Vec<Record>, Decoder) {
        let window = self.input.window();
        let mut window = &window[..window.len().min(PEEK_BYTES)];
        let mut decoder = self.decoder.clone();
        let mut records = Vec::new();
        loop {
            let Progress { consumed, damage } = decoder.decode(window, signer, &mut records, keep);
            window = &window[consumed..];
            if consumed == 0 || damage.is_some() {
                return (records, decoder);
            }
        }
    }
}
