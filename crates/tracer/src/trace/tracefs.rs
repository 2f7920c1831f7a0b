//! Recording by two instances of tracefs: one for the measured CPUs, one for CPUs that send to them.

use super::drained::{Drained, Lane, SubBuffer};
use super::instance::{self, Instance};
use super::place;
use super::read::{Buffer, RecordedBuffers, Step};
use super::source::{Vocabulary, Wanted};
use super::{Counts, SENDER_KILOBYTES, TraceError, wanted};
use crate::clock;
use std::fs::File;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::Path;
use tailtrim_host::Cpus;
use tailtrim_sys::tsc;
use tailtrim_trace::page::{Layout, Page, PageError};
use tailtrim_trace::record::Decoder;

/// Both instances.
#[derive(Debug)]
pub(super) struct Tracefs {
    cpus: Cpus,
    sending: Cpus,
    events: Instance,
    senders: Instance,
    layout: Layout,
}

impl Tracefs {
    /// Sets them up, and removes those of killed processes.
    pub(super) fn open(
        wanted: Wanted<'_>,
        vocabulary: &mut Vocabulary,
        counts: &mut Counts,
    ) -> Result<Self, TraceError> {
        clock::check_counter()?;
        let tracefs = place::tracefs()?;
        counts.leftovers_removed = instance::remove_leftovers(&tracefs);
        let recording = Self {
            events: Instance::create(&tracefs, "")?,
            senders: Instance::create(&tracefs, "-senders")?,
            layout: layout(&tracefs)?,
            cpus: wanted.cpus.clone(),
            sending: wanted.sending.clone(),
        };
        recording.set_up(wanted.kilobytes, vocabulary)?;
        Ok(recording)
    }

    fn set_up(&self, kilobytes: u32, vocabulary: &mut Vocabulary) -> Result<(), TraceError> {
        let clocks = self.events.get("trace_clock")?;
        if !clocks.contains("x86-tsc") {
            return Err(TraceError::Impossible(format!(
                "trace_clock: this kernel has {}; expected x86-tsc among them, which every x86 kernel since 3.8 has",
                clocks.trim()
            )));
        }
        for (instance, cpus, size) in [
            (&self.events, &self.cpus, kilobytes),
            (&self.senders, &self.sending, SENDER_KILOBYTES),
        ] {
            instance.set("trace_clock", "x86-tsc")?;
            instance.set("tracing_cpumask", &cpus.to_mask())?;
            instance.size(cpus, size)?;
        }
        for event in wanted::measured() {
            enable(&self.events, &event, None, vocabulary)?;
        }
        let measured: Vec<u32> = self.cpus.iter().collect();
        for event in wanted::SENDERS {
            let filter = wanted::filter(event, &measured);
            enable(&self.senders, event, Some(filter), vocabulary)?;
        }
        vocabulary.check()
    }

    pub(super) fn start(&mut self) -> Result<(), TraceError> {
        self.senders.start()?;
        self.events.start()
    }

    pub(super) fn stop(&mut self) -> Result<u64, TraceError> {
        self.events.stop()?;
        let disarmed = tsc::ticks();
        self.senders.stop()?;
        Ok(disarmed)
    }

    pub(super) fn recorded(&self, decoder: &Decoder) -> Result<RecordedBuffers, TraceError> {
        let of = |instance: &Instance, cpus: &Cpus| {
            let one = |cpu| {
                let lane = self.lane(instance, cpu, u64::MAX)?;
                let mut buffer = self.decoded_lane(&lane, 0..=u64::MAX, decoder)?;
                // A page before which some were overwritten says so, but not always how many.
                let counts = ["overrun", "commit overrun", "dropped events"];
                buffer.lost = counts.map(|name| instance.statistic(cpu, name)).iter().sum();
                Ok((cpu, buffer))
            };
            cpus.iter().map(one).collect::<Result<Vec<_>, TraceError>>()
        };
        Ok(RecordedBuffers {
            measured: of(&self.events, &self.cpus)?,
            sending: of(&self.senders, &self.sending)?,
        })
    }

