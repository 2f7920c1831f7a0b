//! Minutes of a target as they are on disk.

use crate::frames::{near_end, walk};
use crate::minute::MINUTE_NS;
use crate::store::ENDING;
use serde::Deserialize;
use std::fs::File;
use std::io;
use std::path::Path;
use tailtrim_sys::clock;

const DAY_NS: i64 = 1_440 * MINUTE_NS;

/// A minute.
#[derive(Debug)]
pub(super) struct Read {
    /// Counted from 1970 on.
    pub(super) number: i64,
    /// Latencies in the order of departures, with how many probes have each.
    pub(super) latencies_ns: Vec<(i64, u64)>,
    /// Probes that were not answered in time.
    pub(super) lost: u64,
    /// Whether the meter had a fault that moves latencies.
    pub(super) disturbed: bool,
}

#[derive(Deserialize)]
struct Line {
    begin_ns: i64,
    late: u64,
    lost: u64,
    altered: u64,
    undelivered: u64,
    health: Health,
    latency_ns: Vec<Option<i64>>,
    samples: Option<Vec<u64>>,
}

#[derive(Deserialize)]
struct Health {
    clock_stepped_ns: i64,
}

/// Reads the minutes of a target that began from one number on and before another one, in their order. Days that are
/// missing, and lines that a crash cut, are left out.
pub(super) fn read(folder: &Path, from: i64, until: i64, mut take: impl FnMut(Read)) {
    let mut day_ns = (from * MINUTE_NS).div_euclid(DAY_NS) * DAY_NS;
    while day_ns < until.saturating_mul(MINUTE_NS) {
        let path = folder.join(clock::date(day_ns) + ENDING);
        // It is missing, or damaged from a minute on.
        let _ = read_day(&path, from, until, &mut take);
        day_ns += DAY_NS;
    }
}

fn read_day(path: &Path, from: i64, until: i64, take: &mut impl FnMut(Read)) -> io::Result<()> {
    let mut file = File::open(path)?;
    // The last minutes of a day are found from its end, without most of those before.
    let is_before = |text: &[u8]| minute(text).is_some_and(|minute| minute.number < from);
    let begin = near_end(&mut file, is_before)?;
    walk(&mut file, begin, |_, frame| {
        if let Some(minute) = zstd::decode_all(frame).ok().and_then(|text| minute(&text))
            && (from..until).contains(&minute.number)
        {
            take(minute);
        }
        Ok(())
    })
}

/// Reads a line; `None`: a crash has damaged it.
fn minute(text: &[u8]) -> Option<Read> {
    let line: Line = serde_json::from_slice(text).ok()?;
    let samples = line.samples.into_iter().flatten().chain(std::iter::repeat(1));
    let pairs = line.latency_ns.into_iter().zip(samples);
    Some(Read {
        number: line.begin_ns.div_euclid(MINUTE_NS),
        latencies_ns: pairs.filter_map(|(ns, count)| Some((ns?, count))).collect(),
        lost: line.late + line.lost + line.altered + line.undelivered,
        disturbed: line.health.clock_stepped_ns != 0,
    })
}
