//! Clocks of NICs: `/dev/ptpN` together with the system's clock (`linux/ptp_clock.h`).

use super::checked;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use tailtrim_trace::phc::{Triple, alternating};

/// Readings of one call; the kernel takes up to 25.
const SAMPLES: u32 = 25;

/// Both clocks at once, where the hardware can latch them.
pub fn precise(file: &File) -> io::Result<Vec<Triple>> {
    // SAFETY: the structure is numbers; all zeros are valid.
    let mut pair: libc::ptp_sys_offset_precise = unsafe { std::mem::zeroed() };
    // SAFETY: the request writes a structure of this type.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::PTP_SYS_OFFSET_PRECISE, &raw mut pair) })?;
    let system = ns(&pair.sys_realtime);
    Ok(vec![Triple { before_ns: system, phc_ns: ns(&pair.device), after_ns: system }])
}

/// The system's clock immediately around the driver's readings.
pub fn extended(file: &File) -> io::Result<Vec<Triple>> {
    // SAFETY: the structure is numbers; all zeros are valid, and CLOCK_REALTIME is clock 0.
    let mut all: libc::ptp_sys_offset_extended = unsafe { std::mem::zeroed() };
    all.n_samples = SAMPLES;
    // SAFETY: the request reads and writes a structure of this type, no more samples than it has room for.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::PTP_SYS_OFFSET_EXTENDED, &raw mut all) })?;
    let triple = |[before, phc, after]: &[libc::ptp_clock_time; 3]| Triple {
        before_ns: ns(before),
        phc_ns: ns(phc),
        after_ns: ns(after),
    };
    Ok(all.ts[..SAMPLES as usize].iter().map(triple).collect())
}

/// The system's clock around calls of the driver, which every clock has.
pub fn basic(file: &File) -> io::Result<Vec<Triple>> {
    // SAFETY: the structure is numbers; all zeros are valid.
    let mut all: libc::ptp_sys_offset = unsafe { std::mem::zeroed() };
    all.n_samples = SAMPLES;
    // SAFETY: the request reads and writes a structure of this type, one time more than twice the samples.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::PTP_SYS_OFFSET, &raw mut all) })?;
    let times: Vec<i64> = all.ts[..2 * SAMPLES as usize + 1].iter().map(ns).collect();
    Ok(alternating(&times))
}

/// The frequency at which a clock is set to run, beside its own, in parts per billion. The file must be open for writing:
/// kernels ask for that also where nothing is changed.
pub fn frequency_ppb(file: &File) -> io::Result<i64> {
    // SAFETY: all-zero bits are a valid request, one that changes nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // The clock of a file: clock_gettime(2).
    let clock = !file.as_raw_fd() << 3 | 3;
    // SAFETY: the structure is valid for reading and writing.
    checked(unsafe { libc::clock_adjtime(clock, &raw mut state) }.min(0))?;
    // Millionths, with 16 bits behind the point.
    Ok(((i128::from(state.freq) * 1_000) >> 16) as i64)
}

fn ns(time: &libc::ptp_clock_time) -> i64 {
    time.sec.saturating_mul(1_000_000_000).saturating_add(i64::from(time.nsec))
}
