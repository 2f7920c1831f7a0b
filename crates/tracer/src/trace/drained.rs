//! Sub-buffers that were read from the kernel, before anything in them is decoded.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// One of a CPU's buffer.
#[derive(Debug)]
pub(super) struct SubBuffer {
    /// The tick of its first record.
    pub(super) start: u64,
    pub(super) bytes: Vec<u8>,
}

/// Those of a CPU, in order.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) cpu: u32,
    pub(super) pages: VecDeque<SubBuffer>,
}

/// Those of all CPUs.
#[derive(Debug, Default)]
pub(super) struct Drained {
    pub(super) measured: Vec<Lane>,
    /// Buffers of CPUs that send to measured ones.
    pub(super) sending: Vec<Lane>,
}

impl Lane {
    /// The sub-buffers that may hold records of these ticks.
    pub(super) fn within(&self, ticks: RangeInclusive<u64>) -> impl Iterator<Item = &SubBuffer> {
        let first = self.pages.partition_point(|page| page.start <= *ticks.start());
        let last = self.pages.partition_point(|page| page.start <= *ticks.end());
        self.pages.range(first.saturating_sub(1)..last)
    }
}

impl Drained {
    /// Appends later sub-buffers.
    pub(super) fn append(&mut self, later: Self) {
        for (lanes, more) in
            [(&mut self.measured, later.measured), (&mut self.sending, later.sending)]
        {
            if lanes.is_empty() {
                *lanes = more;
                continue;
            }
            // The list of CPUs is always the same.
            for (lane, mut more) in lanes.iter_mut().zip(more) {
                lane.pages.append(&mut more.pages);
            }
        }
    }

    /// Bytes of all.
    pub(super) fn bytes(&self) -> usize {
        let lanes = self.measured.iter().chain(&self.sending);
        lanes.flat_map(|lane| &lane.pages).map(|page| page.bytes.len()).sum()
    }

    /// Drops sub-buffers that lie wholly before a tick, and then the oldest until at most so many bytes are left.
    /// Returns the tick from which on nothing was dropped.
    pub(super) fn forget(&mut self, before: u64, most: usize) -> u64 {
        let mut since = 0;
        let mut bytes = self.bytes();
        loop {
            let lanes = self.measured.iter_mut().chain(&mut self.sending);
            // The last one is still written to.
            let oldest = lanes
                .filter_map(|lane| Some((lane.pages.get(1)?.start, lane)))
                .min_by_key(|(next, _)| *next);
            let Some((next, lane)) = oldest.filter(|(next, _)| *next < before || bytes > most)
            else {
                return since;
            };
            let page = lane.pages.pop_front();
            bytes -= page.map_or(0, |page| page.bytes.len());
            since = since.max(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(cpu: u32, starts: &[u64]) -> Lane {
        let page = |&start| SubBuffer { start, bytes: vec![0; 10] };
        Lane { cpu, pages: starts.iter().map(page).collect() }
    }

    fn starts(lane: &Lane) -> Vec<u64> {
        lane.pages.iter().map(|page| page.start).collect()
    }

    #[test]
    fn what_may_hold_records_of_a_time_is_found() {
        let lane = lane(0, &[10, 20, 30]);
        let within =
            |from, until| lane.within(from..=until).map(|page| page.start).collect::<Vec<_>>();
        assert_eq!(within(0, 5), Vec::<u64>::new());
        assert_eq!(within(0, 10), [10]);
        assert_eq!(within(12, 19), [10]);
        assert_eq!(within(15, 25), [10, 20]);
        assert_eq!(within(30, u64::MAX), [30]);
        assert_eq!(within(0, u64::MAX), [10, 20, 30]);
    }

    #[test]
    fn what_came_later_follows() {
        let mut drained = Drained::default();
        for starts in [&[1, 2][..], &[], &[3]] {
            drained.append(Drained { measured: vec![lane(0, starts)], sending: vec![] });
        }
        assert_eq!(starts(&drained.measured[0]), [1, 2, 3]);
    }

    #[test]
    fn what_is_old_goes_and_what_is_too_much() {
        let all = || Drained {
            measured: vec![lane(0, &[10, 20, 30, 40])],
            sending: vec![lane(0, &[5, 35])],
        };
        let mut by_time = all();
        assert_eq!(by_time.forget(25, usize::MAX), 20);
        assert_eq!(starts(&by_time.measured[0]), [20, 30, 40]);
        assert_eq!(starts(&by_time.sending[0]), [5, 35]);
        let mut by_memory = all();
        assert_eq!(by_memory.forget(0, 30), 35);
        assert_eq!(starts(&by_memory.measured[0]), [30, 40]);
        assert_eq!(starts(&by_memory.sending[0]), [35]);
        // One of each CPU remains, however small the memory.
        assert_eq!(by_memory.forget(u64::MAX, 0), 40);
        assert_eq!(by_memory.bytes(), 20);
        assert_eq!(by_memory.forget(0, usize::MAX), 0);
    }
}
