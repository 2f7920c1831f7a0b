//! AF_XDP: frames of one queue of an interface, past the kernel's stack. Needs root.

mod redirect;
mod stamping;

use super::{Capabilities, Counters, Port, PortError, PortName, Received, Receiving, Stamping};
use crate::bpf::Requests;
use redirect::Redirect;
use serde::Serialize;
use stamping::{TaiOffset, of_nic, of_program};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use tailtrim_sys::xdp::{HEADROOM, Shape, Socket};
use tailtrim_sys::{interface, poll};

/// Most frames in one call.
const BATCH: usize = 64;
/// Bytes of an Ethernet header, and of the VLAN tag that the MTU does not count either.
const HEADERS: usize = 14 + 4;
/// A chunk for frames of the usual MTU, and a page: the most that the kernel takes.
const SMALL: usize = 2_048;
const LARGE: usize = 4_096;
/// The MTU leaves out two VLAN tags.
const TAGS: usize = 2 * 4;
/// Frames that may wait: 128 MB of memory at most, with small chunks.
const MOST_SLOTS: usize = 1 << 16;
/// Time for which a call polls the driver, in µs, and most frames that it takes then: the values that the kernel's
/// documentation of AF_XDP recommends.
const BUSY_POLL_US: i32 = 20;
const BUSY_POLL_BUDGET: i32 = 64;
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
    /// Whether looking for frames runs the driver's poll.
    pub busy_poll: bool,
    /// The queue of the interface.
    pub queue: u32,
}

/// Frames of a queue of an interface by AF_XDP.
#[derive(Debug)]
pub struct XdpPort {
    name: String,
    /// First: it is detached before the socket closes.
    redirect: Option<Redirect>,
    socket: Socket,
    mode: XdpMode,
    most_bytes: usize,
    slots: u32,
    tai: TaiOffset,
    counters: Counters,
}

impl XdpPort {
    /// Opens a port that sends, and if `receiving` is given receives: all frames of the queue that come
    /// from now on, which the kernel's stack no longer sees. Frames are never cut: `snap` only says how
    /// much memory the slots may take.
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
        let open = || {
            let interface =
                interface::index(&name.interface).map_err(|error| ("no such interface", error))?;
            Redirect::load(interface, name.queue, false, None, true)
        };
        let failed = |(what, source)| {
            let hint = hint(what, &source);
            PortError::Open { port: name.to_string(), what, source, hint }
        };
        open().map(drop).map_err(failed)
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
        let failed = |what, source: io::Error| {
            let hint = hint(what, &source);
            PortError::Open { port: name.to_string(), what, source, hint }
        };
        let interface = interface::index(&name.interface)
            .map_err(|source| failed("no such interface", source))?;
        let mtu = interface::mtu(&name.interface)
            .map_err(|source| failed("asking for the MTU", source))?;
        let longest = mtu + HEADERS + TAGS;
        let chunk_bytes = if longest + HEADROOM <= SMALL { SMALL } else { LARGE };
        let slots = receiving.map_or(0, |Receiving { memory_bytes, .. }| {
            let fits = memory_bytes / chunk_bytes;
            fits.clamp(BATCH, MOST_SLOTS).next_power_of_two() as u32
        });
        let hints = receiving.is_some_and(|receiving| receiving.hardware);
        let mut shape = Shape {
            interface,
            queue: name.queue,
            receive_slots: slots,
            chunk_bytes,
            pieces: longest + HEADROOM > chunk_bytes,
            copy: false,
            metadata: false,
        };
        let (socket, redirect, attached) =
            attach(&mut shape, requests, hints).map_err(|(what, source)| failed(what, source))?;
        let mode = XdpMode {
            attached,
            zero_copy: socket.zero_copy(),
            busy_poll: false,
            queue: name.queue,
        };
        let mut port = Self {
            name: name.to_string(),
            redirect,
            socket,
            mode,
            most_bytes: mtu + HEADERS,
            slots,
            tai: TaiOffset::default(),
            counters: Counters::default(),
        };
        // Without an answer of the driver, interrupts are assumed to be missing.
        let interrupts = interface::has_hardware(&name.interface);
        if slots > 0 && interrupts.unwrap_or(false) {
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
        self.socket.busy_poll(BUSY_POLL_US, BUSY_POLL_BUDGET).map_err(|source| {
            let (port, what) = (self.name.clone(), "setting up busy polling");
            PortError::Open { port, what, source, hint: "" }
        })?;
        self.mode.busy_poll = true;
        Ok(())
    }

    fn broken(&self, what: &'static str) -> impl FnOnce(io::Error) -> PortError {
        let port = self.name.clone();
        move |source| PortError::Broken { port, what, source }
    }

    /// Makes the kernel send the frames in the send ring, if it has to be asked.
    fn kick(&mut self) -> Result<(), PortError> {
        self.counters.discarded += self.socket.kick().map_err(self.broken("sending"))?;
        Ok(())
    }
}

type Opened = (Socket, Option<Redirect>, Attached);

