use super::*;
use crate::memory::{MemoryPort, memory_pair};
use crate::port::{PortError, Received};
use std::os::fd::BorrowedFd;

/// Much longer than this process may be kept from its CPU while it has three frames in its hands.
const PAUSE_NS: i64 = 200_000_000;

/// A port that asks for a pause when it is first received from.
struct Pausing {
    port: MemoryPort,
    pause: Pause,
    until_ns: i64,
}

impl Port for Pausing {
    fn capabilities(&self) -> Capabilities {
        self.port.capabilities()
    }
    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        if self.until_ns == 0 {
            self.until_ns = clock::realtime_ns() + PAUSE_NS;
            self.pause.set(self.until_ns);
        }
        self.port.receive(most, take)
    }
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError> {
        self.port.send(frames)
    }
    fn wait(&mut self, timeout: Duration) -> Result<bool, PortError> {
        self.port.wait(timeout)
    }
    fn is_pressed(&self) -> bool {
        self.port.is_pressed()
    }
    fn counters(&mut self) -> Result<Counters, PortError> {
        self.port.counters()
    }
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

#[test]
fn pauses_and_stalls_are_those_of_both_directions() {
    for both in [false, true] {
        let ((mut left, one), (other, mut right)) = (memory_pair(10), memory_pair(10));
        let pause = Pause::default();
        let mut one = Pausing { port: one, pause: pause.clone(), until_ns: 0 };
        // The direction back pauses the way there, too.
        let mut other = Pausing { port: other, pause: pause.clone(), until_ns: i64::from(!both) };
        if both {
            one.until_ns = 1;
        }
        left.send(&[&[1; 60], &[1; 60]]).unwrap();
        right.send(&[&[2; 60]]).unwrap();
        let how = Forwarding {
            wait: false,
            // A second round for the second frame, after the pause.
            batch: 1,
            work_ns: 100,
            source_mac: None,
            destination_mac: None,
            ways: if both { Ways::Both } else { Ways::One { delay: None } },
            pause: Some(pause),
            watch: true,
        };
        let (stopped, seen) = (AtomicBool::new(true), AtomicU64::new(0));
        let ForwardResult { there, back, stalls, busy_ns } =
            forward(&mut one, &mut other, &how, None, &stopped, &seen).unwrap();
        let until_ns = one.until_ns.max(other.until_ns);
        assert!(clock::realtime_ns() >= until_ns, "a pause that was not taken");
        // Three frames took their work, and the pause is not part of it.
        assert!((300..PAUSE_NS.unsigned_abs() / 2).contains(&busy_ns), "{busy_ns}");
        let stood_still = |(from_ns, to_ns): &Span| *from_ns <= until_ns && until_ns <= *to_ns;
        assert!(stalls.iter().any(stood_still), "{stalls:?} without {until_ns}");
        assert_eq!((there.received, there.sent), (2, 2));
        assert_eq!(back.map(|back| (back.received, back.sent)), both.then_some((1, 1)));
    }
}
