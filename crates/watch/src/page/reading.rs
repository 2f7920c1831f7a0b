//! Minutes of a target are read from its files, from a place on.

use crate::frames::walk;
use crate::store::ENDING;
use serde::Deserialize;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Of a minute, what the page needs; other keys are left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    pub(super) begin_ns: i64,
    /// Of a tapped device, packets that entered it.
    #[serde(alias = "packets")]
    pub(super) due: u64,
    #[serde(alias = "matched")]
    pub(super) answered: u64,
    #[serde(alias = "beyond_window")]
    pub(super) late: u64,
    pub(super) lost: u64,
    pub(super) altered: u64,
    pub(super) undelivered: u64,
    /// Round trips in the order of departures, or all different ones, with `samples`.
    pub(super) latency_ns: Vec<Option<i64>>,
    pub(super) samples: Option<Vec<u64>>,
    pub(super) health: Health,
    /// The slowest probe, with all of its keys.
    pub(super) worst: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Of the meter.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Health {
    /// Time in which the taps of a device recorded; `None`: a target.
    pub(super) tapped_ns: Option<i64>,
}

/// A place in the files of a target: the begin of a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) day: String,
    pub(super) offset: u64,
}

/// The end of the newest file: it changes when a minute is written.
pub(super) fn end(folder: &Path) -> io::Result<Place> {
    let Some(day) = days(folder)?.pop() else { return Ok(Place::default()) };
    let offset = fs::metadata(folder.join(day.clone() + ENDING))?.len();
    Ok(Place { day, offset })
}

/// Reads the minutes that begin at `begin_s` or later, from a place on. Returns whether files of former days are whole:
/// at the end of the newest one, a frame may be on its way.
pub(super) fn minutes(
    folder: &Path,
    from: &Place,
    begin_s: i64,
    mut take: impl FnMut(Place, Line),
) -> io::Result<bool> {
    let days = days(folder)?;
    let newest = days.last().cloned();
    let mut whole = true;
    for day in days.into_iter().filter(|day| *day >= from.day) {
        let offset = if day == from.day { from.offset } else { 0 };
        let file = File::open(folder.join(day.clone() + ENDING));
        let read = file.and_then(|mut file| {
            walk(&mut file, offset, |offset, frame| {
                let line: Line = serde_json::from_slice(&zstd::decode_all(frame)?)?;
                if line.begin_ns >= begin_s.saturating_mul(1_000_000_000) {
                    take(Place { day: day.clone(), offset }, line);
                }
                Ok(())
            })
        });
        match read {
            Ok(()) => {}
            // Removed meanwhile, since it was old or the disk full.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) if Some(&day) == newest.as_ref() => {}
            Err(_) => whole = false,
        }
    }
    Ok(whole)
}

/// Days of which a target has a file, ascending.
fn days(folder: &Path) -> io::Result<Vec<String>> {
    let mut days = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(days),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name();
        days.extend(name.to_str().and_then(|name| name.strip_suffix(ENDING)).map(str::to_owned));
    }
    days.sort_unstable();
    Ok(days)
}
