//! `perf_event_open`: counters, and records of tracepoints in a buffer for each CPU.
//!
//! Layouts are those of `linux/perf_event.h`, which the kernel keeps.

use super::mapping::Mapping;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_DUMMY`: an event that never happens.
const SOFTWARE: u32 = 1;
const DUMMY: u64 = 9;
/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// `PERF_SAMPLE_TIME | PERF_SAMPLE_RAW`: what [`tailtrim_trace::perf`] reads.
const SAMPLE: u64 = 1 << 2 | 1 << 10;
/// `PERF_FORMAT_LOST`, since kernel 6.0.
const LOST: u64 = 1 << 4;
/// Bits of `flags`.
const DISABLED: u64 = 1;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCK: u64 = 1 << 25;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
/// `_IO('$', 0)`, `_IO('$', 1)`, `_IO('$', 5)`, `_IOW('$', 6, char *)`.
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
const SET_OUTPUT: libc::c_ulong = 0x2405;
const SET_FILTER: libc::c_ulong = 0x4008_2406;
/// Where `data_head`, `data_offset` and `data_size` lie in the first page of a buffer.
const HEAD: usize = 1_024;
const OFFSET: usize = 1_040;
const SIZE: usize = 1_048;

/// `struct perf_event_attr` as of its fifth version; later fields are zero by its size.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branches: u64,
    user_registers: u64,
    user_stack: u32,
    clock: i32,
    interrupt_registers: u64,
    aux_watermark: u32,
    max_stack: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<Attributes>() == 112);

/// An event of one CPU.
#[derive(Debug)]
pub(crate) struct Event(File);

impl Event {
    /// A counter, running. `kind` is that of the device in `/sys/bus/event_source/devices`.
    pub(crate) fn counter(kind: u32, config: u64, cpu: u32) -> io::Result<Self> {
        Self::open(Attributes { kind, config, ..Attributes::default() }, cpu, None)
    }

    /// What events of a CPU are switched by. It is off and never happens itself.
    pub(crate) fn switch(cpu: u32) -> io::Result<Self> {
        let attributes = Attributes { kind: SOFTWARE, config: DUMMY, ..recording(DISABLED) };
        Self::open(attributes, cpu, None)
    }

    /// A tracepoint by its ID, which is recorded into the buffer of `switch` while that is on.
    pub(crate) fn tracepoint(id: u16, cpu: u32, switch: &Self) -> io::Result<Self> {
        let attributes = |read_format| Attributes {
            kind: TRACEPOINT,
            config: u64::from(id),
            sample_period: 1,
            read_format,
            ..recording(0)
        };
        let counting = Self::open(attributes(LOST), cpu, Some(switch));
        let event = match counting {
            // An older kernel: what was lost is not told event by event.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                Self::open(attributes(0), cpu, Some(switch))?
            }
            other => other?,
        };
        event.control(SET_OUTPUT, switch.0.as_raw_fd() as libc::c_ulong)?;
        Ok(event)
    }

    fn open(attributes: Attributes, cpu: u32, group: Option<&Self>) -> io::Result<Self> {
        let attributes = Attributes { size: size_of::<Attributes>() as u32, ..attributes };
        let group = group.map_or(-1, |leader| leader.0.as_raw_fd());
        let everybody: libc::pid_t = -1;
        // SAFETY: the attributes are valid for reading and of the size that they say; the rest are numbers.
        let result = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                everybody,
                cpu as libc::c_int,
                group,
                CLOSE_ON_EXEC,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and belongs to nobody else.
        Ok(Self(File::from(unsafe { OwnedFd::from_raw_fd(result as libc::c_int) })))
    }

    /// Lets only those through that the kernel's expression fits.
    pub(crate) fn filter(&self, expression: &str) -> io::Result<()> {
        let text = std::ffi::CString::new(expression)?;
        // The kernel reads the text before the call returns.
        self.control(SET_FILTER, text.as_ptr() as libc::c_ulong)
    }

    /// Switches its events on.
    pub(crate) fn enable(&self) -> io::Result<()> {
        self.control(ENABLE, 0)
    }

    /// Switches them off: when this returns, nothing is written any more.
    pub(crate) fn disable(&self) -> io::Result<()> {
        self.control(DISABLE, 0)
    }

    /// What a counter has counted, or how often an event happened.
    pub(crate) fn count(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        (&self.0).read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// How many records found no room; nothing where the kernel does not count them.
    pub(crate) fn lost(&self) -> Option<u64> {
        let mut bytes = [0; 16];
        let length = (&self.0).read(&mut bytes).ok()?;
        let lost: [u8; 8] = bytes.get(8..length)?.try_into().ok()?;
        Some(u64::from_ne_bytes(lost))
    }

    fn control(&self, request: libc::c_ulong, argument: libc::c_ulong) -> io::Result<()> {
        // SAFETY: of the requests above one takes a text, which lives during the call, the others numbers.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, argument) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// What all that share a buffer have in common.
fn recording(flags: u64) -> Attributes {
    Attributes {
        sample_type: SAMPLE,
        flags: flags | WATERMARK | SAMPLE_ID_ALL | USE_CLOCK,
        clock: libc::CLOCK_MONOTONIC_RAW,
        // Nobody waits for it; a wake-up would disturb who is measured.
        wakeup: u32::MAX,
        ..Attributes::default()
    }
}

/// A buffer for the records of one CPU. What comes when it is full is lost.
#[derive(Debug)]
pub(crate) struct Buffer(Mapping);

impl Buffer {
    /// Of a [switch](Event::switch), with at least so many bytes.
    pub(crate) fn new(switch: &Event, bytes: usize) -> io::Result<Self> {
        const PAGE: usize = 4_096;
        let pages = bytes.div_ceil(PAGE).next_power_of_two();
        Ok(Self(Mapping::of_file(switch.0.as_fd(), (1 + pages) * PAGE, 0)?))
    }

    /// All records since the beginning, and whether there is still room for the largest. The switch must be off.
    pub(crate) fn records(&self) -> (&[u8], bool) {
        // SAFETY: the kernel writes nothing while the events are off, which is the caller's duty in this crate;
        // any bits are a valid number.
        let [head, offset, size] =
            [HEAD, OFFSET, SIZE].map(|place| unsafe { self.0.read::<u64>(place) } as usize);
        // The end of what was read stays at 0, so that the kernel never begins anew.
        let length = head.min(size);
        // SAFETY: as above.
        let bytes = unsafe { self.0.slice(offset, length) };
        (bytes, size - length > usize::from(u16::MAX))
    }
}
