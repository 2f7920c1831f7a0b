//! Delays that recur with the number of packets instead of with time, such as the batches in which a card writes back
//! descriptors.

use super::late::Stall;
use serde::Serialize;

/// Something that delays every n-th packet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Batch {
    /// Every how many-th packet.
    pub packets: u64,
    /// Late packets seen.
    pub events: u64,
    /// The median delay beyond the median latency.
    pub delay_ns: i64,
    /// Its rate: a periodic cause of this frequency would look the same.
    pub frequency_hz: f64,
}

impl Batch {
    /// Whether a run is too short to tell a frequency from that of the batch.
    pub(super) fn is_at(&self, hz: f64, run_ns: i64) -> bool {
        (hz - self.frequency_hz).abs() * (run_ns as f64) < 1e9
    }
}

/// Batches that are tried: those of cards and rings are powers of two. Other multiples of the packets'
/// interval are likelier to be something periodic that stands still against the schedule.
const SIZES: [usize; 10] = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// A residue holds more than its share by so many standard deviations and events. Of a Poisson number, that has a chance
/// of 4·10⁻¹⁰ at most, and 2,046 residues are tried.
const SIGNIFICANT: f64 = 8.0;

/// A delay of the batch is at most so many times their median: the same work takes about as long each time.
pub(super) const ALIKE: i64 = 2;

/// Parts of the run in each of which the residue has its share: a batch keeps it, while something periodic that nearly
/// stands still against the schedule moves on.
const PARTS: usize = 8;

/// The batch size whose residue most stalls of a run of so many packets share, if chance does not explain it, and the
/// residue.
pub(super) fn batch(stalls: &[Stall], interval_ns: f64, packets: usize) -> Option<(Batch, usize)> {
    let found = SIZES.map(|size| {
        let mut counts = vec![0_usize; size];
        for stall in stalls {
            counts[stall.packet % size] += 1;
        }
        let (residue, most) =
            counts.iter().enumerate().max_by_key(|(_, count)| **count).unwrap_or((0, &0));
        let chance = stalls.len() as f64 / size as f64;
        (*most as f64 - chance, libm::sqrt(chance + 1.0), size, residue)
    });
    let most = found.iter().map(|found| found.0).fold(0.0, f64::max);
    let (_, _, size, residue) = *found.iter().rev().find(|(excess, deviation, ..)| {
        // A fraction of the size has the same excess but for chance, a multiple half of it at most.
        *excess > SIGNIFICANT * deviation && *excess > 0.9 * most
    })?;
    let mut delays: Vec<i64> =
        stalls.iter().filter(|stall| stall.packet % size == residue).map(Stall::delay_ns).collect();
    delays.sort_unstable();
    let delay_ns = delays[delays.len() / 2];
    if recurs_slower(stalls, size, residue) || !keeps(stalls, size, residue, packets) {
        return None;
    }
    let member =
        |stall: &Stall| stall.packet % size == residue && stall.delay_ns() <= ALIKE * delay_ns;
    let events = stalls.iter().filter(|stall| member(stall)).count() as u64;
    let batch = Batch {
        packets: size as u64,
        events,
        delay_ns,
        frequency_hz: 1e9 / (interval_ns * size as f64),
    };
    Some((batch, residue))
}

/// Whether stalls have the residue in each part of the run, at least half as often as on average.
fn keeps(stalls: &[Stall], size: usize, residue: usize, packets: usize) -> bool {
    let mut counts = [0_usize; PARTS];
    for stall in stalls.iter().filter(|stall| stall.packet % size == residue) {
        counts[(stall.packet * PARTS / packets.max(1)).min(PARTS - 1)] += 1;
    }
    let all: usize = counts.iter().sum();
    counts.iter().all(|count| count * 2 * PARTS >= all)
}

/// Whether most stalls of a residue come every so many batches: forty packets are five times eight, and
/// no batch.
fn recurs_slower(stalls: &[Stall], size: usize, residue: usize) -> bool {
    [3, 5].into_iter().any(|multiple| {
        let mut counts = vec![0_usize; multiple];
        for stall in stalls.iter().filter(|stall| stall.packet % size == residue) {
            counts[stall.packet / size % multiple] += 1;
        }
        let all: usize = counts.iter().sum();
        // A batch has a third or a fifth of its stalls at each.
        counts.iter().any(|count| count * 5 > all * 3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_tells_frequencies_apart_that_differ_by_a_turn() {
        let batch = Batch { packets: 16, events: 1, delay_ns: 1, frequency_hz: 625.0 };
        assert!(batch.is_at(625.04, 20_000_000_000));
        assert!(!batch.is_at(625.06, 20_000_000_000));
    }

    #[test]
    fn every_32nd_packet_is_a_batch() {
        let stall = |packet: usize, delay_ns: i64| Stall {
            arrival_ns: packet as i64 * 1_000,
            packet,
            end_ns: packet as i64 * 1_000 + delay_ns,
        };
        let mut stalls: Vec<Stall> = (0..200).map(|n| stall(n * 64 + 5, 300)).collect();
        stalls.extend((0..100).map(|n| stall(n * 97, 900)));
        let (batch, residue) = batch(&stalls, 1_000.0, 12_800).unwrap();
        assert_eq!((batch.packets, batch.delay_ns, residue), (64, 300, 5));
        assert!((200..=202).contains(&batch.events), "{batch:?}");
        let rest: Vec<Stall> = stalls.into_iter().filter(|stall| stall.packet % 64 != 5).collect();
        assert_eq!(super::batch(&rest, 1_000.0, 12_800), None);
    }

    #[test]
    fn residues_are_significant() {
        // The worst case over all expected numbers: chance of more than c + 8 √(c + 1) events.
        let tail = |mean: f64| {
            let least = (mean + SIGNIFICANT * (mean + 1.0).sqrt()).floor() as i32 + 1;
            let term = |n: i32| {
                let n = f64::from(n);
                libm::exp(n * libm::log(mean) - mean - libm::lgamma(n + 1.0))
            };
            (least..least + 200).map(term).sum::<f64>()
        };
        let worst = (0..80).map(|n| tail(1e-3 * 1.2_f64.powi(n))).fold(0.0, f64::max);
        assert!(worst < 5e-10, "{worst}");
        assert_eq!(SIZES.iter().sum::<usize>(), 2_046);
    }
}
