//! What a trace of the host delivers: who took a CPU, and when.

use serde::{Deserialize, Serialize};

/// Something that took a CPU, on the axis of packet stamps (`CLOCK_REALTIME`, ns). The interval is
/// gross: what interrupted it lies within.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The CPU that was taken.
    pub cpu: u32,
    /// When it was taken.
    pub start_ns: i64,
    /// When it was given back.
    pub end_ns: i64,
    /// What kind of thing took it.
    pub kind: Kind,
    /// Which one: vector, handler, softirq or the thread's name.
    pub name: String,
    /// What it did: function, workqueue function, reason of a flush.
    #[serde(default)]
    pub detail: Option<String>,
    /// Who asked for it, of interrupts between processors.
    #[serde(default)]
    pub sender: Option<Sender>,
}

/// What kind of thing took a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A non-maskable interrupt.
    Nmi,
    /// An interrupt.
    Irq,
    /// A softirq.
    Softirq,
    /// A thread other than the one that serves packets.
    Thread,
    /// A page fault or another exception of the serving thread itself.
    Fault,
    /// A polling loop did not run and nobody was seen.
    Gap,
    /// Events were lost here: whatever happened is not known.
    Hole,
}

/// The task that asked for an interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// Its thread id.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// What it was doing, where known.
    #[serde(default)]
    pub function: Option<String>,
}
