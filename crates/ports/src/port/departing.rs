//! Departures of sent frames: at times that they have, and with stamps that come back.

use tailtrim_sys::packet::Taken;
use tailtrim_wire::traffic::{Builder, Probe};

/// Probes that are remembered until their stamps come: of a card that stamps few, the others are never asked for.
const REMEMBERED: usize = 1 << 15;

/// Departures of a port's frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Departing {
    /// Sent frames come back with a stamp of the kernel.
    pub kernel_stamps: bool,
    /// Only those that are sent singly do: the stamps of others would delay those behind them.
    pub singly: bool,
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
    /// Priority by which they find their queueing discipline.
    pub priority: u32,
}

impl Departing {
    /// Whether there are stamps of so many frames that are sent together.
    #[must_use]
    pub fn stamps(self, frames: usize) -> bool {
        self.nic_stamps || self.kernel_stamps_of(frames)
    }

    /// Whether there are stamps of the kernel of so many.
    pub(crate) fn kernel_stamps_of(self, frames: usize) -> bool {
        self.kernel_stamps && (frames == 1 || !self.singly)
    }
}

/// A probe that was sent, of which something came back.
#[derive(Debug, Clone, Copy)]
pub struct Departed {
    /// The probe.
    pub probe: Probe,
    /// Its fate.
    pub fate: Fate,
}

/// Fate of a sent frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The kernel gave it to the NIC at this time of `CLOCK_REALTIME`.
    Kernel(i64),
    /// The NIC sent it at this time of its own clock.
    Nic(i64),
    /// Its time had passed, and the kernel dropped it.
    Missed,
}

/// Probes that were sent through a socket, by the numbers with which the kernel names their stamps.
#[derive(Debug, Default)]
pub(super) struct Numbered {
    next: u32,
    /// By the last bits of their number.
    probes: Vec<Option<(u32, Probe)>>,
}

impl Numbered {
    /// Notes frames of which the kernel took some.
    pub(super) fn sent(&mut self, frames: &[&[u8]], taken: Taken) {
        if self.probes.is_empty() {
            self.probes = vec![None; REMEMBERED];
        }
        for frame in &frames[..taken.frames] {
            let number = self.next;
            self.probes[number as usize % REMEMBERED] =
                Builder::probe(frame).map(|probe| (number, probe));
            self.next = number.wrapping_add(1);
        }
        self.next = self.next.wrapping_add(u32::from(taken.dropped));
    }

    /// The probe of a number, if it was one and is not forgotten.
    pub(super) fn probe(&self, number: u32) -> Option<Probe> {
        let found = (*self.probes.get(number as usize % REMEMBERED)?)?;
        (found.0 == number).then_some(found.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailtrim_wire::traffic::{Addressing, Ip};

    #[test]
    fn probes_are_found_by_the_numbers_of_the_kernel() {
        let local = [127, 0, 0, 1].into();
        let addressing = Addressing {
            source_mac: [2; 6],
            destination_mac: [4; 6],
            vlan: None,
            ip: Ip::V4(local, local),
            dscp: 0,
            source_port: 1,
            destination_port: 2,
            flows: 1,
        };
        let builder = Builder::new(addressing, 60).unwrap();
        let frame = |sequence| {
            let mut frame = builder.frame(60);
            builder.stamp(&mut frame, Probe { flow: 0, sequence, intended_ns: 5 });
            frame
        };
        let (one, other) = (frame(7), frame(9));
        let mut numbered = Numbered::default();
        assert_eq!(numbered.probe(0), None);
        // Of two, the kernel took the first; the second had its number when it was dropped.
        numbered.sent(&[&one, &other], Taken { frames: 1, dropped: true });
        numbered.sent(&[&other], Taken { frames: 1, dropped: false });
        let found = [0, 1, 2, 3].map(|at| numbered.probe(at).map(|probe| probe.sequence));
        assert_eq!(found, [Some(7), None, Some(9), None]);
        // A probe that was forgotten is not another one.
        assert_eq!(numbered.probe(REMEMBERED as u32), None);
    }
}
