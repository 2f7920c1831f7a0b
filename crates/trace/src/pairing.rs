//! From entries and exits to intervals, CPU by CPU.

use super::axis::Axis;
use super::page::Missed;
use super::record::{Record, What};
use super::senders::{Senders, Sent};
use super::symbols::Symbols;
use super::{Event, Kind, Left, Sender};
use std::collections::{BTreeMap, HashMap};

/// Longest time from sending an interrupt to the interrupt. A virtual CPU that does not run takes its interrupts late,
/// by scheduling slices of its host.
const WITHIN_NS: i64 = 10_000_000;
/// The same for function calls: a request's address is that of its sender alone, so that the nearest one is right even
/// after long.
const REQUEST_WITHIN_NS: i64 = 1_000_000_000;
/// Functions of one event that are named; more are counted.
const NAMED: usize = 3;

/// Data that all CPUs share.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// From ticks to the packets' clock.
    pub axis: &'a Axis,
    /// Names of kernel functions.
    pub symbols: &'a Symbols,
    /// Senders of interrupts.
    pub senders: &'a Senders,
    /// Names of processes.
    pub comms: &'a HashMap<u32, String>,
}

/// Result for one CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paired {
    /// In order of their starts.
    pub events: Vec<Event>,
    /// Entries whose exit, or exits whose entry, was not recorded although nothing was lost.
    pub unpaired: u64,
    /// Flushes of translations, by the kernel's reason.
    pub flushes: BTreeMap<String, u64>,
    /// Number of switches that were not recorded: a thread had the CPU that was not switched to. Some kernels hide
    /// switches of certain threads (seen for a hypervisor's agent in a guest).
    pub hidden_switches: u64,
    /// Functions that this CPU called for itself or found without an interrupt.
    pub functions_without_interrupt: u64,
}

/// An interrupt or softirq that has not ended.
#[derive(Debug)]
struct Open {
    kind: Kind,
    name: String,
    line: Option<i64>,
    start: u64,
    functions: Vec<u64>,
    reason: Option<String>,
    sent: Option<Sent>,
}

/// Task that has the CPU when no interrupt does.
#[derive(Debug)]
enum Occupant {
    /// Unknown since this tick.
    Unknown(u64),
    /// The idle task, which is to give the CPU away since a tick.
    Idle { leaving: Option<u64> },
    /// A thread.
    Thread { pid: u32, comm: String, start: u64, work: Vec<u64> },
}

/// Reads the records of one CPU in order.
#[derive(Debug)]
pub struct Pairing<'a> {
    context: Context<'a>,
    cpu: u32,
    open: Vec<Open>,
    occupant: Occupant,
    last: u64,
    paired: Paired,
}

impl<'a> Pairing<'a> {
    /// Begins where recording began.
    #[must_use]
    pub fn new(context: Context<'a>, cpu: u32, armed: u64) -> Self {
        let occupant = Occupant::Unknown(armed);
        Self { context, cpu, open: Vec::new(), occupant, last: armed, paired: Paired::default() }
    }

    /// Takes the next record.
    pub fn take(&mut self, record: &Record) {
        let Record { stamp, pid, what, .. } = record;
        self.last = self.last.max(*stamp);
        // Flushes are also recorded during a switch, when the thread before still counts as the current one.
        if !matches!(what, What::Switch { .. } | What::Flush { .. }) {
            self.seen(*stamp, *pid);
        }
        if let Occupant::Idle { leaving } = &mut self.occupant
            && *pid == 0
        {
            // One that is not to give it away has had it again meanwhile.
            *leaving = record.rescheduling.then(|| leaving.unwrap_or(*stamp));
        }
        match what {
            What::Enter { kind, name, line } => self.enter(*stamp, *kind, name, *line),
            What::Leave { kind, name, line } => self.leave(*stamp, *kind, name.as_deref(), *line),
            What::Switch { previous, left, next } => self.switch(*stamp, previous, *left, next),
            What::Nmi { handler, duration_ns } => {
                let end_ns = self.context.axis.ns(*stamp);
                let start_ns = end_ns.saturating_sub((*duration_ns).max(0));
                let name = self.context.symbols.name(*handler);
                self.push(Kind::Nmi, name, start_ns, end_ns, None, None);
            }
            What::Fault { name, at } => {
                let ns = self.context.axis.ns(*stamp);
                // Addresses of programs mean nothing outside of them.
                let kernel = name == "page_fault_kernel";
                let detail = kernel.then(|| self.context.symbols.name(*at));
                self.push(Kind::Fault, name.clone(), ns, ns, detail, None);
            }
            What::Flush { reason } => {
                *self.paired.flushes.entry(reason.clone()).or_default() += 1;
                if let Some(open) = self.open.last_mut() {
                    open.reason.get_or_insert_with(|| reason.clone());
                }
            }
            What::Function { function, request } => self.function(*stamp, *function, *request),
            What::Timer { function } => {
                // Other timers expire in the softirq.
                if let Some(open) = self.open.last_mut().filter(|open| open.kind == Kind::Irq) {
                    open.functions.push(*function);
                }
            }
            What::Work { function } => {
                if let Occupant::Thread { work, .. } = &mut self.occupant {
                    work.push(*function);
                }
            }
            // These records have shown the running thread, above; the rest is for `Senders`.
            What::Idle | What::FunctionEnd | What::Queued { .. } | What::Sent { .. } => {}
        }
    }

