//! Readings of NICs' clocks together with the system's, before and after a recording.

use std::fs::{self, File};
use std::io;
use tailtrim_sys::ptp;
use tailtrim_trace::phc::{Chain, Method, Offset, Triple, narrowest};

/// Clocks count in whole ns at best.
const RESOLUTION_NS: i64 = 1;
/// From the best to the one that every clock has.
const METHODS: [(Method, Read); 3] = [
    (Method::Precise, ptp::precise),
    (Method::Extended, ptp::extended),
    (Method::Basic, ptp::basic),
];

type Read = fn(&File) -> io::Result<Vec<Triple>>;

/// A clock that can be read, and its first reading.
#[derive(Debug)]
pub struct Phc {
    device: String,
    name: String,
    file: File,
    method: Method,
    read: Read,
    first: Offset,
}

impl Phc {
    /// Reads all clocks; the second list names those that cannot be read.
    #[must_use]
    pub fn begin() -> (Vec<Self>, Vec<String>) {
        let (mut clocks, mut refused) = (Vec::new(), Vec::new());
        for device in devices() {
            match Self::open(&device) {
                Ok(clock) => clocks.push(clock),
                Err(error) => refused.push(format!("/dev/{device}: {error}")),
            }
        }
        (clocks, refused)
    }

    /// Opens one, such as `ptp0`, and reads it.
    ///
    /// # Errors
    /// It cannot be read by this process, or not at all.
    pub fn open(device: &str) -> io::Result<Self> {
        let file = File::open(format!("/dev/{device}"))?;
        let name = fs::read_to_string(format!("/sys/class/ptp/{device}/clock_name"));
        let name = name.unwrap_or_default().trim().to_owned();
        let mut last = io::Error::other("its readings go backwards");
        for (method, read) in METHODS {
            match read(&file).map(|triples| narrowest(&triples, RESOLUTION_NS)) {
                Ok(Some(first)) => {
                    let device = device.to_owned();
                    return Ok(Self { device, name, file, method, read, first });
                }
                Ok(None) => {}
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The device, such as `ptp0`, and its driver's name for it.
    #[must_use]
    pub fn names(&self) -> [&str; 2] {
        [&self.device, &self.name]
    }

    /// Method of reading it.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// The frequency that it is set to beside its own, in parts per billion; nothing where this process may not ask.
    #[must_use]
    pub fn frequency_ppb(&self) -> Option<i64> {
        let file = File::options().read(true).write(true).open(format!("/dev/{}", self.device));
        ptp::frequency_ppb(&file.ok()?).ok()
    }

    /// Reads it again.
    ///
    /// # Errors
    /// It cannot be read any more.
    pub fn again(&self) -> Result<Chain, String> {
        let last = self.offset()?;
        Ok(Chain::new(&self.device, &self.name, self.method, self.first, last))
    }

    /// Its offset now.
    ///
    /// # Errors
    /// As of [`again`](Self::again).
    pub fn offset(&self) -> Result<Offset, String> {
        match (self.read)(&self.file).map(|triples| narrowest(&triples, RESOLUTION_NS)) {
            Ok(Some(offset)) => Ok(offset),
            Ok(None) => Err(format!("/dev/{}: its readings go backwards", self.device)),
            Err(error) => Err(format!("/dev/{}: {error}", self.device)),
        }
    }
}

/// `ptp0` and so on.
fn devices() -> Vec<String> {
    let entries = fs::read_dir("/sys/class/ptp").into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
