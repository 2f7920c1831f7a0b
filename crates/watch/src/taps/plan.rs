//! An entry of `taps` in the file of targets.

use super::Ports;
use crate::entry::check_name;
use crate::objective::{Objective, ObjectiveError};
use crate::subject::{SCHEMA, Subject};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;
use tailtrim_ports::port::{PortError, PortName, Receiving, open};
use tailtrim_tail::analysis::Options;
use tailtrim_tail::matching::Window;
use tailtrim_tail::signature::{Rewrites, Selection};
use tailtrim_wire::duration::time_ns;
use tailtrim_wire::filter::Filter;

/// Memory of the kernel for each tap in MB, where the file does not say: 2 s of 100,000 packets a second.
const BUFFER_MB: u32 = 32;

/// Bytes that are kept of each frame, where the file does not say: as `capture` does.
const SNAP: u32 = 96;

/// An entry as it is written.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TapEntry {
    name: String,
    ingress: String,
    egress: String,
    filter: Option<String>,
    #[serde(default)]
    mask: Vec<String>,
    signature: Option<String>,
    window: Option<String>,
    snap: Option<u32>,
    buffer: Option<u32>,
    #[serde(default)]
    objectives: Vec<String>,
}

/// A device that is tapped.
#[derive(Debug, Clone)]
pub struct TapPlan {
    /// Name, also of its folder.
    pub name: String,
    /// Ports in front of the device and behind it.
    pub ports: [PortName; 2],
    /// Frames that are measured, where not all are.
    pub filter: Option<Filter>,
    /// Rules of matching.
    pub(super) options: Options,
    pub(super) snap: u32,
    memory_bytes: usize,
    /// Limits on its bad packets.
    pub objectives: Vec<Objective>,
    entry: TapEntry,
}

impl PartialEq for TapPlan {
    /// Whether both were read from the same text.
    fn eq(&self, other: &Self) -> bool {
        self.entry == other.entry
    }
}

/// Description of a device, for those who read its minutes.
#[derive(Serialize)]
struct Described<'a> {
    schema: &'a str,
    name: &'a str,
    kind: &'a str,
    ingress: String,
    egress: String,
    filter: Option<String>,
    mask: &'a [String],
    signature: Option<&'a String>,
    window_ns: i64,
    objectives: Vec<String>,
}

type Wrong = (&'static str, String);

impl TapPlan {
    /// The plans of all entries, whose names become known. An error has its place.
    pub(crate) fn all(
        entries: &[TapEntry],
        names: &mut BTreeSet<String>,
    ) -> Result<Vec<Self>, (String, String)> {
        let mut plans = Vec::new();
        for (number, entry) in (1..).zip(entries) {
            let wrong = |(key, text): Wrong| (format!("tap {number}, {key}"), text);
            plans.push(Self::of(entry.clone()).map_err(wrong)?);
            if !names.insert(entry.name.clone()) {
                let text = format!("{}: an earlier target or tap has the same name", entry.name);
                return Err(wrong(("name", text)));
            }
        }
        Ok(plans)
    }

    fn of(entry: TapEntry) -> Result<Self, Wrong> {
        check_name(&entry.name).map_err(|text| ("name", text))?;
        let ports: [PortName; 2] =
            [parsed("ingress", &entry.ingress)?, parsed("egress", &entry.egress)?];
        if ports[0] == ports[1] {
            let text = format!("{}: expected another port than ingress", entry.egress);
            return Err(("egress", text));
        }
        let masked = |name: &str| entry.mask.iter().any(|mask| mask == name);
        let known = ["nat", "tos", "tunnel"];
        if let Some(other) = entry.mask.iter().find(|mask| !known.contains(&mask.as_str())) {
            return Err(("mask", format!("{other:?}: expected a list of {}", known.join(", "))));
        }
        let selection: Option<Selection> =
            entry.signature.as_ref().map(|text| parsed("signature", text)).transpose()?;
        if selection.is_some() && !entry.mask.is_empty() {
            return Err(("signature", "mask chooses bytes, too: expected one of both".to_owned()));
        }
        let window = entry.window.as_deref().unwrap_or("5s");
        let window_ns = time_ns(window).filter(|ns| (1_000_000..=60_000_000_000).contains(ns));
        let window_ns = window_ns.ok_or_else(|| {
            ("window", format!("{window:?}: expected a time from 1ms to 60s, such as 5s"))
        })?;
        let snap = within("snap", entry.snap, SNAP, 14..=9_018)?;
        let buffer = within("buffer", entry.buffer, BUFFER_MB, 1..=4_096)?;
        let objectives = entry.objectives.iter().map(|text| text.parse());
        Ok(Self {
            name: entry.name.clone(),
            ports,
            filter: entry.filter.as_ref().map(|text| parsed("filter", text)).transpose()?,
            options: Options {
                window: Window { window_ns: window_ns.cast_signed(), ..Window::default() },
                trim_ns: 0,
                rewrites: Rewrites {
                    nat: masked("nat"),
                    tos: masked("tos"),
                    tunnel: masked("tunnel"),
                },
                selection,
                endless: true,
                ..Options::default()
            },
            snap,
            memory_bytes: (buffer as usize) << 20,
            objectives: objectives
                .collect::<Result<_, ObjectiveError>>()
                .map_err(|error| ("objectives", error.to_string()))?,
            entry,
        })
    }

    /// Opens both ports.
    pub(super) fn open(&self) -> Result<Ports, PortError> {
        let receiving = Receiving {
            snap: self.snap as usize,
            memory_bytes: self.memory_bytes,
            promptly: false,
            hardware: false,
        };
        let [ingress, egress] = &self.ports;
        Ok([open(ingress, Some(receiving))?, open(egress, Some(receiving))?])
    }

    pub(super) fn window_ns(&self) -> i64 {
        self.options.window.window_ns
    }

    pub(crate) fn subject(&self) -> Subject {
        let (name, objectives) = (self.name.clone(), self.objectives.clone());
        Subject { name, objectives, timeout_ns: self.window_ns() }
    }

    pub(crate) fn described(&self) -> serde_json::Result<Vec<u8>> {
        let [ingress, egress] = self.ports.each_ref().map(ToString::to_string);
        serde_json::to_vec_pretty(&Described {
            schema: SCHEMA,
            name: &self.name,
            kind: "tap",
            ingress,
            egress,
            filter: self.filter.as_ref().map(ToString::to_string),
            mask: &self.entry.mask,
            signature: self.entry.signature.as_ref(),
            window_ns: self.window_ns(),
            objectives: self.objectives.iter().map(ToString::to_string).collect(),
        })
    }
}

fn parsed<T: FromStr<Err: Display>>(key: &'static str, text: &str) -> Result<T, Wrong> {
    text.parse().map_err(|error: T::Err| (key, error.to_string()))
}

fn within(
    key: &'static str,
    given: Option<u32>,
    usual: u32,
    range: std::ops::RangeInclusive<u32>,
) -> Result<u32, Wrong> {
    let (least, most) = (*range.start(), *range.end());
    let number = given.unwrap_or(usual);
    let fits = range.contains(&number).then_some(number);
    fits.ok_or_else(|| (key, format!("{number}: expected {least} to {most}")))
}
