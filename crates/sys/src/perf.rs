//! `perf_event_open`: counters, and records of tracepoints in a buffer for each CPU.
//!
//! Layouts are those of `linux/perf_event.h`, which the kernel keeps.

use super::checked;
use super::mapping::Mapping;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;

/// `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_DUMMY`: an event that never happens.
const SOFTWARE: u32 = 1;
const DUMMY: u64 = 9;
/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// `PERF_SAMPLE_TIME | PERF_SAMPLE_RAW`: the fields that [`tailtrim_trace::perf`] reads.
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

/// A command to an event.
enum Command<'a> {
    Enable,
    Disable,
    /// To write into the buffer of another.
    Output(&'a File),
    Filter(&'a CStr),
}

/// A counter of one CPU, running.
#[derive(Debug)]
pub struct Counter(File);

impl Counter {
    /// `kind` is that of the device in `/sys/bus/event_source/devices`.
    pub fn new(kind: u32, config: u64, cpu: u32) -> io::Result<Self> {
        open(Attributes { kind, config, ..Attributes::default() }, cpu, None).map(Self)
    }

    /// Its count.
    pub fn count(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        (&self.0).read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

/// A tracepoint of one CPU, recorded while its recorder is on.
#[derive(Debug)]
pub struct Tracepoint(File);

impl Tracepoint {
    /// Records only events that match the kernel's filter expression.
    pub fn filter(&self, expression: &str) -> io::Result<()> {
        control(&self.0, &Command::Filter(&CString::new(expression)?))
    }

    /// Number of records for which there was no room; `None` where the kernel does not count them.
    pub fn lost(&self) -> Option<u64> {
        let mut bytes = [0; 16];
        let length = (&self.0).read(&mut bytes).ok()?;
        let lost: [u8; 8] = bytes.get(8..length)?.try_into().ok()?;
        Some(u64::from_ne_bytes(lost))
    }
}

/// Records tracepoints of one CPU into a buffer. Records that come when it is full are lost.
#[derive(Debug)]
pub struct Recorder {
    /// An event that never happens: the others are in its group, and are on while it is.
    leader: File,
    buffer: Mapping,
    /// Whether the kernel may be writing into the buffer.
    on: bool,
}

impl Recorder {
    /// With a buffer of at least so many bytes; off.
    pub fn new(cpu: u32, bytes: usize) -> io::Result<Self> {
        const PAGE: usize = 4_096;
        let attributes = Attributes { kind: SOFTWARE, config: DUMMY, ..recording(DISABLED) };
        let leader = open(attributes, cpu, None)?;
        let pages = bytes.div_ceil(PAGE).next_power_of_two();
        let buffer = Mapping::of_file(leader.as_fd(), (1 + pages) * PAGE, 0)?;
        Ok(Self { leader, buffer, on: false })
    }

    /// Adds a tracepoint by its ID.
    pub fn tracepoint(&self, id: u16, cpu: u32) -> io::Result<Tracepoint> {
        let attributes = |read_format| Attributes {
            kind: TRACEPOINT,
            config: u64::from(id),
            sample_period: 1,
            read_format,
            ..recording(0)
        };
        let counting = open(attributes(LOST), cpu, Some(&self.leader));
        let event = match counting {
            // An older kernel: lost records are not counted event by event.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                open(attributes(0), cpu, Some(&self.leader))?
            }
            other => other?,
        };
        control(&event, &Command::Output(&self.leader))?;
        Ok(Tracepoint(event))
    }

    /// Switches it on.
    pub fn enable(&mut self) -> io::Result<()> {
        self.on = true;
        control(&self.leader, &Command::Enable)
    }

    /// Switches it off: when this returns, nothing is written any more.
    pub fn disable(&mut self) -> io::Result<()> {
        control(&self.leader, &Command::Disable)?;
        self.on = false;
        Ok(())
    }

    /// All records since the beginning, and whether there is still room for the largest.
    ///
    /// It is on: the buffer cannot be read while the kernel writes to it.
    pub fn records(&self) -> io::Result<(&[u8], bool)> {
        if self.on {
            return Err(io::Error::other("still recording; expected to be disabled first"));
        }
        let number = |place| self.buffer.double_word(place).load(Ordering::Acquire) as usize;
        let [head, offset, size] = [HEAD, OFFSET, SIZE].map(number);
        // The reading position stays at 0, so that the kernel never wraps around.
        let length = head.min(size);
        // SAFETY: the kernel writes nothing while the leader of the group is off. It stays off while the slice lives,
        // which borrows the recorder: switching it on takes a mutable reference.
        let bytes = unsafe { self.buffer.slice(offset, length) };
        Ok((bytes, size - length > usize::from(u16::MAX)))
    }
}

fn open(attributes: Attributes, cpu: u32, group: Option<&File>) -> io::Result<File> {
    let attributes = Attributes { size: size_of::<Attributes>() as u32, ..attributes };
    let group = group.map_or(-1, AsRawFd::as_raw_fd);
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
    checked(result as libc::c_int)?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(result as libc::c_int) }))
}

fn control(event: &File, command: &Command<'_>) -> io::Result<()> {
    let (request, argument) = match command {
        Command::Enable => (ENABLE, 0),
        Command::Disable => (DISABLE, 0),
        Command::Output(other) => (SET_OUTPUT, other.as_raw_fd() as libc::c_ulong),
        Command::Filter(text) => (SET_FILTER, text.as_ptr() as libc::c_ulong),
    };
    // SAFETY: the argument is what the request takes: a number, or a text that ends with a zero byte and lives during
    // the call.
    checked(unsafe { libc::ioctl(event.as_raw_fd(), request as _, argument) })
}

/// Attributes that all events of a buffer share.
fn recording(flags: u64) -> Attributes {
    Attributes {
        sample_type: SAMPLE,
        flags: flags | WATERMARK | SAMPLE_ID_ALL | USE_CLOCK,
        clock: libc::CLOCK_MONOTONIC_RAW,
        // No thread waits for it; a wake-up would disturb the measured thread.
        wakeup: u32::MAX,
        ..Attributes::default()
    }
}
