//! The packets of a run and, by threshold, the late ones among them.

use super::comb::BELIEVED_NATS;
use super::late::{Stall, stalls_above};
use std::ops::Range;

/// The packets.
#[derive(Debug, Clone)]
pub(super) struct Capture {
    /// When each came, after the first one.
    pub(super) arrivals: Vec<i64>,
    /// Latency beyond the body of the distribution.
    pub(super) excess: Vec<i32>,
    /// The median latency, which the excess is counted from.
    median_ns: i64,
    /// From the first arrival to the last.
    pub(super) run_ns: i64,
    /// Packets that a cause that was found accounts for.
    pub(super) explained: Vec<bool>,
    /// The number of packets that are explained.
    pub(super) explained_count: usize,
    /// Whether packets come in bursts.
    pub(super) bursts: bool,
    /// Usual time for which a burst keeps a device busy.
    pub(super) stay_ns: i64,
    /// Rate of packets or bursts, unless they come at random; lost packets count.
    pub(super) pattern_hz: Option<f64>,
    /// The first packet of each bucket of time, to find packets by time.
    buckets: Vec<u32>,
    bucket_ns: f64,
    /// One over that: a division takes longer.
    buckets_per_ns: f64,
    /// Packets of a batch, which are explained in any case.
    pub(super) aside: Vec<bool>,
}

impl Capture {
    /// Packets in order of their arrival, with the latency that they have without a cause.
    pub(super) fn new(samples: &[(i64, i64)], median_ns: i64) -> Self {
        let first_ns = samples.first().map_or(0, |sample| sample.0);
        let excess = |(in_ns, out_ns): &(i64, i64)| within_i32(out_ns - in_ns - median_ns);
        let arrivals: Vec<i64> = samples.iter().map(|sample| sample.0 - first_ns).collect();
        let run_ns = arrivals.last().copied().unwrap_or(0);
        let bucket_ns = (run_ns as f64 / arrivals.len().max(1) as f64).max(1.0);
        Self {
            buckets: buckets(&arrivals, 1.0 / bucket_ns),
            bucket_ns,
            buckets_per_ns: 1.0 / bucket_ns,
            arrivals,
            excess: samples.iter().map(excess).collect(),
            median_ns,
            run_ns,
            explained: vec![false; samples.len()],
            explained_count: 0,
            bursts: false,
            stay_ns: 0,
            pattern_hz: None,
            aside: vec![false; samples.len()],
        }
    }

    /// Whether a frequency is a simple fraction of the packets' rate, as that of what recurs with every n-th packet; if
    /// `whole`, one that is a whole number of packets.
    pub(super) fn locked(&self, hz: f64, whole: bool) -> bool {
        let Some(pattern_hz) = self.pattern_hz else { return false };
        let rate_hz = if self.bursts { self.rate_hz() } else { pattern_hz };
        let turns = hz / rate_hz * LOCKED;
        let times = libm::round(turns);
        let off_hz = (turns - times) / LOCKED * rate_hz;
        let near_hz = 0.06e9 / self.run_ns.max(1) as f64;
        let packets = off_hz.abs() / hz * rate_hz * self.run_ns as f64 / 1e9;
        let fits = !whole || (times >= 1.0 && LOCKED % times == 0.0 && packets < SLIPPED);
        fits && off_hz.abs() < near_hz
    }

    /// Whether packets have one number in so many, instead of a time: one in [`NUMBERED`].
    pub(super) fn in_batches(&self, packets: &[usize]) -> bool {
        let mut counts = [0_usize; NUMBERED];
        packets.iter().for_each(|packet| counts[packet % NUMBERED] += 1);
        let most = counts.into_iter().max().unwrap_or(0);
        self.pattern_hz.is_some() && !self.bursts && most * 10 > packets.len() * 8
    }

