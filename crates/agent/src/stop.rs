//! Ends of a verb: SIGINT, SIGTERM, the end of standard input, the death of the parent, a time.

use crate::exit::{Exit, Failure, OrFail};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;
use tailtrim_sys::placement;

/// Options for the end of a verb that runs for a while.
#[derive(Debug, clap::Args)]
pub(crate) struct Ending {
    /// End when standard input or the parent process ends
    #[arg(long)]
    pub(crate) until_eof: bool,
}

impl Ending {
    /// The flag that is set when the verb is to end.
    pub(crate) fn watch(&self) -> Result<Arc<AtomicBool>, Failure> {
        let stopped = watch_signals()?;
        self.watch_parent(&stopped);
        Ok(stopped)
    }

    /// The same, and the lines of standard input.
    pub(crate) fn watch_lines(&self) -> Result<(Arc<AtomicBool>, Receiver<String>), Failure> {
        let stopped = watch_signals()?;
        if self.until_eof {
            placement::end_with_parent();
        }
        let (ends, (send, lines)) = (self.until_eof.then(|| Arc::clone(&stopped)), channel());
        thread::spawn(move || {
            let told = io::stdin().lines().map_while(Result::ok);
            // Sending fails once the receiver has ended.
            let _ = told.map(|line| send.send(line)).find(Result::is_err);
            if let Some(stopped) = ends {
                stopped.store(true, Ordering::Release);
            }
        });
        Ok((stopped, lines))
    }

    /// Sets the flag when standard input ends or the parent dies, if that is asked for. A verb that becomes another
    /// user does this afterwards: a change of user clears the kernel's setting to end with the parent, and a thread
    /// that was started before would keep its privileges. Returns when that thread runs.
    pub(crate) fn watch_parent(&self, stopped: &Arc<AtomicBool>) {
        if self.until_eof {
            placement::end_with_parent();
            let stopped = Arc::clone(stopped);
            let runs = Arc::new(Barrier::new(2));
            let begun = Arc::clone(&runs);
            thread::spawn(move || {
                begun.wait();
                let mut rest = [0; 64];
                while matches!(io::stdin().read(&mut rest), Ok(1..)) {}
                stopped.store(true, Ordering::Release);
                // A thread that ends gives its stack back, which interrupts the CPUs of the others.
                loop {
                    thread::park();
                }
            });
            runs.wait();
        }
    }
}

/// A flag that SIGINT and SIGTERM set; no thread is started. A second SIGINT ends the process at once.
pub(crate) fn watch_signals() -> Result<Arc<AtomicBool>, Failure> {
    signal_flag().or_fail(Exit::Impossible)
}

fn signal_flag() -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    // In this order: the second handler sets the flag that the first one finds at a second signal.
    signal_hook::flag::register_conditional_default(SIGINT, Arc::clone(&interrupted))?;
    signal_hook::flag::register(SIGINT, interrupted)?;
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stopped))?;
    }
    Ok(stopped)
}

/// Sets the flag after this time, if one was asked for.
pub(crate) fn after(time_ns: Option<i64>, stopped: &Arc<AtomicBool>) {
    let Some(ns) = time_ns else { return };
    let ends = OnEnd(Arc::clone(stopped));
    thread::spawn(move || {
        thread::sleep(Duration::from_nanos(ns.cast_unsigned()));
        drop(ends);
    });
}

/// Sets the flag when it is dropped: one thread that ends, ends all.
pub(crate) struct OnEnd(pub(crate) Arc<AtomicBool>);

impl Drop for OnEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
