//! The file of targets.

use crate::catch::CatchPlan;
use crate::change::Asked;
use crate::entry::{Entry, check_name, level, protocol, source_ports};
use crate::keeping::Keep;
use crate::objective::{Objective, ObjectiveError};
use crate::taps::{TapEntry, TapPlan};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tailtrim_roundtrip::{Protocol, StampLevel};
use tailtrim_wire::dscp;
use tailtrim_wire::duration::time_ns;
use tailtrim_wire::traffic::{Fraction, Rate};

/// Bytes of a file of targets at most: 100,000 of them.
const MOST_BYTES: u64 = 32 << 20;

/// Probes a second of all targets at most: what one CPU sends and receives with some left.
const MOST_PPS: f64 = 100_000.0;

/// Targets, and how long their minutes are kept.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The targets, in the order of the file.
    pub targets: Vec<TargetPlan>,
    /// The devices that are tapped.
    pub taps: Vec<TapPlan>,
    /// Limits of the minutes on disk.
    pub keep: Keep,
    /// Limits of what is kept around late probes; `None`: nothing is.
    pub catch: Option<CatchPlan>,
    /// Minutes with which others are compared.
    pub compared: Asked,
}

/// A target.
#[derive(Debug, Clone)]
pub struct TargetPlan {
    /// Name, also of its folder.
    pub name: String,
    /// Name or address, with a port or without one.
    pub address: String,
    /// Protocol of the probes.
    pub protocol: Protocol,
    /// Mean time between two probes.
    pub interval_ns: u64,
    /// Replies after this time are late.
    pub timeout_ns: i64,
    /// DSCP and ECN.
    pub traffic_class: Option<u8>,
    /// From which address of this host.
    pub source: Option<IpAddr>,
    /// From which ports in turn; 0: the kernel chooses.
    pub source_ports: Vec<u16>,
    /// Bytes above UDP, or with ICMP above IP, as far as they are asked for; at least those of the protocol.
    pub payload_bytes: usize,
    /// Send and receive by this interface only.
    pub interface: Option<String>,
    /// TTL or hop limit.
    pub ttl: Option<u8>,
    /// Points at which round trips begin and end.
    pub level: StampLevel,
    /// Limits on its bad packets.
    pub objectives: Vec<Objective>,
    /// The entry as it was read, to see whether it has changed.
    entry: Entry,
}

impl PartialEq for TargetPlan {
    /// Whether both were read from the same text.
    fn eq(&self, other: &Self) -> bool {
        self.entry == other.entry
    }
}

/// Why a file of targets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// It cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It is no YAML, or has other keys.
    #[error("{path}: {text}")]
    Form {
        /// The file.
        path: PathBuf,
        /// Place and cause.
        text: String,
    },
    /// A value is wrong.
    #[error("{path}: {place}: {text}")]
    Value {
        /// The file.
        path: PathBuf,
        /// Entry and key.
        place: String,
        /// The cause.
        text: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    defaults: Entry,
    #[serde(default)]
    targets: Vec<Entry>,
    #[serde(default)]
    taps: Vec<TapEntry>,
    #[serde(default)]
    keep: KeepEntry,
    catch: Option<CatchPlan>,
    baseline: Option<String>,
    margin: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeepEntry {
    time: Option<String>,
    size: Option<String>,
}

impl Plan {
    /// Reads a file of targets.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let unread = |source| PlanError::Read { path: path.to_owned(), source };
        let bytes = fs::metadata(path).map_err(unread)?.len();
        if bytes > MOST_BYTES {
            let text = format!("{bytes} bytes, expected at most {MOST_BYTES}");
            return Err(PlanError::Form { path: path.to_owned(), text });
        }
        Self::parse(&fs::read_to_string(path).map_err(unread)?, path)
    }

    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self, PlanError> {
        let file: File = serde_saphyr::from_str(text).map_err(|error| PlanError::Form {
            path: path.to_owned(),
            text: error.without_snippet().to_string(),
        })?;
        let wrong = |place: &str, text: String| PlanError::Value {
            path: path.to_owned(),
            place: place.to_owned(),
            text,
        };
        for (key, given) in [("name", &file.defaults.name), ("address", &file.defaults.address)] {
            if given.is_some() {
                return Err(wrong("defaults", format!("{key} is of one target, not of all")));
            }
        }
        if file.targets.is_empty() && file.taps.is_empty() {
            let text = "expected at least one target with an address, or one of taps";
            return Err(wrong("targets", text.into()));
        }
        let mut names = BTreeSet::new();
        let mut targets = Vec::new();
        for (number, entry) in (1..).zip(&file.targets) {
            let place = format!("target {number}");
            let told = |(key, text): (&str, String)| wrong(&format!("{place}, {key}"), text);
            let target = TargetPlan::of(entry.over(&file.defaults)).map_err(told)?;
            if !names.insert(target.name.clone()) {
                let text = format!("{}: an earlier target has the same name", target.name);
                return Err(wrong(&format!("{place}, name"), text));
            }
            targets.push(target);
        }
        let taps =
            TapPlan::all(&file.taps, &mut names).map_err(|(place, text)| wrong(&place, text))?;
        let pps: f64 = targets.iter().map(|target| 1e9 / target.interval_ns as f64).sum();
        if pps > MOST_PPS {
            let text = format!("{pps:.0} probes a second in all, expected at most {MOST_PPS:.0}");
            return Err(wrong("targets", text));
        }
        let keep = Keep::of(file.keep.time.as_deref(), file.keep.size.as_deref())
            .map_err(|text| wrong("keep", text))?;
        if file.catch.is_some_and(|catch| !(1..=60).contains(&catch.an_hour)) {
            return Err(wrong("catch, an_hour", "expected a number from 1 to 60".into()));
        }
        let compared = Asked::of(file.baseline.as_deref(), file.margin.as_deref())
            .map_err(|(key, text)| wrong(key, text))?;
        Ok(Self { targets, taps, keep, compared, catch: file.catch })
    }
}

