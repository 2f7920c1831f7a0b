//! Late probes are caught in the act: the trace of this host's CPUs, the stamps of all probes around it, and the path.
//!
//! 1. The thread that sends and receives tells about each decided probe ([`Sight`]) and never waits,
//! 2. a thread keeps the trace and the probes of the last seconds ([`collector`], [`tracing`]),
//! 3. another one explains and writes ([`writing`]), and one looks paths up ([`paths`]).

mod bucket;
mod cause;
mod collector;
mod hops;
mod parts;
mod paths;
mod seen;
mod tracing;
mod writing;

pub(crate) use seen::{Seen, Sight};

use crate::metrics::Metrics;
use crate::plan::Plan;
use crate::raw;
use crate::report::Report;
use collector::{Catch, Collector, Fate};
use paths::Paths;
use serde::Deserialize;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tailtrim_sys::placement::name_threads;
use tailtrim_sys::{clock, process};
use tailtrim_tracer::trace::Around;
use tracing::{Guard, Tracing};

/// Batches of reports that wait to be looked at: 26 s.
const BATCHES: usize = 256;

/// Time between two looks at the trace and at what is complete.
const LOOK: Duration = Duration::from_millis(100);

/// Priority of these threads: what they do can wait.
const NICE: i32 = 10;

/// Limits of what is kept around late probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatchPlan {
    /// Whether the CPUs of this host are traced.
    #[serde(default = "yes")]
    pub trace: bool,
    /// So many are kept an hour, of all targets together.
    #[serde(default = "four")]
    pub an_hour: u32,
}

fn yes() -> bool {
    true
}

fn four() -> u32 {
    4
}

/// The parts that must be there before other threads are started.
pub(crate) struct Prepared {
    plan: CatchPlan,
    guard: Result<Guard, String>,
}

/// Prepares what the file of targets asks for. To be called before other threads are started.
pub(crate) fn prepare(plan: &Plan) -> Option<Prepared> {
    let plan = plan.catch?;
    let off = || Err("trace: false".to_owned());
    let guard = if plan.trace { Guard::start() } else { off() };
    Some(Prepared { plan, guard })
}

/// Starts the threads. The one that is returned ends when the [`Sight`] is dropped.
pub(crate) fn start(
    prepared: Option<Prepared>,
    folder: PathBuf,
    metrics: Arc<Metrics>,
    reports: Sender<Vec<Report>>,
) -> (Sight, Option<JoinHandle<()>>) {
    let Some(Prepared { plan, guard }) = prepared else { return (Sight::default(), None) };
    let (sender, receiver) = sync_channel(BATCHES);
    let watching = thread::spawn(move || {
        background("tt-catch");
        let ((catches, caught), (ready, free)) = (channel(), channel());
        let teller = Teller { metrics, reports };
        let writer = Writer { folder: folder.clone(), teller: teller.clone() };
        let writing = thread::spawn(move || writer.write(&caught, &ready));
        let mut catching = Catching {
            collector: Collector::new(plan.an_hour, clock::realtime_ns()),
            traced: guard.map(State::Waits),
            is_asked: plan.trace,
            paths: Paths::start(folder, teller.clone()),
            complete: VecDeque::new(),
            catches,
            free,
            teller,
        };
        catching.follow(&receiver);
        drop(catching);
        if let Err(panic) = writing.join() {
            std::panic::resume_unwind(panic);
        }
    });
    (Sight::of(sender), Some(watching))
}

/// Names the calling thread, and lets others go first.
fn background(name: &str) {
    name_threads(name);
    // Refused, it has the priority of others.
    let _ = process::defer(NICE);
}

/// Tells the book and the metrics.
#[derive(Clone)]
struct Teller {
    metrics: Arc<Metrics>,
    reports: Sender<Vec<Report>>,
}

impl Teller {
    fn count(&self, result: &'static str, catches: u64) {
        self.metrics.caught(result, catches);
    }

    fn note(&self, event: &'static str, target: Option<&str>, told: String) {
        let report = Report::Told { event, target: target.map(str::to_owned), told };
        // The book ends after these threads, unless it has failed, which it says itself; only the thread that looks up
        // paths may go on after it.
        let _ = self.reports.send(vec![report]);
    }
}

enum State {
    /// Begins with the first reports: these tell the longest timeout.
    Waits(Guard),
    Runs(Box<Tracing>),
}

