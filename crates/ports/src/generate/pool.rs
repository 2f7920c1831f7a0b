//! Batches of probes that are due.

use super::{BATCH, Load, Share, Stop};
use std::iter::{Skip, StepBy, Zip};
use std::ops::RangeFrom;
use tailtrim_wire::traffic::{Builder, Probe, Schedule, Sizes};

/// The probes of one sender, by number and departure after the start.
pub(super) struct Probes {
    all: StepBy<Skip<Zip<RangeFrom<u64>, Schedule>>>,
    next: Option<(u64, u64)>,
    stop: Stop,
    start_ns: i64,
    builder: Builder,
    sizes: Sizes,
}

impl Probes {
    pub(super) fn new(load: Load, share: Share) -> Self {
        let Load { schedule, sizes, builder, stop } = load;
        let all = (0..).zip(schedule).skip(share.first as usize).step_by(share.step as usize);
        let mut probes = Self { all, next: None, stop, start_ns: share.start_ns, builder, sizes };
        probes.advance();
        probes
    }

    fn advance(&mut self) {
        let stop = self.stop;
        self.next = self.all.next().filter(|(number, offset_ns)| match stop {
            Stop::Packets(most) => *number < most,
            Stop::After(end_ns) => *offset_ns < end_ns,
        });
    }

    /// Intended departure of the next one.
    pub(super) fn next_ns(&self) -> Option<i64> {
        self.next.map(|(_, offset_ns)| self.start_ns + offset_ns as i64)
    }

    /// Fills a batch with probes whose departure is not after a time. Returns the last departure, after the start.
    pub(super) fn fill(&mut self, pool: &mut Pool, until_ns: i64) -> u64 {
        pool.clear();
        let mut last_ns = 0;
        while let Some((number, offset_ns)) = self.next
            && pool.len() < BATCH
            && self.start_ns + offset_ns as i64 <= until_ns
        {
            let intended_ns = (self.start_ns + offset_ns as i64).cast_unsigned();
            let flow = self.builder.flow(number);
            let probe = Probe { flow, sequence: number, intended_ns };
            pool.add(&self.builder, self.sizes.of(number), probe);
            last_ns = offset_ns;
            self.advance();
        }
        last_ns
    }
}

/// Frames of each size, made once.
pub(super) struct Pool {
    /// For each size, as many frames as a batch may hold.
    frames: Vec<(usize, Vec<Vec<u8>>)>,
    /// Of each frame of the batch: its size's and its own place.
    batch: Vec<(usize, usize)>,
    used: Vec<usize>,
    probes: Vec<Probe>,
}

impl Pool {
    pub(super) fn new(builder: &Builder, sizes: &Sizes) -> Self {
        let frames: Vec<(usize, Vec<Vec<u8>>)> = sizes
            .distinct()
            .into_iter()
            .map(|bytes| (bytes, vec![builder.frame(bytes); BATCH]))
            .collect();
        let used = vec![0; frames.len()];
        Self { frames, batch: Vec::with_capacity(BATCH), used, probes: Vec::with_capacity(BATCH) }
    }

    fn clear(&mut self) {
        self.batch.clear();
        self.used.fill(0);
        self.probes.clear();
    }

    fn len(&self) -> usize {
        self.batch.len()
    }

    fn add(&mut self, builder: &Builder, bytes: usize, probe: Probe) {
        let Some(size) = self.frames.iter().position(|(size, _)| *size == bytes) else { return };
        let place = self.used[size];
        self.used[size] += 1;
        builder.stamp(&mut self.frames[size].1[place], probe);
        self.batch.push((size, place));
        self.probes.push(probe);
    }

    pub(super) fn batch(&self) -> (Vec<&[u8]>, &[Probe]) {
        let frames =
            self.batch.iter().map(|&(size, place)| self.frames[size].1[place].as_slice()).collect();
        (frames, &self.probes)
    }
}