    /// The likeliest size up to [`MOST_NUMBERED`] of which at least this share of packets has one number, by parts of the
    /// run, since what counts packets begins anew when the device was stopped. In a published capture (Snort in a virtual
    /// machine) every 129th packet takes 10 µs longer, and six frequencies that have 129 packets in common with the rate
    /// were told in its parts.
    pub(super) fn numbered(&self, packets: &[usize], least: f64) -> Option<usize> {
        let pattern_hz = self.pattern_hz.filter(|_| !self.bursts && !packets.is_empty())?;
        // The number that was sent: packets may have been lost.
        let sent = |packet: &usize| libm::round(self.arrivals[*packet] as f64 * pattern_hz / 1e9);
        let numbers: Vec<usize> = packets.iter().map(|packet| sent(packet) as usize).collect();
        let end = sent(&(self.arrivals.len() - 1)) as usize + 1;
        let all = numbers.len();
        let alike = |size: usize, parts: usize| {
            let mut counts = vec![0_usize; size * parts];
            for number in &numbers {
                counts[number * parts / end * size + number % size] += 1;
            }
            counts.chunks(size).map(|part| part.iter().max().copied().unwrap_or(0)).sum::<usize>()
        };
        let parts = (all / FEWEST_IN_PART).clamp(1, MOST_PARTS);
        // Chance has each packet at the part's number with 1 : size, and chose among all sizes, and which packets.
        let nats = |size: usize| {
            let (same, log) = (alike(size, parts) as f64, libm::log(size as f64));
            let share = (same / all as f64).min(1.0 - f64::EPSILON);
            let chosen = -share * libm::log(share) - (1.0 - share) * libm::log1p(-share);
            let nats = (same - parts as f64) * log - all as f64 * chosen;
            if share >= least { nats } else { 0.0 }
        };
        (2..=MOST_NUMBERED)
            .map(|size| (size, nats(size)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .filter(|(_, nats)| *nats > libm::log(MOST_NUMBERED as f64) + BELIEVED_NATS)
            .map(|(size, _)| size)
    }

    /// Mean time between two packets.
    pub(super) fn interval_ns(&self) -> f64 {
        1e9 / self.rate_hz()
    }

    /// Packets per second.
    fn rate_hz(&self) -> f64 {
        (self.arrivals.len() as f64 - 1.0) * 1e9 / self.run_ns.max(1) as f64
    }

    /// The packets that are not explained, in blocks that are shuffled: what is near in time stays so.
    pub(super) fn shuffled(&self) -> Self {
        let block = (self.rate_hz() * BLOCK_S) as usize / NUMBERED * NUMBERED + NUMBERED;
        let interval_ns = self.bucket_ns as i64;
        let mut samples = Vec::with_capacity(self.arrivals.len());
        let mut at_ns = 0;
        for block in blocks(self.arrivals.len(), block) {
            let (from, to) = (block.start, block.end);
            for packet in block {
                let excess_ns =
                    if self.explained[packet] { 0 } else { i64::from(self.excess[packet]) };
                let in_ns = at_ns + self.arrivals[packet] - self.arrivals[from];
                samples.push((in_ns, in_ns + excess_ns));
            }
            at_ns += self.arrivals[to - 1] - self.arrivals[from] + interval_ns;
        }
        let mut shuffled = Self::new(&samples, 0);
        shuffled.pattern_hz = self.pattern_hz;
        shuffled.bursts = self.bursts;
        shuffled
    }

    /// An order of so many things, evenly over the run, in blocks that are shuffled.
    pub(super) fn shuffled_order(&self, count: usize) -> Vec<usize> {
        let run_s = self.run_ns as f64 / 1e9;
        let block = (count as f64 * BLOCK_S / run_s.max(BLOCK_S)) as usize;
        blocks(count, block.max(1)).flatten().collect()
    }

    /// The stamps without the body's latency.
    fn samples(&self) -> Vec<(i64, i64)> {
        self.arrivals
            .iter()
            .zip(&self.excess)
            .map(|(at, excess)| (*at, at + i64::from(*excess)))
            .collect()
    }

    /// Sets aside every so many-th packet, unless it waits for longer.
    pub(super) fn set_aside(&mut self, every: usize, residue: usize, longest_ns: i64) {
        for packet in (residue..self.aside.len()).step_by(every) {
            self.aside[packet] = i64::from(self.excess[packet]) <= longest_ns;
        }
    }

    /// The first packet that arrives at this time or later.
    pub(super) fn at_or_after(&self, at_ns: f64) -> usize {
        let bucket = (at_ns.max(0.0) * self.buckets_per_ns) as usize;
        let Some(start) = self.buckets.get(bucket) else { return self.arrivals.len() };
        let mut packet = *start as usize;
        let is_before = |packet: usize| {
            self.arrivals.get(packet).is_some_and(|arrival| (*arrival as f64) < at_ns)
        };
        // A bucket has one packet on average, as often before the time as behind it: added, it costs no jump that the CPU
        // foretells wrongly every other time.
        packet += usize::from(is_before(packet));
        while is_before(packet) {
            packet += 1;
        }
        packet
    }
}

/// Blocks of so many things in another order.
fn blocks(all: usize, block: usize) -> impl Iterator<Item = Range<usize>> {
    let count = all.div_ceil(block);
    // A step that has no divisor in common with the number of blocks visits all.
    let common = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let start = (count as f64 * 0.618) as usize;
    let step = (start.max(1)..).find(|step| common(*step, count) == 1).unwrap_or(1);
    (0..count).map(move |turn| {
        let from = turn * step % count * block;
        from..(from + block).min(all)
    })
}

/// The nearest value within 2.1 s: what is further away is not told apart.
fn within_i32(ns: i64) -> i32 {
    ns.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// The first packet of each bucket of time.
fn buckets(arrivals: &[i64], buckets_per_ns: f64) -> Vec<u32> {
    let mut found = Vec::new();
    for (packet, arrival) in arrivals.iter().enumerate() {
        let bucket = (*arrival as f64 * buckets_per_ns) as usize;
        while found.len() <= bucket {
            found.push(packet as u32);
        }
    }
    found
}

/// Cards and rings have powers of two; 9 times as many packets are their beat in the published captures (4,608).
const LOCKED: f64 = 9_216.0;

/// A source whose phase moves by more packets over the run counts no packets: 1.0824 Hz among 10,000 packets a second come
/// every 9,239th one.
const SLIPPED: f64 = 64.0;

/// Blocks of a surrogate are so long: many periods of a clock that is fast, few of one that is slow.
const BLOCK_S: f64 = 0.1;

/// Batches of the published captures have so many packets.
const NUMBERED: usize = 32;

/// Rings and queues have at most so many packets, usually.
const MOST_NUMBERED: usize = 1_024;

/// Parts of a run have at least so many of the packets, and are at most so many.
const FEWEST_IN_PART: usize = 8;
const MOST_PARTS: usize = 8;

/// Bins of the distribution of waits.
const BINS: usize = 4_096;

/// The late packets above a threshold.
#[derive(Debug, Clone)]
pub(super) struct Level {
    /// Packets with a higher excess are late.
    pub(super) threshold_ns: i64,
    /// The stalls that late packets waited for, in order of time.
    pub(super) stalls: Vec<Stall>,
    /// Stalls that a cause that was found accounts for.
    pub(super) explained: Vec<bool>,
    /// Late packets, and how long after their arrival the stall ended.
    late: Vec<(u32, i32)>,
    /// Packets that are not explained.
    packets: f64,
    /// Late packets not explained that waited less than so many bins.
    waits: Box<[u32; BINS]>,
    bin_ns: f64,
}

impl Level {
    pub(super) fn new(capture: &Capture, samples: &[(i64, i64)], threshold_ns: i64) -> Self {
        let stalls = stalls_above(samples, capture.median_ns, capture.median_ns + threshold_ns);
        let mut late = Vec::new();
        let mut next = 0;
        for (packet, excess) in capture.excess.iter().enumerate() {
            while stalls.get(next).is_some_and(|stall| stall.packet <= packet) {
                next += 1;
            }
            if i64::from(*excess) > threshold_ns && next > 0 {
                let until_ns = stalls[next - 1].end_ns - capture.arrivals[packet];
                late.push((packet as u32, within_i32(until_ns)));
            }
        }
        let longest_ns = stalls.iter().map(Stall::delay_ns).max().unwrap_or(0);
        let mut level = Self {
            threshold_ns,
            explained: vec![false; stalls.len()],
            stalls,
            late,
            packets: 0.0,
            waits: Box::new([0; BINS]),
            bin_ns: (longest_ns as f64 / (BINS as f64 - 2.0)).clamp(1.0, 250.0),
        };
        level.update(capture);
        level
    }

    /// The late packets above the same threshold of another capture.
    pub(super) fn of(&self, capture: &Capture) -> Self {
        Self::new(capture, &capture.samples(), self.threshold_ns)
    }

    /// The stalls that are not explained.
    pub(super) fn open(&self) -> impl Iterator<Item = &Stall> {
        self.stalls
            .iter()
            .zip(&self.explained)
            .filter(|(_, explained)| !**explained)
            .map(|(stall, _)| stall)
    }

    /// Late packets.
    pub(super) fn count(&self) -> usize {
        self.late.len()
    }

    /// Takes note of what is explained now.
    pub(super) fn update(&mut self, capture: &Capture) {
        self.waits.fill(0);
        for (packet, until_ns) in &self.late {
            if !capture.explained[*packet as usize] {
                let bin = (f64::from((*until_ns).max(0)) / self.bin_ns) as usize;
                self.waits[bin.min(BINS - 1)] += 1;
            }
        }
        let mut sum = 0;
        for count in self.waits.iter_mut() {
            let before = sum;
            sum += *count;
            *count = before;
        }
        self.packets = (capture.arrivals.len() - capture.explained_count) as f64;
    }

    /// Chance that a packet is late for a stall that ends between these times after its arrival, whatever its phase.
    #[inline]
    pub(super) fn chance(&self, low_ns: f64, high_ns: f64) -> f64 {
        let below = |ns: f64| {
            let place = (ns / self.bin_ns).clamp(0.0, (BINS - 2) as f64);
            let bin = (place as usize).min(BINS - 2);
            let (from, to) = (f64::from(self.waits[bin]), f64::from(self.waits[bin + 1]));
            from + (to - from) * (place - bin as f64)
        };
        (below(high_ns) - below(low_ns)).max(0.5) / self.packets.max(1.0)
    }

    /// The highest chance that any of its packets is late.
    pub(super) fn late_share(&self) -> f64 {
        f64::from(self.waits[BINS - 1]).max(0.5) / self.packets.max(1.0)
    }

    /// The stall that keeps a packet, with its number, if the packet is late.
    pub(super) fn stall_of(&self, capture: &Capture, packet: usize) -> Option<usize> {
        if i64::from(capture.excess[packet]) <= self.threshold_ns {
            return None;
        }
        self.stalls.partition_point(|stall| stall.packet <= packet).checked_sub(1)
    }

    /// Calls with the times and weights of a series that has the ends of stalls, and no mean and no pattern of the
    /// packets' schedule: each packet counts as late as often as all do, by a wait of another one.
    pub(super) fn fill(&self, capture: &Capture, add: &mut dyn FnMut(f64, f32)) {
        let waits: Vec<f64> = self
            .stalls
            .iter()
            .zip(&self.explained)
            .filter(|(_, explained)| !**explained)
            .map(|(stall, _)| stall.delay_ns() as f64)
            .collect();
        let packets = capture.arrivals.len() - capture.explained_count;
        if waits.is_empty() || packets == 0 {
            return;
        }
        let weight = waits.len() as f64 / packets as f64;
        for (stall, _) in
            self.stalls.iter().zip(&self.explained).filter(|(_, explained)| !**explained)
        {
            add(stall.end_ns as f64, 1.0);
        }
        // The golden ratio spreads the waits evenly.
        let mut turn = 0.5_f64;
        for (arrival, _) in
            capture.arrivals.iter().zip(&capture.explained).filter(|(_, explained)| !**explained)
        {
            turn += 0.618_033_988_749_895;
            turn -= libm::floor(turn);
            let wait_ns = waits[(turn * waits.len() as f64) as usize % waits.len()];
            add(*arrival as f64 + wait_ns, -weight as f32);
        }
    }
}
