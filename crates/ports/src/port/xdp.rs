//! AF_XDP: frames of the queues of an interface, past the kernel's stack. Needs root.

mod merging;
mod opening;
mod redirect;
mod stamping;

use super::{Capabilities, Counters, Port, PortError, PortName, Received, Receiving, Stamping};
use crate::bpf::Requests;
use merging::Queue;
use opening::{Opened, Program, Wanted, hint};
use redirect::Redirect;
use serde::{Serialize, Serializer};
use stamping::{TaiOffset, of_nic, of_program, place_of_nic, place_of_program};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use tailtrim_sys::xdp::{Failed, Socket};
use tailtrim_sys::{interface, packet, poll};

/// Most frames in one call.
const BATCH: usize = 64;
/// Bytes of an Ethernet header, and of the VLAN tag that the MTU does not count either.
const HEADERS: usize = 14 + 4;
/// Time for which a call polls the driver, in µs, and most frames that it takes then: the values that the kernel's
/// documentation of AF_XDP recommends.
const BUSY_POLL_US: i32 = 20;
const BUSY_POLL_BUDGET: i32 = 64;
/// Time for which frames of several queues wait for each other, unless they are wanted promptly: the kernel shows those of
/// a queue when it has handled a batch of them.
const ORDER_NS: i64 = 1_000_000;
/// Attempts to empty the send ring when the port is closed.
const FLUSHES: usize = 1_000;

/// Where the XDP program of a port runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Attached {
    /// Within the driver.
    Native,
    /// Behind the driver, on a copy of the frame by the kernel: slower, but this driver cannot do better.
    Generic,
    /// Nowhere: the port only sends.
    Nowhere,
}

/// Mode of an AF_XDP port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct XdpMode {
    /// Where its program runs.
    pub attached: Attached,
    /// Whether the NIC reads and writes the port's memory; otherwise the kernel copies.
    pub zero_copy: bool,
    /// The kernel's error for which it copies, although zero-copy was asked for.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "error_text")]
    pub zero_copy_refused: Option<i32>,
    /// Whether looking for frames runs the driver's poll.
    pub busy_poll: bool,
    /// Number of its queues, all of the interface unless one was named.
    pub queues: u32,
}

fn error_text<S: Serializer>(code: &Option<i32>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&io::Error::from_raw_os_error(code.unwrap_or_default()))
}

/// Frames of an interface by AF_XDP.
#[derive(Debug)]
pub struct XdpPort {
    name: String,
    /// First: it is detached before the sockets close.
    program: Program,
    /// At least one; the first one sends.
    queues: Vec<Queue>,
    _all_addresses: Option<packet::Socket>,
    mode: XdpMode,
    most_bytes: usize,
    /// Whether frames are handed out as soon as they are there.
    promptly: bool,
    tai: TaiOffset,
    counters: Counters,
}

impl XdpPort {
    /// Opens a port that sends, and if `receiving` is given receives: all frames of its queues that come
    /// from now on, which the kernel's stack no longer sees. Frames are never cut: `snap` only says how
    /// much memory the slots may take.
    ///
    /// Frames of several queues are handed out in the order of their stamps: promptly, those that are there; otherwise a
    /// millisecond later, so that only a frame that the kernel shows later than that is out of order.
    ///
    /// A VLAN tag that the NIC or the kernel has taken out of a frame is not to be seen from here:
    /// `ethtool -K INTERFACE rxvlan off`, and at the sending end of a veth pair `txvlan off`.
    ///
    /// # Errors
    /// [`PortError::Open`].
    pub fn open(name: &PortName, receiving: Option<Receiving>) -> Result<Self, PortError> {
        Self::open_filtered(name, receiving, None)
    }

    /// Checks that this kernel loads a program which asks the driver for the NIC's stamps.
    ///
    /// # Errors
    /// [`PortError::Open`].
    pub(super) fn check_hints(name: &PortName) -> Result<(), PortError> {
        opening::check_hints(name).map_err(|failed| Self::failed(name, failed))
    }

    /// Opens a port that receives only requests.
    pub fn open_for(
        name: &PortName,
        receiving: Receiving,
        requests: &Requests,
    ) -> Result<Self, PortError> {
        Self::open_filtered(name, Some(receiving), Some(requests))
    }

