//! Opening an AF_XDP port: a socket for each queue, and one program at the interface.

use super::redirect::{Passing, Redirect};
use super::{Attached, Receiving};
use crate::bpf::Requests;
use crate::port::PortName;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use tailtrim_sys::ethtool::{self, Channels};
use tailtrim_sys::xdp::{Failed, HEADROOM, Shape, Socket};
use tailtrim_sys::{interface, packet};

/// Chunks of memory, the smaller ones for frames of the usual MTU; the larger is a page, the most that the kernel takes.
const SMALL: usize = 2_048;
const LARGE: usize = 4_096;
/// Cards know the size of a chunk in these units (igb, ixgbe). Behind the headroom, a small chunk has one of them: igb cuts
/// longer frames.
const CARD_UNIT: usize = 1_024;
/// The MTU leaves out two VLAN tags.
const TAGS: usize = 2 * 4;
/// Frames that may wait in a queue: 128 MB of memory at most, with small chunks. Fewer than 64 lose the first burst.
const MOST_SLOTS: usize = 1 << 16;
const LEAST_SLOTS: usize = 64;
/// Longest wait for a link that a driver has reset: autonegotiation takes 3 s, and a switch may take as long again.
const LINK: Duration = Duration::from_secs(10);
const LINK_LOOK: Duration = Duration::from_millis(10);

/// Settings of a port.
pub(super) struct Wanted<'a> {
    pub(super) name: &'a PortName,
    pub(super) mtu: usize,
    pub(super) receiving: Option<Receiving>,
    pub(super) requests: Option<&'a Requests>,
}

/// An open port.
pub(super) struct Opened {
    /// At least one.
    pub(super) sockets: Vec<Socket>,
    pub(super) program: Program,
    /// Has the NIC receive frames to other addresses, too, while it is open.
    pub(super) all_addresses: Option<packet::Socket>,
    pub(super) attached: Attached,
    /// The error for which the kernel copies.
    pub(super) refused: Option<i32>,
}

/// The program of a port.
#[derive(Debug)]
pub(super) enum Program {
    /// Redirects received frames.
    Redirect(Redirect),
    /// Is only there.
    Passing { _program: Passing },
    /// A port without one sends only.
    None,
}

impl Program {
    pub(super) fn redirect(&self) -> Option<&Redirect> {
        match self {
            Self::Redirect(redirect) => Some(redirect),
            _ => None,
        }
    }
}

/// Shape of the sockets of a port.
struct Shapes {
    interface: u32,
    /// Bytes of the longest frame.
    longest: usize,
    /// Memory of each queue for frames that wait; `None` for a port that only sends.
    memory_bytes: Option<usize>,
}

impl Shapes {
    fn of(&self, queue: u32, copy: bool) -> Shape {
        let fits = |chunk: usize| {
            let room = chunk - HEADROOM;
            self.longest <= if copy { room } else { room / CARD_UNIT * CARD_UNIT }
        };
        let chunk_bytes = if fits(SMALL) { SMALL } else { LARGE };
        let slots =
            |bytes: usize| (bytes / chunk_bytes).clamp(LEAST_SLOTS, MOST_SLOTS).next_power_of_two();
        Shape {
            interface: self.interface,
            queue,
            receive_slots: self.memory_bytes.map_or(0, slots) as u32,
            chunk_bytes,
            pieces: !fits(chunk_bytes),
            copy,
            metadata: false,
        }
    }

    /// Opens a socket with zero-copy, or after the driver's refusal, whose error is returned, one for which the kernel copies.
    fn open(&self, queue: u32) -> Result<(Socket, Option<i32>), Failed> {
        let refused = match Socket::open(&self.of(queue, false)) {
            Ok(socket) => return Ok((socket, None)),
            // Another socket that has the queue has it for copies, too.
            Err((what, error)) if is_final(&error) => return Err((what, error)),
            Err((_, error)) => error.raw_os_error(),
        };
        Ok((Socket::open(&self.of(queue, true))?, refused))
    }
}

