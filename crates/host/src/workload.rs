//! Ways to process packets: the right settings of a host depend on them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Way in which packets are processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Threads that ask for packets all the time: DPDK, AF_XDP, busy polling.
    Poll,
    /// The kernel's network path, driven by interrupts.
    Interrupt,
    /// Virtual machines: this is their host.
    Vm,
    /// This is a virtual machine.
    Guest,
}

impl Workload {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Interrupt => "interrupt",
            Self::Vm => "vm",
            Self::Guest => "guest",
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Poll, Self::Interrupt, Self::Vm, Self::Guest]
            .into_iter()
            .find(|kind| kind.word() == text)
            .ok_or_else(|| {
                format!("invalid workload {text:?}, expected poll, interrupt, vm or guest")
            })
    }
}
