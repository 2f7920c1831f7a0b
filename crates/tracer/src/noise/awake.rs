//! CPUs that do not sleep deeply while timers are measured, as cyclictest has it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// Whoever has it open says how long a CPU may take to wake up (Documentation/power/pm_qos_interface.rst).
const LATENCY: &str = "/dev/cpu_dma_latency";

/// CPUs wake up at once while this lives. It makes the median of a timer on an idle CPU half of what it is otherwise
/// (14 instead of 30 µs in a virtual machine).
#[derive(Debug)]
pub struct Awake {
    _open: File,
}

impl Awake {
    /// Asks the kernel for it.
    ///
    /// # Errors
    /// The device cannot be written to, mostly for lack of root.
    pub fn hold() -> io::Result<Self> {
        let mut file = OpenOptions::new().write(true).open(LATENCY)?;
        file.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self { _open: file })
    }
}
