//! `tailtrim-agent node frames`.

use crate::events::exit_of;
use crate::exit::Exit;
use crate::output::{failed, try_write};
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
pub(crate) fn run(request: &Frames) -> Exit {
    let receiving =
        Receiving { snap: SNAP, memory_bytes: MEMORY_BYTES, promptly: true, hardware: false };
    let opened = open(&request.port, Some(receiving))
        .and_then(|receiver| Ok((receiver, open(&request.port, None)?)));
    let (mut receiver, mut sender) = match opened {
        Ok(ports) => ports,
        Err(error) => return failed(&error.to_string(), exit_of(&error)),
    };
    if let Err(error) = try_write("\n") {
        return failed(&error.to_string(), Exit::Disturbed);
    }
    let over = Arc::new(AtomicBool::new(false));
    let ends = OnEnd(Arc::clone(&over));
    let sending = thread::spawn(move || {
        let _ends = ends;
        send(sender.as_mut())
    });
    if let Err(error) = show(receiver.as_mut(), &over) {
        return failed(&error.to_string(), exit_of(&error));
    }
    match sending.join() {
        Ok(exit) => exit,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Sends the frames of standard input, to its end.
fn send(port: &mut dyn Port) -> Exit {
    for line in io::stdin().lock().lines() {
        let Some(frame) = line.ok().as_deref().and_then(bytes) else {
            return failed("expected frames as hexadecimal lines", Exit::Usage);
        };
        if let Err(error) = port.send(&[&frame]) {
            return failed(&error.to_string(), exit_of(&error));
        }
    }
    Exit::Success
}

struct OnEnd(Arc<AtomicBool>);

impl Drop for OnEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
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