/// Opens the sockets and attaches the program: within the driver if it can, otherwise behind it.
pub(super) fn opened(wanted: &Wanted<'_>) -> Result<Opened, Failed> {
    let interface =
        interface::index(&wanted.name.interface).map_err(|error| ("no such interface", error))?;
    let queues = queues(wanted.name, wanted.receiving.is_some());
    let shapes = Shapes {
        interface,
        longest: wanted.mtu + super::HEADERS + TAGS,
        memory_bytes: wanted.receiving.map(|receiving| receiving.memory_bytes / queues.len()),
    };
    let had_link = has_link(wanted.name);
    let mut opened = match wanted.receiving {
        None => sender(&shapes, queues[0])?,
        Some(receiving) => receiver(&shapes, &queues, wanted.requests, receiving.hardware)?,
    };
    // Requests are to this host alone.
    if wanted.receiving.is_some() && wanted.requests.is_none() {
        opened.all_addresses = Some(
            packet::Socket::new()
                .and_then(|socket| socket.promiscuous(interface).map(|()| socket))
                .map_err(|error| ("receiving frames to all addresses", error))?,
        );
    }
    if had_link {
        wait_for_link(wanted.name)?;
    }
    Ok(opened)
}

/// Loads the program for these queues, as a check.
pub(super) fn check_hints(name: &PortName) -> Result<(), Failed> {
    let interface =
        interface::index(&name.interface).map_err(|error| ("no such interface", error))?;
    Redirect::load(interface, 1, false, None, true).map(drop)
}

/// The queues of a port: the one that was named, or for a receiver all of its interface.
fn queues(name: &PortName, receives: bool) -> Vec<u32> {
    match name.queue {
        Some(queue) => vec![queue],
        None if receives => {
            // A driver that knows no numbers of queues has one.
            let told = ethtool::get::<Channels>(&name.interface).unwrap_or_default();
            (0..(told.rx + told.combined).max(1)).collect()
        }
        None => vec![0],
    }
}

fn sender(shapes: &Shapes, queue: u32) -> Result<Opened, Failed> {
    let (mut socket, mut refused) = shapes.open(queue)?;
    let mut program = Program::None;
    if socket.zero_copy() {
        match Passing::attach(shapes.interface) {
            Ok(passing) => program = Program::Passing { _program: passing },
            // Another one serves as well.
            Err(error) if is_taken(&error) => {}
            Err(error) => {
                drop(socket);
                refused = error.raw_os_error();
                socket = Socket::open(&shapes.of(queue, true))?;
            }
        }
    }
    let (sockets, attached) = (vec![socket], Attached::Nowhere);
    Ok(Opened { sockets, program, all_addresses: None, attached, refused })
}

fn receiver(
    shapes: &Shapes,
    queues: &[u32],
    requests: Option<&Requests>,
    hints: bool,
) -> Result<Opened, Failed> {
    // Loaded before the sockets are opened, so that a user without rights gets the program's error, not one about
    // locked memory.
    let most = queues.iter().max().map_or(1, |queue| queue + 1);
    let pieces = [false, true].iter().any(|copy| shapes.of(0, *copy).pieces);
    let mut redirect = Redirect::load(shapes.interface, most, pieces, requests, hints)?;
    // Sockets first: once the program is there, a driver may reset the link for each of them.
    let (mut sockets, mut refused, mut attached) = (Vec::new(), None, Attached::Native);
    for queue in queues {
        let (socket, why) = shapes.open(*queue)?;
        redirect.enter(*queue, socket.as_fd())?;
        sockets.push(socket);
        refused = refused.or(why);
    }
    match redirect.attach(shapes.interface, true) {
        Ok(()) => {}
        // Only a driver answers questions.
        Err((what, error)) if hints || is_final(&error) => return Err((what, error)),
        Err((_, error)) => {
            // Only a program within the driver can redirect frames that were received with zero-copy.
            sockets.clear();
            for queue in queues {
                let socket = Socket::open(&shapes.of(*queue, true))?;
                redirect.enter(*queue, socket.as_fd())?;
                sockets.push(socket);
            }
            redirect.attach(shapes.interface, false)?;
            (attached, refused) = (Attached::Generic, error.raw_os_error());
        }
    }
    let program = Program::Redirect(redirect);
    Ok(Opened { sockets, program, all_addresses: None, attached, refused })
}

fn has_link(name: &PortName) -> bool {
    interface::state(&name.interface).is_ok_and(|state| state.up && state.link)
}

/// Waits until a link is back that was there before.
fn wait_for_link(name: &PortName) -> Result<(), Failed> {
    let mut waited = Duration::ZERO;
    while !has_link(name) {
        if waited > LINK {
            return Err((
                "waiting for the link, which its driver has reset",
                io::ErrorKind::TimedOut.into(),
            ));
        }
        std::thread::sleep(LINK_LOOK);
        waited += LINK_LOOK;
    }
    Ok(())
}

/// Whether there is a program already.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

/// Whether attaching behind the driver would fail, too.
fn is_final(error: &io::Error) -> bool {
    is_taken(error) || matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES))
}

/// Advice for the user.
pub(super) fn hint(what: &str, error: &io::Error) -> &'static str {
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
