//! From the buffers of all CPUs to events.

use super::Counts;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::RangeInclusive;
use tailtrim_trace::axis::Axis;
use tailtrim_trace::lines::Source;
use tailtrim_trace::page::Missed;
use tailtrim_trace::pairing::{Context, Paired, Pairing};
use tailtrim_trace::record::{Decoder, Record, What};
use tailtrim_trace::senders::Senders;
use tailtrim_trace::symbols::Symbols;
use tailtrim_trace::{Event, Kind};

/// An entry of a CPU's buffer, in order.
pub(super) enum Step {
    Record(Record),
    /// Records before this tick were overwritten.
    Lost(Missed, u64),
}

/// One buffer, decoded.
#[derive(Default)]
pub(super) struct Buffer {
    pub(super) steps: Vec<Step>,
    pub(super) unknown: u64,
    /// Records that the kernel overwrote or dropped, by its own count.
    pub(super) lost: u64,
}

impl Buffer {
    /// Takes a record of the kernel's.
    pub(super) fn take(&mut self, decoder: &Decoder, stamp: u64, record: &[u8]) {
        match decoder.decode(stamp, record) {
            Some(record) => self.steps.push(Step::Record(record)),
            None => self.unknown += 1,
        }
    }

    fn records(&self) -> impl Iterator<Item = &Record> {
        self.steps.iter().filter_map(|step| match step {
            Step::Record(record) => Some(record),
            Step::Lost(..) => None,
        })
    }
}

/// The buffers of all CPUs.
#[derive(Default)]
pub(super) struct RecordedBuffers {
    pub(super) measured: Vec<(u32, Buffer)>,
    /// Buffers of CPUs that send to measured ones.
    pub(super) sending: Vec<(u32, Buffer)>,
}

impl RecordedBuffers {
    /// Removes records outside of these ticks.
    pub(super) fn only(&mut self, ticks: &RangeInclusive<u64>) {
        for (_, buffer) in self.measured.iter_mut().chain(&mut self.sending) {
            buffer.steps.retain(|step| match step {
                Step::Record(record) => ticks.contains(&record.stamp),
                Step::Lost(_, next) => ticks.contains(next),
            });
        }
    }
}

/// Begin and end of a recording, with its axis.
#[derive(Clone, Copy)]
pub(super) struct Span<'a> {
    pub(super) axis: &'a Axis,
    pub(super) armed: u64,
    pub(super) disarmed: u64,
    /// Threads whose interrupts count as the recorder's.
    pub(super) ours: &'a HashSet<u32>,
}

/// Makes events of all records, and fills `counts` in.
pub(super) fn events(
    recorded: RecordedBuffers,
    span: Span<'_>,
    source: Source,
    counts: &mut Counts,
) -> Vec<Event> {
    let RecordedBuffers { measured, sending } = recorded;
    let Span { axis, armed, disarmed, ours } = span;
    let symbols = Symbols::parse(&fs::read_to_string("/proc/kallsyms").unwrap_or_default());
    if symbols.is_empty() && source != Source::Counters {
        counts.refused.push(
            "/proc/kallsyms: no addresses; functions are given as addresses: set kernel.kptr_restrict to 1 or 0"
                .into(),
        );
    }
    let mut sent: Vec<Record> = Vec::new();
    for (_, buffer) in &sending {
        sent.extend(buffer.records().cloned());
        counts.senders_lost += buffer.lost;
        counts.unknown += buffer.unknown;
    }
    counts.records += sent.len() as u64;
    let senders = Senders::new(&sent, &symbols);
    let comms = comms(&measured, &sent);
    let context = Context { axis, symbols: &symbols, senders: &senders, comms: &comms };
    let mut events = Vec::new();
    for (cpu, buffer) in measured {
        counts.unknown += buffer.unknown;
        counts.lost += buffer.lost;
        let mut pairing = Pairing::new(context, cpu, armed);
        for step in &buffer.steps {
            match step {
                Step::Record(record) => {
                    counts.records += 1;
                    pairing.take(record);
                }
                Step::Lost(missed, next) => pairing.lost(*missed, *next),
            }
        }
        let Paired {
            events: paired,
            unpaired,
            flushes,
            hidden_switches,
            functions_without_interrupt,
        } = pairing.finish(disarmed);
        counts.unpaired += unpaired;
        counts.hidden_switches += hidden_switches;
        counts.functions_without_interrupt += functions_without_interrupt;
        for (reason, count) in flushes {
            *counts.flushes.entry(reason).or_default() += count;
        }
        events.extend(paired);
    }
    for event in &events {
        *counts.events.entry(label(event.kind).to_owned()).or_default() += 1;
        counts.with_sender += u64::from(event.sender.is_some());
        let sent_by_us = event.sender.as_ref().is_some_and(|sender| ours.contains(&sender.pid));
        counts.from_recorder += u64::from(sent_by_us);
    }
    events.sort_by_key(|event| (event.start_ns, event.cpu, event.end_ns));
    events
}

/// The threads of this process, and of its parent.
pub(super) fn ours() -> HashSet<u32> {
    [std::process::id(), std::os::unix::process::parent_id()]
        .iter()
        .filter_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).ok())
        .flatten()
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// As in the file.
fn label(kind: Kind) -> &'static str {
    match kind {
        Kind::Nmi => "nmi",
        Kind::Irq => "irq",
        Kind::Softirq => "softirq",
        Kind::Thread => "thread",
        Kind::Fault => "fault",
        Kind::Gap => "gap",
        Kind::Hole => "hole",
    }
}

/// Names of processes: by the scheduler's records, the kernel's memory of names, and processes that are
/// still there.
fn comms(measured: &[(u32, Buffer)], sent: &[Record]) -> HashMap<u32, String> {
    let mut comms = HashMap::new();
    let saved = super::place::tracefs()
        .ok()
        .and_then(|tracefs| fs::read_to_string(tracefs.join("saved_cmdlines")).ok());
    for line in saved.as_deref().unwrap_or("").lines() {
        if let Some((pid, comm)) = line.split_once(' ')
            && let Ok(pid) = pid.parse::<u32>()
        {
            comms.insert(pid, comm.to_owned());
        }
    }
    let mut pids: HashSet<u32> = sent.iter().map(|record| record.pid).collect();
    for record in measured.iter().flat_map(|(_, buffer)| buffer.records()) {
        pids.insert(record.pid);
        if let What::Switch { previous, next, .. } = &record.what {
            for (pid, comm) in [previous, next] {
                comms.insert(*pid, comm.clone());
            }
        }
    }
    for pid in pids {
        if pid != 0
            && !comms.contains_key(&pid)
            && let Ok(comm) = fs::read_to_string(format!("/proc/{pid}/comm"))
        {
            comms.insert(pid, comm.trim_end().to_owned());
        }
    }
    comms.retain(|_, comm| comm != "<...>");
    comms.insert(0, "swapper".to_owned());
    comms
}
