//! bpf(2): maps, programs, and links that attach a program for as long as they are open.
//!
//! Commands and structures: <linux/bpf.h>. The kernel takes what is missing at the end of a structure as
//! zeros, so each stops behind the last field that is used.

use super::mapping::Mapping;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const PROGRAM_LOAD: libc::c_int = 5;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const LINK_CREATE: libc::c_int = 28;

const PROGRAM_XDP: u32 = 6;
const PROGRAM_RAW_TRACEPOINT: u32 = 17;
const ATTACH_XDP: u32 = 37;
/// The program copes with frames that lie in several pieces (`BPF_F_XDP_HAS_FRAGS`).
const HAS_PIECES: u32 = 1 << 5;
/// `XDP_FLAGS_SKB_MODE` and `XDP_FLAGS_DRV_MODE` of <linux/if_link.h>.
const GENERIC: u32 = 1 << 1;
const NATIVE: u32 = 1 << 2;

/// A map whose value this process may map into its memory (`BPF_F_MMAPABLE`), Linux 5.5.
const MAPPABLE: u32 = 1 << 10;

/// An instruction as the kernel reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    /// Destination in the low, source in the high four bits (on little-endian machines).
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) value: i32,
}

/// What a map is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapKind {
    /// 64-bit numbers.
    Numbers = 2,
    /// Values by keys of any kind, of which those that were used longest ago make room.
    Recent = 9,
    /// AF_XDP sockets, by queue.
    Sockets = 17,
}

/// A table that the program and this process share.
#[derive(Debug)]
pub(crate) struct Map {
    file: OwnedFd,
    kind: MapKind,
}

#[repr(C)]
struct MapShape {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct MapEntry {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

fn create(
    kind: MapKind,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
) -> io::Result<OwnedFd> {
    let shape = MapShape { kind: kind as u32, key_bytes, value_bytes, entries, flags };
    // SAFETY: the structure is that of the command.
    unsafe { open(MAP_CREATE, &shape) }
}

impl Map {
    pub(crate) fn new(kind: MapKind, entries: u32) -> io::Result<Self> {
        let value_bytes = if kind == MapKind::Numbers { 8 } else { 4 };
        Ok(Self { file: create(kind, 4, value_bytes, entries, 0)?, kind })
    }

    /// A map of 64-bit numbers by keys of so many bytes, which only a program reads and writes.
    pub(crate) fn recent(key_bytes: u32, entries: u32) -> io::Result<Self> {
        let kind = MapKind::Recent;
        Ok(Self { file: create(kind, key_bytes, 8, entries, 0)?, kind })
    }

    /// The socket that gets the frames of this queue.
    pub(crate) fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        assert_eq!(self.kind, MapKind::Sockets);
        let value = socket.as_raw_fd().cast_unsigned();
        let entry = self.entry(&queue, (&raw const value) as u64);
        // SAFETY: the structure is that of the command; key and value are of the map's sizes, 4 bytes
        // each, and live until the call returns.
        unsafe { call(MAP_UPDATE, &entry) }.map(drop)
    }

    pub(crate) fn number(&self, key: u32) -> io::Result<u64> {
        assert_eq!(self.kind, MapKind::Numbers);
        let mut value = 0_u64;
        let entry = self.entry(&key, (&raw mut value) as u64);
        // SAFETY: the structure is that of the command; key and value are of the map's sizes, 4 and 8
        // bytes, and live until the call returns, which writes the value.
        unsafe { call(MAP_LOOKUP, &entry) }?;
        Ok(value)
    }

