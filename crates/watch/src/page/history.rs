//! Targets over time: read from disk when somebody asks, and remembered as far as it does not change any more.

use super::block::{Block, Blocks, QUANTILES};
use super::reading::{self, Place};
use super::span::Span;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use tailtrim_stats::Probability;

/// So many answers are remembered, each of up to 168 blocks of less than 1 kB.
const MOST: usize = 200;

/// Lines of a minute may come so long after it should be on disk, before its block is taken as complete.
const PATIENCE_S: i64 = 120;

/// Reads and remembers.
pub(crate) struct History {
    folder: PathBuf,
    remembered: Mutex<BTreeMap<(String, Span), Remembered>>,
}

/// What was read of a target.
#[derive(Default, Clone)]
struct Remembered {
    /// Blocks that are complete.
    blocks: Vec<Block>,
    /// The first minute behind them.
    next: Place,
    /// When it was asked for last: the one that was not for longest makes room.
    asked_ns: i64,
    /// Up to where it was read, and what was answered.
    answer: Option<(i64, Place, String)>,
}

/// A target over time, as it is answered.
#[derive(Serialize)]
struct Told<'a> {
    block_s: i64,
    begin_s: i64,
    end_s: i64,
    /// Minutes that end up to here are on disk.
    until_s: i64,
    /// In percent.
    quantiles: Vec<String>,
    blocks: &'a [Block],
    /// Begins and ends of stretches without an answer, in whole minutes.
    outages: Vec<(i64, i64)>,
    /// The same of stretches in which nothing was measured.
    gaps: Vec<(i64, i64)>,
    /// Whether all files could be read.
    is_whole: bool,
}

