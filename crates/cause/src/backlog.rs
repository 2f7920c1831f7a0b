//! Attribution of a packet's excess to causes: stalls in its own turn, and stalls that had left a queue before it.
//!
//! A queue that a stall left drains as far as the device is faster than the load. Its parts drain in proportion: nobody
//! can say that the turn of a certain packet made up for one stall and not for another.

/// The parts of the excess of the packet that passed last, by cause; none is unknown.
#[derive(Debug, Clone, Default)]
pub(super) struct Backlog {
    parts: Vec<(Option<usize>, i64)>,
}

/// A packet that passes.
pub(super) struct Passing<'a> {
    /// Whether it came before the one ahead of it had been served.
    pub(super) queued: bool,
    /// By how much its own turn was longer than its service.
    pub(super) longer_ns: i64,
    /// The part of `longer_ns` that each cause took.
    pub(super) taken: &'a [(usize, i64)],
    /// Its excess, without what it spent behind other packets' own service.
    pub(super) excess_ns: i64,
}

impl Backlog {
    /// Returns the parts of the excess of the next packet, which they add up to.
    pub(super) fn pass(&mut self, packet: &Passing<'_>) -> &[(Option<usize>, i64)] {
        let taken_ns: i64 = packet.taken.iter().map(|(_, ns)| ns).sum();
        if packet.queued {
            self.drain((packet.excess_ns - packet.longer_ns.max(taken_ns)).max(0));
        } else {
            self.parts.clear();
        }
        for (cause, ns) in packet.taken {
            self.add(Some(*cause), *ns);
        }
        self.add(None, packet.longer_ns - taken_ns);
        self.drain(packet.excess_ns);
        self.add(None, packet.excess_ns - self.all_ns());
        &self.parts
    }

    fn all_ns(&self) -> i64 {
        self.parts.iter().map(|(_, ns)| ns).sum()
    }

    fn add(&mut self, cause: Option<usize>, ns: i64) {
        if ns <= 0 {
            return;
        }
        match self.parts.iter_mut().find(|(of, _)| *of == cause) {
            Some((_, sum_ns)) => *sum_ns += ns,
            None => self.parts.push((cause, ns)),
        }
    }

    /// Leaves that much at most.
    fn drain(&mut self, to_ns: i64) {
        let all_ns = self.all_ns();
        if all_ns <= to_ns {
            return;
        }
        let (mut before, mut given_ns) = (0_i128, 0);
        for (_, ns) in &mut self.parts {
            // Cumulated and rounded down, so that the parts add up to the whole.
            before += i128::from(*ns);
            let until_ns = before * i128::from(to_ns) / i128::from(all_ns);
            let until_ns = i64::try_from(until_ns).unwrap_or(i64::MAX);
            *ns = until_ns - given_ns;
            given_ns = until_ns;
        }
        self.parts.retain(|(_, ns)| *ns > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn passing(
        queued: bool,
        longer_ns: i64,
        excess_ns: i64,
        taken: &[(usize, i64)],
    ) -> Passing<'_> {
        Passing { queued, longer_ns, taken, excess_ns }
    }

    #[test]
    fn what_is_left_of_stalls_drains_alike() {
        let mut backlog = Backlog::default();
        let first = backlog.pass(&passing(false, 400, 400, &[(3, 300)]));
        assert_eq!(first, [(Some(3), 300), (None, 100)]);
        // The queue shrank by 200, of which 150 were the stall's, and then another one came.
        let second = backlog.pass(&passing(true, 50, 250, &[(7, 50)]));
        assert_eq!(second, [(Some(3), 150), (None, 50), (Some(7), 50)]);
        // The device was idle before this one.
        assert_eq!(backlog.pass(&passing(false, 0, 0, &[])), []);
    }

    proptest! {
        #[test]
        fn parts_add_up_whatever_passes(
            packets in prop::collection::vec(
                (any::<bool>(), -50_i64..500, 0_i64..900, prop::collection::vec((0_usize..4, 1_i64..300), 0..3)),
                1..40,
            ),
        ) {
            let mut backlog = Backlog::default();
            for (queued, longer_ns, excess_ns, taken) in packets {
                let parts = backlog.pass(&passing(queued, longer_ns, excess_ns, &taken));
                prop_assert_eq!(parts.iter().map(|(_, ns)| ns).sum::<i64>(), excess_ns);
                prop_assert!(parts.iter().all(|(_, ns)| *ns > 0));
            }
        }
    }
}
