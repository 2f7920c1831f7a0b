//! Computing that takes a given time of the CPU, not of the clock: it takes longer when it is interrupted, and it may
//! look at the clock to find out when.

use crate::disturb::Span;
use std::hint::black_box;
use tailtrim_sys::clock;

/// Number of measurements of the CPU's speed, and steps of each; the best measurement counts.
const MEASURED: (usize, u64) = (9, 200_000);
/// Steps between two looks at the clock, some 300 ns.
const PIECE: u64 = 256;
/// A piece that takes so much longer than usual contains a stall.
const STALL_NS: i64 = 1_000;
/// So does a round of a loop whose last look at the clock is so long ago: receiving and sending a frame takes less.
const ROUND_NS: i64 = 20_000;
/// Stalls for which there is memory from the start. Getting more memory from the kernel takes time, and waits for other
/// threads that change the memory of the process.
const STALLS: usize = 1 << 18;

/// Work of a known length, and the stalls in it.
#[derive(Debug)]
pub(crate) struct Work {
    steps: u64,
    /// Usual time of a piece; `None` without `watch`.
    piece_ns: Option<i64>,
    /// The last look at the clock.
    before_ns: i64,
    /// Times at which it stood still.
    pub(crate) stalls: Vec<Span>,
}

impl Work {
    /// Takes `ns` on an undisturbed CPU. With `watch`, looks at the clock after each piece.
    pub(crate) fn lasting(ns: u64, watch: bool) -> Self {
        let speed = |piece_ns| {
            let mut measured =
                Self { steps: MEASURED.1, piece_ns, before_ns: i64::MAX, stalls: Vec::new() };
            let best = (0..MEASURED.0).map(|_| {
                let start_ns = clock::monotonic_ns();
                measured.once();
                clock::monotonic_ns() - start_ns
            });
            best.min().unwrap_or(1).max(1)
        };
        if ns == 0 {
            return Self { steps: 0, piece_ns: None, before_ns: i64::MAX, stalls: Vec::new() };
        }
        // First the time of a piece with a look at the clock, in which nothing counts as a stall.
        let piece_ns = watch.then(|| speed(Some(i64::MAX / 2)) * PIECE as i64 / MEASURED.1 as i64);
        let steps = steps_of(ns, speed(watch.then_some(i64::MAX / 2)));
        // Written to, so that there are pages behind it.
        let mut stalls = vec![(i64::MAX, i64::MAX); if watch { STALLS } else { 0 }];
        stalls.clear();
        Self { steps, piece_ns, before_ns: i64::MAX, stalls }
    }

    /// Does the work once.
    pub(crate) fn once(&mut self) {
        self.round();
        let Some(piece_ns) = self.piece_ns else { return spin(self.steps) };
        let mut left = self.steps;
        while left > 0 {
            let steps = left.min(PIECE);
            spin(steps);
            left -= steps;
            self.look(piece_ns.saturating_add(STALL_NS));
        }
    }

    /// Notes another round of a loop that never sleeps.
    pub(crate) fn round(&mut self) {
        if self.piece_ns.is_some() {
            self.look(ROUND_NS);
        }
    }

    /// Notes an intended sleep, which is not a stall.
    pub(crate) fn slept(&mut self) {
        self.before_ns = i64::MAX;
    }

    fn look(&mut self, usual_ns: i64) {
        self.seen(clock::realtime_ns(), usual_ns);
    }

    fn seen(&mut self, now_ns: i64, usual_ns: i64) {
        if now_ns.saturating_sub(self.before_ns) > usual_ns {
            self.stalls.push((self.before_ns, now_ns));
        }
        self.before_ns = now_ns;
    }
}

/// Number of steps that take `ns` on a CPU that does [`MEASURED`] of them in `measured_ns`.
fn steps_of(ns: u64, measured_ns: i64) -> u64 {
    let steps = u128::from(ns) * u128::from(MEASURED.1) / u128::from(measured_ns.unsigned_abs());
    u64::try_from(steps).unwrap_or(u64::MAX).max(1)
}

fn spin(steps: u64) {
    let mut value = black_box(1_u64);
    for _ in 0..steps {
        // Each step waits for the one before, and two cannot be computed as one (the constant is that of Knuth's
        // generator MMIX). All in a register: by way of memory, a step takes half as long again from call to call on
        // CPUs that predict which load reads which store (Intel Sapphire Rapids).
        value = (value ^ (value >> 29)).wrapping_mul(6_364_136_223_846_793_005);
    }
    black_box(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work of so many steps, whose pieces take `piece_ns` as a rule, if watched.
    fn work(steps: u64, piece_ns: Option<i64>) -> Work {
        Work { steps, piece_ns, before_ns: i64::MAX, stalls: Vec::new() }
    }

    #[test]
    fn work_has_the_steps_that_take_its_time() {
        assert_eq!(steps_of(1_000_000, 100_000), 10 * MEASURED.1);
        assert_eq!(steps_of(1, 1_000_000_000), 1);
        assert_eq!(steps_of(u64::MAX, 1), u64::MAX);
        assert!(Work::lasting(1_000_000, true).steps > 1);
        assert_eq!(Work::lasting(0, true).steps, 0);
    }

    #[test]
    fn work_is_watched_only_if_asked() {
        let mut silent = Work::lasting(1_000, false);
        silent.once();
        assert!(silent.stalls.is_empty() && silent.steps > 0);
        // So that any time between two looks is a stall: there is one for each piece, and the last piece is shorter.
        let mut watched = work(3 * PIECE + 1, Some(i64::MIN));
        watched.once();
        assert_eq!(watched.stalls.len(), 4);
        // Each begins where the one before ended: no time is left out.
        assert!(watched.stalls.windows(2).all(|pair| pair[0].1 == pair[1].0));
        let mut patient = work(3 * PIECE + 1, Some(i64::MAX));
        patient.once();
        assert_eq!(patient.stalls, []);
    }

    #[test]
    fn what_took_longer_than_usual_stood_still() {
        let mut work = work(1, Some(0));
        for now_ns in [1_000, 2_000, 3_001, 3_002, 9_000] {
            work.seen(now_ns, 1_000);
        }
        // The first look has none before it; a gap of the usual length does not count as a stall.
        assert_eq!(work.stalls, [(2_000, 3_001), (3_002, 9_000)]);
    }

    #[test]
    fn a_loop_that_comes_back_late_stood_still_unless_it_slept() {
        let mut work = work(1, Some(0));
        work.seen(5_000, ROUND_NS);
        work.seen(2_005_000, ROUND_NS);
        assert_eq!(work.stalls, [(5_000, 2_005_000)]);
        work.slept();
        work.seen(8_000_000, ROUND_NS);
        assert_eq!(work.stalls.len(), 1);
        // The next round looks at the clock itself; without `watch` it never does.
        work.before_ns = 0;
        work.round();
        assert_eq!(work.stalls.len(), 2);
        let mut silent = Work { piece_ns: None, ..work };
        silent.before_ns = 0;
        silent.round();
        assert_eq!(silent.stalls.len(), 2);
    }
}
