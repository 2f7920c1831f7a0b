//! Late probes of a target that were caught in the act: when, and what took long.

use crate::raw::CATCHES;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs;
use std::io;
use std::path::Path;
use tailtrim_sys::clock;

/// So many are told, the newest first.
const TOLD: usize = 20;

/// A catch.
#[derive(Debug, Serialize)]
pub(super) struct Catch {
    /// Name of its folder: when the probe left, as `2026-11-29T08-01-07.123` (UTC).
    name: String,
    /// The slowest late probe around it, with its parts and causes.
    packet: Option<Map<String, Value>>,
    /// Why it is not explained.
    problem: Option<String>,
}

/// `worst.json`, as far as it is told.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Worst {
    packets: Vec<Map<String, Value>>,
    problem: Option<String>,
}

/// The newest catches from the day of `begin_s` on.
pub(super) fn newest(folder: &Path, begin_s: i64) -> io::Result<Vec<Catch>> {
    let folder = folder.join(CATCHES);
    let first_day = clock::date(begin_s.saturating_mul(1_000_000_000));
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        // Others are being written.
        let name = entry?.file_name().into_string().ok();
        names.extend(name.filter(|name| !name.starts_with('.') && *name >= first_day));
    }
    names.sort_unstable_by(|a, b| b.cmp(a));
    names.truncate(TOLD);
    Ok(names.into_iter().filter_map(|name| read(&folder, name)).collect())
}

/// `None`: it was removed meanwhile.
fn read(folder: &Path, name: String) -> Option<Catch> {
    let text = match fs::read(folder.join(&name).join("worst.json")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        text => text.map_err(|error| error.to_string()),
    };
    let worst = text.and_then(|text| {
        serde_json::from_slice(&text).map_err(|error| format!("worst.json: {error}"))
    });
    let worst =
        worst.unwrap_or_else(|problem| Worst { problem: Some(problem), ..Worst::default() });
    Some(Catch { name, packet: worst.packets.into_iter().next(), problem: worst.problem })
}
