//! `tailtrim-agent node frames`.

use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::output::try_write;
use crate::stop::OnEnd;
use std::fmt::Write;
use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tailtrim_ports::port::{Port, PortError, PortName, Receiving, open};

/// Bytes of a frame that are shown.
const SNAP: usize = 2_048;
const MEMORY_BYTES: usize = 4 << 20;
const MOST: usize = 64;
/// Longest time until the end of standard input is noticed.
const LOOK: Duration = Duration::from_millis(100);

/// Send frames that standard input has as hexadecimal lines, and print those that come in.
///
/// The first line of the output is empty: the port is open then.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    echo ffffffffffff02000000000188b5 | tailtrim-agent node frames eth1   # until standard input ends")]
pub(crate) struct Frames {
    /// Interface
    port: PortName,
}

/// Runs the verb until standard input ends.
pub(crate) fn run(request: &Frames) -> Outcome {
    let receiving =
        Receiving { snap: SNAP, memory_bytes: MEMORY_BYTES, promptly: true, hardware: false };
    let (mut receiver, mut sender) =
        (open(&request.port, Some(receiving))?, open(&request.port, None)?);
    try_write("\n").or_fail(Exit::Disturbed)?;
    let over = Arc::new(AtomicBool::new(false));
    let ends = OnEnd(Arc::clone(&over));
    let sending = thread::spawn(move || {
        let _ends = ends;
        send(sender.as_mut())
    });
    show(receiver.as_mut(), &over)?;
    sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Sends the frames of standard input, to its end.
fn send(port: &mut dyn Port) -> Outcome {
    for line in io::stdin().lock().lines() {
        let frame = line.ok().as_deref().and_then(bytes);
        let expected = || Failure::usage("expected frames as hexadecimal lines");
        port.send(&[&frame.ok_or_else(expected)?])?;
    }
    Ok(Exit::Success)
}

/// Prints received frames, until it is over or the reader is gone.
fn show(port: &mut dyn Port, over: &AtomicBool) -> Result<(), PortError> {
    let mut lines = String::new();
    while !over.load(Ordering::Acquire) {
        port.wait(LOOK)?;
        lines.clear();
        port.receive(MOST, &mut |frame| {
            for byte in frame.bytes {
                let _ = write!(lines, "{byte:02x}");
            }
            lines.push('\n');
        })?;
        if !lines.is_empty() && try_write(&lines).is_err() {
            break;
        }
    }
    Ok(())
}

fn bytes(line: &str) -> Option<Vec<u8>> {
    let pair = |at| u8::from_str_radix(line.get(at..at + 2)?, 16).ok();
    line.len().is_multiple_of(2).then_some(())?;
    (0..line.len()).step_by(2).map(pair).collect()
}
