//! Disturbances of a device by another process, which acts on it or on its CPU.

use super::group::Group;
use super::{Span, repeat, work};
use crate::bpf;
use crate::port::{Port, PortName, open};
use aya::programs::RawTracePoint;
use aya::{Ebpf, EbpfLoader};
use std::io;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;
use tailtrim_sys::placement::Placement;
use tailtrim_sys::{clock, process, timer};
use tailtrim_wire::traffic::{Disturbance, Disturbing};

/// Time between two timers, and the longest time for which one may be at work after it is due.
const TIMERS_APART_NS: u64 = 60_000;
const TIMER_NS: i64 = 20_000;
/// Time between arming the timers and the first of them, and between the last and deleting them: both calls take the
/// CPU, too.
const ARMED_AROUND_NS: u64 = 10_000_000;
/// Time between bursts of frames that are not for the device.
const BETWEEN_FLOODS: Duration = Duration::from_micros(80);
/// A frame of the smallest size that no host accepts: of a local experimental EtherType (IEEE 802).
const NOBODYS: [u8; 60] = {
    let mut frame = [0; 60];
    (frame[0], frame[6], frame[12], frame[13]) = (0x02, 0x02, 0x88, 0xb5);
    frame
};

/// The device that is disturbed.
#[derive(Debug, Clone)]
pub struct Target {
    /// The CPU that the device runs on.
    pub cpu: usize,
    /// The device's process.
    pub pid: u32,
    /// A port whose packets this CPU receives; needed for softirqs only.
    pub port: Option<PortName>,
}

/// Disturbs until `stopped`; calls `ready` before the first time.
///
/// # Errors
/// The kernel refuses it, or this disturbance comes from within the process.
pub fn disturb(
    disturbance: &Disturbance,
    seed: u64,
    target: &Target,
    stopped: &AtomicBool,
    ready: impl FnOnce(),
) -> io::Result<Vec<Span>> {
    let for_ns = disturbance.for_ns;
    let mut means = Means::prepare(disturbance.kind, target)?;
    ready();
    repeat(disturbance, seed, stopped, || means.once(for_ns))
}

/// Resources for a disturbance.
enum Means {
    /// To be on the CPU.
    Presence,
    Timers,
    Port(Box<dyn Port>),
    Quota(Group),
    Stop(u32),
    Program(Ebpf),
}

impl Means {
    fn prepare(kind: Disturbing, target: &Target) -> io::Result<Self> {
        let place = |cpu, fifo| {
            let placement = Placement::take(cpu, fifo).map_err(io::Error::other)?;
            let missing = if fifo { !placement.fifo } else { !placement.preferred };
            match placement.refused.first() {
                Some(refused) if missing => Err(io::Error::other(refused.clone())),
                _ => Ok(()),
            }
        };
        let cpu = Some(target.cpu);
        if !matches!(kind, Disturbing::Thread | Disturbing::Fifo | Disturbing::Timers) {
            // Where it can be had: at once, and without waiting in the middle.
            drop(place(None, true));
        }
        Ok(match kind {
            // As the forwarder itself: of the same weight.
            Disturbing::Thread => place(cpu, false).map(|()| Self::Presence)?,
            Disturbing::Fifo => place(cpu, true).map(|()| Self::Presence)?,
            Disturbing::Timers => place(cpu, true).map(|()| Self::Timers)?,
            Disturbing::Softirqs => {
                let missing = "the port whose packets this CPU receives is missing";
                let name = target.port.as_ref().ok_or_else(|| io::Error::other(missing))?;
                Self::Port(open(name, None).map_err(io::Error::other)?)
            }
            Disturbing::Quota => Self::Quota(Group::around(target.pid)?),
            Disturbing::Stop => Self::Stop(target.pid),
            Disturbing::Program => Self::Program(load()?),
            _ => {
                return Err(io::Error::other("is a disturbance from within the forwarder"));
            }
        })
    }

    fn once(&mut self, for_ns: u64) -> io::Result<Vec<Span>> {
        match self {
            Self::Presence => Ok(vec![work(for_ns, || Ok(()))?]),
            Self::Timers => {
                let armed_ns = clock::monotonic_ns();
                let first_ns = armed_ns.saturating_add_unsigned(ARMED_AROUND_NS);
                let shift_ns = clock::realtime_ns() - clock::monotonic_ns();
                let count = (for_ns / TIMERS_APART_NS).clamp(1, 500);
                let due = |number: u64| first_ns.saturating_add_unsigned(number * TIMERS_APART_NS);
                let timers: Vec<timer::Timer> = (0..count)
                    .map(|number| timer::Timer::at(due(number)))
                    .collect::<Result<_, _>>()?;
                thread::sleep(Duration::from_nanos(for_ns + 2 * ARMED_AROUND_NS));
                drop(timers);
                let due_ns = (0..count).map(|number| due(number) + shift_ns);
                Ok(due_ns.map(|at_ns| (at_ns, at_ns + TIMER_NS)).collect())
            }
            Self::Port(port) => {
                let flood = || {
                    // Frames for which the other side has no room are lost: that does not matter.
                    port.send(&[NOBODYS.as_slice(); 32]).map_err(io::Error::other)?;
                    // Where the generator shares the CPU, the device would get no packets that could be late.
                    thread::sleep(BETWEEN_FLOODS);
                    Ok(())
                };
                Ok(vec![work(for_ns, flood)?])
            }
            Self::Quota(group) => Ok(vec![group.starve(for_ns)?]),
            Self::Stop(pid) => {
                let start_ns = clock::realtime_ns();
                process::stop(*pid)?;
                thread::sleep(Duration::from_nanos(for_ns));
                process::go_on(*pid)?;
                Ok(vec![(start_ns, clock::realtime_ns())])
            }
            Self::Program(loaded) => {
                let program = bpf::program::<RawTracePoint>(loaded, PROGRAM)?;
                let start_ns = clock::realtime_ns();
                let link = program.attach(RARE).map_err(bpf::said)?;
                program.detach(link).map_err(bpf::said)?;
                Ok(vec![(start_ns, clock::realtime_ns())])
            }
        }
    }
}

impl Drop for Means {
    fn drop(&mut self) {
        if let Self::Stop(pid) = self {
            let _ = process::go_on(*pid);
        }
    }
}

/// A tracepoint that no thread passes meanwhile. Its code is changed when the first program is attached, and when the
/// last one is detached.
const RARE: &str = "sched_process_hang";
/// The program that is attached there.
const PROGRAM: &str = "nothing";

fn load() -> io::Result<Ebpf> {
    let mut loaded = bpf::load(&mut EbpfLoader::new(), &bpf::NOTHING)?;
    bpf::program::<RawTracePoint>(&mut loaded, PROGRAM)?.load().map_err(bpf::said)?;
    Ok(loaded)
}
