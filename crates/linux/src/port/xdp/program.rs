//! The XDP program of a port: stamps a frame and redirects it to the port's socket.
//!
//! A few instructions, so neither a compiler nor libbpf is needed. Encoding: RFC 9669; helpers and the
//! context: <linux/bpf.h>.

use crate::sys::bpf::{Instruction, Link, Map, MapKind, Program};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// What the program leaves in front of a frame: a mark, and nanoseconds of `CLOCK_TAI`.
pub(super) const FRONT: usize = 16;
/// Tells a stamp from whatever else may lie there.
const MARK: u64 = u64::from_le_bytes(*b"tailtrim");

/// Fields of `struct xdp_md`.
const DATA: i16 = 0;
const DATA_META: i16 = 8;
const QUEUE: i16 = 16;
/// Helpers.
const MAP_LOOKUP: i32 = 1;
const REDIRECT_MAP: i32 = 51;
const ADJUST_META: i32 = 54;
const TAI_NS: i32 = 208;
/// To the kernel's own stack.
const PASS: i32 = 2;

/// The program at its interface, until this is dropped.
#[derive(Debug)]
pub(super) struct Redirect {
    _link: Link,
    _sockets: Map,
    elsewhere: Map,
    stamps: bool,
}

impl Redirect {
    /// Whether this process may create what the program needs.
    pub(super) fn is_permitted() -> Result<(), (&'static str, io::Error)> {
        Map::new(MapKind::Numbers, 1).map(drop).map_err(|source| ("creating a BPF map", source))
    }

    /// Attaches the program. Frames of the queue go to the socket, those of other queues to the kernel; and
    /// before that those that `filter` passes itself. Its instructions end at their end for the others.
    pub(super) fn attach(
        interface: u32,
        queue: u32,
        socket: BorrowedFd<'_>,
        pieces: bool,
        native: bool,
        filter: &[Instruction],
    ) -> Result<Self, (&'static str, io::Error)> {
        let at = |what| move |source| (what, source);
        let sockets =
            Map::new(MapKind::Sockets, queue + 1).map_err(at("creating a map of sockets"))?;
        let elsewhere = Map::new(MapKind::Numbers, 1).map_err(at("creating a map of numbers"))?;
        sockets.set_socket(queue, socket).map_err(at("entering the socket into its map"))?;
        let load = |stamps| {
            let files = [sockets.as_fd().as_raw_fd(), elsewhere.as_fd().as_raw_fd()];
            Program::xdp(&text(stamps, files, filter), pieces)
        };
        // Before Linux 6.1 there was no such clock for programs.
        let (program, stamps) = match load(true) {
            Ok(program) => (program, true),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                (load(false).map_err(at("loading the XDP program"))?, false)
            }
            Err(error) => return Err(("loading the XDP program", error)),
        };
        let link =
            Link::xdp(&program, interface, native).map_err(at("attaching the XDP program"))?;
        Ok(Self { _link: link, _sockets: sockets, elsewhere, stamps })
    }

    /// Whether frames are stamped.
    pub(super) fn stamps(&self) -> bool {
        self.stamps
    }

    /// Frames that came to another queue and went to the kernel.
    pub(super) fn elsewhere(&self) -> io::Result<u64> {
        self.elsewhere.number(0)
    }
}

/// The stamp in front of a frame, if there is one.
pub(super) fn stamp_tai_ns(front: [u8; FRONT]) -> Option<i64> {
    let [mark, ns] =
        [&front[..8], &front[8..]].map(|half| half.try_into().map_or(0, u64::from_ne_bytes));
    (mark == MARK).then_some(ns.cast_signed())
}

const fn instruction(code: u8, to: u8, from: u8, offset: i16, value: i32) -> Instruction {
    let registers = if cfg!(target_endian = "little") { to | from << 4 } else { to << 4 | from };
    Instruction { code, registers, offset, value }
}

