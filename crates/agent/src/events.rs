//! Output of a verb that runs for a while: JSON lines on standard output.
//!
//! `{"event":"ready"}` when the next packet would be handled, `{"event":"progress",…}` once a second, and
//! `{"event":"result",…}` last. Errors go to standard error.

use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event<'a, R = ()> {
    Ready {
        #[serde(skip_serializing_if = "Option::is_none")]
        xdp: Option<&'a R>,
    },
    #[serde(rename = "ready")]
    Watching {
        metrics: Option<SocketAddr>,
    },
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

/// Reports that everything is open.
pub(crate) fn ready() {
    tell::<()>(&Event::Ready { xdp: None });
}

/// The same, with the modes of ports of AF_XDP.
pub(crate) fn ready_by_xdp<R: Serialize>(modes: &R) {
    tell(&Event::Ready { xdp: Some(modes) });
}

/// Reports that targets are probed, and the address of the metrics.
pub(crate) fn watching(metrics: Option<SocketAddr>) {
    tell::<()>(&Event::Watching { metrics });
}

/// Reports the number of packets.
pub(crate) fn progress(seconds: u64, packets: &AtomicU64) {
    tell::<()>(&Event::Progress { seconds, packets: packets.load(Ordering::Relaxed) });
}

/// Reports the events of a second.
pub(crate) fn live<R: Serialize>(second: &R) {
    tell(&Event::Live { second });
}

/// Reports the worst packets so far, all of them.
pub(crate) fn around<R: Serialize>(worst: &R) {
    tell(&Event::Around { around: worst });
}

/// Reports that the clock of the stamps was set.
pub(crate) fn clock_step<R: Serialize>(step: &R) {
    tell(&Event::ClockStep { step });
}

/// Prints the result, and ends the verb.
pub(crate) fn result<R: Serialize>(schema: &str, result: &R) -> Outcome {
    match line(&Event::Result { schema, result }) {
        Ok(line) => output::write(&line, Exit::Success),
        Err(error) => Err(Failure::disturbed(format!("the result cannot be written: {error}"))),
    }
}

/// Prints an event. A failure means that the reader has closed the pipe; it will end this process by other means.
fn tell<R: Serialize>(event: &Event<'_, R>) {
    if let Ok(line) = line(event) {
        let _ = output::try_write(&line);
    }
}

fn line<R: Serialize>(event: &Event<'_, R>) -> serde_json::Result<String> {
    Ok(serde_json::to_string(event)? + "\n")
}

/// Adds a line of JSON to a file; it must also survive a crash of the host.
pub(crate) fn append<T: Serialize>(file: &mut File, line: &T) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.sync_data()
}

/// Does something once a second, until it is dropped.
pub(crate) struct EachSecond {
    over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl EachSecond {
    /// Reports the number of packets.
    pub(crate) fn progress(packets: Arc<AtomicU64>) -> Self {
        Self::start(move |seconds| progress(seconds, &packets))
    }

    /// Calls `act` with the seconds since the start. Returns when its thread runs: starting a thread may be forbidden
    /// afterwards.
    pub(crate) fn start(mut act: impl FnMut(u64) + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let runs = Arc::new(Barrier::new(2));
        let begun = Arc::clone(&runs);
        let thread = thread::spawn(move || {
            begun.wait();
            for seconds in 1.. {
                // Only the end wakes this thread earlier.
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
