//! Departures of sent frames: at times that they have, and with stamps that come back.

/// How frames of a port depart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Departing {
    /// Sent frames come back with a stamp of the kernel.
    pub kernel_stamps: bool,
    /// Sent frames come back with a stamp of the NIC, as far as it has one for them.
    pub nic_stamps: bool,
    /// Frames wait for their time behind the port, in the queueing discipline `etf`; otherwise they depart at once.
    pub timed: Option<Timed>,
}

/// Frames that are given ahead of their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timed {
    /// Frames are sent so long before the time that they have, so they get a later one.
    pub early_ns: i64,
    /// Frames have to be given at least half of this before they depart, and at most all of it.
    pub ahead_ns: i64,
}

/// A sent frame that came back.
#[derive(Debug, Clone, Copy)]
pub struct Departed<'a> {
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// What became of it.
    pub fate: Fate,
}

/// What became of a sent frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The kernel gave it to the NIC at this time of `CLOCK_REALTIME`.
    Kernel(i64),
    /// The NIC sent it at this time of its own clock.
    Nic(i64),
    /// Its time had passed, and the kernel dropped it.
    Missed,
}
