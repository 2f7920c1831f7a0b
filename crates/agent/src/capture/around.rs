//! The worst packets of a capture that is analysed while it is taken, with the packets of both taps around them.

use super::locked;
use crate::analyze::gone;
use crate::events;
use crate::minutes::Worst;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use tailtrim_ports::capture::{Excerpt, Recent};
use tailtrim_tail::analysis::Sample;

/// Packets whose surroundings are kept.
const WORST: usize = 10;
/// Before a packet entered, and after it left.
const BESIDE_NS: i64 = 500_000_000;
/// Longest time by which the other tap may be behind. A dead device sends nothing more.
const BEHIND_NS: i64 = 2_000_000_000;
/// Least distance between two of them: closer ones belong to the same disturbance.
const APART_NS: i64 = 1_000_000_000;

/// The surroundings of the worst packets so far.
pub(super) struct Around {
    folder: PathBuf,
    taps: [(&'static str, Arc<Mutex<Recent>>); 2],
    worst: Vec<One>,
    writer: Writer,
    /// Whether programs read the output: a program that traces the device keeps the events around these packets.
    tells: bool,
}

/// Both captures around one packet.
#[derive(Debug, Clone, Serialize)]
pub(super) struct One {
    #[serde(flatten)]
    packet: Worst,
    /// The time for which the captures have all packets.
    from_ns: i64,
    until_ns: i64,
    /// Whether they have all packets that came; at high rates there is no memory for a second. Unknown until they are
    /// written.
    complete: Option<bool>,
    #[serde(skip)]
    sample: Sample,
}

impl Around {
    /// Time for which records are kept: until their packets are decided, and half a second.
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
        Ok(Self { folder, taps, worst: Vec::new(), writer: Writer::start(), tells })
    }

    /// Takes the worst packet of those that were matched since it was called last, and writes captures that are
    /// complete.
    pub(super) fn take(&mut self, worst: Option<Sample>) -> io::Result<()> {
        if let Some(sample) = worst {
            self.offer(sample);
        }
        self.writer.check()?;
        let [one_ns, other_ns] = self.taps.each_ref().map(|(_, tap)| locked(tap).newest_ns());
        self.write(one_ns.min(other_ns).max(one_ns.max(other_ns).saturating_sub(BEHIND_NS)));
        Ok(())
    }

    /// Writes the remaining captures. Returns all, the worst first.
    pub(super) fn finish(mut self) -> io::Result<Vec<One>> {
        while self.worst.iter().any(|one| one.complete.is_none()) {
            self.writer.wait();
            self.write(i64::MAX);
        }
        self.writer.end()?;
        self.worst.sort_by_key(|one| std::cmp::Reverse(one.sample.latency_ns()));
        Ok(self.worst)
    }

    fn offer(&mut self, sample: Sample) {
        let near = |one: &One| (one.sample.ingress_ns - sample.ingress_ns).abs() < APART_NS;
        let better = |one: &One| one.sample.latency_ns() >= sample.latency_ns();
        let full = self.worst.len() == WORST;
        if self.worst.iter().any(|one| near(one) && better(one))
            || full && !self.worst.iter().any(near) && self.worst.iter().all(better)
        {
            return;
        }
        let (replaced, kept): (Vec<_>, Vec<_>) = self.worst.drain(..).partition(near);
        self.worst = kept;
        for one in replaced {
            self.remove(&one);
        }
        if self.worst.len() == WORST {
            let least = (0..WORST).min_by_key(|at| self.worst[*at].sample.latency_ns());
            let least = self.worst.swap_remove(least.unwrap_or(0));
            self.remove(&least);
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
    }

    /// Hands complete captures to the writer; while it is busy, they stay here.
    fn write(&mut self, newest_ns: i64) {
        for one in &mut self.worst {
            if one.complete.is_some() || one.until_ns >= newest_ns || self.writer.is_busy() {
                continue;
            }
            let excerpts = self.taps.each_ref().map(|(tap, recent)| {
                let excerpt = locked(recent).excerpt(one.from_ns, one.until_ns);
                (path(&self.folder, &one.sample, tap), excerpt)
            });
            one.complete = Some(excerpts.iter().all(|(_, excerpt)| excerpt.complete));
            self.writer.hand_over(Work::Write(excerpts));
        }
    }

    fn remove(&mut self, one: &One) {
        if one.complete.is_some() {
            let paths = self.taps.each_ref().map(|(tap, _)| path(&self.folder, &one.sample, tap));
            self.writer.hand_over(Work::Remove(paths));
        }
    }
}

/// Writes and removes captures in a thread of its own, in the order of its orders: compressing a second of packets
/// takes so long that the taps would drop others meanwhile.
struct Writer {
    work: Option<Sender<Work>>,
    /// Captures that were handed over and are not written yet.
    open: Arc<(Mutex<usize>, Condvar)>,
    failed: Arc<Mutex<Option<io::Error>>>,
    thread: Option<JoinHandle<()>>,
}

enum Work {
    Write([(PathBuf, Excerpt); 2]),
    Remove([PathBuf; 2]),
}

impl Work {
    fn done(self) -> io::Result<()> {
        match self {
            Self::Write(excerpts) => {
                excerpts.iter().try_for_each(|(path, excerpt)| excerpt.write(path))
            }
            // A user may have moved the file: that is no error.
            Self::Remove(paths) => {
                paths.iter().try_for_each(|path| gone(fs::remove_file(path)).map(|_| ()))
            }
        }
    }
}

impl Writer {
    fn start() -> Self {
        let (work, told) = channel::<Work>();
        let open = Arc::new((Mutex::new(0), Condvar::new()));
        let failed = Arc::new(Mutex::new(None));
        let (counted, kept) = (Arc::clone(&open), Arc::clone(&failed));
        let thread = thread::spawn(move || {
            for work in told {
                let writes = matches!(work, Work::Write(_));
                if let Err(error) = work.done() {
                    locked(&kept).get_or_insert(error);
                }
                if writes {
                    *locked(&counted.0) -= 1;
                    counted.1.notify_all();
                }
            }
        });
        Self { work: Some(work), open, failed, thread: Some(thread) }
    }

    /// Whether it has captures still to be written. More would take their memory, too.
    fn is_busy(&self) -> bool {
        *locked(&self.open.0) > 0
    }

    fn wait(&self) {
        let open = self.open.1.wait_while(locked(&self.open.0), |open| *open > 0);
        drop(open.unwrap_or_else(PoisonError::into_inner));
    }

    fn hand_over(&self, work: Work) {
        if matches!(work, Work::Write(_)) {
            *locked(&self.open.0) += 1;
        }
        if let Some(sender) = &self.work {
            // The thread ends only with the sender.
            let _ = sender.send(work);
        }
    }

    /// Returns the first error of writing so far.
    fn check(&self) -> io::Result<()> {
        locked(&self.failed).take().map_or(Ok(()), Err)
    }

    /// Does the remaining work.
    fn end(&mut self) -> io::Result<()> {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        self.check()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // A capture that was begun is ended.
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn path(folder: &Path, sample: &Sample, tap: &str) -> PathBuf {
    folder.join(format!("{}-{tap}.pcap.zst", sample.ingress_ns))
}
