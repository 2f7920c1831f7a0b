//! When the fate of a probe is known.

use super::{Flight, FlightState, Patience, Session};
use crate::RoundTrip;

impl Session {
    pub(super) fn is_decided(&self, flight: &Flight, now_ns: i64) -> bool {
        let Patience { timeout_ns, stamps_ns, software, hardware, .. } = self.patience;
        let stamps = &flight.trip.stamps;
        let in_time = now_ns - stamps.app_send_ns <= timeout_ns;
        match flight.state {
            FlightState::Answered(at_ns) => {
                let complete = (stamps.sent_ns.is_some() || !software)
                    && (stamps.nic_sent_ns.is_some() || !hardware);
                let settled = complete || now_ns - at_ns > stamps_ns;
                settled && !(in_time && self.may_be_told(&flight.trip))
            }
            // The wait goes on after an error message: a filter may block one probe and let the next one pass.
            FlightState::Flying
            | FlightState::Undelivered
            | FlightState::Altered
            | FlightState::Late => !in_time,
        }
    }

    /// Whether a probe without a reply in time is to be decided.
    #[must_use]
    pub fn is_overdue(&self, now_ns: i64) -> bool {
        let over_ns = now_ns - self.patience.timeout_ns;
        let mut over = self.flights.iter().take_while(|one| one.trip.stamps.app_send_ns < over_ns);
        over.any(|flight| !matches!(flight.state, FlightState::Answered(_)))
    }

    /// Whether a later reply may still report the departure of this probe's reply.
    fn may_be_told(&self, trip: &RoundTrip) -> bool {
        self.patience.follow_up
            && trip.stamps.far_left_ns.is_none()
            && trip.far_number.is_some_and(|far| self.numbering.may_be_told(far))
            && !(self.ending && self.unanswered == 0)
    }
}