    /// Notes that records were lost between the last one and the tick `next`.
    pub fn lost(&mut self, missed: Missed, next: u64) {
        let from = self.last;
        let next = next.max(from);
        // Open events may have ended and begun again.
        self.paired.unpaired += self.open.len() as u64;
        self.open.clear();
        self.end_thread(from, None);
        self.occupant = Occupant::Unknown(next);
        self.last = next;
        let detail = match missed {
            Missed::Count(count) => format!("{count} events"),
            Missed::Some => "an unknown number of events".to_owned(),
        };
        let axis = self.context.axis;
        self.push(Kind::Hole, "lost".into(), axis.ns(from), axis.ns(next), Some(detail), None);
    }

    /// Ends where recording ended: events that are still open ended no earlier.
    #[must_use]
    pub fn finish(mut self, disarmed: u64) -> Paired {
        let disarmed = disarmed.max(self.last);
        while let Some(open) = self.open.pop() {
            self.paired.unpaired += 1;
            self.close(open, disarmed);
        }
        self.end_thread(disarmed, None);
        self.paired.events.sort_by_key(|event| (event.start_ns, event.end_ns));
        self.paired
    }

    fn enter(&mut self, stamp: u64, kind: Kind, name: &str, line: Option<i64>) {
        let within = self.context.axis.ticks_of(WITHIN_NS);
        let sent = (kind == Kind::Irq && line.is_none())
            .then(|| self.context.senders.of_interrupt(self.cpu, name, stamp, within))
            .flatten();
        let name = name.to_owned();
        let functions = Vec::new();
        self.open.push(Open { kind, name, line, start: stamp, functions, reason: None, sent });
    }

    fn leave(&mut self, stamp: u64, kind: Kind, name: Option<&str>, line: Option<i64>) {
        let fits = |open: &Open| {
            open.kind == kind && open.line == line && name.is_none_or(|name| name == open.name)
        };
        let Some(at) = self.open.iter().rposition(fits) else {
            self.paired.unpaired += 1;
            return;
        };
        // Events that began within it have ended, although their exits are not there.
        self.paired.unpaired += (self.open.len() - at - 1) as u64;
        for open in self.open.split_off(at).into_iter().rev() {
            self.close(open, stamp);
        }
    }

    fn close(&mut self, open: Open, stamp: u64) {
        let axis = self.context.axis;
        let (start_ns, end_ns) = (axis.ns(open.start), axis.ns(stamp));
        let line = || open.line.map(|line| format!("irq {line}"));
        let detail = self.names(&open.functions).or(open.reason).or_else(line);
        let sender = open.sent.map(|sent| self.sender(sent));
        self.push(open.kind, open.name, start_ns, end_ns, detail, sender);
    }

    fn function(&mut self, stamp: u64, function: u64, request: u64) {
        let within = self.context.axis.ticks_of(REQUEST_WITHIN_NS);
        let sent = self.context.senders.of_request(self.cpu, request, stamp, within);
        let interrupt = self.open.iter_mut().rfind(|open| open.kind == Kind::Irq);
        let Some(open) = interrupt.filter(|_| request != 0) else {
            self.paired.functions_without_interrupt += 1;
            return;
        };
        // The request belongs to one sender; the interrupt was sent for the first request.
        if open.functions.is_empty() && sent.is_some() {
            open.sent = sent;
        }
        open.functions.push(function);
    }