    /// Takes the present records of the buffers from the kernel. Recording goes on.
    pub(super) fn drained(&self) -> Result<Drained, TraceError> {
        let now = tsc::ticks();
        let of = |instance, cpus: &Cpus| {
            cpus.iter().map(|cpu| self.lane(instance, cpu, now)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Drained {
            measured: of(&self.events, &self.cpus)?,
            sending: of(&self.senders, &self.sending)?,
        })
    }

    fn lane(&self, instance: &Instance, cpu: u32, until: u64) -> Result<Lane, TraceError> {
        // Since kernel 6.8 sub-buffers may be larger than a page.
        let kilobytes = instance.get("buffer_subbuf_size_kb").ok();
        let kilobytes = kilobytes.and_then(|text| text.trim().parse::<usize>().ok());
        let size = kilobytes.map_or(4_096, |kilobytes| kilobytes << 10);
        let pages = instance.drain(cpu, size, until)?.into_iter().map(|bytes| {
            let start = Page::new(self.layout, &bytes).map(|page| page.start);
            Ok(SubBuffer { start: start.map_err(|error| damaged(cpu, error))?, bytes })
        });
        Ok(Lane { cpu, pages: pages.collect::<Result<_, TraceError>>()? })
    }

    /// Decodes the records that were read of these ticks, and perhaps of some around them. Losses are known only where
    /// sub-buffers report them.
    pub(super) fn decoded(
        &self,
        drained: &Drained,
        ticks: &RangeInclusive<u64>,
        decoder: &Decoder,
    ) -> Result<RecordedBuffers, TraceError> {
        let of = |lanes: &[Lane]| {
            let one =
                |lane: &Lane| Ok((lane.cpu, self.decoded_lane(lane, ticks.clone(), decoder)?));
            lanes.iter().map(one).collect::<Result<Vec<_>, TraceError>>()
        };
        Ok(RecordedBuffers { measured: of(&drained.measured)?, sending: of(&drained.sending)? })
    }

    fn decoded_lane(
        &self,
        lane: &Lane,
        ticks: RangeInclusive<u64>,
        decoder: &Decoder,
    ) -> Result<Buffer, TraceError> {
        decode(lane.within(ticks), self.layout, decoder).map_err(|error| damaged(lane.cpu, error))
    }
}

fn damaged(cpu: u32, error: PageError) -> TraceError {
    TraceError::Damaged { cpu, problem: error.to_string() }
}

/// Enables an event, of senders where there is a filter, or notes that this kernel lacks it.
fn enable(
    instance: &Instance,
    event: &str,
    filter: Option<String>,
    vocabulary: &mut Vocabulary,
) -> Result<(), TraceError> {
    if vocabulary.learn(&instance.events(), event)?.is_none() {
        return Ok(());
    }
    // Without the filter all sent interrupts are recorded, and those to other CPUs are skipped later.
    if let Some(filter) = filter
        && let Err(error) = instance.set(&format!("events/{event}/filter"), &filter)
    {
        vocabulary.refused.push(error.to_string());
    }
    instance.set(&format!("events/{event}/enable"), "1")
}

fn decode<'a>(
    pages: impl Iterator<Item = &'a SubBuffer>,
    layout: Layout,
    decoder: &Decoder,
) -> Result<Buffer, PageError> {
    let mut buffer = Buffer::default();
    for SubBuffer { bytes, .. } in pages {
        let page = Page::new(layout, bytes)?;
        if let Some(missed) = page.missed {
            buffer.steps.push(Step::Lost(missed, page.start));
        }
        for entry in page.entries() {
            let entry = entry?;
            buffer.take(decoder, entry.stamp, entry.record);
        }
    }
    Ok(buffer)
}

fn layout(tracefs: &Path) -> Result<Layout, TraceError> {
    let path = tracefs.join("events/header_page");
    let failed = |source| TraceError::Read { path: path.clone(), source };
    // In one read: this file ends after the first one, however little that asked for (seen on 6.18).
    let mut bytes = vec![0; 1 << 14];
    let length = File::open(&path).and_then(|mut file| file.read(&mut bytes)).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes[..length]);
    Layout::parse(&text)
        .map_err(|error| TraceError::Impossible(format!("{}: {error}", path.display())))
}
