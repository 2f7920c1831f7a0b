//! What a verb that runs for a while says meanwhile: JSON lines on standard output.
//!
//! `{"event":"ready"}` when the next packet would be handled, `{"event":"progress",…}` once a second, and
//! `{"event":"result",…}` last. Errors go to standard error.
#![allow(clippy::print_stderr, reason = "the agent is where output happens")]

use crate::exit::Exit;
use serde::Serialize;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tailtrim_linux::port::PortError;

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event<'a, R> {
    Ready,
    Progress {
        seconds: u64,
        packets: u64,
    },
    Result {
        schema: &'a str,
        #[serde(flatten)]
        result: &'a R,
    },
}

/// Says that everything is open.
pub(crate) fn ready() {
    // Who does not read has closed the pipe, and will end this process by other means.
    let _ = write::<()>(&Event::Ready);
}

/// Says what came of it, and ends the verb.
pub(crate) fn result<R: Serialize>(schema: &str, result: &R) -> Exit {
    match write(&Event::Result { schema, result }) {
        Ok(()) => Exit::Success,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
        Err(error) => failed(&format!("the result cannot be written: {error}"), Exit::Disturbed),
    }
}

fn write<R: Serialize>(event: &Event<'_, R>) -> io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&line)?;
    output.flush()
}

/// Tells what went wrong.
pub(crate) fn failed(message: &str, exit: Exit) -> Exit {
    eprintln!("error: {message}");
    exit
}

/// The exit that a port's error stands for.
pub(crate) fn exit_of(error: &PortError) -> Exit {
    match error {
        PortError::Open { .. } => Exit::Impossible,
        _ => Exit::Disturbed,
    }
}

/// Tells once a second how many packets there were, until it is dropped.
pub(crate) struct Progress {
    over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Progress {
    pub(crate) fn start(packets: Arc<AtomicU64>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = thread::spawn(move || {
            for seconds in 1.. {
                // Nobody wakes this thread but the end.
                thread::park_timeout(Duration::from_secs(1));
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                let packets = packets.load(Ordering::Relaxed);
                let _ = write::<()>(&Event::Progress { seconds, packets });
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