    fn open_filtered(
        name: &PortName,
        receiving: Option<Receiving>,
        requests: Option<&Requests>,
    ) -> Result<Self, PortError> {
        let mtu = interface::mtu(&name.interface);
        let mtu = mtu.map_err(|error| Self::failed(name, ("no such interface", error)))?;
        let wanted = Wanted { name, mtu, receiving, requests };
        let Opened { sockets, program, all_addresses, attached, refused } =
            opening::opened(&wanted).map_err(|failed| Self::failed(name, failed))?;
        let mode = XdpMode {
            attached,
            zero_copy: sockets.iter().all(Socket::zero_copy),
            zero_copy_refused: refused,
            busy_poll: false,
            queues: sockets.len() as u32,
        };
        let mut port = Self {
            name: name.to_string(),
            program,
            queues: sockets.into_iter().map(Queue::new).collect(),
            _all_addresses: all_addresses,
            mode,
            most_bytes: mtu + HEADERS,
            promptly: receiving.is_none_or(|receiving| receiving.promptly),
            tai: TaiOffset::default(),
            counters: Counters::default(),
        };
        // Without an answer of the driver, interrupts are assumed to be missing.
        let interrupts = interface::has_hardware(&name.interface);
        if receiving.is_some() && interrupts.unwrap_or(false) {
            // A kernel without busy polling uses interrupts.
            let _ = port.busy_poll();
        }
        Ok(port)
    }

    /// Has every look for frames run the driver's poll, instead of leaving that to interrupts. A port
    /// does so by itself where there is hardware that interrupts. The frames of a veth pair are there as
    /// soon as they were sent: the calls only take time, 3.4 µs instead of 2.9 on the way through a
    /// forwarder.
    ///
    /// # Errors
    /// [`PortError::Open`] when the kernel cannot or this process may not.
    pub fn busy_poll(&mut self) -> Result<(), PortError> {
        for queue in &self.queues {
            queue.socket.busy_poll(BUSY_POLL_US, BUSY_POLL_BUDGET).map_err(|source| {
                let (port, what) = (self.name.clone(), "setting up busy polling");
                PortError::Open { port, what, source, hint: "" }
            })?;
        }
        self.mode.busy_poll = true;
        Ok(())
    }

    fn failed(name: &PortName, (what, source): Failed) -> PortError {
        let hint = hint(what, &source);
        PortError::Open { port: name.to_string(), what, source, hint }
    }

    fn broken(&self, what: &'static str) -> impl FnOnce(io::Error) -> PortError {
        let port = self.name.clone();
        move |source| PortError::Broken { port, what, source }
    }

    /// Makes the kernel send the frames in the send ring, if it has to be asked.
    fn kick(&mut self) -> Result<(), PortError> {
        self.counters.discarded += self.sender().kick().map_err(self.broken("sending"))?;
        Ok(())
    }

    fn sender(&self) -> &Socket {
        &self.queues[0].socket
    }

    fn has_waiting(&self) -> bool {
        self.queues.iter().any(|queue| queue.socket.waiting() > 0)
    }

    /// Has each driver's poll run, or its error told.
    fn call(&self) -> Result<(), PortError> {
        let mut called = self.queues.iter().map(|queue| queue.socket.call());
        called.try_for_each(|called| called.map_err(self.broken("receiving")))
    }
}

