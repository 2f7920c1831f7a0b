//! The thread that sends probes and receives replies.

use crate::catch::{Seen, Sight};
use crate::change::Asked;
use crate::departures::Departures;
use crate::keeping::Keep;
use crate::links;
use crate::minute::{Arrivals, Outcome};
use crate::plan::TargetPlan;
use crate::report::Report;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tailtrim_probes::socket::{self, SocketError};
use tailtrim_probes::target::{Buffers, Target};
use tailtrim_sys::clock;
use tailtrim_sys::poll::{Interest, Readiness};
use tailtrim_tracer::clock::{ClockSteps, Unstepped};

/// Largest lateness of a probe that is sent: a process that was stopped or starved would send thousands at once.
pub(crate) const MISSED_NS: i64 = 1_000_000_000;

/// Time between two looks at timeouts and at the clock.
const SWEEP_NS: i64 = 100_000_000;

/// Missed probes are handed on in pieces of so many reports.
const MOST_MISSED: usize = 4_096;

/// From an error of a socket until it is opened again.
const RETRY_NS: i64 = 1_000_000_000;

/// Targets that are probed.
pub(crate) struct Probing {
    places: Vec<Option<Probed>>,
    departures: Departures,
    interest: Interest,
    buffers: Buffers,
    /// The clock of departures.
    clock: Unstepped,
    steps: ClockSteps,
    reports: Vec<Report>,
    sender: Sender<Vec<Report>>,
    sight: Sight,
    opened: usize,
    swept_ns: i64,
    sweeps: usize,
    ready: Vec<(u64, Readiness)>,
}

struct Probed {
    plan: Arc<TargetPlan>,
    /// Probes are due: its name was looked up.
    departs: bool,
    /// `None` as long as the name has none.
    address: Option<SocketAddr>,
    /// Why its name could not be resolved the last time.
    unresolved: Option<String>,
    /// A socket for each source port; none if they cannot be opened now.
    links: Vec<Target>,
    /// When they may be opened again.
    retry_ns: i64,
    next: usize,
    /// Of links that are closed.
    before: Arrivals,
    told: Arrivals,
}

impl Probing {
    pub(crate) fn new(sender: Sender<Vec<Report>>, sight: Sight) -> io::Result<Self> {
        let clock = Unstepped::from_now();
        Ok(Self {
            places: Vec::new(),
            departures: Departures::default(),
            interest: Interest::new()?,
            buffers: Buffers::new(0),
            clock,
            steps: ClockSteps::watch(),
            reports: Vec::new(),
            sender,
            sight,
            opened: 0,
            swept_ns: clock.now_ns(),
            sweeps: 0,
            ready: Vec::new(),
        })
    }

    /// Adds a target at a place that is free. Its probes are due from when it is [directed](Self::direct).
    pub(crate) fn start(&mut self, place: usize, plan: &Arc<TargetPlan>) {
        if self.places.len() <= place {
            self.places.resize_with(place + 1, || None);
        }
        // A reply is as long as its probe: room for a probe is enough.
        self.buffers.fit(plan.payload_bytes);
        self.places[place] = Some(Probed {
            plan: Arc::clone(plan),
            departs: false,
            address: None,
            unresolved: None,
            links: Vec::new(),
            retry_ns: i64::MIN,
            next: 0,
            before: Arrivals::default(),
            told: Arrivals::default(),
        });
        let now_ns = self.clock.now_ns();
        self.reports.push(Report::Started { place, plan: Arc::clone(plan), now_ns });
        self.sight.see(Seen::Started { place, plan: Arc::clone(plan) });
    }

    /// Probes a target at this address from now on; probes under way to another one are cut. Without one, it is still
    /// probed at the address that it had. A failure is reported when it begins, changes or ends.
    pub(crate) fn direct(
        &mut self,
        place: usize,
        address: Option<SocketAddr>,
        why: Option<String>,
    ) {
        let now_ns = self.clock.now_ns();
        let Self { places, departures, .. } = self;
        let Some(probed) = places.get_mut(place).and_then(Option::as_mut) else { return };
        if !std::mem::replace(&mut probed.departs, true) {
            departures.start(place, probed.plan.interval_ns, now_ns);
        }
        let moved = address.is_some() && probed.address != address;
        let unresolved = std::mem::replace(&mut probed.unresolved, why.clone());
        if moved {
            (probed.address, probed.retry_ns) = (address, i64::MIN);
            self.close(place, false);
        }
        if moved || unresolved != why {
            self.reports.push(Report::Directed { place, address, why });
        }
    }

    /// Keeps minutes within these limits from now on.
    pub(crate) fn keep(&mut self, keep: Keep) {
        self.reports.push(Report::Kept(keep));
    }

    /// Adds a line to the events of the watch.
    pub(crate) fn tell(&mut self, event: &'static str, told: &str) {
        self.reports.push(Report::Told { event, target: None, told: told.to_owned() });
    }

