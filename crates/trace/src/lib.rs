//! Occupation of CPUs over time: events of the kernel's tracing, from the pages of its ring buffers to intervals on the
//! axis of packet stamps.
//!
//! [`format`](mod@format) and [`page`] read data of tracefs, [`perf`] data of perf, [`record`] decodes their records,
//! [`pairing`] makes intervals of entries and exits, [`senders`] finds the sender of an interrupt, [`axis`] converts
//! the time-stamp counter to the clock of packets, [`phc`] the clocks of NICs, [`compared`] such a
//! clock to that of another NIC, [`lines`] is the file format. [`blame`]
//! assigns the gaps of a polling loop to events, and [`counters`] reads `/proc/interrupts` and its kind.
#![forbid(unsafe_code)]

pub mod axis;
pub mod blame;
pub mod compared;
pub mod counters;
pub mod format;
pub mod lines;
pub mod noise;
pub mod page;
pub mod pairing;
pub mod perf;
pub mod phc;
pub mod record;
pub mod senders;
pub mod symbols;

use serde::{Deserialize, Serialize};

/// Something that took a CPU, on the axis of packet stamps.
///
/// Intervals are gross: they include the events that are nested in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The CPU that was taken.
    pub cpu: u32,
    /// When it was taken, `CLOCK_REALTIME`.
    pub start_ns: i64,
    /// When it was given back; not before `start_ns`.
    pub end_ns: i64,
    /// Kind of the event.
    pub kind: Kind,
    /// Its name: the vector, handler, softirq, or the name of the thread.
    pub name: String,
    /// Its action: the function, the function of the workqueue, the reason of the flush, the number of lost events; of
    /// other threads the process id, as `pid 812`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Sender of the interrupt, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<Sender>,
    /// State in which a thread gave the CPU up, where that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
}

impl Event {
    /// The part of the detail that distinguishes causes: neither the number of a process, nor that of lost events.
    #[must_use]
    pub fn distinction(&self) -> Option<&str> {
        let told_apart = |detail: &&str| match self.kind {
            Kind::Thread => !detail.starts_with("pid "),
            Kind::Hole => false,
            _ => true,
        };
        self.detail.as_deref().filter(told_apart)
    }
}

/// State in which a thread gave the CPU up (`prev_state` of `sched_switch`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Left {
    /// It would have gone on: another one was preferred, or its group had used its quota up.
    Runnable,
    /// It waits for something.
    Sleeping,
    /// By a signal or a debugger.
    Stopped,
    /// For good.
    Ended,
}

impl Left {
    /// Reads the kernel's bits, which `sched_switch` has had since 4.14 (`include/trace/events/sched.h`).
    #[must_use]
    pub fn of(prev_state: i64) -> Self {
        match prev_state & 0xff {
            0 => Self::Runnable,
            bits if bits & 0x0c != 0 => Self::Stopped,
            bits if bits & 0x30 != 0 => Self::Ended,
            _ => Self::Sleeping,
        }
    }
}

/// Sender of an interrupt from another CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The process that ran there; 0 is the idle task, or an interrupt that sent it: the process that was interrupted
    /// is not its cause.
    pub pid: u32,
    /// Its name; empty if it is no longer known.
    pub comm: String,
    /// The kernel function that sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Time of sending, `CLOCK_REALTIME`: later work of the receiving CPU may be late because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_ns: Option<i64>,
}

/// Kind of an event that takes a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A non-maskable interrupt.
    Nmi,
    /// An interrupt: of a device, a timer, or another CPU.
    Irq,
    /// A softirq.
    Softirq,
    /// A thread had the CPU.
    Thread,
    /// A page fault: a moment, since its end is not traced.
    Fault,
    /// A polling loop did not run, and nothing was seen on the CPU.
    Gap,
    /// Events were lost here.
    Hole,
}
