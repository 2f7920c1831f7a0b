//! `tailtrim-agent disturb`.

use crate::events;
use crate::exit::Exit;
use crate::hints::told;
use crate::output::failed;
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
    tailtrim-agent disturb softirqs:1ms,50ms --cpu 1 --pid 812 --port veth0 --log disturbed.csv")]
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
    /// Port whose packets this CPU receives (softirqs)
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<PortName>,
    /// Log: lines of from,to in ns of CLOCK_REALTIME
    #[arg(long, value_name = "FILE")]
    pub(crate) log: PathBuf,
    /// Seed of the random times
    #[arg(long, default_value = "1")]
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
pub(crate) fn run(request: &Disturb) -> Exit {
    let stopped = match request.ending.watch() {
        Ok(stopped) => stopped,
        Err(error) => return failed(&error.to_string(), Exit::Impossible),
    };
    let target = Target { cpu: request.cpu, pid: request.pid, port: request.port.clone() };
    let mut began = false;
    let ready = || {
        began = true;
        events::ready();
    };
    match disturb(&request.what, request.seed, &target, &stopped, ready) {
        Ok(spans) => match log(&request.log, &spans) {
            Ok(()) => events::result(
                "tailtrim.disturbance/1",
                &DisturbReport {
                    what: request.what.to_string(),
                    seed: request.seed,
                    disturbed: spans.len(),
                },
            ),
            Err(message) => failed(&message, Exit::Disturbed),
        },
        Err(error) => {
            let exit = if began { Exit::Disturbed } else { Exit::Impossible };
            failed(&told(&format!("{}: {error}", request.what), hint(request).as_deref()), exit)
        }
    }
}

fn hint(request: &Disturb) -> Option<String> {
    let what = request.what;
    if what.from_within() {
        return Some(format!("tailtrim-agent forward --disturb {what}"));
    }
    let nameless = what.kind == Disturbing::Softirqs && request.port.is_none();
    nameless.then(|| "name the port with --port".to_owned())
}

/// Writes when there was a disturbance.
pub(crate) fn log(path: &Path, spans: &[Span]) -> Result<(), String> {
    let lines: String = spans.iter().map(|(from, to)| format!("{from},{to}\n")).collect();
    fs::write(path, lines)
        .map_err(|error| format!("{}: cannot be written: {error}", path.display()))
}
