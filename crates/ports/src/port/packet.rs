//! AF_PACKET: works with every interface, and unprivileged within a user namespace.

use super::{
    Capabilities, Counters, Departed, Departing, Fate, Numbered, Port, PortError, PortName,
    Received, Stamp, Stamping, Timed,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use tailtrim_sys::blocks::BlockRing;
use tailtrim_sys::message::Slots;
use tailtrim_sys::packet::Socket;
use tailtrim_sys::ring::{ReceiveRing, STAMPED_BY_HARDWARE, SendRing, Slot};
use tailtrim_sys::{clock, control, interface};
use tailtrim_wire::traffic::Builder;

/// Bytes of an Ethernet header, and of the VLAN tag that the MTU does not count either.
const HEADERS: usize = 14 + 4;
/// Where a VLAN tag stands in a frame.
const TAG_AT: usize = 12;
/// Most frames in one system call: more gain nothing and make the first of them wait.
const BATCH: usize = 64;
/// Frames that may lie in the NIC's queue while the next ones are sent.
const SEND_SLOTS: usize = 512;

/// Time between two questions for dropped frames, which the kernel counts in 32 bits since the last question.
const ASK_NS: u64 = 1_000_000_000;

const NO_RIGHT: &str = " (needs root or CAP_NET_RAW; without, a user namespace: unshare -Urn)";

const NO_TIMES: &str = " (needs root or CAP_NET_ADMIN, and Linux 4.19)";
/// Stamps that come back by one call, and bytes of frames that do: of a probe behind tags and IPv6.
const BACK: usize = 8;
const BACK_BYTES: usize = 128;

/// Frames of an interface by AF_PACKET.
#[derive(Debug)]
pub struct PacketPort {
    name: String,
    /// Receives, and sends single frames.
    socket: Socket,
    ring: Option<Ring>,
    /// Sends several frames by one system call: a socket with a send ring sends nothing else.
    together: (Socket, SendRing),
    most_bytes: usize,
    hardware: bool,
    counters: Counters,
    /// When dropped frames were last asked for, by the stamps of received ones.
    asked_ns: i64,
    /// A frame with its tag put back.
    tagged: Vec<u8>,
    departing: Departing,
    /// Probes that were sent singly and together, by the kernel's numbers.
    numbered: [Numbered; 2],
    /// Stamps, and frames, that came back.
    back: Slots,
}

/// Settings for received frames.
#[derive(Debug, Clone, Copy)]
pub struct Receiving {
    /// Bytes of a frame; the rest is cut.
    pub snap: usize,
    /// Memory for frames that wait for this process.
    pub memory_bytes: usize,
    /// Show each frame when it comes; otherwise, which takes less memory and time, up to a tenth of a second later.
    pub promptly: bool,
    /// Take the stamps of the NIC, which [`super::HardwareStamps`] has turned on, by AF_XDP as hints; a frame
    /// without one then counts as unstamped, because the kernel's would be of another clock.
    pub hardware: bool,
}

/// Where received frames wait.
#[derive(Debug)]
enum Ring {
    Prompt(ReceiveRing),
    Packed(BlockRing),
}

impl Ring {
    fn new(socket: &Socket, receiving: Receiving) -> io::Result<Self> {
        let Receiving { snap, memory_bytes, promptly, .. } = receiving;
        Ok(if promptly {
            Self::Prompt(ReceiveRing::new(socket, memory_bytes, snap)?)
        } else {
            Self::Packed(BlockRing::new(socket, memory_bytes, snap)?)
        })
    }

    fn is_half_full(&self) -> bool {
        match self {
            Self::Prompt(ring) => ring.is_half_full(),
            Self::Packed(ring) => ring.is_half_full(),
        }
    }

    fn receive(&mut self, take: &mut dyn FnMut(Slot<'_>)) -> bool {
        match self {
            Self::Prompt(ring) => ring.receive(take),
            Self::Packed(ring) => ring.receive(take),
        }
    }
}

impl PacketPort {
    /// Opens a port that only sends.
    ///
    /// # Errors
    /// [`PortError::Open`].
    pub fn sender(name: &PortName, departing: Departing) -> Result<Self, PortError> {
        let mut port = Self::open(name, None)?;
        port.departing = departing;
        let failed = |what| {
            move |source| PortError::Open { port: name.to_string(), what, source, hint: NO_TIMES }
        };
        let Departing { kernel_stamps, nic_stamps, .. } = departing;
        if kernel_stamps || nic_stamps {
            let single = port.socket.stamp_sent(kernel_stamps, nic_stamps);
            single.map_err(failed("asking for stamps of sent frames"))?;
        }
        if nic_stamps {
            let together = port.together.0.stamp_sent(false, true);
            together.map_err(failed("asking for stamps of sent frames"))?;
        }
        if let Some(timed) = departing.timed {
            (|| {
                port.socket.use_qdisc()?;
                port.socket.prioritize(timed.priority)?;
                port.socket.depart_by_tai()
            })()
            .map_err(failed("sending at a time"))?;
        }
        Ok(port)
    }

    /// Opens a port that sends and receives. Frames that come in are received from now on, also those to
    /// other addresses; those that this host sends are not.
    ///
    /// # Errors
    /// [`PortError::Open`].
    pub fn receiver(name: &PortName, receiving: Receiving) -> Result<Self, PortError> {
        Self::open(name, Some(receiving))
    }

    fn open(name: &PortName, receiving: Option<Receiving>) -> Result<Self, PortError> {
        let failed = |what, hint| {
            move |source| PortError::Open { port: name.to_string(), what, source, hint }
        };
        let interface = &name.interface;
        let index = interface::index(interface).map_err(failed("no such interface", ""))?;
        let socket = Socket::new().map_err(|source| {
            let refused = source.kind() == io::ErrorKind::PermissionDenied;
            failed("raw sockets", if refused { NO_RIGHT } else { "" })(source)
        })?;
        let setup = failed("setting up", "");
        let mut ring = None;
        let mut hardware = false;
        if let Some(receiving) = receiving {
            hardware = receiving.hardware;
            (|| {
                socket.ignore_outgoing()?;
                if hardware {
                    socket.prefer_hardware_stamps()?;
                } else {
                    socket.stamp_early()?;
                }
                ring = Some(Ring::new(&socket, receiving)?);
                socket.bind(index, true)?;
                socket.promiscuous(index)
            })()
            .map_err(setup)?;
        } else {
            socket.bind(index, false).map_err(setup)?;
        }
        socket.bypass_qdisc().map_err(failed("sending past the queueing discipline", ""))?;
        let mtu = interface::mtu(interface).map_err(failed("asking for the MTU", ""))?;
        let together = (|| {
            let socket = Socket::new()?;
            let ring = SendRing::new(&socket, SEND_SLOTS, mtu + HEADERS)?;
            socket.bind(index, false)?;
            socket.bypass_qdisc()?;
            Ok((socket, ring))
        })()
        .map_err(failed("setting up the send ring", ""))?;
        Ok(Self {
            name: name.to_string(),
            socket,
            ring,
            together,
            most_bytes: mtu + HEADERS,
            hardware,
            counters: Counters::default(),
            asked_ns: 0,
            tagged: Vec::new(),
            departing: Departing::default(),
            numbered: Default::default(),
            back: Slots::new(BACK, BACK_BYTES),
        })
    }

    fn count_sent(&mut self, frames: &[&[u8]], offered: usize, sent: usize) {
        self.counters.sent += sent as u64;
        self.counters.sent_bytes +=
            frames[..sent].iter().map(|frame| frame.len() as u64).sum::<u64>();
        self.counters.refused += (offered - sent) as u64;
    }

    fn ask_for_dropped(&mut self) -> Result<(), PortError> {
        let statistics =
            self.socket.statistics().map_err(self.broken("asking for the counters"))?;
        self.counters.dropped += u64::from(statistics.dropped);
        Ok(())
    }

    fn broken(&self, what: &'static str) -> impl FnOnce(io::Error) -> PortError {
        let port = self.name.clone();
        move |source| PortError::Broken { port, what, source }
    }
}

/// The MAC address of an interface.
///
/// # Errors
/// [`PortError::Open`] when there is no such interface.
pub fn mac(name: &PortName) -> Result<[u8; 6], PortError> {
    interface::mac(&name.interface).map_err(|source| PortError::Open {
        port: name.to_string(),
        what: "asking for the MAC address",
        source,
        hint: "",
    })
}

impl Port for PacketPort {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            stamping: if self.hardware { Stamping::Hardware } else { Stamping::Kernel },
            most_bytes: self.most_bytes,
            most_frames: BATCH,
            xdp: None,
        }
    }

    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        let Some(ring) = &mut self.ring else { return Ok(0) };
        let (counters, tagged) = (&mut self.counters, &mut self.tagged);
        let wanted = if self.hardware { Stamping::Hardware } else { Stamping::Kernel };
        let (mut count, mut newest_ns) = (0, self.asked_ns);
        while count < most {
            let mut pass = |slot: Slot<'_>| {
                let stamp = stamp(&slot).filter(|stamp| stamp.stamping == wanted);
                newest_ns = stamp.map_or(newest_ns, |stamp| stamp.ns);
                let (mut bytes, mut length) = (slot.bytes, slot.length as usize);
                if let Some((protocol, control)) = slot.tag
                    && let Some((addresses, rest)) = slot.bytes.split_at_checked(TAG_AT)
                {
                    tagged.clear();
                    tagged.extend(addresses);
                    tagged.extend(protocol.to_be_bytes());
                    tagged.extend(control.to_be_bytes());
                    tagged.extend(rest);
                    bytes = tagged;
                    length += 4;
                }
                counters.received += 1;
                counters.received_bytes += length as u64;
                counters.unstamped += u64::from(stamp.is_none());
                take(Received { bytes, length, stamp });
            };
            if !ring.receive(&mut pass) {
                break;
            }
            count += 1;
        }
        if newest_ns.abs_diff(self.asked_ns) >= ASK_NS {
            self.asked_ns = newest_ns;
            self.ask_for_dropped()?;
        }
        Ok(count)
    }

    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError> {
        let offered = frames.len().min(BATCH);
        let socket = usize::from(offered != 1);
        let taken = match &frames[..offered] {
            [frame] => self.socket.send(frame),
            frames => self.together.1.send(&self.together.0, frames),
        }
        .map_err(self.broken("sending"))?;
        if self.departing.stamps(offered) {
            self.numbered[socket].sent(frames, taken);
        }
        self.count_sent(frames, offered, taken.frames);
        Ok(taken.frames)
    }

    fn departing(&self) -> Departing {
        self.departing
    }

    fn send_at(&mut self, frames: &[&[u8]], at_ns: &[i64]) -> Result<usize, PortError> {
        let Some(Timed { early_ns, .. }) = self.departing.timed else { return self.send(frames) };
        let later_ns = early_ns + clock::tai_offset_ns();
        let mut sent = 0;
        for (frame, at_ns) in frames.iter().zip(at_ns) {
            let taken = self.socket.send_at(frame, at_ns + later_ns);
            let taken = taken.map_err(self.broken("sending"))?;
            self.numbered[0].sent(&[frame], taken);
            self.count_sent(&[frame], 1, taken.frames);
            if taken.frames == 0 {
                break;
            }
            sent += 1;
        }
        Ok(sent)
    }

    fn departed(&mut self, take: &mut dyn FnMut(Departed)) -> Result<usize, PortError> {
        let mut count = 0;
        let sockets = [Some(&self.socket), self.departing.nic_stamps.then_some(&self.together.0)];
        for (socket, numbered) in sockets.into_iter().flatten().zip(&self.numbered) {
            let came = socket.notices(&mut self.back).map_err(self.broken("taking stamps"))?;
            for told in (0..came).filter_map(|at| self.back.get(at)) {
                let said = control::parse(told.control);
                let Some(error) = said.error else { continue };
                let (probe, fate) = if error.is_missed() {
                    (Builder::probe(told.bytes), Some(Fate::Missed))
                } else {
                    let stamp = said.hardware_ns.map(Fate::Nic);
                    (numbered.probe(error.data), stamp.or(said.software_ns.map(Fate::Kernel)))
                };
                if let (Some(probe), Some(fate)) = (probe, fate) {
                    take(Departed { probe, fate });
                }
            }
            count += came;
        }
        Ok(count)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, PortError> {
        self.socket.wait(timeout).map_err(self.broken("receiving"))
    }

    fn is_pressed(&self) -> bool {
        self.ring.as_ref().is_some_and(Ring::is_half_full)
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        self.ask_for_dropped()?;
        Ok(self.counters)
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.socket.as_fd()]
    }
}

fn stamp(slot: &Slot<'_>) -> Option<Stamp> {
    let ns = i64::from(slot.seconds) * 1_000_000_000 + i64::from(slot.nanoseconds);
    let stamping =
        if slot.status & STAMPED_BY_HARDWARE != 0 { Stamping::Hardware } else { Stamping::Kernel };
    (ns != 0).then_some(Stamp { ns, stamping })
}
