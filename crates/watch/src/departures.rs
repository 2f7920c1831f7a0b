//! One schedule for all targets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tailtrim_wire::traffic::golden_place;

/// Departures of the probes of targets, ascending.
///
/// Each target has one departure in each of its intervals, at another place each time, in steps of the golden ratio:
/// what repeats on the way is met at all of its phases alike. The targets' intervals begin in steps of that ratio, too,
/// so that their probes are spread evenly.
#[derive(Debug, Default)]
pub struct Departures {
    next: BinaryHeap<Reverse<(i64, u64)>>,
    sources: Vec<Option<Source>>,
    started: u64,
}

#[derive(Debug)]
struct Source {
    begin_ns: i64,
    interval_ns: u64,
    count: u64,
    /// Tells the departures of a source from those of one that had its place before.
    life: u32,
}

impl Source {
    fn due_ns(&self) -> i64 {
        let within = golden_place(self.count, self.interval_ns);
        self.begin_ns + (self.count * self.interval_ns + within).cast_signed()
    }
}

impl Departures {
    /// Adds a target at a place, from this time on; it replaces the one that had the place.
    pub fn start(&mut self, place: usize, interval_ns: u64, from_ns: i64) {
        if self.sources.len() <= place {
            self.sources.resize_with(place + 1, || None);
        }
        let interval_ns = interval_ns.max(1);
        let ahead = golden_place(self.started, interval_ns);
        self.started += 1;
        let source = Source {
            begin_ns: from_ns + ahead.cast_signed(),
            interval_ns,
            count: 0,
            life: self.started as u32,
        };
        self.next.push(Reverse((source.due_ns(), key(place, source.life))));
        self.sources[place] = Some(source);
    }

    /// Ends the departures of a place.
    pub fn stop(&mut self, place: usize) {
        if let Some(source) = self.sources.get_mut(place) {
            *source = None;
        }
    }

    /// Time of the next departure.
    #[must_use]
    pub fn next_ns(&self) -> Option<i64> {
        self.next.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// Takes the next departure that is due: its time and its place.
    pub fn take(&mut self, now_ns: i64) -> Option<(i64, usize)> {
        loop {
            let &Reverse((due_ns, key)) = self.next.peek().filter(|due| due.0.0 <= now_ns)?;
            self.next.pop();
            let (place, life) = ((key >> 32) as usize, key as u32);
            let source = self.sources[place].as_mut().filter(|source| source.life == life);
            if let Some(source) = source {
                source.count += 1;
                self.next.push(Reverse((source.due_ns(), key)));
                return Some((due_ns, place));
            }
        }
    }
}

fn key(place: usize, life: u32) -> u64 {
    (place as u64) << 32 | u64::from(life)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn all(departures: &mut Departures, until_ns: i64) -> Vec<(i64, usize)> {
        std::iter::from_fn(|| departures.take(until_ns)).collect()
    }

    #[test]
    fn each_target_departs_once_in_each_of_its_intervals() {
        let mut departures = Departures::default();
        for place in 0..100 {
            departures.start(place, 100 * MS as u64, 0);
        }
        let taken = all(&mut departures, 10_000 * MS);
        assert!(taken.is_sorted());
        for place in 0..100 {
            let of: Vec<i64> = taken.iter().filter(|d| d.1 == place).map(|d| d.0).collect();
            let first = of[0];
            for (number, due_ns) in of.iter().enumerate() {
                let slot = (due_ns - first).div_euclid(100 * MS);
                assert_eq!(slot, number as i64, "{place}");
            }
        }
    }

    #[test]
    fn targets_do_not_depart_together() {
        let mut departures = Departures::default();
        for place in 0..1_000 {
            departures.start(place, 100 * MS as u64, 0);
        }
        let taken = all(&mut departures, 1_000 * MS);
        // Ten in a millisecond on average.
        let inside = |ms: i64| taken.iter().filter(|(ns, _)| ns.div_euclid(MS) == ms).count();
        let busiest = (200..900).map(inside).max().unwrap();
        assert!(busiest < 30, "{busiest}");
    }

    #[test]
    fn a_target_that_stops_departs_no_more() {
        let mut departures = Departures::default();
        departures.start(0, 10 * MS as u64, 0);
        departures.start(1, 10 * MS as u64, 0);
        all(&mut departures, 100 * MS);
        departures.stop(0);
        departures.start(2, 10 * MS as u64, 100 * MS);
        let later = all(&mut departures, 200 * MS);
        assert!(later.iter().all(|(_, place)| *place != 0));
        assert_eq!(later.iter().filter(|(_, place)| *place == 1).count(), 10);
        departures.start(1, 50 * MS as u64, 200 * MS);
        let again = all(&mut departures, 300 * MS);
        assert!(again.iter().filter(|(_, place)| *place == 1).count() <= 2);
    }
}
