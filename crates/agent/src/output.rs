//! What a verb says: its result on standard output, what went wrong on standard error.
#![allow(clippy::print_stderr, reason = "the agent is where output happens")]

use crate::exit::Exit;
use serde::Serialize;
use std::io::{self, ErrorKind, Write};

/// Writes a result and ends with `exit`, also where the reader has what it wanted (`| head`).
pub(crate) fn write(text: impl AsRef<[u8]>, exit: Exit) -> Exit {
    written(try_write(text.as_ref()), exit)
}

/// As [`write`], as JSON that people can read.
pub(crate) fn json<T: Serialize>(document: &T, exit: Exit) -> Exit {
    match serde_json::to_string_pretty(document) {
        Ok(text) => write(text + "\n", exit),
        Err(error) => written(Err(error.into()), exit),
    }
}

/// Writes all of it now.
///
/// # Errors
///
/// The system's answer: `BrokenPipe` where the reader has closed the pipe.
pub(crate) fn try_write(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(bytes)?;
    output.flush()
}

fn written(result: io::Result<()>, exit: Exit) -> Exit {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            failed(&format!("the result cannot be written: {error}"), Exit::Disturbed)
        }
        _ => exit,
    }
}

/// Tells what is worth knowing, such as a note or a warning.
pub(crate) fn note(kind: &str, message: &str) {
    eprintln!("{kind}: {message}");
}

/// Tells what went wrong.
pub(crate) fn failed(message: &str, exit: Exit) -> Exit {
    eprintln!("error: {message}");
    exit
}