    /// Tells with which minutes others are compared from now on.
    pub(crate) fn compare(&mut self, asked: Asked) {
        self.reports.push(Report::Compared(asked));
    }

    /// Tells why a file of targets was refused.
    pub(crate) fn refuse(&mut self, why: String) {
        self.reports.push(Report::Refused(why));
    }

    /// Ends a target: its probes under way are cut.
    pub(crate) fn end(&mut self, place: usize) {
        self.close(place, false);
        self.count_arrivals(place);
        self.departures.stop(place);
        self.places[place] = None;
        self.reports.push(Report::Ended { place });
        self.sight.see(Seen::Ended { place });
    }

    /// Sends what is due, takes what has come, and waits for the next departure or datagram, no longer than until the
    /// next look at timeouts. It waits for whole milliseconds, so that departures within one share a wake-up.
    pub(crate) fn turn(&mut self) -> io::Result<()> {
        if self.clock.now_ns() >= self.swept_ns + SWEEP_NS {
            self.sweep()?;
        }
        for _ in 0..socket::BATCH {
            let Some((due_ns, place)) = self.departures.take(self.clock.now_ns()) else { break };
            self.send(place, due_ns);
        }
        let wake_ns = self.departures.next_ns().unwrap_or(i64::MAX);
        let wait_ns = wake_ns.min(self.swept_ns + SWEEP_NS) - self.clock.now_ns();
        let timeout = Duration::from_nanos(wait_ns.max(0).cast_unsigned());
        let mut ready = std::mem::take(&mut self.ready);
        self.interest.wait(timeout, |number, state| ready.push((number, state)))?;
        for (number, state) in ready.drain(..) {
            self.fetch((number >> 32) as usize, number as u32 as usize, state);
        }
        self.ready = ready;
        Ok(())
    }

    /// Ends all targets and hands on the last reports.
    pub(crate) fn finish(mut self) {
        let _ = self.sweep();
        for place in 0..self.places.len() {
            if self.places[place].is_some() {
                self.end(place);
            }
        }
        let _ = self.sender.send(std::mem::take(&mut self.reports));
        self.sight.hand_on();
    }

    fn probed(&mut self, place: usize) -> Option<&mut Probed> {
        self.places.get_mut(place)?.as_mut()
    }

    fn fetch(&mut self, place: usize, link: usize, state: Readiness) {
        let Self { places, buffers, .. } = self;
        let probed = places.get_mut(place).and_then(Option::as_mut);
        let Some(link) = probed.and_then(|probed| probed.links.get_mut(link)) else { return };
        // A flood must not keep other targets from being probed: what is left comes with the next turn.
        let heard = if state.failed { link.listen(buffers) } else { Ok(false) };
        // An error without a notice is fetched by receiving.
        let fetched = heard.and_then(|heard| {
            if state.readable || !heard { link.receive(buffers) } else { Ok(false) }
        });
        if let Err(error) = fetched {
            self.fail(place, &error);
        }
    }

    fn send(&mut self, place: usize, due_ns: i64) {
        let lateness_ns = self.clock.now_ns() - due_ns;
        let Self { places, buffers, .. } = self;
        let Some(probed) = places.get_mut(place).and_then(Option::as_mut) else { return };
        let count = probed.links.len();
        let outcome = if lateness_ns > MISSED_NS {
            Outcome::Missed
        } else if count == 0 {
            Outcome::Refused
        } else {
            probed.next = (probed.next + 1) % count;
            let link = &mut probed.links[probed.next];
            let before = link.session().counts().probes.refused;
            let sent = link.send(&[due_ns], buffers);
            let refused = link.session().counts().probes.refused > before;
            match sent {
                Err(error) => {
                    self.fail(place, &error);
                    Outcome::Refused
                }
                Ok(()) if refused => Outcome::Refused,
                Ok(()) => {
                    self.reports.push(Report::Departed { place, due_ns, lateness_ns });
                    return;
                }
            }
        };
        self.reports.push(Report::Decided { place, due_ns, outcome });
    }

    /// Closes the sockets of a target after an error; they are opened again in a second.
    fn fail(&mut self, place: usize, error: &SocketError) {
        self.close(place, false);
        let retry_ns = self.clock.now_ns() + RETRY_NS;
        if let Some(probed) = self.probed(place) {
            probed.retry_ns = retry_ns;
        }
        self.reports.push(Report::Failed { place, why: error.to_string() });
    }

