//! `tailtrim-agent node`: services for a controller that reaches this node by SSH.

mod frames;
mod hold;

use crate::exit::{Exit, Failure, Outcome};
use crate::output::try_write;
use clap::Subcommand;
use serde::Serialize;
use std::io::{self, BufRead};
use std::process::ExitCode;
use tailtrim_tracer::clock;

/// Serve a controller that uses this node by SSH: hold programs, pass frames, read clocks.
#[derive(Debug, clap::Args)]
pub(crate) struct Node {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a command for as long as another process lives.
    Hold(hold::Hold),
    /// End another process when standard input is silent, or ends.
    Watch(hold::Watch),
    /// Send frames that standard input has as hexadecimal lines, and print those that come in.
    Frames(frames::Frames),
    /// Print the clocks as a line of JSON for each line of standard input.
    Clocks,
}

/// Runs the verb.
pub(crate) fn run(request: &Node) -> Result<ExitCode, Failure> {
    match &request.verb {
        Verb::Hold(request) => hold::hold(request),
        Verb::Watch(request) => hold::watch(request).map(Into::into),
        Verb::Frames(request) => frames::run(request).map(Into::into),
        Verb::Clocks => clocks().map(Into::into),
    }
}

#[derive(Serialize)]
struct Clocks {
    realtime_ns: i64,
    monotonic_ns: i64,
}

fn clocks() -> Outcome {
    for line in io::stdin().lock().lines() {
        let (realtime_ns, monotonic_ns) = clock::of_the_kernel();
        let told = line.and_then(|_| {
            let text = serde_json::to_string(&Clocks { realtime_ns, monotonic_ns })?;
            try_write(&(text + "\n"))
        });
        told.map_err(|error| Failure::disturbed(format!("clocks: {error}")))?;
    }
    Ok(Exit::Success)
}