impl Port for XdpPort {
    fn capabilities(&self) -> Capabilities {
        // The port's stamps are as good as the worst one that came; a frame without the NIC's has none.
        let stamping = match self.program.redirect() {
            Some(redirect) if redirect.hints() => Stamping::Hardware,
            Some(redirect) if redirect.stamps() && self.counters.unstamped == 0 => {
                Stamping::Program
            }
            _ => Stamping::Process,
        };
        Capabilities {
            stamping,
            most_bytes: self.most_bytes,
            most_frames: BATCH,
            xdp: Some(self.mode),
        }
    }

    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        let hints = self.program.redirect().is_some_and(Redirect::hints);
        // Under pressure, order is worth less than frames.
        let hold_ns = if self.promptly || self.is_pressed() { 0 } else { ORDER_NS };
        let (queues, counters, tai) = (&mut self.queues, &mut self.counters, &mut self.tai);
        let now_ns = if hold_ns > 0 && queues.len() > 1 { tai.now_ns() } else { 0 };
        let young = |ns: i64| (now_ns - hold_ns + 1..=now_ns).contains(&ns);
        let mut hand = |counters: &mut Counters, bytes: &[u8], stamp| {
            counters.received += 1;
            counters.received_bytes += bytes.len() as u64;
            take(Received { bytes, length: bytes.len(), stamp });
        };
        let count = if hints {
            let mut pass = |bytes: &[u8], front| {
                let stamp = of_nic(front, counters);
                hand(counters, bytes, stamp);
            };
            merging::receive(queues, most, |front| place_of_nic(front, young), &mut pass)
        } else {
            let mut pass = |bytes: &[u8], front| {
                let stamp = of_program(front, tai, counters);
                hand(counters, bytes, Some(stamp));
            };
            merging::receive(queues, most, |front| place_of_program(front, young), &mut pass)
        };
        let polls = count == 0 && self.mode.busy_poll;
        let ended = self.queues.iter_mut().try_for_each(|queue| queue.end(polls));
        ended.map_err(self.broken("receiving"))?;
        if self.sender().unsent() > 0 {
            self.kick()?;
        }
        Ok(count)
    }

    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError> {
        let offered = frames.len().min(BATCH);
        if self.mode.busy_poll && self.mode.zero_copy {
            // A call of a socket that prefers busy polling runs the poll of its receiving queue, and wakes no other: where
            // a driver has a poll of its own for sending (igb), frames would stay.
            for queue in &self.queues {
                queue.socket.leave_to_interrupts().map_err(self.broken("sending"))?;
            }
            self.mode.busy_poll = false;
        }
        self.queues[0].socket.reclaim();
        if self.sender().unsent() > 0 {
            self.kick()?;
        }
        let mut sent = 0;
        // In copy mode the frames that are left after a kick do not fit the driver now: queueing more behind them would
        // hide that.
        if self.mode.zero_copy || self.sender().unsent() == 0 {
            for frame in &frames[..offered] {
                if frame.len() > self.most_bytes {
                    let source = io::Error::from_raw_os_error(libc::EMSGSIZE);
                    self.sender().publish();
                    return Err(self.broken("sending")(source));
                }
                if !self.queues[0].socket.queue(frame) {
                    break;
                }
                self.counters.sent_bytes += frame.len() as u64;
                sent += 1;
            }
        }
        self.counters.sent += sent as u64;
        self.counters.refused += (offered - sent) as u64;
        if sent > 0 {
            self.sender().publish();
            self.kick()?;
        }
        Ok(sent)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, PortError> {
        if self.sender().unsent() > 0 {
            self.kick()?;
        }
        if self.has_waiting() {
            return Ok(true);
        }
        poll::any(&self.descriptors(), timeout).map_err(self.broken("waiting"))?;
        if !self.has_waiting() {
            // Only a call returns the error of an interface that is down or gone.
            self.call()?;
        }
        Ok(self.has_waiting())
    }

    fn is_pressed(&self) -> bool {
        self.queues.iter().any(|queue| queue.socket.is_half_full())
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        if self.sender().unsent() > 0 {
            self.kick()?;
        }
        let mut counters = self.counters;
        for queue in &self.queues {
            let statistics = queue.socket.statistics();
            let statistics = statistics.map_err(self.broken("asking for the counters"))?;
            counters.dropped += statistics.dropped + statistics.ring_full;
            counters.ring_full += statistics.ring_full;
            counters.fill_empty += statistics.fill_empty;
            counters.discarded += statistics.send_invalid;
        }
        counters.elsewhere = self.program.redirect().map_or(0, Redirect::elsewhere);
        Ok(counters)
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.queues.iter().map(AsFd::as_fd).collect()
    }
}

impl Drop for XdpPort {
    fn drop(&mut self) {
        for _ in 0..FLUSHES {
            // A socket that is closed discards the frames in its send ring.
            if self.sender().unsent() == 0 || self.sender().kick().is_err() {
                break;
            }
            std::thread::yield_now();
        }
    }
}
