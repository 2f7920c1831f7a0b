//! A watch: reads its file, probes until it is ended, and keeps what it finds.

use crate::book::Book;
use crate::catch::{self, CatchPlan};
use crate::change::Changes;
use crate::heart::Heart;
use crate::metrics::Metrics;
use crate::otlp::{Endpoint, Pusher};
use crate::page::{Access, AccessError, Board, History, Pages};
use crate::plan::{Plan, PlanError, TargetPlan};
use crate::probing::Probing;
use crate::report::Report;
use crate::resolving::Resolver;
use crate::serving;
use crate::store::{Store, StoreError};
use crate::taps::{Ports, Taps};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use tailtrim_ports::port::PortError;
use tailtrim_sys::notify::Manager;
use tailtrim_sys::placement::PlacementError;
use tailtrim_sys::{clock, process};

/// Parameters of a watch.
#[derive(Debug)]
pub struct Request {
    /// The file of targets.
    pub plan: PathBuf,
    /// The folder of minutes.
    pub folder: PathBuf,
    /// Address at which metrics and the page are served.
    pub listen: Option<SocketAddr>,
    /// File of the token that readers have to know.
    pub token_file: Option<PathBuf>,
    /// Collector to which they are pushed.
    pub push: Option<Endpoint>,
}

/// Why a watch cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The file of targets.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The folder of minutes.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The address for metrics.
    #[error("{address}: metrics cannot be served: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The rules for readers.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The thread that pushes metrics, or the socket of the service manager.
    #[error("{what}: {source}")]
    Told {
        /// Which of both.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The CPU to run on.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// A tap that may not be opened.
    #[error("tap {name}: {source}")]
    Tap {
        /// Name of the device.
        name: String,
        /// The cause.
        source: PortError,
    },
    /// Waiting for several sockets.
    #[error("waiting for replies: {0}")]
    Waiting(#[from] io::Error),
}

/// Probes the targets of a file until `stopped`; reads the file again when `reload` is set. `started` is called when
/// all is ready, with the address of the metrics; `place` before that, in the thread
/// that sends and receives. `warn` is told what could not be written.
///
/// # Errors
/// [`WatchError`]. A file that is wrong when it is read again changes nothing.
pub fn watch(
    request: &Request,
    stopped: &AtomicBool,
    reload: &AtomicBool,
    warn: impl Fn(&str) + Clone + Send + 'static,
    place: impl FnOnce() -> Result<(), PlacementError>,
    started: impl FnOnce(Option<SocketAddr>),
) -> Result<(), WatchError> {
    let plan = Plan::read(&request.plan)?;
    let access = |address| Ok((address, Access::new(address, request.token_file.as_deref())?));
    let access = request.listen.map(access).transpose().map_err(WatchError::Access)?;
    let store = Store::open(&request.folder)?;
    // Before other threads.
    let catching = catch::prepare(&plan);
    let metrics = Arc::new(Metrics::new(plan.deadlines_s()));
    let board = Arc::new(Board::default());
    let changes = Changes::new(&request.folder, plan.compared.clone());
    let served = |(address, access)| {
        let failed = |source| WatchError::Listen { address, source };
        let history = History::new(request.folder.clone());
        let pages = Pages::new(Arc::clone(&board), history, changes.board());
        serving::serve(address, Arc::clone(&metrics), pages, access).map_err(failed)
    };
    let address = access.map(served).transpose()?;
    let pushed = |endpoint| {
        let failed = |source| WatchError::Told { what: "pushing metrics", source };
        Pusher::start(endpoint, Arc::clone(&metrics), warn.clone()).map_err(failed)
    };
    let pusher = request.push.clone().map(pushed).transpose()?;
    let failed = |source| WatchError::Told { what: "NOTIFY_SOCKET", source };
    let mut heart = Heart::new(Manager::of_environment().map_err(failed)?);
    let entered = heart.entered();
    let (sender, receiver) = channel();
    let folder = request.folder.clone();
    let (sight, catching) = catch::start(catching, folder, Arc::clone(&metrics), sender.clone());
    let taps = Taps::new(sender.clone());
    let mut sources = Sources {
        probing: Probing::new(sender.clone(), sight)?,
        resolver: Resolver::start(),
        places: Places::default(),
        taps,
    };
    let opened = Taps::open(&plan).map_err(|(name, source)| WatchError::Tap { name, source })?;
    let mut book = Book::new(
        store,
        plan.keep,
        changes,
        Arc::clone(&metrics),
        Arc::clone(&board),
        clock::realtime_ns(),
        Box::new(warn),
    )?;
    let book = thread::spawn(move || {
        for reports in receiver {
            // The thread that looks up paths may still have a sender.
            if matches!(reports[..], [Report::Stopped]) {
                break;
            }
            book.enter(reports);
            entered.now();
        }
    });
    sources.apply(&plan, opened);
    // Without it, sleeping ends up to 50 µs late; refused, it does no harm.
    let _ = process::wake_promptly();
    place()?;
    started(address);
    heart.ready(plan.targets.len());
    let mut turned: io::Result<()> = Ok(());
    while turned.is_ok() && !stopped.load(Ordering::Relaxed) {
        turned = sources.turn();
        heart.beat();
        if reload.swap(false, Ordering::Relaxed) {
            heart.reloading();
            sources.reload(&request.plan, plan.catch);
            heart.ready(sources.places.by_name.len());
        }
    }
    heart.stopping();
    sources.finish();
    // It tells the book what it has kept.
    catching.into_iter().for_each(joined);
    let _ = sender.send(vec![Report::Stopped]);
    joined(book);
    if let Some(pusher) = pusher {
        pusher.finish();
    }
    turned.map_err(WatchError::Waiting)
}

/// Waits for the end of a thread, and goes on with its panic.
fn joined(thread: JoinHandle<()>) {
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Targets and devices.
struct Sources {
    probing: Probing,
    resolver: Resolver,
    places: Places,
    taps: Taps,
}

impl Sources {
    /// Begins and ends targets and devices. Taps that were opened before are given.
    fn apply(&mut self, plan: &Plan, opened: BTreeMap<String, Ports>) {
        self.places.apply(plan, &mut self.probing, &mut self.resolver);
        self.taps.apply(&plan.taps, opened);
    }

    /// Sends and receives what is due.
    fn turn(&mut self) -> io::Result<()> {
        self.probing.turn()?;
        for answer in self.resolver.answers() {
            self.probing.direct(answer.place, answer.address, answer.why);
        }
        Ok(())
    }

    /// Reads the file again.
    fn reload(&mut self, path: &Path, catch: Option<CatchPlan>) {
        match Plan::read(path) {
            Ok(plan) => {
                if plan.catch != catch {
                    self.probing.tell("catch", "as before: it changes with the next start");
                }
                self.probing.keep(plan.keep);
                self.probing.compare(plan.compared.clone());
                self.apply(&plan, BTreeMap::new());
            }
            Err(error) => self.probing.refuse(error.to_string()),
        }
    }

    /// Ends all.
    fn finish(self) {
        self.probing.finish();
        self.taps.finish();
    }
}

/// Targets by name, each at a place.
#[derive(Default)]
struct Places {
    by_name: BTreeMap<String, (usize, Arc<TargetPlan>)>,
    next: usize,
}

impl Places {
    /// Begins and ends targets; those that are as before go on.
    fn apply(&mut self, plan: &Plan, probing: &mut Probing, resolver: &mut Resolver) {
        let wanted: BTreeMap<&str, &TargetPlan> =
            plan.targets.iter().map(|target| (target.name.as_str(), target)).collect();
        self.by_name.retain(|name, (place, old)| {
            let stays = wanted.get(name.as_str()).is_some_and(|target| **target == **old);
            if !stays {
                probing.end(*place);
                resolver.forget(*place);
            }
            stays
        });
        for target in &plan.targets {
            if self.by_name.contains_key(&target.name) {
                continue;
            }
            let (place, target) = (self.next, Arc::new(target.clone()));
            self.next += 1;
            probing.start(place, &target);
            resolver.ask(place, &target);
            self.by_name.insert(target.name.clone(), (place, target));
        }
    }
}