    fn open(&mut self, place: usize, now_ns: i64) {
        let Self { places, opened, interest, .. } = self;
        let Some(probed) = places.get_mut(place).and_then(Option::as_mut) else { return };
        let Some(address) = probed.address.filter(|_| probed.links.is_empty()) else { return };
        if now_ns < probed.retry_ns {
            return;
        }
        let ports = probed.plan.source_ports.iter().zip(0..);
        let opening = ports.map(|(port, link)| {
            *opened += 1;
            let target = links::open(*opened, &probed.plan, address, *port)?;
            let number = (place as u64) << 32 | link;
            interest.add(target.socket().as_fd(), number).map_err(SocketError::Waiting)?;
            Ok(target)
        });
        match opening.collect::<Result<_, SocketError>>() {
            Ok(links) => {
                probed.links = links;
                self.sight.see(Seen::Opened { place, address });
            }
            Err(error) => self.fail(place, &error),
        }
    }

    /// Closes the sockets of a target: probes under way are cut.
    fn close(&mut self, place: usize, stepped: bool) {
        self.settle(place, clock::realtime_ns(), stepped);
        let Self { places, buffers, reports, sight, .. } = self;
        let Some(probed) = places.get_mut(place).and_then(Option::as_mut) else { return };
        for (number, mut link) in std::mem::take(&mut probed.links).into_iter().enumerate() {
            // Stamps that cannot be read any more are missing from the session, and counted there.
            let _ = link.listen(buffers);
            for trip in link.session_mut().finish() {
                let outcome = links::outcome(&trip, probed.plan.level, stepped);
                reports.push(Report::Decided { place, due_ns: trip.intended_ns, outcome });
                sight.see(Seen::Decided { place, link: number, trip, outcome });
            }
            probed.before.add(&links::arrivals(&link));
        }
    }

    /// Looks at timeouts and at the clock, and hands on the reports. An error: their receiver has failed, and says so
    /// when it is joined.
    fn sweep(&mut self) -> io::Result<()> {
        let now_ns = self.clock.now_ns();
        self.miss(now_ns)?;
        if let Some(step) = self.steps.look() {
            // Stamps on both sides of the step cannot be subtracted, and timeouts cannot be kept.
            (0..self.places.len()).for_each(|place| self.close(place, true));
            self.reports.push(Report::Stepped { by_ns: step.by_ns });
            self.sight.see(Seen::Stepped);
        }
        self.sweeps += 1;
        for place in 0..self.places.len() {
            let realtime_ns = clock::realtime_ns();
            if let Err(error) = self.catch_up(place, realtime_ns) {
                self.fail(place, &error);
            }
            self.settle(place, realtime_ns, false);
            self.open(place, now_ns);
            // Asking for overflows is a call for each socket: each is asked once a second.
            if (self.sweeps + place).is_multiple_of(10) {
                self.count_arrivals(place);
            }
        }
        self.reports.push(Report::Swept { now_ns });
        self.swept_ns = now_ns;
        self.sight.hand_on();
        self.hand_on()
    }

    /// Tells the probes that were missed while this process stood still, before the minutes end to which they belong.
    fn miss(&mut self, now_ns: i64) -> io::Result<()> {
        while let Some((due_ns, place)) = self.departures.take(now_ns - MISSED_NS - 1) {
            self.send(place, due_ns);
            if self.reports.len() >= MOST_MISSED {
                self.hand_on()?;
            }
        }
        Ok(())
    }

    fn hand_on(&mut self) -> io::Result<()> {
        let sent = self.sender.send(std::mem::take(&mut self.reports));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Takes the replies that came in time and wait, where this process was delayed longer than they.
    fn catch_up(&mut self, place: usize, now_ns: i64) -> Result<(), SocketError> {
        let Self { places, buffers, .. } = self;
        let probed = places.get_mut(place).and_then(Option::as_mut);
        let mut links = probed.into_iter().flat_map(|probed| &mut probed.links);
        links.try_for_each(|link| link.catch_up(now_ns, buffers))
    }

    fn settle(&mut self, place: usize, now_ns: i64, stepped: bool) {
        let Self { places, reports, sight, .. } = self;
        let Some(probed) = places.get_mut(place).and_then(Option::as_mut) else { return };
        for (number, link) in probed.links.iter_mut().enumerate() {
            while let Some(trip) = link.session_mut().settle(now_ns) {
                let outcome = links::outcome(&trip, probed.plan.level, stepped);
                reports.push(Report::Decided { place, due_ns: trip.intended_ns, outcome });
                sight.see(Seen::Decided { place, link: number, trip, outcome });
            }
        }
    }

    fn count_arrivals(&mut self, place: usize) {
        let Some(probed) = self.probed(place) else { return };
        let mut now = probed.before;
        probed.links.iter().for_each(|link| now.add(&links::arrivals(link)));
        let arrivals = now.since(&probed.told);
        probed.told = now;
        if arrivals != Arrivals::default() {
            let now_ns = self.clock.now_ns();
            self.reports.push(Report::Arrived { place, now_ns, arrivals });
        }
    }
}

#[cfg(test)]
#[path = "probing_tests.rs"]
mod tests;
