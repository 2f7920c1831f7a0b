//! CPUs that do not sleep deeply while timers are measured, as with cyclictest.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// A process that has it open sets the longest time that a CPU may take to wake up
/// (Documentation/power/pm_qos_interface.rst).
const LATENCY: &str = "/dev/cpu_dma_latency";

/// CPUs wake up at once while this lives. It halves the median lateness of a timer on an idle CPU (14 instead of 30 µs
/// in a virtual machine).
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