/// Opens the socket and attaches the program: within the driver if it can, otherwise behind it.
fn attach(
    shape: &mut Shape,
    requests: Option<&Requests>,
    hints: bool,
) -> Result<Opened, (&'static str, io::Error)> {
    if shape.receive_slots == 0 {
        return Ok((Socket::open(shape)?, None, Attached::Nowhere));
    }
    // Loaded before the socket is opened, so that a user without rights gets the program's error, not one about locked
    // memory.
    let mut redirect = Redirect::load(shape.interface, shape.queue, shape.pieces, requests, hints)?;
    let socket = Socket::open(shape)?;
    match redirect.attach(shape.interface, socket.as_fd(), true) {
        Ok(()) => return Ok((socket, Some(redirect), Attached::Native)),
        // Only a driver answers questions.
        Err((what, error)) if hints || is_final(&error) => return Err((what, error)),
        Err(_) => {}
    }
    // Only a program within the driver can redirect frames that were received with zero-copy.
    drop(socket);
    shape.copy = true;
    let socket = Socket::open(shape)?;
    redirect.attach(shape.interface, socket.as_fd(), false)?;
    Ok((socket, Some(redirect), Attached::Generic))
}

/// Whether attaching behind the driver would fail, too.
fn is_final(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::EBUSY | libc::EEXIST))
}

fn hint(what: &str, error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            " (AF_XDP needs root; in a user namespace use packet:INTERFACE)"
        }
        Some(libc::EAFNOSUPPORT | libc::ENOSYS) => {
            " (this kernel lacks CONFIG_XDP_SOCKETS or CONFIG_BPF_SYSCALL: use packet:INTERFACE)"
        }
        Some(libc::EBUSY | libc::EEXIST) if what.contains("program") => {
            " (another XDP program is there: ip link set dev INTERFACE xdp off)"
        }
        Some(libc::EBUSY) => " (another AF_XDP socket has this queue)",
        Some(libc::EINVAL) if what.contains("queue") => {
            " (does the interface have this queue? ethtool -l INTERFACE)"
        }
        Some(libc::ENOBUFS | libc::ENOMEM) => " (more locked memory is needed: ulimit -l, or root)",
        _ => "",
    }
}

impl Port for XdpPort {
    fn capabilities(&self) -> Capabilities {
        // The port's stamps are as good as the worst one that came; a frame without the NIC's has none.
        let stamping = match &self.redirect {
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
        let (counters, tai) = (&mut self.counters, &mut self.tai);
        let mut hand = |counters: &mut Counters, bytes: &[u8], stamp| {
            counters.received += 1;
            counters.received_bytes += bytes.len() as u64;
            take(Received { bytes, length: bytes.len(), stamp });
        };
        let mut count = 0;
        if self.redirect.as_ref().is_some_and(Redirect::hints) {
            let mut pass = |bytes: &[u8], front| {
                let stamp = of_nic(front, counters);
                hand(counters, bytes, stamp);
            };
            while count < most && self.socket.receive(&mut pass) {
                count += 1;
            }
        } else {
            let mut pass = |bytes: &[u8], front| {
                let stamp = of_program(front, tai, counters);
                hand(counters, bytes, Some(stamp));
            };
            while count < most && self.socket.receive(&mut pass) {
                count += 1;
            }
        }
        if count > 0 {
            self.socket.received();
        } else if self.mode.busy_poll || self.socket.receiving_sleeps() {
            self.socket.call().map_err(self.broken("receiving"))?;
        }
        if self.socket.unsent() > 0 {
            self.kick()?;
        }
        Ok(count)
    }

    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError> {
        let offered = frames.len().min(BATCH);
        self.socket.reclaim();
        if self.socket.unsent() > 0 {
            self.kick()?;
        }
        let mut sent = 0;
        // In copy mode the frames that are left after a kick do not fit the driver now: queueing more behind them would
        // hide that.
        if self.mode.zero_copy || self.socket.unsent() == 0 {
            for frame in &frames[..offered] {
                if frame.len() > self.most_bytes {
                    let source = io::Error::from_raw_os_error(libc::EMSGSIZE);
                    self.socket.publish();
                    return Err(self.broken("sending")(source));
                }
                if !self.socket.queue(frame) {
                    break;
                }
                self.counters.sent_bytes += frame.len() as u64;
                sent += 1;
            }
        }
        self.counters.sent += sent as u64;
        self.counters.refused += (offered - sent) as u64;
        if sent > 0 {
            self.socket.publish();
            self.kick()?;
        }
        Ok(sent)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, PortError> {
        if self.socket.unsent() > 0 {
            self.kick()?;
        }
        if self.socket.waiting() > 0 {
            return Ok(true);
        }
        let [ready] =
            poll::readable([self.socket.as_fd()], timeout).map_err(self.broken("waiting"))?;
        if !ready.readable {
            // Only a call returns the error of an interface that is down or gone.
            self.socket.call().map_err(self.broken("receiving"))?;
        }
        Ok(self.socket.waiting() > 0)
    }

    fn is_pressed(&self) -> bool {
        self.socket.waiting() > self.slots / 2
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        if self.socket.unsent() > 0 {
            self.kick()?;
        }
        let statistics =
            self.socket.statistics().map_err(self.broken("asking for the counters"))?;
        let mut counters = self.counters;
        counters.dropped = statistics.dropped + statistics.ring_full;
        counters.ring_full = statistics.ring_full;
        counters.fill_empty = statistics.fill_empty;
        counters.discarded += statistics.send_invalid;
        counters.elsewhere = self.redirect.as_ref().map_or(0, Redirect::elsewhere);
        Ok(counters)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

impl Drop for XdpPort {
    fn drop(&mut self) {
        for _ in 0..FLUSHES {
            // A socket that is closed discards the frames in its send ring.
            if self.socket.unsent() == 0 || self.socket.kick().is_err() {
                break;
            }
            std::thread::yield_now();
        }
    }
}