struct Catching {
    collector: Collector,
    traced: Result<State, String>,
    is_asked: bool,
    paths: Paths,
    /// Catches whose traces are not decoded yet: one of them at a time takes its memory.
    complete: VecDeque<Catch>,
    catches: Sender<(Catch, Result<Around, String>)>,
    /// The writer has nothing to do.
    free: Receiver<()>,
    teller: Teller,
}

impl Catching {
    fn follow(&mut self, receiver: &Receiver<Vec<Seen>>) {
        if self.is_asked
            && let Err(why) = &self.traced
        {
            self.teller.note("catch", None, format!("without a trace: {why}"));
        }
        loop {
            let ended = match receiver.recv_timeout(LOOK) {
                Ok(batch) => {
                    let now_ns = clock::realtime_ns();
                    batch.into_iter().for_each(|seen| self.collector.take(seen, now_ns));
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => true,
            };
            self.trace();
            self.hand_on(ended);
            if ended {
                return;
            }
        }
    }

    /// Begins to trace, or reads what is new.
    fn trace(&mut self) {
        let gone = || Err("ended".to_owned());
        self.traced = match std::mem::replace(&mut self.traced, gone()) {
            Ok(State::Waits(guard)) if self.collector.longest_ns() == 0 => Ok(State::Waits(guard)),
            Ok(State::Waits(guard)) => Tracing::start(guard, self.collector.longest_ns())
                .map(|tracing| State::Runs(Box::new(tracing)))
                .inspect(|_| self.teller.note("catch", None, "the CPUs are traced".into()))
                .inspect_err(|why| self.lost(why)),
            Ok(State::Runs(mut tracing)) => match tracing.look() {
                Ok(()) => Ok(State::Runs(tracing)),
                Err(why) => {
                    self.lost(&why);
                    Err(why)
                }
            },
            Err(why) => Err(why),
        };
    }

    fn lost(&self, why: &str) {
        self.teller.note("catch", None, format!("without a trace: {why}"));
    }

    fn hand_on(&mut self, all: bool) {
        for fate in self.collector.fates.drain(..) {
            match fate {
                // Counted when it is on disk, or not.
                Fate::Kept => {}
                Fate::Around => self.teller.count("around", 1),
                Fate::Continued => self.teller.count("continued", 1),
                Fate::Limited => self.teller.count("limited", 1),
            }
        }
        let dropped = std::mem::take(&mut self.collector.dropped);
        if dropped > 0 {
            self.teller.note(
                "catch",
                None,
                format!("{dropped} probes were not looked at: this host was too busy"),
            );
        }
        self.collector.wanted.drain(..).for_each(|wanted| self.paths.ask(wanted));
        self.complete.extend(self.collector.ripe(clock::realtime_ns(), all));
        while !self.complete.is_empty() {
            // A writer that has failed says so when it is joined.
            if !(if all { self.free.recv().is_ok() } else { self.free.try_recv().is_ok() }) {
                break;
            }
            let Some(catch) = self.complete.pop_front() else { break };
            let around = match &mut self.traced {
                Ok(State::Runs(tracing)) => tracing.around(catch.from_ns, catch.until_ns),
                Ok(State::Waits(_)) => Err("not begun".to_owned()),
                Err(why) => Err(why.clone()),
            };
            let _ = self.catches.send((catch, around));
        }
    }
}

struct Writer {
    folder: PathBuf,
    teller: Teller,
}

impl Writer {
    fn write(&self, caught: &Receiver<(Catch, Result<Around, String>)>, free: &Sender<()>) {
        background("tt-kept");
        writing::remove_drafts(&self.folder);
        loop {
            // Nobody waits for it at the end.
            let _ = free.send(());
            let Ok((catch, trace)) = caught.recv() else { break };
            let target = Some(catch.plan.name.as_str());
            let written = loop {
                let written = writing::write(&self.folder, &catch, &trace, std::process::id());
                let full = |error: &io::Error| {
                    matches!(
                        error.kind(),
                        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
                    )
                };
                match written {
                    Err((_, error)) if full(&error) && raw::remove_oldest(&self.folder) => {}
                    other => break other,
                }
            };
            match written {
                Ok(path) => {
                    self.teller.count("kept", 1);
                    self.teller.note("caught", target, path.display().to_string());
                }
                Err((path, error)) => {
                    self.teller.count("unwritten", 1);
                    let told = format!("not kept: {}: {error}", path.display());
                    self.teller.note("caught", target, told);
                }
            }
        }
    }
}
