//! Files of the user: the intent of a host, and accepted findings.

use super::Failure;
use serde::Deserialize;
use std::path::Path;
use tailtrim_audit::{Waiver, Wish, find};

const DEFAULT: &str = "tailtrim.json";
/// The file that earlier versions read.
const FORMER: &str = "tailtrim.toml";

#[derive(Deserialize)]
struct Config {
    host: Option<Host>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    isolate: Option<String>,
    housekeeping: Option<String>,
    nics: Option<Vec<String>>,
    workload: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    reason: String,
    until: String,
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    serde_json::from_str(&text).map_err(|error| {
        let path = path.display();
        Failure::usage(format!("{path}: {error}, expected JSON as tailtrim audit --help shows it"))
    })
}

/// The wish of the command line, completed from a file. Return also which file that was.
pub(super) fn complete(wish: Wish, path: Option<&Path>) -> Result<(Wish, Option<String>), Failure> {
    let default = Path::new(DEFAULT);
    let path = match path {
        Some(path) => path,
        None if default.exists() => default,
        None if Path::new(FORMER).exists() => {
            return Err(Failure::usage(format!(
                "{FORMER}: no longer read, expected {DEFAULT}, such as {{\"host\": {{\"isolate\": \"2-7\"}}}}"
            )));
        }
        None => return Ok((wish, None)),
    };
    let config: Config = read(path)?;
    let Some(host) = config.host else { return Ok((wish, None)) };
    let wrong = |key: &str, error: String| {
        Failure::usage(format!("{}: host.{key}: {error}", path.display()))
    };
    let cpus = |key: &str, text: Option<String>| {
        let parsed = text.map(|text| text.parse::<tailtrim_host::Cpus>());
        parsed.transpose().map_err(|error| wrong(key, error.to_string()))
    };
    let said = Wish {
        isolate: cpus("isolate", host.isolate)?,
        housekeeping: cpus("housekeeping", host.housekeeping)?,
        nics: host.nics,
        workload: host
            .workload
            .map(|text| text.parse())
            .transpose()
            .map_err(|error| wrong("workload", error))?,
    };
    Ok((wish.or(said), Some(path.display().to_string())))
}

/// An accepted finding.
pub(super) fn waivers(path: &Path) -> Result<Vec<Waiver>, Failure> {
    let entries: Vec<Entry> = read(path)?;
    let mut all = Vec::new();
    for entry in entries {
        let wrong = |problem: &str| {
            Failure::usage(format!("{}: waiver of {}: {problem}", path.display(), entry.id))
        };
        let check = find(&entry.id).ok_or_else(|| wrong("no such check; --list shows all"))?;
        if entry.reason.trim().is_empty() {
            return Err(wrong("reason is missing, expected why the finding is accepted"));
        }
        if !is_date(&entry.until) {
            return Err(wrong("invalid date in until, expected one such as 2027-03-31"));
        }
        all.push(Waiver { id: check.id.to_owned(), reason: entry.reason, until: entry.until });
    }
    Ok(all)
}

/// Whether a text is a date as `2027-03-31`. Days are compared as texts, which takes exactly this form.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let number = |part: &str, digits: usize, most: u32| {
        part.len() == digits
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse().is_ok_and(|number| (1..=most).contains(&number))
    };
    number(year, 4, 9_999) && number(month, 2, 12) && number(day, 2, 31)
}