    fn entry(&self, key: &u32, value: u64) -> MapEntry {
        let map = self.file.as_raw_fd().cast_unsigned();
        MapEntry { map, padding: 0, key: std::ptr::from_ref(key) as u64, value, flags: 0 }
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Numbers in memory that a program and this process both have: no call is needed to read one, so neither is a
/// privilege.
#[derive(Debug)]
pub(crate) struct SharedNumbers {
    file: OwnedFd,
    memory: Mapping,
}

impl SharedNumbers {
    pub(crate) fn new(count: usize) -> io::Result<Self> {
        let bytes = count * 8;
        let file = create(MapKind::Numbers, 4, bytes as u32, 1, MAPPABLE)?;
        let memory = Mapping::of_file(file.as_fd(), bytes, 0)?;
        Ok(Self { file, memory })
    }

    pub(crate) fn get(&self, at: usize) -> u64 {
        self.memory.double_word(at * 8).load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, at: usize, value: u64) {
        self.memory.double_word(at * 8).store(value, Ordering::Relaxed);
    }
}

impl AsFd for SharedNumbers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A program that the kernel has verified.
#[derive(Debug)]
pub(crate) struct Program(OwnedFd);

#[repr(C)]
struct ProgramText {
    kind: u32,
    count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel: u32,
    flags: u32,
}

impl Program {
    /// Loads an XDP program; `pieces` when it copes with frames that lie in several.
    pub(crate) fn xdp(instructions: &[Instruction], pieces: bool) -> io::Result<Self> {
        Self::logged(instructions, pieces, &mut [])
    }

    /// What the kernel's verifier says of a program that it does not load, in one line.
    pub(crate) fn why_not(instructions: &[Instruction], pieces: bool) -> String {
        let mut log = vec![0; 1 << 20];
        let _ = Self::logged(instructions, pieces, &mut log);
        let text = String::from_utf8_lossy(&log);
        let mut lines = text.trim_end_matches('\0').lines().rev();
        // The last one counts how much there was to verify.
        let said = lines.find(|line| !line.starts_with("processed "));
        said.unwrap_or_default().to_owned()
    }

    /// Loads a program for a tracepoint.
    pub(crate) fn tracepoint(instructions: &[Instruction]) -> io::Result<Self> {
        Self::load(PROGRAM_RAW_TRACEPOINT, 0, instructions, &mut [])
    }

    fn logged(instructions: &[Instruction], pieces: bool, log: &mut [u8]) -> io::Result<Self> {
        let flags = if pieces { HAS_PIECES } else { 0 };
        Self::load(PROGRAM_XDP, flags, instructions, log)
    }

    fn load(
        kind: u32,
        flags: u32,
        instructions: &[Instruction],
        log: &mut [u8],
    ) -> io::Result<Self> {
        let text = ProgramText {
            kind,
            count: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            licence: c"Dual MIT/GPL".as_ptr() as u64,
            log_level: u32::from(!log.is_empty()),
            log_bytes: log.len() as u32,
            log: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
            kernel: 0,
            flags,
        };
        // SAFETY: the structure is that of the command; it points to as many instructions as it says, to
        // a string that ends, and to as much room for a log, all of which live until the call returns.
        unsafe { open(PROGRAM_LOAD, &text) }.map(Self)
    }
}

/// A program at its interface, until this is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Link(#[expect(dead_code, reason = "open is what it is for")] OwnedFd);

#[repr(C)]
struct LinkEnds {
    program: u32,
    interface: u32,
    attach: u32,
    flags: u32,
}

impl Link {
    /// Attaches an XDP program to an interface: within its driver, or behind it.
    pub(crate) fn xdp(program: &Program, interface: u32, native: bool) -> io::Result<Self> {
        let ends = LinkEnds {
            program: program.0.as_raw_fd().cast_unsigned(),
            interface,
            attach: ATTACH_XDP,
            flags: if native { NATIVE } else { GENERIC },
        };
        // SAFETY: the structure is that of the command.
        unsafe { open(LINK_CREATE, &ends) }.map(Self)
    }
}

#[repr(C)]
struct TracepointEnds {
    name: u64,
    program: u32,
    padding: u32,
}

impl Link {
    /// Attaches a program to a tracepoint.
    pub(crate) fn tracepoint(program: &Program, name: &CStr) -> io::Result<Self> {
        let program = program.0.as_raw_fd().cast_unsigned();
        let ends = TracepointEnds { name: name.as_ptr() as u64, program, padding: 0 };
        // SAFETY: the structure is that of the command; it points to a string that ends, which lives until the
        // call returns.
        unsafe { open(RAW_TRACEPOINT_OPEN, &ends) }.map(Self)
    }
}

/// # Safety
/// The structure is that of the command, and what it points to lives and may be read or written.
unsafe fn call<T>(command: libc::c_int, attributes: &T) -> io::Result<libc::c_int> {
    // SAFETY: the structure is valid for reading and of the length given; the rest is the caller's.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attributes),
            size_of::<T>() as libc::c_uint,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

/// # Safety
/// As of [`call`]; and the command returns a descriptor.
unsafe fn open<T>(command: libc::c_int, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the caller's.
    let file = unsafe { call(command, attributes) }?;
    // SAFETY: the descriptor was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}
