//! The rules, word by word: every packet is kept, nothing is forgotten, plain lists are searched.

use super::{Fate, Outcomes, Packet, Window};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    InFlight,
    Matched,
    Duplicate,
    Beyond,
    Lost,
}

#[derive(Debug)]
pub(super) struct Oracle {
    window: Window,
    memory: usize,
    /// Number of packets that the matcher can look back at all, for packets written late.
    ring: usize,
    /// The largest stamp of what left.
    left_ns: i64,
    ingress: Vec<(Packet, State)>,
    /// Egress packets that nothing explains so far.
    waiting: Vec<Packet>,
    pub(super) outcomes: Outcomes,
    /// Stamps of those given up because their signature came again.
    pub(super) superseded: Vec<i64>,
}

impl Oracle {
    pub(super) fn new(window: Window, memory: usize) -> Self {
        let (ingress, waiting) = (Vec::new(), Vec::new());
        let outcomes = Outcomes::default();
        let superseded = Vec::new();
        let ring = if memory == super::MEMORY { 1 << 14 } else { super::SMALL };
        Self { window, memory, ring, left_ns: i64::MIN, ingress, waiting, outcomes, superseded }
    }

    /// Whether a packet that entered at `ingress_ns` and one that left at `egress_ns` may be one.
    fn fits(&self, ingress_ns: i64, egress_ns: i64) -> bool {
        let latency_ns = egress_ns - ingress_ns;
        latency_ns < self.window.window_ns && -latency_ns < self.window.early_ns
    }

    pub(super) fn ingress(&mut self, packet: Packet, tag: u16) {
        let mut state = State::InFlight;
        let mut same: Vec<&mut (Packet, State)> = self
            .ingress
            .iter_mut()
            .filter(|(earlier, _)| earlier.signature == packet.signature)
            .collect();
        // Only the last of its signature can be in flight: an earlier one became a duplicate or lost
        // when that one entered.
        if let Some((earlier, earlier_state)) = same.last_mut() {
            let near = packet.stamp_ns - earlier.stamp_ns < self.window.window_ns;
            match earlier_state {
                State::InFlight if near => {
                    *earlier_state = State::Duplicate;
                    self.outcomes.fate(Fate::Duplicate, earlier.stamp_ns);
                    state = State::Duplicate;
                }
                State::InFlight => {
                    *earlier_state = State::Lost;
                    self.superseded.push(earlier.stamp_ns);
                    self.outcomes.fate(Fate::Lost, earlier.stamp_ns);
                }
                State::Duplicate if near => state = State::Duplicate,
                State::Duplicate | State::Matched | State::Beyond | State::Lost => {}
            }
        }
        if state == State::Duplicate {
            self.outcomes.fate(Fate::Duplicate, packet.stamp_ns);
        } else {
            let waiting = self.waiting.iter().position(|egress| {
                egress.signature == packet.signature && self.fits(packet.stamp_ns, egress.stamp_ns)
            });
            if let Some(index) = waiting {
                let egress = self.waiting.remove(index);
                self.pair(packet, egress, tag);
                state = State::Matched;
            }
        }
        self.ingress.push((packet, state));
    }

    pub(super) fn egress(&mut self, packet: Packet) {
        self.left_ns = self.left_ns.max(packet.stamp_ns);
        let Some(index) =
            self.ingress.iter().rposition(|(ingress, _)| ingress.signature == packet.signature)
        else {
            return self.wait(packet);
        };
        let (ingress, state) = self.ingress[index];
        // Packets that come after this one when both captures are merged by running maxima do not push it out of the
        // memory.
        let later = self.ingress[index + 1..].iter().rev();
        let later = later.take_while(|(later, _)| later.stamp_ns > self.left_ns);
        let age = self.ingress.len() - index;
        let remembered = age <= self.ring && age - later.count() <= self.memory;
        let latency_ns = packet.stamp_ns - ingress.stamp_ns;
        let window_ns = self.window.window_ns;
        match state {
            State::InFlight if self.fits(ingress.stamp_ns, packet.stamp_ns) => {
                self.ingress[index].1 = State::Matched;
                self.pair(ingress, packet, index as u16);
            }
            State::InFlight if latency_ns >= window_ns && latency_ns < 2 * window_ns => {
                self.ingress[index].1 = State::Beyond;
                self.outcomes.fate(Fate::BeyondWindow, ingress.stamp_ns);
                self.outcomes.fate(Fate::Unmatched, packet.stamp_ns);
            }
            State::Matched if remembered && latency_ns < window_ns => {
                let fate = if latency_ns < 0 { Fate::Unmatched } else { Fate::Copy };
                self.outcomes.fate(fate, packet.stamp_ns);
            }
            State::Duplicate if latency_ns < window_ns => {
                self.outcomes.fate(Fate::Unmatched, packet.stamp_ns);
            }
            _ => self.wait(packet),
        }
    }

    /// One egress packet of a signature waits for its ingress packet; a further one that comes while
    /// it still may is unmatched.
    fn wait(&mut self, packet: Packet) {
        let waiting = self.waiting.iter().position(|egress| egress.signature == packet.signature);
        if let Some(index) = waiting {
            let earlier_ns = self.waiting[index].stamp_ns;
            if packet.stamp_ns - earlier_ns < self.window.early_ns {
                return self.outcomes.fate(Fate::Unmatched, packet.stamp_ns);
            }
            self.waiting.remove(index);
            self.outcomes.fate(Fate::Unmatched, earlier_ns);
        }
        self.waiting.push(packet);
    }

    fn pair(&mut self, ingress: Packet, egress: Packet, tag: u16) {
        let pair = (tag, ingress.stamp_ns, egress.stamp_ns, ingress.signature);
        self.outcomes.pairs.push(pair);
    }

    pub(super) fn finish(&mut self) {
        for egress in std::mem::take(&mut self.waiting) {
            self.outcomes.fate(Fate::Unmatched, egress.stamp_ns);
        }
        for (ingress, state) in &self.ingress {
            if *state == State::InFlight {
                self.outcomes.fate(Fate::Lost, ingress.stamp_ns);
            }
        }
    }
}
