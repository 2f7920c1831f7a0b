//! `tailtrim-agent watch`.

use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::stop::{Ending, watch_signals};
use crate::{events, output};
use signal_hook::consts::SIGHUP;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tailtrim_sys::placement::Placement;
use tailtrim_watch::{Endpoint, Request, StoreError, WatchError};

/// Options of `watch`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Watch {
    /// File of targets (YAML); SIGHUP reads it again
    file: PathBuf,
    /// Folder for the minutes: a folder for each target, a file for each day
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Serve a page and /metrics at this address; one that other hosts reach needs --token-file
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// File of a token that programs and people have to tell to read the page and metrics
    #[arg(long, value_name = "FILE", requires = "listen")]
    token_file: Option<PathBuf>,
    /// Push metrics to this OpenTelemetry collector, once a minute: http://HOST:PORT
    #[arg(long, value_name = "URL")]
    otlp: Option<Endpoint>,
    /// CPU to run on
    #[arg(long)]
    cpu: Option<usize>,
    #[command(flatten)]
    ending: Ending,
}

const EXAMPLES: &str = "Examples:\n  \
    tailtrim-agent watch targets.yml --out /var/lib/tailtrim\n  \
    tailtrim-agent watch targets.yml --out minutes --listen 127.0.0.1:9464\n\n\
    Ctrl-C or SIGTERM ends it: probes under way count as cut, and the minute that is not over is written.";

/// Runs the verb until it is ended.
pub(crate) fn run(request: &Watch) -> Outcome {
    let reload = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGHUP, Arc::clone(&reload)).or_fail(Exit::Impossible)?;
    let stopped = watch_signals()?;
    let watched = tailtrim_watch::watch(
        &Request {
            plan: request.file.clone(),
            folder: request.out.clone(),
            listen: request.listen,
            token_file: request.token_file.clone(),
            push: request.otlp.clone(),
        },
        &stopped,
        &reload,
        |text| output::tell(&format!("warning: {text}\n")),
        || Placement::share(request.cpu).map(|_| ()),
        |metrics| {
            // The thread for this comes last: a trace begins with a process that needs this one to have a single one.
            request.ending.watch_parent(&stopped);
            events::watching(metrics);
        },
    );
    watched.map(|()| Exit::Success).map_err(failure)
}

fn failure(error: WatchError) -> Failure {
    let exit = match &error {
        WatchError::Tap { .. } => Exit::Impossible,
        WatchError::Plan(_)
        | WatchError::Access(_)
        | WatchError::Placement(_)
        | WatchError::Store(StoreError::Used { .. }) => Exit::Usage,
        WatchError::Listen { .. } | WatchError::Told { .. } => Exit::Impossible,
        WatchError::Store(_) | WatchError::Waiting(_) => Exit::Disturbed,
    };
    Failure::new(error, exit)
}
