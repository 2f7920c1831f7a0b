//! Paths are looked up in a thread of its own: a router that does not answer takes seconds.

use super::Teller;
use super::collector::{PathWanted, Why};
use crate::raw;
use serde::Serialize;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;
use tailtrim_probes::route::{self, Hop, Route};
use tailtrim_probes::target::Destination;
use tailtrim_sys::clock;

/// Ports that are tried until the path is as long as that of the probes. Of two equal ways one in sixteen misses it.
const PORTS: usize = 4;

/// Time between two looks whether a path is asked for at once.
const BETWEEN: Duration = Duration::from_millis(200);

/// A line of `paths.jsonl`.
#[derive(Serialize)]
struct Line<'a> {
    at_ns: i64,
    why: Why,
    to: SocketAddr,
    reached: bool,
    /// Whether it is as long as that of the probes; `None`: they do not tell.
    as_long: Option<bool>,
    hops: &'a [Hop],
}

/// The thread. It ends when this is dropped, after the path that it is looking up.
pub(super) struct Paths {
    stopped: Arc<AtomicBool>,
    urgent: Sender<PathWanted>,
    first: Sender<PathWanted>,
}

impl Paths {
    pub(super) fn start(folder: PathBuf, teller: Teller) -> Self {
        let ((urgent, now), (first, later)) = (channel(), channel());
        let stopped = Arc::<AtomicBool>::default();
        let ended = Arc::clone(&stopped);
        // At the end of the watch, a path that is being looked up is not waited for: that may take a minute.
        thread::spawn(move || {
            super::background("tt-path");
            while let Some(wanted) = next(&now, &later, &ended) {
                look_up(&folder, &wanted, &teller);
            }
        });
        Self { stopped, urgent, first }
    }

    /// Asks for a path. Those at the start go last.
    pub(super) fn ask(&self, wanted: PathWanted) {
        let way = if wanted.why == Why::Start { &self.first } else { &self.urgent };
        // Its thread has ended only if it has failed.
        let _ = way.send(wanted);
    }
}

impl Drop for Paths {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// Waits for the next path; `None`: it is stopped, however many still wait.
fn next(
    now: &Receiver<PathWanted>,
    later: &Receiver<PathWanted>,
    stopped: &AtomicBool,
) -> Option<PathWanted> {
    while !stopped.load(Ordering::Relaxed) {
        if let Ok(wanted) = now.try_recv().or_else(|_| later.recv_timeout(BETWEEN)) {
            return Some(wanted);
        }
    }
    None
}

fn look_up(folder: &Path, wanted: &PathWanted, teller: &Teller) {
    let name = wanted.plan.name.as_str();
    match found(wanted) {
        Ok((route, as_long)) => {
            let line = Line {
                at_ns: wanted.at_ns,
                why: wanted.why,
                to: wanted.address,
                reached: route.reached,
                as_long,
                hops: &route.hops,
            };
            let path = folder.join(name).join(clock::date(wanted.at_ns) + raw::PATHS);
            match append(&path, &line) {
                Ok(()) if wanted.why == Why::Start => {}
                Ok(()) => teller.note("path", Some(name), path.display().to_string()),
                Err(error) => {
                    teller.note("path", Some(name), format!("{}: {error}", path.display()));
                }
            }
        }
        Err(error) => teller.note("path", Some(name), format!("not known: {error}")),
    }
}

/// The path, by the port whose path is as long as that of the probes: equal paths of several are told apart by their
/// ports, and those of the probes are in use.
fn found(
    wanted: &PathWanted,
) -> Result<(Route, Option<bool>), tailtrim_probes::socket::SocketError> {
    let destination = Destination {
        address: wanted.address,
        source: wanted.plan.source,
        source_port: 0,
        traffic_class: wanted.plan.traffic_class,
        protocol: wanted.plan.protocol.clone(),
    };
    let device = wanted.plan.interface.as_deref();
    let mut number = 0;
    loop {
        let route = route::find(&destination, wanted.plan.payload_bytes, device)?;
        let routers = wanted.routers.filter(|_| route.reached);
        let as_long = routers.map(|routers| usize::from(routers) + 1 == route.hops.len());
        number += 1;
        if as_long != Some(false) || number == PORTS {
            return Ok((route, as_long));
        }
    }
}

fn append(path: &Path, line: &Line<'_>) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(&bytes)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn paths_that_wait_are_not_looked_up_after_the_end() {
        let plan = Plan::parse("targets: [{address: 192.0.2.7}]", Path::new("watch.yml")).unwrap();
        let wanted = |why| PathWanted {
            plan: Arc::new(plan.targets[0].clone()),
            address: SocketAddr::from(([192, 0, 2, 7], 862)),
            at_ns: 0,
            why,
            routers: None,
        };
        let ((urgent, now), (first, later)) = (channel(), channel());
        let paths = Paths { stopped: Arc::default(), urgent, first };
        let stopped = Arc::clone(&paths.stopped);
        for why in [Why::Start, Why::Start, Why::Unanswered] {
            paths.ask(wanted(why));
        }
        let next = || next(&now, &later, &stopped).map(|wanted| wanted.why);
        assert_eq!([next(), next()], [Some(Why::Unanswered), Some(Why::Start)]);
        drop(paths);
        assert_eq!(next(), None);
    }
}
