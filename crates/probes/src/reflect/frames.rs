//! Reflecting frames of an AF_XDP port: in this process, but past the kernel's stack.

use super::xdp::requests;
use super::{Listening, ReflectError, Reflected, clock_now, seed};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tailtrim_ports::grace::GracePeriod;
use tailtrim_ports::port::{Capabilities, Port, PortName, Received, Receiving, Stamping, XdpPort};
use tailtrim_roundtrip::frame::{Came, FrameReply, finish, reflect};
use tailtrim_roundtrip::reflect::{Policy, Reflector, Refusal, Service};
use tailtrim_sys::clock;
use tailtrim_wire::tlv::StampedBy;

/// Frames in one go; T3 is written before all of them are sent.
const BATCH: usize = 16;
/// Memory for frames that wait for this process.
const BUFFER_BYTES: usize = 16 << 20;
/// Longest wait for a frame before `stopped` is looked at again.
const WAIT: Duration = Duration::from_millis(20);
/// Looks at an empty ring before the port and the clock are asked how they are.
const LOOKS: u32 = 1 << 14;
const CLOCK_NS: i64 = 1_000_000_000;

/// A reflector on an AF_XDP port, which gets requests only: all else stays with the kernel.
pub struct FrameReflector {
    port: Box<dyn Port>,
    services: Vec<(Service, u16)>,
    addresses: Vec<IpAddr>,
    busy_poll: bool,
    reflector: Reflector,
    requests: Vec<(Vec<u8>, Option<FrameReply>)>,
    reflected: Reflected,
    clock_ns: i64,
}

impl FrameReflector {
    /// Opens the port. Needs root; not to go on.
    ///
    /// # Errors
    /// [`ReflectError::Port`], and those of finding out the interface's addresses.
    pub fn open(
        name: &PortName,
        listening: &Listening,
        mut policy: Policy,
    ) -> Result<Self, ReflectError> {
        policy.ports = listening.services.iter().map(|(_, port)| *port).collect();
        let requests = requests(&name.interface, listening)?;
        let receiving =
            Receiving { snap: 0, memory_bytes: BUFFER_BYTES, promptly: true, hardware: false };
        let port = XdpPort::open_for(name, receiving, &requests)?;
        Ok(Self::on(Box::new(port), listening, requests.addresses, policy))
    }

    /// On a port that receives requests to these addresses alone.
    fn on(
        port: Box<dyn Port>,
        listening: &Listening,
        addresses: Vec<IpAddr>,
        policy: Policy,
    ) -> Self {
        Self {
            port,
            services: listening.services.clone(),
            addresses,
            busy_poll: listening.busy_poll,
            reflector: Reflector::new(policy, clock_now(), seed()),
            requests: (0..BATCH).map(|_| (Vec::new(), None)).collect(),
            reflected: Reflected::default(),
            clock_ns: clock::monotonic_ns(),
        }
    }

    /// Addresses and services.
    #[must_use]
    pub fn bound(&self) -> Vec<(Service, IpAddr, u16)> {
        let each = |address: &IpAddr| {
            let address = *address;
            self.services.iter().map(move |(service, port)| (*service, address, *port))
        };
        self.addresses.iter().flat_map(each).collect()
    }

