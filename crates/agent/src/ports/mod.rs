//! `tailtrim-agent ports`.

mod proof;
mod table;

use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::generate::CLASSES;
use crate::options::one_of;
use crate::output::{self, Document};
use crate::stop;
use serde::Serialize;
use tailtrim_ports::claims::{self, Claims};
use tailtrim_ports::port::PortName;
use tailtrim_probes::departures::{Class, Departures};
use tailtrim_probes::prove::{self, ProveError, Proven, Verdict};
use tailtrim_sys::placement;

/// List what the drivers of interfaces claim, or measure it over a cable.
///
/// Drivers are asked for queues, zero copy, stamps, launch time, clocks, flow control and coalescing. A claim is not a proof: an
/// emulated e1000e accepts every filter and stamps nothing. --prove sends a thousand packets each way between the two ends of a
/// cable, and measures which stamps are really there, in which steps, how far gaps are off, and how the clocks of the NICs run.
/// Settings of the interfaces are put back, also after kill -9. Exit code 1: a claim is refuted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent ports                       # all interfaces\n  \
    tailtrim-agent ports eth1 eth2 --json\n  \
    tailtrim-agent ports --prove eth1 eth2     # a cable between two, or a veth pair\n  \
    tailtrim-agent ports eth1 --departures kernel")]
pub(crate) struct Ports {
    /// Interfaces [default: all but the loopback]
    #[arg(value_name = "INTERFACE")]
    interfaces: Vec<String>,
    /// Measure what the interfaces at the two ends of a cable claim
    #[arg(long, num_args = 2, value_name = "INTERFACE", conflicts_with = "interfaces")]
    prove: Vec<String>,
    /// Try whether departures of the interfaces can be kept to their time, and undo that
    #[arg(long, value_name = "CLASS", value_parser = one_of(CLASSES), requires = "interfaces")]
    departures: Option<Class>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    ports: Vec<Claims>,
}

#[derive(Serialize)]
struct Proof {
    packets_each_way: usize,
    claims: Vec<Proven>,
}

/// Runs the verb and prints its result.
pub(crate) fn run(request: &Ports) -> Outcome {
    placement::gain_nothing();
    if let Some(class) = request.departures {
        return departing(&request.interfaces, class);
    }
    match &request.prove[..] {
        [one, other] => proven([one, other], request.json),
        _ => listed(request),
    }
}

/// Tells what keeps the departures of each to their time.
fn departing(interfaces: &[String], class: Class) -> Outcome {
    let mut told = String::new();
    for interface in interfaces {
        let port = interface.parse::<PortName>().or_fail(Exit::Usage)?;
        Claims::of(&port.interface)?;
        let departures = Departures::negotiate(&port, class).or_fail(Exit::Usage)?;
        told += &format!("{interface}: {}\n", departures.by);
    }
    output::write(told, Exit::Success)
}

fn listed(request: &Ports) -> Outcome {
    let ports = match &request.interfaces[..] {
        [] => claims::interfaces()
            .map_err(|error| Failure::impossible(format!("interfaces cannot be listed: {error}")))?
            .iter()
            // One that went away since it was listed is left out.
            .filter_map(|interface| Claims::of(interface).ok())
            .collect(),
        named => named.iter().map(|name| Claims::of(name)).collect::<Result<_, _>>()?,
    };
    if request.json {
        return output::json(
            &Document { schema: "tailtrim.ports/1", content: &Listed { ports } },
            Exit::Success,
        );
    }
    output::write(table::listed(&ports), Exit::Success)
}

fn proven(ends: [&str; 2], json: bool) -> Outcome {
    let stopped = stop::watch_signals()?;
    let claims = prove::prove(ends, &stopped).map_err(|error| match error {
        ProveError::Same(_) => Failure::usage(error),
        ProveError::Port(error) => error.into(),
        ProveError::ClockSet(_) | ProveError::Stopped => Failure::disturbed(error),
        _ => Failure::impossible(error),
    })?;
    let refuted = claims.iter().any(|claim| claim.verdict == Verdict::Refuted);
    let exit = if refuted { Exit::Negative } else { Exit::Success };
    if json {
        let content = &Proof { packets_each_way: prove::packets(), claims };
        return output::json(&Document { schema: "tailtrim.ports.proof/1", content }, exit);
    }
    output::write(proof::text(&claims), exit)
}
