//! Departures by their stamps, and of a port that keeps probes until their time.

use super::{load, numbers};
use crate::memory::{MemoryPort, memory_pair};
use crate::ports::namespace::Needs::{Root, UserNamespace};
use crate::ports::namespace::{cable, is_inside, name};
use crate::skip::skipped;
use std::sync::atomic::AtomicBool;
use tailtrim_ports::generate::{Generated, Load, Stop, generate};
use tailtrim_ports::port::{
    Capabilities, Counters, Departed, Departing, Fate, LaunchPort, Port, PortError, PortKind,
    Received, Timed, sender,
};
use tailtrim_sys::clock;
use tailtrim_wire::traffic::{Builder, Fraction, Pattern, Schedule};

const STAMPED: Departing =
    Departing { kernel_stamps: true, singly: true, nic_stamps: false, timed: None };
const AHEAD_NS: i64 = 10_000_000;
const LATE_NS: i64 = 500;

fn generated(port: &mut dyn Port, load: Load) -> Generated {
    generate(port, load, None, &AtomicBool::new(false), || {}).unwrap()
}

/// All probes have a stamp of the kernel, and none is before its time.
fn all_are_stamped(generated: &Generated, probes: u64) {
    assert_eq!(generated.sent, probes);
    let stamps = generated.transmit_stamps.clone().unwrap().kernel.unwrap();
    assert_eq!((stamps.stamped, stamps.unstamped), (probes, 0));
    assert!(stamps.gap_error_ns.max.unwrap() >= 0);
    assert!(stamps.late.unwrap().probes <= probes);
}

#[test]
fn a_port_of_the_kernel_stamps_every_probe_that_is_sent_singly() {
    if is_inside(UserNamespace) {
        cable(1_500);
        let mut near = sender(&name(PortKind::Packet, "near"), STAMPED).unwrap();
        // On a busy machine some are late, and sent together.
        let singly = generated(near.as_mut(), load("100pps", "64", Stop::Packets(30)));
        let stamps = singly.transmit_stamps.unwrap().kernel.unwrap();
        assert_eq!((singly.sent, stamps.stamped + stamps.unstamped), (30, 30));
        assert!(stamps.stamped > 0);
        let burst = Pattern::Burst(32);
        let at_once = Load {
            schedule: Schedule::new(&burst, Fraction::whole(20_000), 1),
            ..load("1kpps", "64", Stop::Packets(128))
        };
        // The generator, which is late then, has no time for more.
        let generated = generated(near.as_mut(), at_once);
        let stamps = generated.transmit_stamps.unwrap().kernel.unwrap();
        assert_eq!((generated.sent, stamps.stamped, stamps.unstamped), (128, 0, 128));
    }
}

#[test]
fn metadata_of_af_xdp_brings_a_stamp_of_every_probe() {
    if is_inside(Root) {
        cable(1_500);
        match LaunchPort::open(&name(PortKind::Xdp, "near"), Departing::default(), None) {
            Ok(mut near) => {
                let load = load("2kpps", "64,128", Stop::Packets(100));
                all_are_stamped(&generated(&mut near, load), 100);
            }
            Err(error) => skipped(format!("no metadata of AF_XDP (Linux 6.11): {error}")),
        }
    }
}

/// A port that keeps probes until their time and half a microsecond, but drops each tenth and has no room for each
/// seventh.
struct Keeping {
    port: MemoryPort,
    back: Vec<Departed>,
    /// Times ahead of a departure at which it got a probe.
    ahead_ns: Vec<i64>,
}

impl Port for Keeping {
    fn capabilities(&self) -> Capabilities {
        self.port.capabilities()
    }
    fn departing(&self) -> Departing {
        let timed = Timed { early_ns: 0, ahead_ns: AHEAD_NS, priority: 0 };
        Departing { timed: Some(timed), ..STAMPED }
    }
    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        self.port.receive(most, take)
    }
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError> {
        self.port.send(frames)
    }
    fn send_at(&mut self, frames: &[&[u8]], at_ns: &[i64]) -> Result<usize, PortError> {
        let now_ns = clock::realtime_ns();
        for (count, (frame, at_ns)) in frames.iter().zip(at_ns).enumerate() {
            let probe = Builder::probe(frame).unwrap();
            assert_eq!(probe.intended_ns, at_ns.cast_unsigned());
            let fate = match probe.sequence {
                sequence if sequence % 7 == 6 => return Ok(count),
                sequence if sequence % 10 == 9 => Fate::Missed,
                _ => Fate::Kernel(at_ns + LATE_NS),
            };
            self.ahead_ns.push(at_ns - now_ns);
            self.back.push(Departed { probe, fate });
        }
        Ok(frames.len())
    }
    fn departed(&mut self, take: &mut dyn FnMut(Departed)) -> Result<usize, PortError> {
        Ok(self.back.drain(..).map(take).count())
    }
    fn wait(&mut self, timeout: std::time::Duration) -> Result<bool, PortError> {
        self.port.wait(timeout)
    }
    fn is_pressed(&self) -> bool {
        self.port.is_pressed()
    }
    fn counters(&mut self) -> Result<Counters, PortError> {
        self.port.counters()
    }
    fn descriptors(&self) -> Vec<std::os::fd::BorrowedFd<'_>> {
        Vec::new()
    }
}

#[test]
fn probes_are_handed_over_ahead_and_depart_by_their_stamps() {
    let (port, _far) = memory_pair(1);
    let mut keeping = Keeping { port, back: Vec::new(), ahead_ns: Vec::new() };
    let mut log = Vec::new();
    let stop = Stop::Packets(70);
    let load = load("1kpps", "64", stop);
    let never = AtomicBool::new(false);
    let generated = generate(&mut keeping, load, Some(&mut log), &never, || {}).unwrap();
    // Of 70, each seventh found no room, and each tenth but one of these was missed.
    assert_eq!((generated.due, generated.refused, generated.missed), (70, 10, 6));
    assert_eq!(generated.sent, 54);
    assert_eq!(generated.lateness_ns.max, Some(LATE_NS));
    let stamps = generated.transmit_stamps.unwrap().kernel.unwrap();
    assert_eq!((stamps.stamped, stamps.unstamped, stamps.gap_error_ns.max), (54, 0, Some(0)));
    let log = numbers(&log);
    assert_eq!(log.len(), 3 * 54);
    assert!(log.chunks(3).all(|departure| departure[2] - departure[1] == LATE_NS));
    assert!(keeping.ahead_ns.iter().all(|ahead_ns| *ahead_ns <= AHEAD_NS));
}
