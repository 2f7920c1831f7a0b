//! `tailtrim-agent ping`.

mod dscp;
mod request;
mod table;

pub(crate) use request::Ping;

use crate::events;
use crate::exit::Exit;
use crate::output::{self, failed};
use request::Rejected;
use serde::Serialize;
use std::fs;
use std::io::{self, IsTerminal, Write};
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

/// The same with its name, where it is a document of its own.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    report: &'a PingReport<'a>,
}

/// Runs the verb and prints its result.
pub(crate) fn run(request: &Ping) -> Exit {
    let plan = match request.plan() {
        Ok(plan) => plan,
        Err(Rejected::Request(message)) => return failed(&message, Exit::Usage),
        Err(Rejected::Host(message)) => return failed(&message, Exit::Impossible),
    };
    if let Some(folder) = &plan.log
        && let Err(error) = fs::create_dir_all(folder)
    {
        return failed(&format!("{}: {error}", folder.display()), Exit::Usage);
    }
    let stamps = request.nic().map(NicStamps::enable).transpose();
    let _stamps = match stamps {
        Ok(stamps) => stamps,
        Err(error) => return failed(&error, Exit::Impossible),
    };
    let stopped = match request.ending.watch() {
        Ok(stopped) => stopped,
        Err(error) => return failed(&error.to_string(), Exit::Impossible),
    };
    let folder = plan.log.clone();
    let live = live_line(request);
    let place = || Placement::take(request.cpu, request.fifo);
    let started = || {
        if request.events {
            events::ready();
        }
    };
    let result = ping(plan, &stopped, live, place, started);
    match result {
        Ok((_, Err(error))) => failed(&error.to_string(), Exit::Usage),
        Ok((pinged, Ok(placement))) => show(request, &pinged, &placement, folder.as_deref()),
        Err(PingError::Socket(error @ SocketError::Open { .. })) => {
            failed(&error.to_string(), Exit::Impossible)
        }
        Err(error) => failed(&error.to_string(), Exit::Disturbed),
    }
}

fn show(request: &Ping, pinged: &Pinged, placement: &Placement, folder: Option<&Path>) -> Exit {
    let report = PingReport {
        schedule: request.schedule.to_string(),
        rate: request.rate_text(),
        seed: request.seed,
        pinged,
        placement,
    };
    let document = Document { schema: SCHEMA, report: &report };
    if let Some(folder) = folder
        && let Err(error) = keep(folder, &document)
    {
        return failed(&format!("{}: {error}", folder.display()), Exit::Disturbed);
    }
    let exit = if request.events {
        events::result(SCHEMA, &report)
    } else if request.json {
        output::write(to_json(&document), Exit::Success)
    } else {
        output::write(table::text(pinged, placement), Exit::Success)
    };
    let none = pinged.streams.iter().all(|stream| stream.counts.probes.answered == 0);
    if exit == Exit::Success && none { Exit::Negative } else { exit }
}

fn to_json(document: &Document<'_>) -> String {
    // Maps with text as keys and numbers: nothing in it can fail.
    serde_json::to_string_pretty(document)
        .map_or_else(|error| error.to_string(), |text| text + "\n")
}

fn keep(folder: &Path, document: &Document<'_>) -> io::Result<()> {
    fs::write(folder.join("ping.json"), to_json(document))
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