impl Plan {
    /// The deadlines of all objectives in seconds, ascending.
    #[must_use]
    pub fn deadlines_s(&self) -> Vec<f64> {
        let of_targets = self.targets.iter().map(|target| &target.objectives);
        let objectives = of_targets.chain(self.taps.iter().map(|tap| &tap.objectives)).flatten();
        let ns: BTreeSet<i64> = objectives.filter_map(Objective::deadline_ns).collect();
        ns.into_iter().map(|ns| ns as f64 / 1e9).collect()
    }
}

impl TargetPlan {
    fn of(entry: Entry) -> Result<Self, (&'static str, String)> {
        let or = |text: &Option<String>, default: &str| text.clone().unwrap_or(default.to_owned());
        let address = entry.address.clone().ok_or(("address", "missing".to_owned()))?;
        let name = entry.name.clone().unwrap_or_else(|| address.clone());
        check_name(&name).map_err(|text| ("name", text))?;
        let protocol = protocol(&entry)?;
        let least = protocol.least_bytes();
        let payload_bytes = match entry.packet_bytes {
            None => least,
            // The header of IPv6, and UDP's.
            Some(bytes) if (least + 48..=65_535).contains(&bytes) => bytes - 48,
            Some(bytes) => {
                let text = format!("{bytes}: expected {} to 65535", least + 48);
                return Err(("packet_bytes", text));
            }
        };
        let rate = or(&entry.rate, "1pps");
        let rate = Rate::from_str(&rate).map_err(|error| ("rate", error.to_string()))?;
        let interval_ns = rate.interval_ns(Fraction::whole(payload_bytes as u64 + 42)).times(1);
        let timeout = or(&entry.timeout, "2s");
        let timeout_ns = time_ns(&timeout).filter(|ns| (1..=60_000_000_000).contains(ns));
        let timeout_ns = timeout_ns.ok_or_else(|| {
            ("timeout", format!("{timeout:?}: expected a time up to 60s, such as 2s or 500ms"))
        })?;
        let class = entry.dscp.as_deref().map(dscp::parse).transpose();
        let objectives = entry.objectives.iter().flatten().map(|text| text.parse());
        let ports = or(&entry.src_port, "0");
        Ok(Self {
            name,
            address,
            protocol,
            interval_ns: interval_ns.max(1),
            timeout_ns: timeout_ns.cast_signed(),
            traffic_class: class.map_err(|text| ("dscp", text))?.map(|dscp| dscp << 2),
            source: entry.src_ip,
            source_ports: source_ports(&ports).ok_or_else(|| {
                ("src_port", format!("{ports:?}: expected a port, or up to 64 such as 50000-50015"))
            })?,
            payload_bytes,
            interface: entry.interface.clone(),
            ttl: entry.ttl,
            level: level(&or(&entry.stamps, "software"))?,
            objectives: objectives
                .collect::<Result<_, ObjectiveError>>()
                .map_err(|error| ("objectives", error.to_string()))?,
            entry,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Plan, String> {
        Plan::parse(text, Path::new("watch.yml")).map_err(|error| error.to_string())
    }

    #[test]
    fn targets_have_the_defaults_that_they_do_not_name() {
        let plan = parse(
            "defaults: {protocol: stamp, rate: 10pps, objectives: [p99 < 5ms, loss < 1%]}\n\
             targets:\n\
             - {address: 192.0.2.7}\n\
             - {name: voice, address: 'gw.example:862', dscp: EF, rate: 20pps, src_port: 50000-50003, objectives: []}\n\
             keep: {time: 30d, size: 2GB}\n\
             catch: {}\n",
        )
        .unwrap();
        let [first, voice] = &plan.targets[..] else { panic!() };
        assert_eq!((first.name.as_str(), first.interval_ns), ("192.0.2.7", 100_000_000));
        assert_eq!((first.objectives.len(), first.timeout_ns), (2, 2_000_000_000));
        assert!(matches!(first.protocol, Protocol::Stamp { .. }));
        assert_eq!((voice.interval_ns, voice.traffic_class), (50_000_000, Some(46 << 2)));
        assert_eq!(plan.catch, Some(CatchPlan { trace: true, an_hour: 4 }));
        assert_eq!((voice.source_ports.len(), voice.objectives.len()), (4, 0));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let one = |rest: &str| parse(&format!("targets:\n- {{address: 192.0.2.7, {rest}}}\n"));
        for (text, expected) in [
            ("rate: fast", "watch.yml: target 1, rate"),
            ("timeout: 2", "watch.yml: target 1, timeout"),
            ("dscp: 99", "watch.yml: target 1, dscp"),
            ("protocol: tcp", "watch.yml: target 1, protocol"),
            ("objectives: [fast]", "watch.yml: target 1, objectives"),
            ("name: ../x", "watch.yml: target 1, name"),
            ("src_port: 5-4", "watch.yml: target 1, src_port"),
            ("packet_bytes: 20", "watch.yml: target 1, packet_bytes"),
            ("cookie: 12", "watch.yml: target 1, cookie"),
            ("follow_up: true", "watch.yml: target 1, follow_up"),
            ("key_file: /nonexistent, protocol: stamp", "watch.yml: target 1, key_file"),
            ("rate: 200kpps", "watch.yml: targets"),
        ] {
            let told = one(text).unwrap_err();
            assert!(told.starts_with(expected), "{text}: {told}");
        }
        let told = one("colour: red").unwrap_err();
        assert!(told.contains("colour") && told.contains("2"), "{told}");
        let twice = parse("targets: [{address: a}, {address: b, name: a}]").unwrap_err();
        assert!(twice.contains("target 2") && twice.contains("same name"), "{twice}");
        assert!(parse("targets: []").unwrap_err().contains("at least one"));
        let tap = "taps: [{name: a, ingress: eth1, egress: xdp:eth2, objectives: [p99 < 5ms]}]";
        let plan = parse(tap).unwrap();
        assert_eq!((plan.targets.len(), plan.taps.len(), plan.deadlines_s()), (0, 1, vec![0.005]));
        let same = parse(&format!("targets: [{{address: a}}]\n{tap}")).unwrap_err();
        assert!(same.starts_with("watch.yml: tap 1, name: a: an earlier target"), "{same}");
        assert!(parse("defaults: {name: x}\ntargets: [{address: a}]").is_err());
        assert!(parse("- a\n- b\n").is_err());
        let often = parse("targets: [{address: a}]\ncatch: {an_hour: 61}").unwrap_err();
        assert!(often.starts_with("watch.yml: catch, an_hour"), "{often}");
        for (key, value) in [("baseline", "yesterday"), ("margin", "5")] {
            let told = parse(&format!("targets: [{{address: a}}]\n{key}: {value}")).unwrap_err();
            assert!(told.starts_with(&format!("watch.yml: {key}: ")), "{told}");
        }
    }
}
