//! A port of which what comes in is spoilt on purpose: a path with known faults.

use super::{Capabilities, Counters, Port, PortError, Received, Stamp, Stamping};
use crate::sys::clock;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde::Serialize;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use tailtrim_wire::traffic::Delay;

/// A frame that is to be overtaken goes on after this time if no other follows: it must not sit here.
const OVERTAKEN_NS: i64 = 1_000_000;
/// Frames that are kept; beyond them nothing is fetched, and the port below counts what it drops.
const MOST_HELD: usize = 1 << 16;
/// Frames fetched to see whether one is left when it is waited for.
const LOOK: usize = 64;

/// What is done to the frames; shares in millionths. By default nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Faults {
    /// Decides which frames. The same seed spoils the same frames, counted as they come in.
    pub seed: u64,
    /// Share of frames that are lost.
    pub lost: u32,
    /// Share of those left that come twice, one after the other.
    pub duplicated: u32,
    /// Share of those left that the next one overtakes.
    pub reordered: u32,
    /// How long frames are kept, which does not change their order.
    pub delay: Option<Delay>,
}

/// What was done. Frames that the port below handed out, and `duplicated` more, were handed on, are
/// `lost`, or are `held`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Spoilt {
    /// Frames that were dropped.
    pub lost: u64,
    /// Copies that were added.
    pub duplicated: u64,
    /// Frames that were overtaken by another.
    pub reordered: u64,
    /// Frames that were kept for a time.
    pub delayed: u64,
    /// Frames that have not been handed on yet.
    pub held: u64,
}

/// A port, and what spoils the frames that it receives. What it sends is left alone.
///
/// Where frames are kept or overtaken, all of them carry the time at which they were handed on, as a stamp
/// of this process: that is when they left the faulty path.
#[derive(Debug)]
pub struct Faulty<P> {
    port: P,
    faults: Faults,
    random: Pcg64,
    /// Frames that have come in.
    number: u64,
    start_ns: i64,
    spoilt: Spoilt,
    received: u64,
    received_bytes: u64,
    held: VecDeque<Held>,
    /// Waits for another to overtake it.
    overtaken: Option<Held>,
}

#[derive(Debug, Clone)]
struct Held {
    bytes: Vec<u8>,
    length: usize,
    stamp: Option<Stamp>,
    /// When it goes on, of `CLOCK_REALTIME`.
    due_ns: i64,
}

impl<P: Port> Faulty<P> {
    /// Spoils what this port receives from now on.
    pub fn new(port: P, faults: Faults) -> Self {
        Self {
            port,
            faults,
            random: Pcg64::seed_from_u64(faults.seed),
            number: 0,
            start_ns: clock::realtime_ns(),
            spoilt: Spoilt::default(),
            received: 0,
            received_bytes: 0,
            held: VecDeque::new(),
            overtaken: None,
        }
    }

    /// What was done so far.
    pub fn spoilt(&self) -> Spoilt {
        let held = self.held.len() + usize::from(self.overtaken.is_some());
        Spoilt { held: held as u64, ..self.spoilt }
    }

    fn restamps(&self) -> bool {
        self.faults.delay.is_some() || self.faults.reordered > 0
    }

    /// Fetches frames and decides about them.
    fn fetch(&mut self, most: usize) -> Result<(), PortError> {
        let most = most.min(MOST_HELD.saturating_sub(self.held.len()));
        let mut came = Vec::new();
        self.port.receive(most, &mut |frame| {
            let Received { bytes, length, stamp } = frame;
            came.push(Held { bytes: bytes.to_vec(), length, stamp, due_ns: 0 });
        })?;
        let now_ns = clock::realtime_ns();
        for frame in came {
            self.decide(frame, now_ns);
        }
        let waited_ns = |frame: &Held| now_ns - frame.due_ns;
        if self.overtaken.as_ref().is_some_and(|frame| waited_ns(frame) >= OVERTAKEN_NS) {
            self.held.extend(self.overtaken.take());
        }
        Ok(())
    }

