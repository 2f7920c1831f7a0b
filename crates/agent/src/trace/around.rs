//! `tailtrim-agent trace --last TIME`: a trace in memory; lines of standard input name the parts that are written.

use super::{Trace, exit_of, unwritable};
use crate::analyze::gone;
use crate::events;
use crate::exit::Exit;
use crate::output::failed;
use crate::stop;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;
use tailtrim_tracer::trace::{self as recording, Ring, TraceError};

/// Interval at which clocks are read.
const LOOK: Duration = Duration::from_millis(100);

/// A packet around which the trace is wanted. Packets of an earlier request are not wanted any more.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Wanted {
    /// The packet's ingress stamp, which names the file.
    ingress_ns: i64,
    from_ns: i64,
    until_ns: i64,
}

/// Result of writing one file.
#[derive(Debug, Clone, Copy, Serialize)]
struct Written {
    ingress_ns: i64,
    events: usize,
    /// Error bound of an event's time against a packet stamp, either way.
    error_ns: i64,
    /// Whether all of the time was recorded and still there.
    complete: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    folder: &'a Path,
    around: Vec<Written>,
    refused: &'a [String],
    leftovers_removed: &'a [String],
}

/// Wanted packets, with the files that were written for them.
struct WantedPackets {
    folder: PathBuf,
    packets: BTreeMap<i64, (Wanted, Option<Written>)>,
}

impl WantedPackets {
    /// Takes the next line of standard input: all packets that are wanted from now on.
    fn take(&mut self, line: &str) -> Result<(), String> {
        let wanted: Vec<Wanted> = serde_json::from_str(line).map_err(|error| {
            format!(
                "standard input: {error}; expected a list of {{\"ingress_ns\": …, \"from_ns\": …, \"until_ns\": …}} in a line"
            )
        })?;
        let mut before = std::mem::take(&mut self.packets);
        for one in wanted {
            let known = before.remove(&one.ingress_ns);
            self.packets.insert(one.ingress_ns, known.unwrap_or((one, None)));
        }
        for (ingress_ns, _) in before.into_iter().filter(|(_, (_, written))| written.is_some()) {
            let path = self.path(ingress_ns);
            gone(fs::remove_file(&path))
                .map_err(|error| format!("{}: cannot be removed: {error}", path.display()))?;
        }
        Ok(())
    }

    /// Writes files that are not written yet and whose times lie before `until_ns`.
    fn write(&mut self, ring: &mut Ring, until_ns: i64) -> Result<(), (String, Exit)> {
        let ripe = |one: &Wanted| one.until_ns < until_ns;
        let next: Vec<Wanted> = self
            .packets
            .values()
            .filter_map(|(one, written)| written.is_none().then_some(*one))
            .filter(ripe)
            .collect();
        for Wanted { ingress_ns, from_ns, until_ns } in next {
            let around = ring
                .around(from_ns, until_ns)
                .map_err(|error| (error.to_string(), Exit::Disturbed))?;
            let path = self.path(ingress_ns);
            recording::write(&path, &around.header, &around.events)
                .map_err(|error| (unwritable(&path, &error), Exit::Disturbed))?;
            if let Some((_, written)) = self.packets.get_mut(&ingress_ns) {
                *written = Some(Written {
                    ingress_ns,
                    events: around.events.len(),
                    error_ns: around.header.error_ns,
                    complete: around.complete,
                });
            }
        }
        Ok(())
    }

    fn path(&self, ingress_ns: i64) -> PathBuf {
        self.folder.join(format!("{ingress_ns}-events.jsonl.zst"))
    }
}

/// Runs the verb and prints its events.
pub(super) fn run(request: &Trace, wanted: &recording::Request, last_ns: i64) -> Exit {
    let (stopped, lines) = match request.ending.watch_lines() {
        Ok(watched) => watched,
        Err(error) => return failed(&error.to_string(), Exit::Impossible),
    };
    let away = recording::stay_off(&request.cpus);
    let prepared = |error: &TraceError| failed(&error.to_string(), exit_of(error));
    let mut ring = match Ring::prepare(wanted, last_ns) {
        Ok(ring) => ring,
        Err(error) => return prepared(&error),
    };
    if let Err(error) = fs::create_dir_all(&request.out) {
        return failed(&unwritable(&request.out, &error), Exit::Usage);
    }
    if let Err(error) = ring.arm() {
        return prepared(&error);
    }
    if let Some(ns) = request.stop_after {
        stop::after(Duration::from_nanos(ns.cast_unsigned()), Arc::clone(&stopped));
    }
    events::ready();
    let mut asked = WantedPackets { folder: request.out.clone(), packets: BTreeMap::new() };
    loop {
        let stops = stopped.load(Ordering::Acquire);
        if let Err((text, exit)) = step(&mut ring, &lines, &mut asked, stops) {
            return failed(&text, exit);
        }
        if stops {
            break;
        }
        thread::sleep(LOOK);
    }
    let counts = ring.counts();
    let mut refused = counts.refused.clone();
    refused.extend(away.err().map(|error| error.to_string()));
    let report = Report {
        folder: &request.out,
        around: asked.packets.values().filter_map(|(_, written)| *written).collect(),
        refused: &refused,
        leftovers_removed: &counts.leftovers_removed,
    };
    events::result("tailtrim.trace-around/1", &report)
}

fn step(
    ring: &mut Ring,
    lines: &Receiver<String>,
    asked: &mut WantedPackets,
    stops: bool,
) -> Result<(), (String, Exit)> {
    ring.look().map_err(|error| (error.to_string(), Exit::Disturbed))?;
    for line in lines.try_iter() {
        asked.take(&line).map_err(|text| (text, Exit::Usage))?;
    }
    asked.write(ring, if stops { i64::MAX } else { ring.until_ns() })
}
