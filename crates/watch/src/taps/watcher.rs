//! The thread of a device: opens its taps, again where they end, and hands on its minutes.

use super::counting::{Counting, locked};
use super::session::Session;
use super::{OverMinute, Ports, TapPlan};
use crate::report::Report;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tailtrim_ports::port::PortError;
use tailtrim_sys::clock;

/// Time between two looks at the taps.
const LOOK: Duration = Duration::from_millis(100);

/// Looks from a failure until ports are opened again.
const RETRY: u32 = 10;

/// Watches one device until it is stopped.
pub(super) struct Watcher {
    place: usize,
    plan: Arc<TapPlan>,
    sender: Sender<Vec<Report>>,
    stopped: Arc<AtomicBool>,
}

impl Watcher {
    pub(super) fn new(
        place: usize,
        plan: Arc<TapPlan>,
        sender: Sender<Vec<Report>>,
        stopped: Arc<AtomicBool>,
    ) -> Self {
        Self { place, plan, sender, stopped }
    }

    /// Runs until it is stopped, at first with ports that may be open.
    pub(super) fn run(&mut self, mut ports: Option<Ports>) {
        let (metrics, given) = channel();
        self.tell(Report::Tapping { place: self.place, plan: Arc::clone(&self.plan), metrics });
        // Metrics of a former one of this name are removed then. A book that has failed says so when it is joined.
        let Ok(metrics) = given.recv() else { return };
        let counting = Counting::new(&self.plan, metrics, clock::realtime_ns());
        let counting = Arc::new(Mutex::new(counting));
        while !self.is_stopped() {
            let opened = match ports.take() {
                Some(ports) => Ok(ports),
                None => self.plan.open(),
            };
            match opened.and_then(shown_up) {
                Ok(ports) => self.tap(ports, &counting),
                Err(error) => self.fail(error.to_string(), &counting),
            }
        }
        self.hand_on(locked(&counting).all());
        self.tell(Report::Ended { place: self.place });
    }

    /// Records until it is stopped, the clock is stepped, or a tap ends.
    fn tap(&self, ports: Ports, counting: &Arc<Mutex<Counting>>) {
        locked(counting).begin(clock::realtime_ns());
        let session = match Session::begin(&self.plan, ports, counting) {
            Ok(session) => session,
            Err(error) => return self.fail(error.to_string(), counting),
        };
        self.tell(Report::Tapped { place: self.place });
        while !self.is_stopped() && !session.is_ended() {
            thread::sleep(LOOK);
            let mut counting = locked(counting);
            if counting.is_stepped() {
                break;
            }
            let (foreign, dropped) = session.lost();
            counting.lose(foreign, dropped);
            self.hand_on(counting.over(clock::realtime_ns(), session.is_quiet()));
        }
        let ended = session.end();
        let mut locked = locked(counting);
        locked.lose(ended.foreign, ended.dropped);
        // It may have been stepped meanwhile.
        let stepped = locked.is_stepped();
        let now_ns = clock::realtime_ns();
        locked.end(ended.seen, now_ns);
        self.hand_on(locked.step(now_ns));
        drop(locked);
        // A step may have broken off the analysis: then that is the cause.
        if let Some(why) = ended.why.filter(|_| !stepped) {
            self.fail(why, counting);
        }
    }

    /// Tells a failure, and waits until ports may be opened again.
    fn fail(&self, why: String, counting: &Mutex<Counting>) {
        self.tell(Report::Failed { place: self.place, why });
        for _ in 0..RETRY {
            if self.is_stopped() {
                return;
            }
            thread::sleep(LOOK);
            let mut counting = locked(counting);
            let (now_ns, stepped) = (clock::realtime_ns(), counting.is_stepped());
            let over = if stepped { counting.step(now_ns) } else { counting.over(now_ns, true) };
            self.hand_on(over);
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn hand_on(&self, minutes: Vec<OverMinute>) {
        if !minutes.is_empty() {
            self.tell(Report::Over { place: self.place, minutes });
        }
    }

    fn tell(&self, report: Report) {
        // A receiver that has failed says so when it is joined.
        let _ = self.sender.send(vec![report]);
    }
}

/// The ports, if both of their interfaces are up: a port of one that is down only says so when it is asked.
fn shown_up(mut ports: Ports) -> Result<Ports, PortError> {
    for port in &mut ports {
        port.wait(Duration::ZERO)?;
    }
    Ok(ports)
}