    fn decide(&mut self, mut frame: Held, now_ns: i64) {
        let Faults { seed, lost, duplicated, reordered, delay } = self.faults;
        // All three are drawn for each frame: one share says nothing about what the others hit.
        let [lost, duplicated, reordered] = [lost, duplicated, reordered].map(|share| {
            let drawn = (u128::from(self.random.next_u64()) * 1_000_000) >> 64;
            drawn < u128::from(share)
        });
        let number = self.number;
        self.number += 1;
        if lost {
            self.spoilt.lost += 1;
            return;
        }
        frame.due_ns = now_ns;
        if let Some(delay) = delay {
            let arrival_ns = frame.stamp.map_or(now_ns, |stamp| stamp.ns);
            let into_ns = (arrival_ns - self.start_ns).max(0) as u64;
            frame.due_ns = arrival_ns + delay.delay_ns(seed, number, into_ns) as i64;
            // Not ahead of the one before it: that would be another fault.
            let before_ns = self.held.back().map_or(i64::MIN, |before| before.due_ns);
            frame.due_ns = frame.due_ns.max(before_ns);
            self.spoilt.delayed += 1;
        }
        let copy = duplicated.then(|| frame.clone());
        self.spoilt.duplicated += u64::from(duplicated);
        if reordered && self.overtaken.is_none() {
            self.held.extend(copy);
            self.overtaken = Some(frame);
            return;
        }
        let due_ns = frame.due_ns;
        self.held.push_back(frame);
        self.held.extend(copy);
        if let Some(mut overtaken) = self.overtaken.take() {
            overtaken.due_ns = overtaken.due_ns.max(due_ns);
            self.held.push_back(overtaken);
            self.spoilt.reordered += 1;
        }
    }

    /// When the next of the frames that are held goes on.
    fn next_ns(&self) -> Option<i64> {
        let overtaken_ns = self.overtaken.as_ref().map(|frame| frame.due_ns + OVERTAKEN_NS);
        let held_ns = self.held.front().map(|frame| frame.due_ns);
        [overtaken_ns, held_ns].into_iter().flatten().min()
    }
}

impl<P: Port> Port for Faulty<P> {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.port.capabilities();
        if self.restamps() {
            capabilities.stamping = Stamping::Process;
        }
        capabilities
    }

    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        self.fetch(most)?;
        let mut count = 0;
        while count < most {
            let now_ns = clock::realtime_ns();
            if self.held.front().is_none_or(|frame| frame.due_ns > now_ns) {
                break;
            }
            let Some(frame) = self.held.pop_front() else { break };
            self.received += 1;
            self.received_bytes += frame.length as u64;
            let stamp = if self.restamps() {
                Some(Stamp { ns: now_ns, stamping: Stamping::Process })
            } else {
                frame.stamp
            };
            take(Received { bytes: &frame.bytes, length: frame.length, stamp });
            count += 1;
        }
        Ok(count)
    }

    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError> {
        self.port.send(frames)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, PortError> {
        let timeout_ns = i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX);
        let end_ns = clock::realtime_ns().saturating_add(timeout_ns);
        loop {
            // A frame that has come may be one that is lost.
            self.fetch(LOOK)?;
            let now_ns = clock::realtime_ns();
            if self.held.front().is_some_and(|frame| frame.due_ns <= now_ns) {
                return Ok(true);
            }
            if now_ns >= end_ns {
                // An interface that is gone says so only to who asks.
                self.port.wait(Duration::ZERO)?;
                return Ok(false);
            }
            let until_ns = self.next_ns().unwrap_or(i64::MAX).min(end_ns);
            self.port.wait(Duration::from_nanos((until_ns - now_ns).max(0) as u64))?;
        }
    }

    fn is_pressed(&self) -> bool {
        self.port.is_pressed()
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        let counters = self.port.counters()?;
        let (received, received_bytes) = (self.received, self.received_bytes);
        Ok(Counters { received, received_bytes, ..counters })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // What is held goes on by itself, which poll(2) does not see.
        let holds = !self.held.is_empty() || self.overtaken.is_some();
        if holds { None } else { self.port.descriptor() }
    }
}
