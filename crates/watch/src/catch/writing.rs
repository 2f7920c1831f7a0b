//! A catch on disk: a folder in that of its target.

use super::cause::{Host, explained, part_of};
use super::collector::Catch;
use super::parts::{Part, Parts, Share};
use super::seen::Record;
use crate::raw;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tailtrim_sys::clock;
use tailtrim_tracer::trace::{self, Around};

/// Name and version of `catch.json`.
const SCHEMA: &str = "tailtrim.catch/1";
/// Of `worst.json`, as of a run by minute.
const WORST: &str = "tailtrim.worst-packets/1";

/// So many late probes are explained.
const EXPLAINED: usize = 10;

/// Folders that are being written begin so.
pub(super) const DRAFT: &str = ".draft-";

#[derive(Serialize)]
struct Described<'a> {
    schema: &'a str,
    target: &'a str,
    address: Option<SocketAddr>,
    at_ns: i64,
    outcome: &'a str,
    from_ns: i64,
    until_ns: i64,
    /// Whether all probes of this time were decided when it was written.
    complete: bool,
    /// Probes beyond a limit, by target.
    bad: BTreeMap<&'a str, u64>,
    trace: Traced<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Traced<'a> {
    /// The trace of this time.
    Kept { events: usize, complete: bool, error_ns: i64 },
    /// Reason why the trace is missing.
    Missing(&'a str),
}

/// A line of `stamps.jsonl.zst`.
#[derive(Serialize)]
struct Line<'a> {
    target: &'a str,
    outcome: &'a str,
    app_send_ns: i64,
    queued_ns: Option<i64>,
    sent_ns: Option<i64>,
    far_received_ns: Option<i64>,
    far_sent_ns: Option<i64>,
    received_ns: Option<i64>,
    app_receive_ns: Option<i64>,
    far_hops: Option<u8>,
    reply_hops: Option<u8>,
}

#[derive(Serialize)]
struct Worst<'a> {
    schema: &'a str,
    run: &'a str,
    packets: Vec<Packet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// A late probe that was answered.
#[derive(Serialize)]
struct Packet {
    ingress_ns: i64,
    /// From this application to itself.
    latency_ns: i64,
    complete: bool,
    parts: Vec<Share>,
    #[serde(skip_serializing_if = "Option::is_none")]
    one_way: Option<OneWay>,
    /// The part that the trace was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    host_part: Option<Part>,
    host: Option<Host>,
}

/// Times of both ways, by clocks that are known to agree.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct OneWay {
    there_ns: i64,
    back_ns: i64,
    clock_bound_ns: u64,
}

/// Writes a catch below the folder of a watch. Returns its folder.
///
/// # Errors
/// The file, and the system's error; nothing is left then.
pub(super) fn write(
    folder: &Path,
    catch: &Catch,
    trace: &Result<Around, String>,
    sender: u32,
) -> Result<PathBuf, (PathBuf, io::Error)> {
    let name = name(catch.late.app_send_ns);
    let catches = folder.join(&catch.plan.name).join(raw::CATCHES);
    let draft = catches.join(format!("{DRAFT}{name}"));
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| (path, error)
    };
    let written = || {
        fs::create_dir_all(&draft).map_err(at(&draft))?;
        if let Ok(around) = trace {
            let path = draft.join("events.jsonl.zst");
            trace::write(&path, &around.header, &around.events).map_err(at(&path))?;
        }
        let path = draft.join("stamps.jsonl.zst");
        stamps(&path, catch).map_err(at(&path))?;
        for (file, bytes) in [
            ("worst.json", json(&worst(catch, trace.as_ref().ok(), sender, &name))),
            ("catch.json", json(&described(catch, trace))),
        ] {
            let path = draft.join(file);
            synced(&path, &bytes).map_err(at(&path))?;
        }
        let whole = catches.join(&name);
        fs::rename(&draft, &whole)
            .and_then(|()| File::open(&whole)?.sync_all())
            .and_then(|()| File::open(&catches)?.sync_all())
            .map_err(at(&whole))?;
        Ok(whole)
    };
    written().inspect_err(|_| drop(fs::remove_dir_all(&draft)))
}

/// Removes what a crash left of those that were being written.
pub(super) fn remove_drafts(folder: &Path) {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    for target in entries(folder) {
        for catch in entries(&target.path().join(raw::CATCHES)) {
            if catch.file_name().to_string_lossy().starts_with(DRAFT) {
                // One that cannot be removed is tried again at the next start.
                let _ = fs::remove_dir_all(catch.path());
            }
        }
    }
}

