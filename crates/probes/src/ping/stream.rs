//! Probes from one source to one target in one class, and the analysis of their round trips.

use super::analysis::Analyser;
use super::log::Log;
use super::result::StreamResult;
use super::{Live, PingError, Plan, log_path};
use crate::target::{Buffers, Destination, Target};
use std::path::PathBuf;
use tailtrim_roundtrip::{Ending, RoundTrip, Split, StampLevel};

/// Bytes of an Ethernet header.
const ETHERNET_LEN: usize = 14;

/// A stream: its name, and where its probes go.
#[derive(Debug, Clone)]
pub struct StreamPlan {
    /// Name of the stream.
    pub name: String,
    /// Destination of its probes.
    pub destination: Destination,
}

/// A stream under way.
#[derive(Debug)]
pub(super) struct Stream {
    name: String,
    level: StampLevel,
    target: Target,
    split: Split,
    analyser: Analyser,
    log: Option<(Log, PathBuf)>,
    unstamped: u64,
    round_trips_ns: Vec<i64>,
    live: bool,
}

impl Stream {
    pub(super) fn open(index: usize, stream: &StreamPlan, plan: &Plan) -> Result<Self, PingError> {
        let target = Target::open(index, stream.destination.clone(), &plan.probing)?;
        let packet_bytes = target.packet_bytes();
        let analyser = Analyser::start(&stream.name, packet_bytes + ETHERNET_LEN, &plan.options);
        let log = plan.log.as_deref().map(|folder| {
            let path = log_path(folder, index);
            let log = Log::create(&path, packet_bytes);
            log.map(|log| (log, path.clone())).map_err(|source| PingError::Log { path, source })
        });
        Ok(Self {
            name: stream.name.clone(),
            level: plan.probing.level,
            target,
            split: Split::new(),
            analyser,
            log: log.transpose()?,
            unstamped: 0,
            round_trips_ns: Vec::new(),
            live: true,
        })
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Whether a reply came more than once.
    pub(super) fn is_answered_twice(&self) -> bool {
        self.target.session().counts().replies.duplicate > 0
    }

    pub(super) fn is_idle(&self) -> bool {
        self.target.session().is_idle()
    }

    /// The last probe was sent.
    pub(super) fn no_more(&mut self) {
        self.target.session_mut().no_more();
    }

    /// Sends a probe for each of these departures.
    pub(super) fn send(&mut self, due: &[i64], buffers: &mut Buffers) -> Result<(), PingError> {
        Ok(self.target.send(due, buffers)?)
    }

    /// Takes the replies that have come. Returns whether there were any.
    pub(super) fn receive(&mut self, buffers: &mut Buffers) -> Result<bool, PingError> {
        Ok(self.target.receive(buffers)?)
    }

    /// Reads send stamps and errors from the kernel's error queue.
    pub(super) fn listen(&mut self, buffers: &mut Buffers) -> Result<(), PingError> {
        if !self.is_idle() {
            self.target.listen(buffers)?;
        }
        Ok(())
    }

    /// Hands on the round trips that are decided.
    pub(super) fn settle(&mut self, now_ns: i64, buffers: &mut Buffers) -> Result<(), PingError> {
        self.target.catch_up(now_ns, buffers)?;
        while let Some(trip) = self.target.session_mut().settle(now_ns) {
            self.hand_on(&trip)?;
        }
        let before_ns = self.target.session().oldest_ns().unwrap_or(now_ns);
        self.analyser.release(before_ns);
        Ok(())
    }

    fn hand_on(&mut self, trip: &RoundTrip) -> Result<(), PingError> {
        let answered = trip.ending == Ending::Answered;
        let round_trip_ns = trip.stamps.round_trip_ns(self.level).filter(|_| answered);
        let begin_ns = trip.stamps.begin_ns(self.level);
        if answered {
            self.split.record(&trip.stamps, trip.clock_bound_ns);
            match round_trip_ns.zip(begin_ns) {
                Some((round_trip_ns, begin_ns)) => {
                    self.analyser.sent(trip.number, begin_ns);
                    self.analyser.received(trip.number, begin_ns + round_trip_ns);
                    if self.live {
                        self.round_trips_ns.push(round_trip_ns);
                    }
                }
                None => self.unstamped += 1,
            }
        } else {
            self.analyser.sent(trip.number, begin_ns.unwrap_or(trip.stamps.app_send_ns));
        }
        if let Some((log, path)) = &mut self.log {
            let written = log.write(trip, round_trip_ns);
            written.map_err(|source| PingError::Log { path: path.clone(), source })?;
        }
        Ok(())
    }

    /// Adds the events since the last call.
    pub(super) fn tell(&mut self, live: &mut Live) {
        let counts = self.target.session().counts();
        live.sent += counts.probes.sent();
        live.answered += counts.replies.first;
        live.unanswered += counts.probes.unanswered();
        live.round_trips_ns.append(&mut self.round_trips_ns);
    }

    /// Ends the stream and analyses it.
    pub(super) fn finish(mut self, buffers: &mut Buffers) -> Result<StreamResult, PingError> {
        self.listen(buffers)?;
        let overflowed = self.target.socket().overflowed()?.into();
        self.target.session_mut().counts_mut().overflowed = overflowed;
        let ended = self.target.session_mut().finish();
        for trip in ended.iter().filter(|trip| trip.ending != Ending::Cut) {
            self.hand_on(trip)?;
        }
        if let Some((log, path)) = self.log.take() {
            log.close().map_err(|source| PingError::Log { path, source })?;
        }
        let destination = self.target.destination();
        let mut result = StreamResult {
            name: self.name,
            target: destination.address,
            local: self.target.socket().local(),
            protocol: destination.protocol.name(),
            traffic_class: destination.traffic_class,
            packet_bytes: self.target.packet_bytes(),
            counts: self.target.session().counts().clone(),
            unstamped: self.unstamped,
            parts: self.split.parts(),
            one_way: self.split.one_way(),
            summary: self.analyser.finish()?,
        };
        result.complete();
        Ok(result)
    }
}
