//! Results by minute, in files as soon as a minute is over: the files remain after a run of hours, even when it
//! crashes.
//!
//! `minute.jsonl` has a line for each minute with samples or in which packets were found lost, `minute.hlog` the same minutes as an HdrHistogram log of
//! latencies in ns with three significant digits. Sums of its histograms give percentiles of any span of minutes.

use crate::events;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;
use tailtrim_tail::analysis::{Sample, Sink, Tally};

const MINUTE_NS: i64 = 60_000_000_000;
const DIGITS: u8 = 3;
/// Quantiles of a minute; each is reported if the minute has a sample beyond it.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// Takes samples, and writes each minute when it is over.
pub(crate) struct Minutes {
    lines: File,
    histograms: File,
    serializer: V2DeflateSerializer,
    now: Option<Minute>,
    /// Those that are over and not written yet.
    over: Vec<Minute>,
    /// Lost packets in the lines so far.
    lost: u64,
    /// The minute that is not over.
    begin_ns: i64,
    failed: Option<io::Error>,
}

/// Samples that left the device in one minute.
struct Minute {
    begin_ns: i64,
    latencies: Histogram<u64>,
    negative: u64,
    fastest_ns: i64,
    worst: Sample,
}

#[derive(Serialize)]
struct Line<'a> {
    /// Of the minute, in ns of the egress capture's clock.
    begin_ns: i64,
    samples: u64,
    /// Samples that left before they entered; the histogram has them as 0.
    #[serde(skip_serializing_if = "is_none")]
    negative: u64,
    /// Packets that were found lost since the line before, after the trim.
    lost: u64,
    latency_ns: BTreeMap<&'a str, i64>,
    /// Of the samples.
    worst: Option<Worst>,
}

/// The worst packet of a time.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Worst {
    ingress_ns: i64,
    latency_ns: i64,
}