/// A time in UTC as the name of a folder, such as `2026-11-29T08-01-07.123`.
fn name(ns: i64) -> String {
    let ms = ns.div_euclid(1_000_000);
    let (seconds, ms) = (ms.div_euclid(1_000).rem_euclid(86_400), ms.rem_euclid(1_000));
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{}T{hour:02}-{minute:02}-{second:02}.{ms:03}", clock::date(ns))
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Numbers and texts always have a form in JSON.
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

fn synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn target<'a>(catch: &'a Catch, record: &Record) -> &'a str {
    catch.targets.get(&record.place).map_or("", |plan| &plan.name)
}

fn described<'a>(catch: &'a Catch, trace: &'a Result<Around, String>) -> Described<'a> {
    let mut bad: BTreeMap<&str, u64> = BTreeMap::new();
    for record in catch.records.iter().filter(|record| record.bad) {
        *bad.entry(target(catch, record)).or_default() += 1;
    }
    Described {
        schema: SCHEMA,
        target: &catch.plan.name,
        address: catch.address,
        at_ns: catch.late.app_send_ns,
        outcome: catch.late.outcome,
        from_ns: catch.from_ns,
        until_ns: catch.until_ns,
        complete: !catch.cut,
        bad,
        trace: match trace {
            Ok(Around { header, events, complete }) => Traced::Kept {
                events: events.len(),
                complete: *complete,
                error_ns: header.error_ns,
            },
            Err(why) => Traced::Missing(why),
        },
    }
}

fn stamps(path: &Path, catch: &Catch) -> io::Result<()> {
    let mut file = zstd::Encoder::new(File::create(path)?, 3)?;
    for record in &catch.records {
        let stamps = record.stamps();
        let line = Line {
            target: target(catch, record),
            outcome: record.outcome,
            app_send_ns: stamps.app_send_ns,
            queued_ns: stamps.queued_ns,
            sent_ns: stamps.sent_ns,
            far_received_ns: stamps.far_received_ns,
            far_sent_ns: stamps.far_sent_ns,
            received_ns: stamps.received_ns,
            app_receive_ns: stamps.app_receive_ns,
            far_hops: record.far_hops,
            reply_hops: record.reply_hops,
        };
        serde_json::to_writer(&mut file, &line)?;
        file.write_all(b"\n")?;
    }
    file.finish()?.sync_all()
}

fn worst<'a>(catch: &Catch, around: Option<&Around>, sender: u32, name: &'a str) -> Worst<'a> {
    let of_target = |record: &&Record| record.place == catch.late.place && record.bad;
    let mut late: Vec<(i64, &Record)> = catch
        .records
        .iter()
        .filter(of_target)
        .filter_map(|record| Some((record.whole_ns()?, record)))
        .collect();
    late.sort_by_key(|(whole_ns, record)| (std::cmp::Reverse(*whole_ns), record.app_send_ns));
    let packets: Vec<Packet> = late
        .into_iter()
        .take(EXPLAINED)
        .filter_map(|(_, record)| packet(catch, record, around, sender))
        .collect();
    let problem = packets.is_empty().then(|| {
        let all = catch.records.iter().filter(|record| record.place == catch.late.place);
        let answered = all.clone().filter(|record| record.whole_ns().is_some()).count();
        format!(
            "no late reply came (the probe counts as {}; {answered} of the target's {} probes around it were answered)",
            catch.late.outcome,
            all.count()
        )
    });
    Worst { schema: WORST, run: name, packets, problem }
}

fn packet(catch: &Catch, record: &Record, around: Option<&Around>, sender: u32) -> Option<Packet> {
    let shares = catch.usual.shares(&Parts::of(&record.stamps())?);
    let usual_ns = shares.iter().find(|share| share.name == Part::Network)?.usual_ns;
    let asked = part_of(&shares);
    let host = around.zip(asked).and_then(|(around, part)| {
        explained(part, record, &catch.records, usual_ns, around, sender)
    });
    Some(Packet {
        ingress_ns: record.app_send_ns,
        latency_ns: record.whole_ns()?,
        complete: !catch.cut && around.is_none_or(|around| around.complete),
        one_way: one_way(record),
        host_part: asked.filter(|_| host.is_some()),
        parts: shares,
        host,
    })
}

/// Times of both ways, if both hosts told how far their clocks may be apart, and no way took less time than that allows.
fn one_way(record: &Record) -> Option<OneWay> {
    let stamps = record.stamps();
    let clock_bound_ns = record.clock_bound_ns?;
    let there_ns = stamps.far_received_ns? - stamps.sent_ns?;
    let back_ns = stamps.received_ns? - stamps.far_sent_ns?;
    let least_ns = i64::try_from(clock_bound_ns).map_or(i64::MIN, |bound_ns| -bound_ns);
    let possible = there_ns.min(back_ns) >= least_ns;
    possible.then_some(OneWay { there_ns, back_ns, clock_bound_ns })
}

#[cfg(test)]
#[path = "writing_tests.rs"]
mod tests;