const fn set(to: u8, value: i32) -> Instruction {
    instruction(0xb7, to, 0, 0, value)
}
const fn copy(to: u8, from: u8) -> Instruction {
    instruction(0xbf, to, from, 0, 0)
}
const fn add(to: u8, value: i32) -> Instruction {
    instruction(0x07, to, 0, 0, value)
}
const fn load_word(to: u8, from: u8, offset: i16) -> Instruction {
    instruction(0x61, to, from, offset, 0)
}
const fn store_double(to: u8, offset: i16, from: u8) -> Instruction {
    instruction(0x7b, to, from, offset, 0)
}
const fn call(helper: i32) -> Instruction {
    instruction(0x85, 0, 0, 0, helper)
}
const fn wide(to: u8, kind: u8, value: u64) -> [Instruction; 2] {
    [instruction(0x18, to, kind, 0, value as i32), instruction(0, 0, 0, 0, (value >> 32) as i32)]
}
/// The address of a map, by its descriptor (`BPF_PSEUDO_MAP_FD`).
const fn map(to: u8, file: i32) -> [Instruction; 2] {
    wide(to, 1, file.cast_unsigned() as u64)
}
const EXIT: Instruction = instruction(0x95, 0, 0, 0, 0);

/// Register 0 takes results, 1 to 5 are arguments, 6 keeps the context, 10 is the stack.
fn text(stamps: bool, [sockets, elsewhere]: [i32; 2], filter: &[Instruction]) -> Vec<Instruction> {
    let mut text = vec![copy(6, 1)];
    text.extend(filter);
    // The filter has used it.
    text.push(copy(1, 6));
    if stamps {
        let mut stamp = vec![
            call(TAI_NS),
            load_word(1, 6, DATA_META),
            load_word(2, 6, DATA),
            copy(3, 1),
            add(3, FRONT as i32),
            // The verifier wants to see that the front is there: past the four that fill it in.
            instruction(0x2d, 3, 2, 4, 0),
        ];
        stamp.extend(wide(4, 0, MARK));
        stamp.extend([store_double(1, 0, 4), store_double(1, 8, 0)]);
        text.extend([set(2, -(FRONT as i32)), call(ADJUST_META)]);
        // A driver without room for a front: past the stamp.
        text.push(instruction(0x55, 0, 0, stamp.len() as i16, 0));
        text.extend(stamp);
    }
    text.extend(map(1, sockets));
    text.extend([load_word(2, 6, QUEUE), set(3, PASS), call(REDIRECT_MAP)]);
    let mut count = vec![
        // The key 0, on the stack.
        instruction(0x62, 10, 0, -4, 0),
        copy(2, 10),
        add(2, -4),
    ];
    count.extend(map(1, elsewhere));
    count.extend([
        call(MAP_LOOKUP),
        instruction(0x15, 0, 0, 2, 0),
        set(1, 1),
        // An atomic addition: queues are served on several CPUs.
        instruction(0xdb, 0, 1, 0, 0),
        set(0, PASS),
    ]);
    // Redirected: past the counting.
    text.push(instruction(0x55, 0, 0, count.len() as i16, PASS));
    text.extend(count);
    text.push(EXIT);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_end_within_the_program() {
        for stamps in [false, true] {
            let text = text(stamps, [3, 4], &[]);
            for (at, instruction) in text.iter().enumerate() {
                if matches!(instruction.code, 0x15 | 0x2d | 0x55) {
                    let to = at + 1 + instruction.offset as usize;
                    assert!(to < text.len(), "{at} jumps to {to} of {}", text.len());
                    // The second half of a wide instruction is none to jump to.
                    assert_ne!(text[to - 1].code, 0x18, "{at} jumps to {to}");
                }
            }
            assert_eq!(*text.last().unwrap(), EXIT);
        }
    }

    #[test]
    fn a_front_is_a_stamp_only_with_the_mark() {
        let mut front = [0; FRONT];
        assert_eq!(stamp_tai_ns(front), None);
        front[8..].copy_from_slice(&5_u64.to_ne_bytes());
        assert_eq!(stamp_tai_ns(front), None);
        front[..8].copy_from_slice(&MARK.to_ne_bytes());
        assert_eq!(stamp_tai_ns(front), Some(5));
    }
}