    /// Notes that something happened while this thread had the CPU.
    fn seen(&mut self, stamp: u64, pid: u32) {
        match self.occupant {
            Occupant::Unknown(since) => self.occupant = self.thread(pid, None, since),
            Occupant::Thread { pid: known, .. } if known != pid => {
                // The thread that was switched to may have lost the CPU earlier; no other thread was seen.
                self.paired.hidden_switches += 1;
                self.end_thread(stamp, None);
                self.occupant = self.thread(pid, None, stamp);
            }
            Occupant::Idle { leaving } if pid != 0 => {
                let start = leaving.unwrap_or(stamp);
                self.paired.hidden_switches += 1;
                self.occupant = self.thread(pid, None, start);
            }
            Occupant::Thread { .. } | Occupant::Idle { .. } => {}
        }
    }

    fn switch(&mut self, stamp: u64, previous: &(u32, String), left: Left, next: &(u32, String)) {
        match &mut self.occupant {
            Occupant::Unknown(since) => {
                let since = *since;
                self.occupant = self.thread(previous.0, Some(&previous.1), since);
            }
            Occupant::Thread { pid, comm, start, .. } if *pid != previous.0 => {
                // One of the two had the CPU; the time of the switch is unknown.
                let (start, detail) = (*start, format!("{comm} or {}", previous.1));
                self.paired.hidden_switches += 1;
                self.occupant = Occupant::Idle { leaving: None };
                let (start_ns, end_ns) = (self.context.axis.ns(start), self.context.axis.ns(stamp));
                self.push(Kind::Hole, "switch".into(), start_ns, end_ns, Some(detail), None);
            }
            // Its name may come from a later list of processes, or have changed.
            Occupant::Thread { comm, .. } => comm.clone_from(&previous.1),
            // Some kernels hide switches from the idle task of a guest.
            Occupant::Idle { leaving } if previous.0 != 0 => {
                let leaving = *leaving;
                self.paired.hidden_switches += 1;
                if let Some(start) = leaving {
                    self.occupant = self.thread(previous.0, Some(&previous.1), start);
                }
            }
            Occupant::Idle { .. } => {}
        }
        self.end_thread(stamp, Some(left));
        self.occupant = self.thread(next.0, Some(&next.1), stamp);
    }

    fn thread(&self, pid: u32, comm: Option<&str>, start: u64) -> Occupant {
        if pid == 0 {
            return Occupant::Idle { leaving: None };
        }
        let known = || self.context.comms.get(&pid).cloned().unwrap_or_default();
        let comm = comm.map_or_else(known, str::to_owned);
        Occupant::Thread { pid, comm, start, work: Vec::new() }
    }

    fn end_thread(&mut self, stamp: u64, left: Option<Left>) {
        let occupant = std::mem::replace(&mut self.occupant, Occupant::Idle { leaving: None });
        if let Occupant::Thread { pid, comm, start, work } = occupant {
            let detail = self.names(&work).unwrap_or_else(|| format!("pid {pid}"));
            let axis = self.context.axis;
            self.push(Kind::Thread, comm, axis.ns(start), axis.ns(stamp), Some(detail), None);
            if let Some(event) = self.paired.events.last_mut() {
                event.left = left;
            }
        }
    }

    fn sender(&self, sent: Sent) -> Sender {
        let comm = match sent.pid {
            None => "an interrupt".to_owned(),
            Some(0) => "swapper".to_owned(),
            Some(pid) => self.context.comms.get(&pid).cloned().unwrap_or_default(),
        };
        Sender {
            pid: sent.pid.unwrap_or(0),
            comm,
            function: Some(self.context.symbols.name(sent.callsite)),
            sent_ns: Some(self.context.axis.ns(sent.stamp)),
        }
    }

    /// The functions' names, each once.
    fn names(&self, functions: &[u64]) -> Option<String> {
        let mut names: Vec<String> = Vec::new();
        for function in functions {
            let name = self.context.symbols.name(*function);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
        (!names.is_empty()).then(|| names.join(", ") + &rest)
    }

    fn push(
        &mut self,
        kind: Kind,
        name: String,
        start_ns: i64,
        end_ns: i64,
        detail: Option<String>,
        sender: Option<Sender>,
    ) {
        let end_ns = end_ns.max(start_ns);
        self.paired.events.push(Event {
            cpu: self.cpu,
            start_ns,
            end_ns,
            kind,
            name,
            detail,
            sender,
            left: None,
        });
    }
}

#[cfg(test)]
#[path = "pairing_tests.rs"]
mod tests;
