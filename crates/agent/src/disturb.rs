//! `tailtrim-agent disturb`.

use crate::events;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::files;
use crate::stop::Ending;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use tailtrim_ports::disturb::{Span, Target, disturb};
use tailtrim_ports::port::PortName;
use tailtrim_wire::traffic::{Disturbance, Disturbing};

/// Disturb a device under test at random, logged times, to check the causes that explain names.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent disturb stop:2ms,100ms --cpu 1 --pid 812 --log disturbed.csv\n  \
    tailtrim-agent disturb thread:500us,50ms --cpu 1 --pid 812 --log disturbed.csv --seed 7\n  \
    tailtrim-agent disturb softirqs:1ms,50ms --cpu 1 --pid 812 --interface veth0 --log disturbed.csv")]
pub(crate) struct Disturb {
    /// thread, fifo, timers, softirqs, quota or stop with :TIME,EVERY, or bpf:EVERY
    #[arg(value_name = "WHAT")]
    pub(crate) what: Disturbance,
    /// The CPU that the device runs on
    #[arg(long)]
    pub(crate) cpu: usize,
    /// The device's process
    #[arg(long)]
    pub(crate) pid: u32,
    /// Interface whose packets this CPU receives (softirqs)
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) interface: Option<PortName>,
    /// Log: lines of from,to in ns of CLOCK_REALTIME
    #[arg(long, value_name = "FILE")]
    pub(crate) log: PathBuf,
    /// Seed of the random times
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) ending: Ending,
}

#[derive(Serialize)]
struct DisturbReport {
    what: String,
    seed: u64,
    disturbed: usize,
}

/// Runs the verb and prints its events.
pub(crate) fn run(request: &Disturb) -> Outcome {
    files::check([&request.log])?;
    let stopped = request.ending.watch()?;
    let target = Target { cpu: request.cpu, pid: request.pid, port: request.interface.clone() };
    let mut began = false;
    let ready = || {
        began = true;
        events::ready();
    };
    let disturbed = disturb(&request.what, request.seed, &target, &stopped, ready);
    let spans = disturbed.map_err(|error| {
        let exit = if began { Exit::Disturbed } else { Exit::Impossible };
        Failure::new(format!("{}: {error}", request.what), exit).hint(hint(request))
    })?;
    log(&request.log, &spans)?;
    let report = DisturbReport {
        what: request.what.to_string(),
        seed: request.seed,
        disturbed: spans.len(),
    };
    events::result("tailtrim.disturbance/1", &report)
}

fn hint(request: &Disturb) -> Option<String> {
    let what = request.what;
    if what.from_within() {
        return Some(format!("tailtrim-agent forward --disturb {what}"));
    }
    let nameless = what.kind == Disturbing::Softirqs && request.interface.is_none();
    nameless.then(|| "name the interface with --interface".to_owned())
}

/// Writes when there was a disturbance.
pub(crate) fn log(path: &Path, spans: &[Span]) -> Result<(), Failure> {
    let lines: String = spans.iter().map(|(from, to)| format!("{from},{to}\n")).collect();
    fs::write(path, lines).or_unwritable(path, Exit::Disturbed)
}