    /// Capabilities of the port: how it is attached.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.port.capabilities()
    }

    /// Reflects until `stopped`; `seen` has the number of requests so far.
    ///
    /// # Errors
    /// [`ReflectError::Port`] when the interface is gone.
    pub fn run(
        mut self,
        stopped: &AtomicBool,
        seen: &AtomicU64,
    ) -> Result<Reflected, ReflectError> {
        let (mut idle, mut last) = (0_u32, GracePeriod::default());
        loop {
            let ending = stopped.load(Ordering::Acquire);
            if self.serve()? > 0 && !(ending && last.is_over()) {
                seen.store(self.reflector.counters().received, Ordering::Relaxed);
                self.look_at_clock();
                idle = 0;
                continue;
            }
            if ending {
                break;
            }
            idle = idle.wrapping_add(1);
            if !self.busy_poll {
                self.port.wait(WAIT)?;
            } else if idle.is_multiple_of(LOOKS) {
                self.port.wait(Duration::ZERO)?;
            }
            if !self.busy_poll || idle.is_multiple_of(LOOKS) {
                self.look_at_clock();
            }
            std::hint::spin_loop();
        }
        self.reflected.counters = *self.reflector.counters();
        self.reflected.dropped = self.port.counters().ok().map(|counters| counters.dropped);
        Ok(self.reflected)
    }

    fn look_at_clock(&mut self) {
        let now_ns = clock::monotonic_ns();
        if now_ns - self.clock_ns > CLOCK_NS {
            self.clock_ns = now_ns;
            self.reflector.set_clock(clock_now());
        }
    }

    fn serve(&mut self) -> Result<usize, ReflectError> {
        let Self { port, services, reflector, requests, reflected, .. } = self;
        let now_ns = clock::monotonic_ns();
        let mut count = 0;
        let came = port.receive(BATCH, &mut |received| {
            let (frame, reply) = &mut requests[count];
            frame.clear();
            frame.extend_from_slice(received.bytes);
            let how = arrival(&received, now_ns, reflected);
            match reflect(reflector, services, &how, frame) {
                Some(Ok(made)) => {
                    *reply = Some(made);
                    count += 1;
                }
                Some(Err(_)) => {}
                // The program redirects requests alone, and looks at no length.
                None => reflector.refuse(Refusal::Malformed),
            }
        })?;
        if count == 0 {
            return Ok(came);
        }
        let sent_ns = clock::realtime_ns();
        for (frame, reply) in &mut requests[..count] {
            if let Some(reply) = reply {
                finish(reflector, reply, frame, sent_ns);
            }
        }
        let mut frames: [&[u8]; BATCH] = [&[]; BATCH];
        for (place, (frame, _)) in frames.iter_mut().zip(&requests[..count]) {
            *place = frame;
        }
        let sent = port.send(&frames[..count])?;
        for _ in sent..count {
            reflector.unsent();
        }
        Ok(came)
    }
}

fn arrival(received: &Received<'_>, now_ns: i64, reflected: &mut Reflected) -> Came {
    let truncated = received.bytes.len() < received.length;
    let by_program = received.stamp.filter(|stamp| stamp.stamping == Stamping::Program);
    let (received_ns, by) = match by_program {
        Some(stamp) => (stamp.ns, StampedBy::Software),
        None => {
            reflected.unstamped += 1;
            (clock::realtime_ns(), StampedBy::Control)
        }
    };
    Came { received_ns, by, now_ns, truncated }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::memory_pair;

    /// An echo request of 4 bytes, with these lengths in IP and UDP.
    fn request(ip_len: u16, udp_len: u16) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0, 0x45, 0];
        frame.extend(ip_len.to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x9c, 0x40, 0, 7]);
        frame.extend(udp_len.to_be_bytes());
        frame.extend([0, 0, 1, 2, 3, 4]);
        frame
    }

    #[test]
    fn redirected_frames_with_a_wrong_udp_length_are_counted() {
        let (port, mut client) = memory_pair(64);
        let listening = Listening {
            services: vec![(Service::Echo, 7)],
            addresses: Vec::new(),
            device: None,
            busy_poll: true,
            hardware: false,
        };
        let reflector =
            FrameReflector::on(Box::new(port), &listening, Vec::new(), Policy::default());
        // Sound, twice: UDP may be shorter than IP says. Then UDP shorter than its header and longer than IP says;
        // IP longer than the frame.
        let frames =
            [(32, 12), (32, 11), (32, 7), (32, 13), (33, 13)].map(|(ip, udp)| request(ip, udp));
        for frame in &frames {
            client.send(&[frame]).unwrap();
        }
        let reflected = reflector.run(&AtomicBool::new(true), &AtomicU64::new(0)).unwrap();
        let counters = reflected.counters;
        assert_eq!((counters.received, counters.reflected), (5, 2));
        assert_eq!(counters.refused.of(Refusal::Malformed), 3);
        assert!(counters.add_up());
        assert_eq!(client.receive(64, &mut |_| {}).unwrap(), 2);
    }
}
