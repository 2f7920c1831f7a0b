//! Stamps in front of the frames that the XDP program of a port redirects.

use super::merging::Place;
use crate::port::{Counters, Hints, Stamp, Stamping};
use tailtrim_sys::clock;

/// Bytes that the program writes in front of a frame: a mark, and nanoseconds of `CLOCK_TAI`.
const FRONT: usize = 16;
/// The same, and in front of it nanoseconds of the NIC's clock and the driver's error, each of eight bytes.
const HINTED: usize = 32;
/// Distinguishes a stamp from other data there.
pub(super) const MARK: u64 = u64::from_le_bytes(*b"tailtrim");

/// The program's stamp of a frame, or the time now; counted where it is missing.
#[inline]
pub(super) fn of_program(
    front: [u8; FRONT],
    tai: &mut TaiOffset,
    counters: &mut Counters,
) -> Stamp {
    match stamp_tai_ns(front) {
        Some(tai_ns) => {
            Stamp { ns: tai_ns - tai.at(tai_ns, clock::tai_offset_ns), stamping: Stamping::Program }
        }
        None => {
            counters.unstamped += 1;
            Stamp { ns: clock::realtime_ns(), stamping: Stamping::Process }
        }
    }
}

/// The NIC's stamp of a frame; counted where it is missing, with the driver's reason.
pub(super) fn of_nic(front: [u8; HINTED], counters: &mut Counters) -> Option<Stamp> {
    let ns = hint_ns(front, &mut counters.hints);
    counters.unstamped += u64::from(ns.is_none());
    ns.map(|ns| Stamp { ns, stamping: Stamping::Hardware })
}

/// Place of a frame among those of other queues, by the program's stamp.
#[inline]
pub(super) fn place_of_program(front: [u8; FRONT], young: impl Fn(i64) -> bool) -> Place {
    let tai_ns = stamp_tai_ns(front);
    Place { ns: tai_ns.unwrap_or(i64::MIN), young: tai_ns.is_some_and(young) }
}

/// The same by the NIC's stamp; its age is that of the program's, since the NIC's clock is another one.
pub(super) fn place_of_nic(front: [u8; HINTED], young: impl Fn(i64) -> bool) -> Place {
    let [hint, front] = [0, FRONT].map(|at| front[at..].first_chunk().copied().unwrap_or_default());
    let by_program = place_of_program(front, young);
    let ns = nic_ns(hint).ok().filter(|_| by_program.ns > i64::MIN);
    Place { ns: ns.unwrap_or(i64::MIN), ..by_program }
}

fn hint_ns(front: [u8; HINTED], counts: &mut Hints) -> Option<i64> {
    let (hint, front) = front.split_first_chunk::<FRONT>()?;
    // A driver without room for metadata.
    stamp_tai_ns(*front.first_chunk()?)?;
    match nic_ns(*hint) {
        Ok(ns) => return Some(ns),
        Err(0) => counts.zero += 1,
        Err(error) if error == -i64::from(libc::EOPNOTSUPP) => counts.unsupported += 1,
        Err(_) => counts.no_data += 1,
    }
    None
}

/// The driver's answer: a stamp, or an error; 0 for a stamp of 0.
fn nic_ns(hint: [u8; FRONT]) -> Result<i64, i64> {
    match halves(hint).map(i64::from_ne_bytes) {
        [ns, 0] if ns != 0 => Ok(ns),
        [_, error] => Err(error),
    }
}

/// The stamp in front of a frame, if there is one.
fn stamp_tai_ns(front: [u8; FRONT]) -> Option<i64> {
    let [mark, ns] = halves(front);
    (u64::from_ne_bytes(mark) == MARK).then_some(i64::from_ne_bytes(ns))
}

fn halves([a, b, c, d, e, f, g, h, rest @ ..]: [u8; 16]) -> [[u8; 8]; 2] {
    [[a, b, c, d, e, f, g, h], rest]
}

/// `CLOCK_TAI` minus `CLOCK_REALTIME`, which a time daemon may set long after the port was opened.
#[derive(Debug, Default)]
pub(super) struct TaiOffset {
    offset_ns: i64,
    read_at_ns: Option<i64>,
}

impl TaiOffset {
    /// `CLOCK_TAI`.
    pub(super) fn now_ns(&mut self) -> i64 {
        let now_ns = clock::realtime_ns();
        now_ns + self.at(now_ns, clock::tai_offset_ns)
    }

    /// The offset at this time of `CLOCK_TAI`, at most a second old.
    fn at(&mut self, tai_ns: i64, read: impl FnOnce() -> i64) -> i64 {
        const AGE_NS: u64 = 1_000_000_000;
        if self.read_at_ns.is_none_or(|read_at_ns| tai_ns.abs_diff(read_at_ns) >= AGE_NS) {
            self.offset_ns = read();
            self.read_at_ns = Some(tai_ns);
        }
        self.offset_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the offset was read only once, so stamps were 37 s late after a daemon had set it.
    #[test]
    fn the_offset_of_tai_is_read_again_each_second() {
        let mut tai = TaiOffset::default();
        let second = 1_000_000_000;
        assert_eq!(tai.at(0, || 0), 0);
        assert_eq!(tai.at(second - 1, || 37 * second), 0);
        assert_eq!(tai.at(second, || 37 * second), 37 * second);
    }

    #[test]
    fn a_front_is_a_stamp_only_with_the_mark() {
        let mut front = [0; FRONT];
        assert_eq!(stamp_tai_ns(front), None);
        front[8..].copy_from_slice(&5_u64.to_ne_bytes());
        assert_eq!(stamp_tai_ns(front), None);
        front[..8].copy_from_slice(&MARK.to_ne_bytes());
        assert_eq!(stamp_tai_ns(front), Some(5));
    }

    #[test]
    fn what_a_driver_answers_is_counted_for_each_packet() {
        let mut counters = Counters::default();
        let mut told = |ns: i64, error: i32, mark: u64| {
            let words = [ns.cast_unsigned(), i64::from(error).cast_unsigned(), mark, 7];
            let mut front = [0; HINTED];
            for (place, word) in front.chunks_exact_mut(8).zip(words) {
                place.copy_from_slice(&word.to_ne_bytes());
            }
            of_nic(front, &mut counters).map(|stamp| stamp.ns)
        };
        assert_eq!(told(1_234, 0, MARK), Some(1_234));
        assert_eq!(told(0, 0, MARK), None);
        assert_eq!(told(9, -libc::EOPNOTSUPP, MARK), None);
        assert_eq!(told(9, -libc::ENODATA, MARK), None);
        assert_eq!(told(1_234, 0, 0), None);
        assert_eq!(counters.hints, Hints { unsupported: 1, no_data: 1, zero: 1 });
        assert_eq!(counters.unstamped, 4);
    }
}
