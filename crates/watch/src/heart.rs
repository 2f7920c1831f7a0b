//! Signs of life for the service manager: as long as probes are sent and minutes are entered.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tailtrim_sys::clock;
use tailtrim_sys::notify::Manager;

/// When reports were entered the last time, `CLOCK_MONOTONIC`.
#[derive(Debug, Clone)]
pub(crate) struct Entered(Arc<AtomicI64>);

impl Entered {
    pub(crate) fn now(&self) {
        self.0.store(clock::monotonic_ns(), Ordering::Relaxed);
    }
}

/// Messages to the service manager, by the thread that sends and receives.
#[derive(Debug)]
pub(crate) struct Heart {
    manager: Manager,
    watchdog_ns: Option<i64>,
    next_ns: i64,
    entered: Entered,
}

impl Heart {
    pub(crate) fn new(manager: Manager) -> Self {
        let watchdog_ns = manager.watchdog().and_then(|time| i64::try_from(time.as_nanos()).ok());
        let entered = Entered(Arc::new(AtomicI64::new(clock::monotonic_ns())));
        Self { manager, watchdog_ns, next_ns: i64::MIN, entered }
    }

    /// For the thread that enters reports.
    pub(crate) fn entered(&self) -> Entered {
        self.entered.clone()
    }

    pub(crate) fn ready(&self, targets: usize) {
        self.manager.tell(&format!("READY=1\nSTATUS=Watching {targets} targets"));
    }

    pub(crate) fn reloading(&self) {
        let now_us = clock::monotonic_ns() / 1_000;
        self.manager.tell(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}"));
    }

    pub(crate) fn stopping(&self) {
        self.manager.tell("STOPPING=1");
    }

    /// A sign of life in each half of the time that the manager waits, unless reports were not entered for all of it: the
    /// other thread has failed, or its disk does not answer.
    pub(crate) fn beat(&mut self) {
        let Some(watchdog_ns) = self.watchdog_ns else { return };
        let now_ns = clock::monotonic_ns();
        if now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns + watchdog_ns / 2;
        if now_ns - self.entered.0.load(Ordering::Relaxed) < watchdog_ns {
            self.manager.tell("WATCHDOG=1");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_heart_beats_as_long_as_reports_are_entered() {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let told = || {
            let mut bytes = [0; 64];
            let length = theirs.recv(&mut bytes).unwrap_or(0);
            String::from_utf8_lossy(&bytes[..length]).into_owned()
        };
        let watchdog = Duration::from_millis(200);
        let mut heart = Heart::new(Manager::new(ours, Some(watchdog)).unwrap());
        let entered = heart.entered();
        heart.beat();
        assert_eq!(told(), "WATCHDOG=1");
        heart.beat();
        assert_eq!(told(), "", "too early");
        thread::sleep(watchdog);
        heart.beat();
        assert_eq!(told(), "", "nothing was entered");
        thread::sleep(watchdog);
        entered.now();
        heart.beat();
        assert_eq!(told(), "WATCHDOG=1");
    }
}
