//! Minutes of a target as they are on disk.

use crate::minute::MINUTE_NS;
use serde::Deserialize;
use std::fs;
use std::path::Path;
use tailtrim_sys::clock;
use zstd::zstd_safe;

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
        let path = folder.join(clock::date(day_ns) + ".jsonl.zst");
        if let Ok(bytes) = fs::read(path) {
            read_day(&bytes, from, until, &mut take);
        }
        day_ns += DAY_NS;
    }
}

fn read_day(bytes: &[u8], from: i64, until: i64, take: &mut impl FnMut(Read)) {
    let mut frames = Vec::new();
    let mut rest = bytes;
    while let Ok(size) = zstd_safe::find_frame_compressed_size(rest)
        && let Some((frame, behind)) = rest.split_at_checked(size)
        && size > 0
    {
        frames.push(frame);
        rest = behind;
    }
    let line = |frame: &&[u8]| {
        let text = zstd::stream::decode_all(*frame).ok()?;
        serde_json::from_slice::<Line>(&text).ok()
    };
    // The last minutes of a day are found from its end, without those before.
    let before =
        |frame: &&[u8]| line(frame).is_some_and(|line| line.begin_ns.div_euclid(MINUTE_NS) < from);
    let first = frames.iter().rposition(before).map_or(0, |last| last + 1);
    for line in frames.iter().skip(first).filter_map(line) {
        let number = line.begin_ns.div_euclid(MINUTE_NS);
        if (from..until).contains(&number) {
            take(line.read(number));
        }
    }
}

impl Line {
    fn read(self, number: i64) -> Read {
        let ones = std::iter::repeat(1);
        let samples = self.samples.into_iter().flatten().chain(ones);
        let pairs = self.latency_ns.into_iter().zip(samples);
        Read {
            number,
            latencies_ns: pairs.filter_map(|(ns, count)| Some((ns?, count))).collect(),
            lost: self.late + self.lost + self.altered + self.undelivered,
            disturbed: self.health.clock_stepped_ns != 0,
        }
    }
}