impl History {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, remembered: Mutex::default() }
    }

    /// Tells how a target was in a span, as JSON, if its minutes up to `until_s` are on disk.
    pub(super) fn tell(
        &self,
        target: &str,
        span: Span,
        until_s: i64,
        now_ns: i64,
    ) -> io::Result<String> {
        let key = (target.to_owned(), span);
        let mut known = self.take(&key);
        let folder = self.folder.join(target);
        let end = reading::end(&folder)?;
        known.asked_ns = now_ns;
        let answer = match known.answer.take() {
            Some((until, at, answer)) if (until, &at) == (until_s, &end) => answer,
            _ => self.read(&mut known, target, span, until_s)?,
        };
        known.answer = Some((until_s, end, answer.clone()));
        self.put(key, known);
        Ok(answer)
    }

    fn read(
        &self,
        known: &mut Remembered,
        target: &str,
        span: Span,
        until_s: i64,
    ) -> io::Result<String> {
        let (begin_s, end_s) = span.window(until_s);
        known.blocks.retain(|block| block.begin_s >= begin_s);
        let mut blocks = Blocks::behind(known.blocks.clone());
        let mut begins: Vec<(i64, Place)> = Vec::new();
        let folder = self.folder.join(target);
        if known.next.day.is_empty() {
            // Files of former days are left out, but for the one that a minute at the begin can be in.
            known.next.day = tailtrim_sys::clock::date(begin_s.saturating_mul(1_000_000_000));
        }
        let is_whole = reading::minutes(&folder, &known.next, begin_s, |place, line| {
            let block_s = span.block_of(line.begin_ns.div_euclid(1_000_000_000));
            if begins.last().is_none_or(|(newest_s, _)| *newest_s < block_s) {
                begins.push((block_s, place));
            }
            if block_s < end_s {
                blocks.add(block_s, &line);
            }
        })?;
        blocks.close();
        if !blocks.is_disordered {
            let is_complete = |begin_s: i64| begin_s + span.block_s() + PATIENCE_S <= until_s;
            if let Some((_, place)) = begins.into_iter().find(|(begin_s, _)| !is_complete(*begin_s))
            {
                known.next = place;
                known.blocks = blocks.made.clone();
                known.blocks.retain(|block| is_complete(block.begin_s));
            }
        }
        let minutes = Minutes::of(&blocks.made, begin_s, until_s);
        let told = Told {
            block_s: span.block_s(),
            begin_s,
            end_s,
            until_s,
            quantiles: QUANTILES.map(Probability::percent_text).into(),
            blocks: &blocks.made,
            outages: minutes.stretches(|minute| minute.is_silent),
            gaps: minutes.stretches(|minute| !minute.is_measured),
            is_whole,
        };
        Ok(serde_json::to_string(&told)?)
    }

    fn take(&self, key: &(String, Span)) -> Remembered {
        self.lock().remove(key).unwrap_or_default()
    }

    fn put(&self, key: (String, Span), known: Remembered) {
        let mut all = self.lock();
        all.insert(key, known);
        if all.len() > MOST {
            let oldest = all.iter().min_by_key(|(_, known)| known.asked_ns);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                all.remove(&key);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, Span), Remembered>> {
        // A panic elsewhere leaves a map that is whole: entries are taken out and put back.
        self.remembered.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The minutes of a span.
struct Minutes {
    begin_s: i64,
    minutes: Vec<OneMinute>,
}

#[derive(Clone, Copy, Default)]
struct OneMinute {
    is_measured: bool,
    is_silent: bool,
}

impl Minutes {
    fn of(blocks: &[Block], begin_s: i64, until_s: i64) -> Self {
        let count = usize::try_from((until_s - begin_s).div_euclid(60)).unwrap_or(0);
        let mut minutes = vec![OneMinute::default(); count];
        for block in blocks {
            let Ok(first) = usize::try_from((block.begin_s - begin_s).div_euclid(60)) else {
                continue;
            };
            for (bit, minute) in minutes.iter_mut().skip(first).take(60).enumerate() {
                minute.is_measured |= block.measured >> bit & 1 == 1;
                minute.is_silent |= block.silent >> bit & 1 == 1;
            }
        }
        Self { begin_s, minutes }
    }

    fn stretches(&self, of: impl Fn(&OneMinute) -> bool) -> Vec<(i64, i64)> {
        let mut found: Vec<(i64, i64)> = Vec::new();
        for (at_s, minute) in (self.begin_s..).step_by(60).zip(&self.minutes) {
            match found.last_mut() {
                _ if !of(minute) => {}
                Some((_, end_s)) if *end_s == at_s => *end_s += 60,
                _ => found.push((at_s, at_s + 60)),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minute::{Minute, Outcome, Sample};
    use crate::store::{ENDING, Store};
    use serde_json::Value;
    use std::fs;
    use std::path::Path;

    const NS: i64 = 1_000_000_000;
    /// The first of January 2030.
    const BEGIN_S: i64 = 1_893_456_000;

    /// A minute of ten probes a second; their round trips are different from minute to minute.
    fn minute(begin_s: i64, lost: usize) -> Minute {
        let mut minute = Minute::default();
        for number in 0..600 {
            let latency_ns = 1_000_000 + (begin_s / 60 * 7_919 + number * 104_729) % 500_009;
            let begin_ns = begin_s * NS + number * 100_000_000;
            let sample = Sample { begin_ns, latency_ns, residence_ns: Some(7), own_host_ns: None };
            let outcome =
                if number < lost as i64 { Outcome::Lost } else { Outcome::Answered(sample) };
            minute.add(begin_s * NS, number * 100_000, outcome);
        }
        minute
    }

    fn append(store: &mut Store, begin_s: i64, lost: usize) {
        let line = minute(begin_s, lost).line(begin_s * NS).unwrap();
        store.append("far", begin_s * NS, &line).unwrap();
    }

    fn told(history: &History, span: Span, until_s: i64) -> Value {
        serde_json::from_str(&history.tell("far", span, until_s, until_s * NS).unwrap()).unwrap()
    }

    fn latencies(begins_s: impl Iterator<Item = i64>) -> Vec<i64> {
        let mut all = Vec::new();
        for begin_s in begins_s {
            let crate::Values::Probes(probes) = minute(begin_s, 0).values else { panic!() };
            all.extend(probes.iter().filter_map(|(_, ns)| *ns));
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn percentiles_of_blocks_are_those_of_all_their_probes() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        (0..150).for_each(|n| append(&mut store, BEGIN_S + 60 * n, 0));
        let history = History::new(folder.path().to_owned());
        let until_s = BEGIN_S + 150 * 60;
        for (span, blocks, minutes) in
            [(Span::Hour, 60, 1), (Span::Day, 15, 10), (Span::Week, 3, 60)]
        {
            let told = told(&history, span, until_s);
            let all = told["blocks"].as_array().unwrap();
            assert_eq!((all.len(), told["is_whole"].as_bool()), (blocks, Some(true)), "{span:?}");
            let last = all.last().unwrap();
            let begin_s = last["begin_s"].as_i64().unwrap();
            let values = latencies((begin_s..until_s.min(begin_s + minutes * 60)).step_by(60));
            assert_eq!(last["samples"], values.len());
            for (index, (numerator, denominator)) in
                [(50, 100), (99, 100), (999, 1_000)].into_iter().enumerate()
            {
                let rank = (values.len() * numerator).div_ceil(denominator);
                let quantile = &last["quantiles"][index];
                assert_eq!(quantile["ns"], values[rank - 1], "{span:?}");
                assert!(quantile["low_ns"].as_i64() <= Some(values[rank - 1]));
                let high_ns = quantile["high_ns"].as_i64();
                assert!(high_ns.is_none_or(|high_ns| high_ns >= values[rank - 1]));
            }
            assert!(last["quantiles"][0]["high_ns"].is_i64());
            assert_eq!(last["worst"]["latency_ns"], values[values.len() - 1]);
            assert_eq!(last["worst"]["residence_ns"], 7);
        }
        // Of 600 probes six are beyond p99: too few for a bound, of an hour enough.
        let high =
            |span| told(&history, span, until_s)["blocks"][0]["quantiles"][1]["high_ns"].clone();
        assert!(high(Span::Hour).is_null() && high(Span::Week).is_i64());
    }

    #[test]
    fn outages_and_times_without_the_watch_are_different() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        for n in (0..60).filter(|n| !(20..25).contains(n)) {
            append(&mut store, BEGIN_S + 60 * n, if (40..43).contains(&n) { 600 } else { 3 });
        }
        let history = History::new(folder.path().to_owned());
        let at = |from: i64, to: i64| serde_json::json!([BEGIN_S + 60 * from, BEGIN_S + 60 * to]);
        for span in [Span::Hour, Span::Day, Span::Week] {
            let told = told(&history, span, BEGIN_S + 3_600);
            assert_eq!(told["outages"], Value::from(vec![at(40, 43)]), "{span:?}");
            let gaps = told["gaps"].as_array().unwrap();
            assert_eq!(gaps.last(), Some(&at(20, 25)), "{span:?}");
            // Before the first minute, too.
            assert_eq!(gaps.len(), if span == Span::Hour { 1 } else { 2 });
            let sum = |key: &str| -> u64 {
                let blocks = told["blocks"].as_array().unwrap();
                blocks.iter().map(|block| block[key].as_u64().unwrap()).sum()
            };
            assert_eq!((sum("due"), sum("unanswered")), (55 * 600, 3 * 600 + 52 * 3));
        }
    }

    #[test]
    fn what_is_remembered_and_what_is_new_are_as_if_read_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let history = History::new(folder.path().to_owned());
        // Over midnight, with a minute that a restart has cut in two.
        let begin_s = BEGIN_S + 86_400 - 3_600;
        for n in 0..130 {
            append(&mut store, begin_s + 60 * n, 0);
            if n == 70 {
                append(&mut store, begin_s + 60 * n, 5);
            }
            for span in [Span::Hour, Span::Day, Span::Week] {
                let until_s = begin_s + 60 * (n + 1);
                let fresh = History::new(folder.path().to_owned());
                assert_eq!(told(&history, span, until_s), told(&fresh, span, until_s), "{n}");
            }
        }
    }

    #[test]
    fn minutes_after_a_step_back_count_without_percentiles() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        for n in [0, 1, 2, 1, 3] {
            append(&mut store, BEGIN_S + 60 * n, 0);
        }
        let history = History::new(folder.path().to_owned());
        for _ in 0..2 {
            let told = told(&history, Span::Hour, BEGIN_S + 240);
            let of = |n: usize, key: &str| told["blocks"][n][key].clone();
            assert_eq!((of(1, "due"), of(2, "due")), (1_200.into(), 600.into()));
            assert!(of(1, "quantiles").is_null() && of(2, "quantiles").is_array());
        }
    }

    #[test]
    fn a_damaged_file_is_told_and_a_frame_on_its_way_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        append(&mut store, BEGIN_S + 86_340, 0);
        append(&mut store, BEGIN_S + 86_400, 0);
        let of_day = |day: &str| folder.path().join("far").join(day.to_owned() + ENDING);
        let cut = |path: &Path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() - 9]).unwrap();
        };
        let until_s = BEGIN_S + 86_460;
        let read = || told(&History::new(folder.path().to_owned()), Span::Hour, until_s);
        cut(&of_day("2030-01-02"));
        assert_eq!(read()["is_whole"], true);
        cut(&of_day("2030-01-01"));
        assert_eq!(
            (read()["is_whole"].as_bool(), &read()["blocks"]),
            (Some(false), &Value::from(Vec::<Value>::new()))
        );
    }

    #[test]
    fn the_longest_unasked_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::new(folder.path().to_owned());
        for number in 0..MOST as i64 + 10 {
            history.tell(&format!("target{number}"), Span::Hour, BEGIN_S, number).unwrap();
        }
        let all = history.lock();
        assert_eq!(all.len(), MOST);
        assert!(!all.contains_key(&("target9".to_owned(), Span::Hour)));
    }
}
