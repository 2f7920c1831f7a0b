//! The XDP program of a port, `crates/ports/bpf/redirect.bpf.c`: stamps a frame and redirects it to the port's socket.

use super::stamping::MARK;
use crate::bpf::{self, Requests, map, said};
use aya::maps::XskMap;
use aya::programs::{ProgramType, Xdp, XdpMode};
use aya::sys::{BpfHelper, is_helper_supported};
use aya::{Ebpf, EbpfLoader};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use tailtrim_sys::bpf::attach_xdp;
use tailtrim_sys::numbers::SharedNumbers;
use tailtrim_sys::xdp::Failed;

/// The program, first loaded, then at its interface, until this is dropped.
#[derive(Debug)]
pub(super) struct Redirect {
    loaded: Ebpf,
    program: &'static str,
    elsewhere: SharedNumbers,
    stamps: bool,
    /// The same program bound to its interface, then its link.
    bound: Option<(OwnedFd, Option<OwnedFd>)>,
}

impl Redirect {
    /// Loads the program. Frames of the first `queues` queues can go to sockets, those of others go to the kernel; with
    /// `requests`, everything but these goes to the kernel as well. With `hints`, the driver is asked for the NIC's stamps.
    /// `pieces`: frames may consist of several pieces.
    pub(super) fn load(
        interface: u32,
        queues: u32,
        pieces: bool,
        requests: Option<&Requests>,
        hints: bool,
    ) -> Result<Self, Failed> {
        Self::prepare(interface, queues, pieces, requests, hints)
            .map_err(|source| ("loading the XDP program", source))
    }

    fn prepare(
        interface: u32,
        queues: u32,
        pieces: bool,
        requests: Option<&Requests>,
        hints: bool,
    ) -> io::Result<Self> {
        // Before Linux 6.1 there was no such clock for programs.
        let stamps = is_helper_supported(ProgramType::Xdp, BpfHelper::BPF_FUNC_ktime_get_tai_ns)
            .unwrap_or(false);
        let flags = [("IS_FOR_REQUESTS", requests.is_some()), ("STAMPS", stamps), ("HINTS", hints)]
            .map(|(name, value)| (name, u8::from(value)));
        let mut loader = EbpfLoader::new();
        for (name, value) in &flags {
            loader.override_global(name, value, true);
        }
        loader.override_global("MARK", &MARK, true);
        loader.map_max_entries("sockets", queues);
        if let Some(requests) = requests {
            requests.set(&mut loader);
        }
        let mut loaded = bpf::load(&mut loader, &bpf::REDIRECT)?;
        if let Some(requests) = requests {
            requests.enter(&mut loaded)?;
        }
        let elsewhere = bpf::numbers(&mut loaded, "elsewhere", 1)?;
        let program = if pieces { "redirect_pieces" } else { "redirect" };
        let bound = match hints {
            true => {
                Some((bpf::load_bound(&bpf::REDIRECT, &loaded, program, interface, pieces)?, None))
            }
            false => {
                bpf::program::<Xdp>(&mut loaded, program)?.load().map_err(said)?;
                None
            }
        };
        Ok(Self { loaded, program, elsewhere, stamps, bound })
    }

    /// Has frames of a queue go to this socket.
    pub(super) fn enter(&mut self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), Failed> {
        map(&mut self.loaded, "sockets")
            .and_then(|map| XskMap::try_from(map).map_err(said))
            .and_then(|mut map| map.set(queue, socket.as_raw_fd(), 0).map_err(said))
            .map_err(|source| ("entering the socket into its map", source))
    }

    /// Attaches it to the interface.
    pub(super) fn attach(&mut self, interface: u32, native: bool) -> Result<(), Failed> {
        let at = |what| move |source| (what, source);
        let mode = if native { XdpMode::Driver } else { XdpMode::Skb };
        if let Some((program, link)) = &mut self.bound {
            let attached = attach_xdp(program.as_fd(), interface);
            *link = Some(attached.map_err(at("attaching the XDP program"))?);
            return Ok(());
        }
        bpf::program::<Xdp>(&mut self.loaded, self.program)
            .and_then(|program| program.attach_to_if_index(interface, mode).map_err(said))
            .map_err(at("attaching the XDP program"))?;
        Ok(())
    }

    /// Whether the driver is asked for the NIC's stamps.
    pub(super) fn hints(&self) -> bool {
        self.bound.is_some()
    }

    /// Whether frames are stamped.
    pub(super) fn stamps(&self) -> bool {
        self.stamps
    }

    /// Frames that came to another queue and went to the kernel.
    pub(super) fn elsewhere(&self) -> u64 {
        self.elsewhere.get(0)
    }
}

/// A program within the driver that lets all frames pass, until this is dropped. Some drivers have no queues for sockets
/// without one, and send nothing.
#[derive(Debug)]
pub(super) struct Passing {
    _loaded: Ebpf,
}

impl Passing {
    pub(super) fn attach(interface: u32) -> io::Result<Self> {
        let mut loaded = bpf::load(&mut EbpfLoader::new(), &bpf::REDIRECT)?;
        let program = bpf::program::<Xdp>(&mut loaded, "pass")?;
        program.load().map_err(said)?;
        program.attach_to_if_index(interface, XdpMode::Driver).map_err(said)?;
        Ok(Self { _loaded: loaded })
    }
}
