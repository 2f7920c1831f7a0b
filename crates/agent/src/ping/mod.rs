//! `tailtrim-agent ping`.

mod request;
mod table;

pub(crate) use request::Ping;

use crate::events;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::output::{self, Document};
use crate::stop::watch_signals;
use serde::Serialize;
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use tailtrim_probes::ping::{Live, PingError, Pinged, ping};
use tailtrim_probes::socket::{NicStamps, SocketError};
use tailtrim_sys::placement::Placement;

/// Name and version of the result.
const SCHEMA: &str = "tailtrim.ping/1";

#[derive(Serialize)]
struct PingReport<'a> {
    schedule: String,
    rate: String,
    seed: u64,
    #[serde(flatten)]
    pinged: &'a Pinged,
    placement: &'a Placement,
}

/// Runs the verb and prints its result.
pub(crate) fn run(request: &Ping) -> Outcome {
    let plan = request.plan()?;
    let folder = plan.log.clone();
    if let Some(folder) = &folder {
        let told = |error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(told).or_fail(Exit::Usage)?;
    }
    let stopped = watch_signals()?;
    // Before other threads.
    let _stamps = request.nic().map(NicStamps::enable).transpose().or_fail(Exit::Impossible)?;
    request.ending.watch_parent(&stopped);
    let live = live_line(request);
    let started = || {
        if request.events {
            events::ready();
        }
    };
    let pinged = ping(plan, &stopped, live, || request.placing.take(), started);
    let (pinged, placement) = pinged.map_err(|error| {
        let opens = matches!(error, PingError::Socket(SocketError::Open { .. }));
        Failure::new(error, if opens { Exit::Impossible } else { Exit::Disturbed })
    })?;
    show(request, &pinged, &placement.or_fail(Exit::Usage)?, folder.as_deref())
}

fn show(request: &Ping, pinged: &Pinged, placement: &Placement, folder: Option<&Path>) -> Outcome {
    let report = PingReport {
        schedule: request.schedule.to_string(),
        rate: request.rate_text(),
        seed: request.seed,
        pinged,
        placement,
    };
    let document = Document { schema: SCHEMA, content: &report };
    if let Some(folder) = folder {
        let told = |error| format!("{}: {error}", folder.display());
        let text = serde_json::to_string_pretty(&document).or_fail(Exit::Disturbed)?;
        fs::write(folder.join("ping.json"), text + "\n").map_err(told).or_fail(Exit::Disturbed)?;
    }
    let none = pinged.streams.iter().all(|stream| stream.counts.probes.answered == 0);
    let exit = if none { Exit::Negative } else { Exit::Success };
    if request.events {
        events::result(SCHEMA, &report).map(|_| exit)
    } else if request.json {
        output::json(&document, exit)
    } else {
        output::lines(&table::text(pinged, placement), exit)
    }
}

/// A line on standard error that is rewritten each second, on a terminal.
fn live_line(request: &Ping) -> Option<Sender<Live>> {
    if request.quiet || request.events || !io::stderr().is_terminal() {
        return None;
    }
    let (sender, receiver): (Sender<Live>, Receiver<Live>) = channel();
    thread::spawn(move || {
        for live in receiver {
            let line = table::live(live);
            let _ = write!(io::stderr(), "\r{line}\x1b[K");
        }
        let _ = write!(io::stderr(), "\r\x1b[K");
    });
    Some(sender)
}
