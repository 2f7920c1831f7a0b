//! The worst packets of a capture that is analysed while it comes, with what both taps saw around them.

use super::locked;
use crate::analyze::gone;
use crate::events;
use crate::minutes::Worst;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tailtrim_linux::capture::Recent;
use tailtrim_tail::analysis::Sample;

/// Packets whose surroundings are kept.
const WORST: usize = 10;
/// Before a packet entered, and after it left.
const BESIDE_NS: i64 = 500_000_000;
/// How long the other tap may be behind. A device that is dead sends nothing more.
const BEHIND_NS: i64 = 2_000_000_000;
/// How far they are apart: what is within belongs to the same disturbance.
const APART_NS: i64 = 1_000_000_000;

/// The surroundings of the worst packets so far.
pub(super) struct Around {
    folder: PathBuf,
    taps: [(&'static str, Arc<Mutex<Recent>>); 2],
    worst: Vec<One>,
    /// Whether programs read what is told: who traces the device is to keep what happened there.
    tells: bool,
}

/// Both captures around one packet.
#[derive(Debug, Clone, Serialize)]
pub(super) struct One {
    #[serde(flatten)]
    packet: Worst,
    /// The time of which the captures have all packets.
    from_ns: i64,
    until_ns: i64,
    /// Whether they have all that came; at high rates there is no memory for a second. Unknown until they are written.
    complete: Option<bool>,
    #[serde(skip)]
    sample: Sample,
}

impl Around {
    /// How long records are needed: until their packets are decided, and half a second.
    pub(super) fn keep_ns(window_ns: i64) -> i64 {
        window_ns + 2 * BESIDE_NS + BEHIND_NS
    }

    /// Makes the folder.
    pub(super) fn create(
        directory: &Path,
        taps: [(&'static str, Arc<Mutex<Recent>>); 2],
        tells: bool,
    ) -> io::Result<Self> {
        let folder = directory.join("around");
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, taps, worst: Vec::new(), tells })
    }

    /// Takes the worst packet of those that were matched since it was called last, and writes what has come completely.
    pub(super) fn take(&mut self, worst: Option<Sample>) -> io::Result<()> {
        if let Some(sample) = worst {
            self.offer(sample)?;
        }
        let [one_ns, other_ns] = self.taps.each_ref().map(|(_, tap)| locked(tap).newest_ns());
        self.write(one_ns.min(other_ns).max(one_ns.max(other_ns).saturating_sub(BEHIND_NS)))
    }

    /// Writes what is left. Returns all, the worst first.
    pub(super) fn finish(mut self) -> io::Result<Vec<One>> {
        self.write(i64::MAX)?;
        self.worst.sort_by_key(|one| std::cmp::Reverse(one.sample.latency_ns()));
        Ok(self.worst)
    }

    fn offer(&mut self, sample: Sample) -> io::Result<()> {
        let near = |one: &One| (one.sample.ingress_ns - sample.ingress_ns).abs() < APART_NS;
        let better = |one: &One| one.sample.latency_ns() >= sample.latency_ns();
        let full = self.worst.len() == WORST;
        if self.worst.iter().any(|one| near(one) && better(one))
            || full && !self.worst.iter().any(near) && self.worst.iter().all(better)
        {
            return Ok(());
        }
        let (replaced, kept): (Vec<_>, Vec<_>) = self.worst.drain(..).partition(near);
        self.worst = kept;
        for one in replaced {
            self.remove(&one)?;
        }
        if self.worst.len() == WORST {
            let least = (0..WORST).min_by_key(|at| self.worst[*at].sample.latency_ns());
            let least = self.worst.swap_remove(least.unwrap_or(0));
            self.remove(&least)?;
        }
        self.worst.push(One {
            packet: sample.into(),
            from_ns: sample.ingress_ns - BESIDE_NS,
            until_ns: sample.egress_ns + BESIDE_NS,
            complete: None,
            sample,
        });
        if self.tells {
            events::around(&self.worst);
        }
        Ok(())
    }

    fn write(&mut self, newest_ns: i64) -> io::Result<()> {
        for one in &mut self.worst {
            if one.complete.is_some() || one.until_ns >= newest_ns {
                continue;
            }
            let mut complete = true;
            for (tap, recent) in &self.taps {
                let path = path(&self.folder, &one.sample, tap);
                complete &= locked(recent).write(&path, one.from_ns, one.until_ns)?;
            }
            one.complete = Some(complete);
        }
        Ok(())
    }

    fn remove(&self, one: &One) -> io::Result<()> {
        if one.complete.is_none() {
            return Ok(());
        }
        // Who looks at one may have moved it: that ends no capture.
        let remove = |tap| gone(fs::remove_file(path(&self.folder, &one.sample, tap))).map(|_| ());
        let [first, second] = self.taps.each_ref().map(|(tap, _)| remove(tap));
        first.and(second)
    }
}

fn path(folder: &Path, sample: &Sample, tap: &str) -> PathBuf {
    folder.join(format!("{}-{tap}.pcap.zst", sample.ingress_ns))
}
