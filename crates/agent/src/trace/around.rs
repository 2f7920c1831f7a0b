//! `tailtrim-agent trace --last TIME`: a trace in memory; lines of standard input name the parts that are written.

use super::{LOOK, Trace};
use crate::analyze::gone;
use crate::events;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::stop;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread;
use tailtrim_tracer::trace::{self as recording, RING_BYTES, Ring};

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
    fn take(&mut self, line: &str) -> Result<(), Failure> {
        let wanted: Vec<Wanted> = serde_json::from_str(line).map_err(|error| {
            Failure::usage(format!(
                "standard input: {error}; expected a list of {{\"ingress_ns\": …, \"from_ns\": …, \"until_ns\": …}} in a line"
            ))
        })?;
        let mut before = std::mem::take(&mut self.packets);
        for one in wanted {
            let known = before.remove(&one.ingress_ns);
            self.packets.insert(one.ingress_ns, known.unwrap_or((one, None)));
        }
        for (ingress_ns, _) in before.into_iter().filter(|(_, (_, written))| written.is_some()) {
            let path = self.path(ingress_ns);
            gone(fs::remove_file(&path)).map_err(|error| {
                Failure::usage(format!("{}: cannot be removed: {error}", path.display()))
            })?;
        }
        Ok(())
    }

    /// Writes files that are not written yet and whose times lie before `until_ns`.
    fn write(&mut self, ring: &mut Ring, until_ns: i64) -> Result<(), Failure> {
        let ripe = |one: &Wanted| one.until_ns < until_ns;
        let next: Vec<Wanted> = self
            .packets
            .values()
            .filter_map(|(one, written)| written.is_none().then_some(*one))
            .filter(ripe)
            .collect();
        for Wanted { ingress_ns, from_ns, until_ns } in next {
            let around = ring.around(from_ns, until_ns).or_fail(Exit::Disturbed)?;
            let path = self.path(ingress_ns);
            recording::write(&path, &around.header, &around.events)
                .or_unwritable(&path, Exit::Disturbed)?;
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
pub(super) fn run(
    request: &Trace,
    folder: &Path,
    wanted: &recording::Request,
    last_ns: i64,
) -> Outcome {
    let (stopped, lines) = request.ending.watch_lines()?;
    let away = recording::stay_off(&request.cpus);
    let mut ring = Ring::prepare(wanted, last_ns, RING_BYTES)?;
    fs::create_dir_all(folder).or_unwritable(folder, Exit::Usage)?;
    ring.arm()?;
    stop::after(request.duration, &stopped);
    events::ready();
    let mut asked = WantedPackets { folder: folder.to_owned(), packets: BTreeMap::new() };
    loop {
        let stops = stopped.load(Ordering::Acquire);
        step(&mut ring, &lines, &mut asked, stops)?;
        if stops {
            break;
        }
        thread::sleep(LOOK);
    }
    let counts = ring.counts();
    let mut refused = counts.refused.clone();
    refused.extend(away.err().map(|error| error.to_string()));
    let report = Report {
        folder,
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
) -> Result<(), Failure> {
    ring.look().or_fail(Exit::Disturbed)?;
    for line in lines.try_iter() {
        asked.take(&line)?;
    }
    asked.write(ring, if stops { i64::MAX } else { ring.until_ns() })
}
