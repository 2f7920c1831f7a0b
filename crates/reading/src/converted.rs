//! Captures whose stamps were converted from the clock of one NIC to that of another: a file beside each says how well.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use tailtrim_tail::capture::CaptureError;
use tailtrim_tail::summary::Summary;

/// Name and version of the form of the file.
const SCHEMA: &str = "tailtrim.clocks/1";
/// Its name, behind that of the capture.
const BESIDE: &str = ".clocks.json";
/// Most bytes of it: reasons are sentences.
const MOST: u64 = 1 << 16;

/// Conversion of the stamps of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Converted {
    schema: String,
    /// The clock that stamped.
    pub clock: String,
    /// The clock whose times the stamps are.
    pub reference: String,
    /// Largest error of a stamp, either way; nothing where that is not known.
    pub clock_error_ns: Option<i64>,
    /// Reasons why it is not known.
    pub invalid: Vec<String>,
}

impl Converted {
    /// Makes one.
    #[must_use]
    pub fn new(
        clock: &str,
        reference: &str,
        clock_error_ns: Option<i64>,
        invalid: Vec<String>,
    ) -> Self {
        let [schema, clock, reference] = [SCHEMA, clock, reference].map(str::to_owned);
        Self { schema, clock, reference, clock_error_ns, invalid }
    }

    /// The file beside a capture.
    #[must_use]
    pub fn path(capture: &Path) -> PathBuf {
        let mut name = OsString::from(capture);
        name.push(BESIDE);
        name.into()
    }

    /// Reads the file beside a capture; `None` without one.
    ///
    /// # Errors
    /// It cannot be read, or has another form.
    pub fn beside(capture: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(Self::path(capture)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut text = String::new();
        file.take(MOST).read_to_string(&mut text)?;
        let told: Self = serde_json::from_str(&text)?;
        if told.schema != SCHEMA || told.clock_error_ns.is_some_and(|ns| ns < 0) {
            return Err(io::Error::other(format!(
                "expected {SCHEMA}, with an error of 0 ns or more"
            )));
        }
        Ok(Some(told))
    }
}

/// Tells with the latencies what the files beside both captures say.
///
/// # Errors
/// One of the files cannot be read, or has another form.
pub fn tell(summary: &mut Summary) -> Result<(), CaptureError> {
    let mut converted = Vec::new();
    for tap in [&summary.taps.ingress, &summary.taps.egress] {
        let capture = Path::new(&tap.capture);
        let beside = Converted::beside(capture).map_err(|source| CaptureError::Open {
            path: Converted::path(capture).display().to_string(),
            source,
        })?;
        converted.extend(beside);
    }
    if !converted.is_empty() {
        let errors_ns: Option<Vec<i64>> = converted.iter().map(|one| one.clock_error_ns).collect();
        let error_ns = errors_ns.map(|errors| errors.into_iter().fold(0, i64::saturating_add));
        let why: Vec<String> = converted.into_iter().flat_map(|one| one.invalid).collect();
        summary.stamped_by_two_clocks(error_ns, &why);
    }
    Ok(())
}
