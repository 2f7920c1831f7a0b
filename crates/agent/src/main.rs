//! `tailtrim-agent`: the parts of tailtrim that must be exact or must run on a host, in one static binary.
//!
//! Parse, call, print: nothing else is done here. The result goes to standard output as JSON; errors go
//! to standard error and set the exit code (see [`exit`]).
#![forbid(unsafe_code)]

mod analyze;
mod args;
mod audit;
mod called;
mod capture;
mod counters;
mod disturb;
mod dpdk;
mod events;
mod exit;
mod files;
mod former;
mod forward;
mod generate;
mod hints;
mod lint;
mod lint_text;
mod minutes;
mod node;
mod noise;
mod options;
mod output;
mod ping;
mod ports;
mod reflect;
mod stop;
mod trace;
mod tune;
mod watch;

use args::{Args, Verb};
use clap::{CommandFactory, FromArgMatches};
use clap_complete::CompleteEnv;
use exit::{Exit, Failure};
use std::io::ErrorKind;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Asked by a shell, by COMPLETE in the environment, it prints how a command line may go on, and ends.
    CompleteEnv::with_factory(|| called::named(Args::command())).complete();
    let words = former::renamed(std::env::args_os());
    let matches = called::named(Args::command()).try_get_matches_from(words);
    let args = match matches.and_then(|matches| Args::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(error) => return refused(&error),
    };
    // The verb is the first argument, since there are no options before it.
    if let Some(verb) = std::env::args().nth(1) {
        tailtrim_sys::placement::name_threads(&format!("{}{verb}", called::THREADS));
    }
    let ended = match args.verb {
        Verb::Analyze(request) => analyze::run(&request),
        Verb::Audit(request) => audit::run(&request),
        Verb::Generate(request) => generate::run(&request),
        Verb::Capture(request) => capture::run(&request),
        Verb::Forward(request) => forward::run(&request),
        Verb::Disturb(request) => disturb::run(&request),
        Verb::Ping(request) => ping::run(&request),
        Verb::Reflect(request) => reflect::run(&request),
        Verb::Trace(request) => trace::run(&request),
        Verb::Counters(request) => counters::run(&request),
        Verb::Noise(request) => noise::run(&request),
        Verb::Ports(request) => ports::run(&request),
        Verb::Tune(request) => tune::run(&request),
        Verb::Watch(request) => watch::run(&request),
        Verb::Node(request) => match node::run(&request) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
    };
    ended.unwrap_or_else(|failure| output::failed(&failure)).into()
}

/// Prints the error of a command line, or help.
fn refused(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        let more = (
            "For more information, try '--help'.",
            format!("Try '{} -h' for help.", called::command()),
        );
        // Names of files may be in it, which others chose.
        output::tell(&error.render().to_string().replace(more.0, &more.1));
        return Exit::Usage.into();
    }
    match error.print() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            output::failed(&Failure::disturbed(error)).into()
        }
        // A reader that ends early (`| head`) is not an error.
        _ => Exit::Success.into(),
    }
}
