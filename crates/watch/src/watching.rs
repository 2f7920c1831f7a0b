//! A watch: reads its file, probes until it is ended, and keeps what it finds.

use crate::book::Book;
use crate::change::Changes;
use crate::metrics::Metrics;
use crate::plan::{Plan, PlanError, TargetPlan};
use crate::probing::Probing;
use crate::resolving::Resolver;
use crate::serving;
use crate::store::{Store, StoreError};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use tailtrim_sys::placement::PlacementError;
use tailtrim_sys::{clock, process};

/// Parameters of a watch.
#[derive(Debug)]
pub struct Request {
    /// The file of targets.
    pub plan: PathBuf,
    /// The folder of minutes.
    pub folder: PathBuf,
    /// Address at which metrics are served.
    pub listen: Option<SocketAddr>,
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
    /// The CPU to run on.
    #[error(transparent)]
    Placement(#[from] PlacementError),
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
    warn: impl Fn(&str) + Send + 'static,
    place: impl FnOnce() -> Result<(), PlacementError>,
    started: impl FnOnce(Option<SocketAddr>),
) -> Result<(), WatchError> {
    let plan = Plan::read(&request.plan)?;
    let store = Store::open(&request.folder)?;
    let metrics = Arc::new(Metrics::new(plan.deadlines_s()));
    let served = |address| {
        let failed = |source| WatchError::Listen { address, source };
        serving::serve(address, Arc::clone(&metrics)).map_err(failed)
    };
    let address = request.listen.map(served).transpose()?;
    let (sender, receiver) = channel();
    let mut probing = Probing::new(sender)?;
    let changes = Changes::new(&request.folder, plan.compared.clone());
    let now_ns = clock::realtime_ns();
    let mut book =
        Book::new(store, plan.keep, changes, Arc::clone(&metrics), now_ns, Box::new(warn))?;
    let book = thread::spawn(move || receiver.into_iter().for_each(|reports| book.enter(reports)));
    let mut resolver = Resolver::start();
    let mut places = Places::default();
    places.apply(&plan, &mut probing, &mut resolver);
    // Without it, sleeping ends up to 50 µs late; refused, it does no harm.
    let _ = process::wake_promptly();
    place()?;
    started(address);
    while !stopped.load(Ordering::Relaxed) {
        probing.turn()?;
        if reload.swap(false, Ordering::Relaxed) {
            match Plan::read(&request.plan) {
                Ok(plan) => {
                    probing.keep(plan.keep);
                    probing.compare(plan.compared.clone());
                    places.apply(&plan, &mut probing, &mut resolver);
                }
                Err(error) => probing.refuse(error.to_string()),
            }
        }
        for answer in resolver.answers() {
            probing.direct(answer.place, answer.address, answer.why);
        }
    }
    probing.finish();
    if let Err(panic) = book.join() {
        std::panic::resume_unwind(panic);
    }
    Ok(())
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