impl From<Sample> for Worst {
    fn from(sample: Sample) -> Self {
        Self { ingress_ns: sample.ingress_ns, latency_ns: sample.latency_ns() }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Minutes {
    /// Begins both files in a directory.
    pub(crate) fn create(directory: &Path) -> io::Result<Self> {
        let lines = File::create(directory.join("minute.jsonl"))?;
        let mut histograms = File::create(directory.join("minute.hlog"))?;
        histograms.write_all(b"#[Latencies in ns, by minute in which packets left]\n")?;
        histograms.write_all(
            b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        )?;
        Ok(Self {
            lines,
            histograms,
            serializer: V2DeflateSerializer::new(),
            now: None,
            over: Vec::new(),
            lost: 0,
            begin_ns: i64::MIN,
            failed: None,
        })
    }

    /// Writes the remaining minutes, once the number of all lost packets is known.
    pub(crate) fn close(&mut self, lost: u64) -> io::Result<()> {
        self.over.extend(self.now.take());
        self.write_over(lost)?;
        self.write_lost(self.begin_ns, lost)?;
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Ends minutes by the time until which all packets are known.
    fn pass(&mut self, now_ns: i64, lost: &dyn Fn() -> u64) -> io::Result<()> {
        self.over.extend(self.now.take_if(|minute| now_ns >= minute.begin_ns + MINUTE_NS));
        // The time is unknown before the first packet, and without an end after the last one.
        let begin_ns = match now_ns {
            i64::MIN | i64::MAX => self.begin_ns,
            now_ns => now_ns.div_euclid(MINUTE_NS) * MINUTE_NS,
        };
        let last_ns = self.begin_ns;
        self.begin_ns = last_ns.max(begin_ns);
        let passed = self.begin_ns > last_ns && last_ns > i64::MIN;
        if !self.over.is_empty() || passed {
            let lost = lost();
            self.write_over(lost)?;
            if passed {
                self.write_lost(self.begin_ns - MINUTE_NS, lost)?;
            }
        }
        Ok(())
    }

    fn write_over(&mut self, lost: u64) -> io::Result<()> {
        for minute in std::mem::take(&mut self.over) {
            let since = self.newly(lost);
            self.write(&minute, since)?;
        }
        Ok(())
    }

    /// Writes a minute without samples, if packets were found lost since the line before.
    fn write_lost(&mut self, begin_ns: i64, lost: u64) -> io::Result<()> {
        match self.newly(lost) {
            0 => Ok(()),
            lost => events::append(
                &mut self.lines,
                &Line {
                    begin_ns,
                    samples: 0,
                    negative: 0,
                    lost,
                    latency_ns: BTreeMap::new(),
                    worst: None,
                },
            ),
        }
    }

    /// Counts the lost packets that no line has yet, of so many. Packets that return late are not lost any more.
    fn newly(&mut self, lost: u64) -> u64 {
        let since = lost.saturating_sub(self.lost);
        self.lost = self.lost.max(lost);
        since
    }

    fn write(&mut self, minute: &Minute, lost: u64) -> io::Result<()> {
        let begin = Duration::from_nanos(u64::try_from(minute.begin_ns).unwrap_or(0));
        let mut text = Vec::new();
        IntervalLogWriterBuilder::new()
            .begin_log_with(&mut text, &mut self.serializer)?
            .write_histogram(
                &minute.latencies,
                begin,
                Duration::from_nanos(MINUTE_NS.cast_unsigned()),
                None,
            )
            .map_err(|error| io::Error::other(error.to_string()))?;
        self.histograms.write_all(&text)?;
        // The files must also survive a crash of the host.
        self.histograms.sync_data()?;
        events::append(&mut self.lines, &minute.line(lost))
    }
}

impl Minute {
    fn of(sample: &Sample) -> io::Result<Self> {
        Ok(Self {
            begin_ns: sample.egress_ns.div_euclid(MINUTE_NS) * MINUTE_NS,
            latencies: Histogram::new(DIGITS).map_err(io::Error::other)?,
            negative: 0,
            fastest_ns: i64::MAX,
            worst: *sample,
        })
    }

    fn record(&mut self, sample: &Sample) -> io::Result<()> {
        let latency_ns = sample.latency_ns();
        self.negative += u64::from(latency_ns < 0);
        self.fastest_ns = self.fastest_ns.min(latency_ns);
        if latency_ns > self.worst.latency_ns() {
            self.worst = *sample;
        }
        let ns = u64::try_from(latency_ns).unwrap_or(0);
        self.latencies.record(ns).map_err(io::Error::other)
    }

    fn line(&self, lost: u64) -> Line<'_> {
        let samples = self.latencies.len();
        let beyond = |p: f64| samples as f64 * (1.0 - p) >= 1.0;
        let value = |p| self.latencies.value_at_quantile(p).cast_signed();
        let told = QUANTILES.iter().filter(|(_, p)| beyond(*p)).map(|(name, p)| (*name, value(*p)));
        let ends = [("min", self.fastest_ns), ("max", self.worst.latency_ns())];
        Line {
            begin_ns: self.begin_ns,
            samples,
            negative: self.negative,
            lost,
            latency_ns: told.chain(ends).collect(),
            worst: Some(self.worst.into()),
        }
    }
}

impl Sink for Minutes {
    fn sample(&mut self, sample: &Sample) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        // Where a capture is not in order, a minute has the samples that came during it.
        let later = |minute: &Minute| sample.egress_ns >= minute.begin_ns + MINUTE_NS;
        if self.now.as_ref().is_none_or(later) {
            self.over.extend(self.now.take());
        }
        let now = match &mut self.now {
            Some(now) => now,
            none => none.insert(Minute::of(sample)?),
        };
        now.record(sample)
    }

    fn follows(&self) -> bool {
        true
    }

    fn decided(&mut self, now_ns: i64, counts: &Tally, overdue: &dyn Fn() -> u64) {
        if let Err(error) = self.pass(now_ns, &|| counts.lost() + overdue()) {
            self.failed = Some(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use tailtrim_tail::analysis::Outcome;
    use tailtrim_tail::signature::Signature;

    fn lost(packets: u64) -> Tally {
        let mut tally = Tally::default();
        tally.add(Outcome::Lost, false, 0, packets);
        tally
    }

    #[test]
    fn a_device_that_dies_closes_its_minute_and_its_losses_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut minutes = Minutes::create(folder.path()).unwrap();
        let lines = || {
            let text = std::fs::read_to_string(folder.path().join("minute.jsonl")).unwrap();
            let line = |line| {
                let line: Value = serde_json::from_str(line).unwrap();
                ["begin_ns", "samples", "lost"].map(|key| line[key].as_i64().unwrap())
            };
            text.lines().map(line).collect::<Vec<_>>()
        };
        let first = 10 * MINUTE_NS;
        let sample = |at_ns| Sample {
            ingress_ns: at_ns - 5_000,
            egress_ns: at_ns,
            signature: Signature { high: 0, low: 0 },
        };
        minutes.sample(&sample(first + 1)).unwrap();
        minutes.sample(&sample(first + MINUTE_NS / 2)).unwrap();
        // Half a minute later nothing leaves any more.
        minutes.decided(first + MINUTE_NS - 1, &lost(3), &|| 2);
        assert!(lines().is_empty());
        minutes.decided(first + MINUTE_NS, &lost(3), &|| 2);
        assert_eq!(lines(), [[first, 2, 5]]);
        minutes.decided(first + 2 * MINUTE_NS + 7, &lost(3), &|| 9);
        minutes.decided(first + 3 * MINUTE_NS + 7, &lost(12), &|| 0);
        // A minute in which nothing was found lost has no line.
        let second = [first + MINUTE_NS, 0, 7];
        assert_eq!(lines(), [[first, 2, 5], second]);
        minutes.decided(i64::MAX, &lost(12), &|| 0);
        minutes.close(20).unwrap();
        assert_eq!(lines(), [[first, 2, 5], second, [first + 3 * MINUTE_NS, 0, 8]]);
    }
}
