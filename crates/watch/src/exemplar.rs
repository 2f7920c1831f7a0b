//! Counters with the worst probe of this minute and the last one as exemplar: each scrape of a minute or less has it, whoever
//! else scrapes.

use crate::minute::MINUTE_NS;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::CounterWithExemplar;
use prometheus_client::metrics::{MetricType, TypedMetric};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tailtrim_sys::clock;

/// A probe, as it is found in a minute on disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Probe {
    /// Begin of its minute.
    pub(crate) begin_ns: i64,
    /// When it left, in it; when it was due, if it was not answered.
    pub(crate) at_us: i64,
    /// Its round trip; infinite if it was not answered.
    pub(crate) latency_s: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfProbe {
    span: String,
    at_us: i64,
}

impl Probe {
    /// The minute, as `report WATCH/TARGET@SPAN` takes it.
    fn label(&self) -> OfProbe {
        let time = |ns: i64| {
            let minutes = ns.div_euclid(MINUTE_NS);
            let (hour, minute) = (minutes.div_euclid(60).rem_euclid(24), minutes.rem_euclid(60));
            format!("{}T{hour:02}:{minute:02}Z", clock::date(ns))
        };
        let span = format!("{}..{}", time(self.begin_ns), time(self.begin_ns + MINUTE_NS));
        OfProbe { span, at_us: self.at_us }
    }

    fn time(&self) -> Option<SystemTime> {
        let ns = u64::try_from(self.begin_ns + self.at_us * 1_000).ok()?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(ns))
    }
}

/// The worst of the running minute, and that of the one before.
#[derive(Debug, Default)]
struct Worst {
    now: Option<Probe>,
    before: Option<Probe>,
}

/// A counter of probes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProbeCounter {
    count: Counter,
    worst: Arc<Mutex<Worst>>,
}

impl ProbeCounter {
    /// Counts a probe.
    pub(crate) fn add(&self, probe: Probe) {
        self.count.inc();
        let mut worst = self.worst();
        match worst.now {
            Some(now) if probe.begin_ns < now.begin_ns => {}
            Some(now) if probe.begin_ns == now.begin_ns && probe.latency_s <= now.latency_s => {}
            Some(now) if probe.begin_ns > now.begin_ns => {
                let follows = probe.begin_ns == now.begin_ns + MINUTE_NS;
                *worst = Worst { now: Some(probe), before: follows.then_some(now) };
            }
            _ => worst.now = Some(probe),
        }
    }

    /// Counts packets of a device; none of them is an exemplar.
    pub(crate) fn count(&self, packets: u64) {
        self.count.inc_by(packets);
    }

    /// The exemplar. Times of successive ones never decrease, which Prometheus demands.
    fn exemplar(&self) -> Option<Probe> {
        let worst = self.worst();
        let now = worst.now?;
        Some(worst.before.filter(|before| before.latency_s > now.latency_s).unwrap_or(now))
    }

    fn worst(&self) -> MutexGuard<'_, Worst> {
        self.worst.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TypedMetric for ProbeCounter {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for ProbeCounter {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        // The library makes exemplars by its own counter only, whose value would be that of the exemplar.
        let holder = CounterWithExemplar::<OfProbe, f64, AtomicU64>::default();
        if let Some(probe) = self.exemplar() {
            holder.inc_by(probe.latency_s, Some(probe.label()), probe.time());
        }
        let (_, exemplar) = holder.get();
        encoder.encode_counter(&self.count.get(), exemplar.as_ref())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    /// 2026-11-29T23:59Z.
    const BEGIN_NS: i64 = 1_795_996_740_000_000_000;

    fn probe(minute: i64, at_us: i64, latency_s: f64) -> Probe {
        Probe { begin_ns: BEGIN_NS + minute * MINUTE_NS, at_us, latency_s }
    }

    fn exemplar(probes: &[Probe]) -> String {
        let counter = ProbeCounter::default();
        let mut registry = Registry::default();
        registry.register("bad", "Bad probes", counter.clone());
        probes.iter().for_each(|probe| counter.add(*probe));
        let mut told = String::new();
        text::encode(&mut told, &registry).unwrap();
        told.lines().find_map(|line| line.strip_prefix("bad_total ")).unwrap().to_owned()
    }

    #[test]
    fn the_exemplar_names_the_minute_of_the_worst_probe() {
        assert_eq!(exemplar(&[]), "0");
        let told =
            exemplar(&[probe(0, 7, 0.5), probe(0, 9_000_000, 2.5), probe(0, 10_000_000, 1.0)]);
        let (count, exemplar) = told.split_once(" # ").unwrap();
        assert_eq!(count, "3");
        let (labels, value) = exemplar.rsplit_once("} ").unwrap();
        let span = "2026-11-29T23:59Z..2026-11-30T00:00Z";
        assert_eq!(labels, format!("{{span=\"{span}\",at_us=\"9000000\""));
        assert_eq!(value, "2.5 1795996749.0");
    }

    #[test]
    fn the_worst_of_the_last_minute_stays_for_one_more() {
        let value = |probes: &[Probe]| {
            let told = exemplar(probes);
            told.rsplit_once("} ").unwrap().1.split(' ').next().unwrap().to_owned()
        };
        let (a, b, c) = (probe(0, 1, 3.0), probe(1, 1, 2.0), probe(2, 1, 1.0));
        assert_eq!(value(&[a, b]), "3.0");
        assert_eq!(value(&[a, b, c]), "2.0");
        assert_eq!(value(&[a, c]), "1.0");
        // One that was decided late does not change it.
        assert_eq!(value(&[b, c, a]), "2.0");
        assert_eq!(value(&[a, probe(0, 2, f64::INFINITY)]), "inf");
    }
}
