//! Packets with stamps over a cable: sockets of AF_PACKET at both ends.

use super::frame::{Frame, LENGTH};
use crate::socket::Point;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use tailtrim_sys::message::{self, Slots};
use tailtrim_sys::packet::Socket;
use tailtrim_sys::{clock, control, interface, socket};

/// Packets at each rate.
pub(super) const PACKETS: usize = 250;
/// Memory for packets and stamps that wait: each takes less than 1 kB.
const BUFFER: libc::c_int = 4 << 20;
/// Nothing more comes when nothing came for so long: a driver hands a stamp over within milliseconds.
const QUIET_NS: i64 = 300_000_000;
/// Packets before the first that counts, and the time for each.
const WARM_UPS: usize = 100;
const WARM_UP: Duration = Duration::from_millis(10);
/// Most packets in one look, also where others send more than can be taken.
const MOST: usize = 4_096;
/// Between two looks.
const LOOK: Duration = Duration::from_millis(2);

const STAMPS: libc::c_uint = libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_RAW_HARDWARE
    | libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_RX_HARDWARE
    | libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_TX_HARDWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY
    | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;

/// Stamps by packet, in ns of their clock.
pub(super) type Stamps = Vec<Option<i64>>;

/// Packets that were sent at one rate.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    /// Intended time between two packets.
    pub(super) gap_ns: i64,
    /// When the process sent.
    pub(super) process: Stamps,
    pub(super) sent_kernel: Stamps,
    pub(super) sent_nic: Stamps,
    pub(super) received_kernel: Stamps,
    pub(super) received_nic: Stamps,
    /// Numbers of the packets that arrived, in this order, each once.
    pub(super) arrivals: Vec<usize>,
}

impl Stage {
    pub(super) fn new(gap_ns: i64, packets: usize) -> Self {
        let none = || vec![None; packets];
        Self {
            gap_ns,
            process: none(),
            sent_kernel: none(),
            sent_nic: none(),
            received_kernel: none(),
            received_nic: none(),
            arrivals: Vec::with_capacity(packets),
        }
    }

    /// Number of packets that arrived.
    pub(super) fn arrived(&self) -> usize {
        self.arrivals.len()
    }

    /// Number of packets that arrived behind one that was sent later.
    pub(super) fn reordered(&self) -> usize {
        let mut latest = 0;
        let overtaken = |number: &&usize| {
            latest = latest.max(**number);
            **number < latest
        };
        self.arrivals.iter().filter(overtaken).count()
    }

    /// Places of the packets in the order of arrival, if they arrived.
    pub(super) fn places(&self) -> Vec<Option<usize>> {
        let mut places = vec![None; self.received_kernel.len()];
        for (place, number) in self.arrivals.iter().enumerate() {
            places[*number] = Some(place);
        }
        places
    }

    /// Notes that a packet arrived. Returns whether it is one of this stage that had not.
    pub(super) fn note_arrival(&mut self, number: usize) -> bool {
        let new = number < self.received_kernel.len() && !self.arrivals.contains(&number);
        if new {
            self.arrivals.push(number);
        }
        new
    }
}

/// One end of the cable.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) mac: [u8; 6],
    socket: Socket,
    slots: Slots,
    /// Packets sent so far, by which the kernel names their stamps.
    sent: u32,
}

