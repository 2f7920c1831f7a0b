//! Targets over time: read from disk for each request. Blocks that are complete are remembered.

use super::block::{Block, Blocks, QUANTILES};
use super::catches::{self, Catch};
use super::reading::{self, Place};
use super::span::Span;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use tailtrim_stats::Probability;

/// So many answers are remembered, each of up to 168 blocks of less than 1 kB.
const MOST: usize = 100;

/// Lines of a minute may come so long after it should be on disk, before its block is taken as complete.
const PATIENCE_S: i64 = 120;

/// Reads and remembers.
pub(crate) struct History {
    folder: PathBuf,
    remembered: Mutex<BTreeMap<(String, Span), Remembered>>,
}

/// Blocks of a target that were read.
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
    /// Late probes of these days that were caught.
    catches: Vec<Catch>,
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
            catches: catches::newest(&folder, begin_s)?,
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
#[path = "history_tests.rs"]
mod tests;
