//! What a verb that runs for a while says meanwhile: JSON lines on standard output.
//!
//! `{"event":"ready"}` when the next packet would be handled, `{"event":"progress",…}` once a second, and
//! `{"event":"result",…}` last. Errors go to standard error.

use crate::exit::Exit;
use crate::output::{self, failed};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;
use tailtrim_ports::port::PortError;

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event<'a, R = ()> {
    Ready,
    Progress {
        seconds: u64,
        packets: u64,
    },
    Live {
        #[serde(flatten)]
        second: &'a R,
    },
    Around {
        around: &'a R,
    },
    #[serde(rename = "clock_step")]
    ClockStep {
        #[serde(flatten)]
        step: &'a R,
    },
    Result {
        schema: &'a str,
        #[serde(flatten)]
        result: &'a R,
    },
}

/// Says that everything is open.
pub(crate) fn ready() {
    tell::<()>(&Event::Ready);
}

/// Says how many packets there were.
pub(crate) fn progress(seconds: u64, packets: &AtomicU64) {
    tell::<()>(&Event::Progress { seconds, packets: packets.load(Ordering::Relaxed) });
}

/// Says what a second was like.
pub(crate) fn live<R: Serialize>(second: &R) {
    tell(&Event::Live { second });
}

/// Says which packets are the worst so far, all of them.
pub(crate) fn around<R: Serialize>(worst: &R) {
    tell(&Event::Around { around: worst });
}

/// Says that the clock of the stamps was set.
pub(crate) fn clock_step<R: Serialize>(step: &R) {
    tell(&Event::ClockStep { step });
}

/// Says what came of it, and ends the verb.
pub(crate) fn result<R: Serialize>(schema: &str, result: &R) -> Exit {
    match line(&Event::Result { schema, result }) {
        Ok(line) => output::write(&line, Exit::Success),
        Err(error) => failed(&format!("the result cannot be written: {error}"), Exit::Disturbed),
    }
}

/// Tells what is under way. Who does not read has closed the pipe, and will end this process by other means.
fn tell<R: Serialize>(event: &Event<'_, R>) {
    if let Ok(line) = line(event) {
        let _ = output::try_write(&line);
    }
}

fn line<R: Serialize>(event: &Event<'_, R>) -> serde_json::Result<String> {
    Ok(serde_json::to_string(event)? + "\n")
}

/// The exit that a port's error stands for.
pub(crate) fn exit_of(error: &PortError) -> Exit {
    match error {
        PortError::Open { .. } => Exit::Impossible,
        _ => Exit::Disturbed,
    }
}

/// Does something once a second, until it is dropped.
pub(crate) struct EachSecond {
    over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl EachSecond {
    /// Tells how many packets there were.
    pub(crate) fn progress(packets: Arc<AtomicU64>) -> Self {
        Self::start(move |seconds| progress(seconds, &packets))
    }

    /// Calls `act` with the seconds since the start. Returns when its thread runs: what it takes to start a thread may be
    /// forbidden afterwards.
    pub(crate) fn start(mut act: impl FnMut(u64) + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let runs = Arc::new(Barrier::new(2));
        let begun = Arc::clone(&runs);
        let thread = thread::spawn(move || {
            begun.wait();
            for seconds in 1.. {
                // Nothing wakes this thread but the end.
                thread::park_timeout(Duration::from_secs(1));
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                act(seconds);
            }
        });
        runs.wait();
        Self { over, thread: Some(thread) }
    }
}

impl Drop for EachSecond {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