impl Side {
    pub(super) fn open(name: &str) -> io::Result<Self> {
        let index = interface::index(name)?;
        let packets = Socket::new()?;
        let set = |name, value| socket::set(packets.as_fd(), libc::SOL_SOCKET, name, value);
        for (forced, usual) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            set(forced, BUFFER).or_else(|_| set(usual, BUFFER))?;
        }
        set(libc::SO_TIMESTAMPING, STAMPS.cast_signed())?;
        packets.ignore_outgoing()?;
        packets.bind(index, true)?;
        packets.promiscuous(index)?;
        let slots = Slots::new(message::MOST, LENGTH);
        Ok(Self { mac: interface::mac(name)?, socket: packets, slots, sent: 0 })
    }

    /// Sends packets until one arrives with the kernel's stamp, for a second at most. The kernel begins to stamp some
    /// time after it was asked (`net_enable_timestamp`), and a link that is new may lose packets.
    pub(super) fn warm_up(&mut self, to: &mut Self, frame: &mut Frame) -> io::Result<()> {
        for _ in 0..WARM_UPS {
            let (mut stage, first) = (Stage::new(1, 1), frame.number());
            self.send_paced(frame, 1, 1)?;
            std::thread::sleep(WARM_UP);
            to.take_received(&mut stage, frame, first)?;
            if stage.received_kernel[0].is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Sends packets at one rate to the other end, and takes all stamps of them.
    pub(super) fn send(
        &mut self,
        to: &mut Self,
        frame: &mut Frame,
        gap_ns: i64,
    ) -> io::Result<Stage> {
        let mut stage = Stage::new(gap_ns, PACKETS);
        let (first_key, first) = (self.sent, frame.number());
        stage.process = self.send_paced(frame, gap_ns, PACKETS)?;
        let mut heard_ns = clock::monotonic_ns();
        while clock::monotonic_ns() < heard_ns + QUIET_NS {
            let sent = self.take_sent(&mut stage, first_key)?;
            if sent + to.take_received(&mut stage, frame, first)? > 0 {
                heard_ns = clock::monotonic_ns();
            }
            std::thread::sleep(LOOK);
        }
        Ok(stage)
    }

    /// Sends packets at one rate. Returns when the process did.
    pub(super) fn send_paced(
        &mut self,
        frame: &mut Frame,
        gap_ns: i64,
        packets: usize,
    ) -> io::Result<Stamps> {
        // Some time for the caches.
        let begin_ns = clock::monotonic_ns() + 1_000_000;
        let mut process = Vec::new();
        for number in 0..packets {
            while clock::monotonic_ns() < begin_ns + number as i64 * gap_ns {
                std::hint::spin_loop();
            }
            let bytes = frame.next();
            process.push(Some(clock::realtime_ns()));
            // A packet that finds no room has its number, too.
            self.socket.send(bytes)?;
            self.sent = self.sent.wrapping_add(1);
        }
        Ok(process)
    }

    /// Takes the stamps of sent packets that are there. Returns their number.
    fn take_sent(&mut self, stage: &mut Stage, first_key: u32) -> io::Result<usize> {
        let mut ours = 0;
        while message::receive(self.socket.as_fd(), &mut self.slots, libc::MSG_ERRQUEUE)? > 0 {
            for at in 0..self.slots.filled() {
                let told = self.slots.get(at).map(|told| control::parse(told.control));
                let Some(told) = told.filter(is_of_sent) else { continue };
                let key = told.error.map_or(0, |error| error.data);
                let number = key.wrapping_sub(first_key) as usize;
                note(&mut stage.sent_kernel, number, told.software_ns);
                note(&mut stage.sent_nic, number, told.hardware_ns);
                ours += 1;
            }
        }
        Ok(ours)
    }

    /// Takes the packets that are there. Returns how many of them are ours.
    fn take_received(&mut self, stage: &mut Stage, frame: &Frame, first: u16) -> io::Result<usize> {
        let (mut ours, mut room) = (0, MOST);
        while room > 0 && message::receive(self.socket.as_fd(), &mut self.slots, 0)? > 0 {
            for at in 0..self.slots.filled() {
                let Some(told) = self.slots.get(at) else { continue };
                let Some(number) = frame.number_of(told.bytes) else { continue };
                let number = usize::from(number.wrapping_sub(first));
                if stage.note_arrival(number) {
                    let stamps = control::parse(told.control);
                    stage.received_kernel[number] = stamps.software_ns;
                    stage.received_nic[number] = stamps.hardware_ns;
                }
                ours += 1;
            }
            room = room.saturating_sub(self.slots.filled());
        }
        Ok(ours)
    }
}

fn is_of_sent(told: &control::Said) -> bool {
    told.error.is_some_and(|error| error.point() == Some(Point::Sent))
}

/// Notes a stamp; those of packets of before are not wanted.
fn note(stamps: &mut Stamps, number: usize, ns: Option<i64>) {
    if let (Some(stamp), Some(ns)) = (stamps.get_mut(number), ns) {
        *stamp = Some(ns);
    }
}
