//! Reports of the thread that sends and receives, and of those that tap devices.

use crate::change::Asked;
use crate::keeping::Keep;
use crate::metrics::TapMetrics;
use crate::minute::{Arrivals, Outcome};
use crate::plan::TargetPlan;
use crate::taps::{OverMinute, TapPlan};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// Report about a target; times at which probes were due are of a clock that is not stepped.
#[derive(Debug)]
pub(crate) enum Report {
    /// A target is probed from now on.
    Started { place: usize, plan: Arc<TargetPlan>, now_ns: i64 },
    /// No further report of it will come.
    Ended { place: usize },
    /// Its address is this one from now on.
    Directed { place: usize, address: Option<SocketAddr>, why: Option<String> },
    /// A probe that was due at this time is decided.
    Decided { place: usize, due_ns: i64, outcome: Outcome },
    /// A probe was sent, so late.
    Departed { place: usize, due_ns: i64, lateness_ns: i64 },
    /// Datagrams that came beside first replies.
    Arrived { place: usize, now_ns: i64, arrivals: Arrivals },
    /// Its sockets cannot be opened or used.
    Failed { place: usize, why: String },
    /// Minutes are kept within these limits from now on.
    Kept(Keep),
    /// Minutes are compared with these from now on.
    Compared(Asked),
    /// The file of targets has an error, and nothing was changed.
    Refused(String),
    /// A device is tapped from now on; its thread gets the metrics that it counts in.
    Tapping { place: usize, plan: Arc<TapPlan>, metrics: Sender<TapMetrics> },
    /// Both of its taps record, at the first time or again.
    Tapped { place: usize },
    /// Minutes of a device whose packets are all decided.
    Over { place: usize, minutes: Vec<OverMinute> },
    /// Something that is worth a line among the events of the watch.
    Told { event: &'static str, target: Option<String>, told: String },
    /// The clock was stepped.
    Stepped { by_ns: i64 },
    /// All departures of the targets up to this time, less their timeouts, are decided.
    Swept { now_ns: i64 },
    /// The watch ends: no report that follows is entered.
    Stopped,
}
