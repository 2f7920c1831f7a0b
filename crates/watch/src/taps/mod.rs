//! Devices that are tapped: what enters and leaves is matched while it comes, and counted by the minute in which it entered.

mod counting;
mod plan;
mod session;
#[cfg(test)]
mod tests;
mod watcher;

pub(crate) use plan::TapEntry;
pub use plan::TapPlan;

use crate::minute::Minute;
use crate::plan::Plan;
use crate::report::Report;
use crate::state::Share;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use tailtrim_ports::port::{Port, PortError};
use watcher::Watcher;

/// Places of devices, behind those of targets.
const FIRST_PLACE: usize = usize::MAX / 2;

/// The ports of a device, of ingress and egress.
pub(crate) type Ports = [Box<dyn Port>; 2];

/// A minute whose packets are all decided.
#[derive(Debug)]
pub(crate) struct OverMinute {
    pub(crate) begin_ns: i64,
    pub(crate) minute: Minute,
    /// Bad packets and those that count, of each objective.
    pub(crate) shares: Vec<Share>,
}

/// The devices that are tapped, each by threads of its own.
pub(crate) struct Taps {
    sender: Sender<Vec<Report>>,
    running: BTreeMap<String, Running>,
    /// Threads that were told to end.
    ending: Vec<JoinHandle<()>>,
    next: usize,
}

struct Running {
    plan: Arc<TapPlan>,
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Taps {
    pub(crate) fn new(sender: Sender<Vec<Report>>) -> Self {
        Self { sender, running: BTreeMap::new(), ending: Vec::new(), next: FIRST_PLACE }
    }

    /// Opens the ports of all devices by name. An interface that is missing or down now may come later; any other that cannot
    /// be opened is an error, with the name of the device.
    pub(crate) fn open(plan: &Plan) -> Result<BTreeMap<String, Ports>, (String, PortError)> {
        let mut opened = BTreeMap::new();
        for tap in &plan.taps {
            match tap.open() {
                Ok(ports) => {
                    opened.insert(tap.name.clone(), ports);
                }
                // The thread of the device tells it, and tries again.
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err((tap.name.clone(), error)),
            }
        }
        Ok(opened)
    }

    /// Begins and ends taps; those that are as before go on.
    pub(crate) fn apply(&mut self, plans: &[TapPlan], mut opened: BTreeMap<String, Ports>) {
        let wanted: BTreeMap<&str, &TapPlan> =
            plans.iter().map(|plan| (plan.name.as_str(), plan)).collect();
        let goes = |(name, running): (&String, &Running)| {
            let stays = wanted.get(name.as_str()).is_some_and(|plan| **plan == *running.plan);
            (!stays).then(|| name.clone())
        };
        let gone: Vec<String> = self.running.iter().filter_map(goes).collect();
        let mut before = BTreeMap::new();
        for name in gone {
            let Some(running) = self.running.remove(&name) else { continue };
            running.stopped.store(true, Ordering::Relaxed);
            before.insert(name, running.thread);
        }
        self.ending.retain(|thread| !thread.is_finished());
        for plan in plans {
            if self.running.contains_key(&plan.name) {
                continue;
            }
            let (plan, stopped) = (Arc::new(plan.clone()), Arc::<AtomicBool>::default());
            let mut watcher = Watcher::new(
                self.next,
                Arc::clone(&plan),
                self.sender.clone(),
                Arc::clone(&stopped),
            );
            self.next += 1;
            let (earlier, ports) = (before.remove(&plan.name), opened.remove(&plan.name));
            let thread = thread::spawn(move || {
                // Minutes and metrics of one name are of one thread at a time.
                if let Some(Err(panic)) = earlier.map(JoinHandle::join) {
                    std::panic::resume_unwind(panic);
                }
                watcher.run(ports);
            });
            self.running.insert(plan.name.clone(), Running { plan, stopped, thread });
        }
        self.ending.extend(before.into_values());
    }

    /// Ends all, and waits until their minutes are handed on.
    pub(crate) fn finish(self) {
        self.running.values().for_each(|running| running.stopped.store(true, Ordering::Relaxed));
        let running = self.running.into_values().map(|running| running.thread);
        for thread in self.ending.into_iter().chain(running) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Whether there is no such interface now, or it is down.
fn is_absent(error: &PortError) -> bool {
    let (PortError::Open { source, .. } | PortError::Broken { source, .. }) = error else {
        return false;
    };
    let absent = [io::ErrorKind::NotFound, io::ErrorKind::NetworkDown];
    absent.contains(&source.kind()) || [ENXIO, ENODEV].map(Some).contains(&source.raw_os_error())
}

/// No such device.
const ENXIO: i32 = 6;
const ENODEV: i32 = 19;
