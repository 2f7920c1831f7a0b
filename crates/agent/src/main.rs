//! `tailtrim-agent`: what must be exact or must happen on a host, in one static binary.
//!
//! Parse, call, print: nothing else is done here. The result goes to standard output as JSON; errors go
//! to standard error and set the exit code (see [`exit`]).

mod analyze;
mod args;
mod exit;

use args::{Args, Verb};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    match args.verb {
        Verb::Analyze(request) => analyze::run(&request).into(),
    }
}
