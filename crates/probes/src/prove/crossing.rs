//! From a NIC's stamp of a sent packet to the other end's stamp of the same packet: the time on the cable, if both stamps are
//! right.

use super::side::Stage;
use super::{Claim, Measured, Proven, Verdict};
use serde::Serialize;
use tailtrim_ports::claims::Claims;
use tailtrim_tracer::clock::{Comparing, Conversion, Phc};

/// Times on the cable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Crossed {
    /// The sender.
    pub from: String,
    /// Packets that came.
    pub packets: usize,
    /// Number of them with both stamps.
    pub stamped: usize,
    /// Number of clocks that stamped.
    pub clocks: usize,
    /// Largest error of the clocks, either way: 0 of one clock.
    pub clock_error_ns: i64,
    /// The fastest, by nearest rank the median and the 99th percentile, and the slowest.
    pub times_ns: Option<[i64; 4]>,
}

/// The clocks of both ends.
pub(super) enum Ends {
    /// One for both.
    One,
    /// Two, compared all along.
    Two(Comparing, Conversion),
    /// They cannot be compared.
    Apart(String),
    /// An end has none.
    None,
}

/// The clocks of both ends, when all packets have been sent.
pub(super) struct Ended {
    conversion: Option<Conversion>,
    clocks: usize,
    /// `None` where nothing can be told, with the reason.
    error_ns: Result<i64, Option<String>>,
}

impl Ends {
    /// Begins to compare the clocks of both ends where there are two.
    pub(super) fn begin(claims: &[Claims; 2]) -> Self {
        let [Some(one), Some(other)] = claims.each_ref().map(|claims| claims.phc.as_deref()) else {
            return Self::None;
        };
        if one == other {
            return Self::One;
        }
        let open =
            |device: &str| Phc::open(device).map_err(|error| format!("/dev/{device}: {error}"));
        let compared = [one, other].into_iter().map(open).collect::<Result<Vec<Phc>, String>>();
        let comparing =
            compared.and_then(|clocks| Comparing::start(clocks).map_err(|error| error.to_string()));
        match comparing.map(|comparing| (comparing.conversion(other), comparing)) {
            Ok((Some(conversion), comparing)) => Self::Two(comparing, conversion),
            Ok((None, _)) => Self::None,
            Err(why) => Self::Apart(why),
        }
    }

    /// Ends the comparison.
    pub(super) fn end(self) -> Ended {
        match self {
            Self::One => Ended { conversion: None, clocks: 1, error_ns: Ok(0) },
            Self::None => Ended { conversion: None, clocks: 0, error_ns: Err(None) },
            Self::Apart(why) => Ended { conversion: None, clocks: 2, error_ns: Err(Some(why)) },
            Self::Two(comparing, conversion) => {
                let mut told = comparing.end();
                let told = told.pop();
                let error_ns = told.as_ref().and_then(|told| told.clock_error_ns);
                let why = told.map_or_else(String::new, |told| told.invalid.join("; "));
                Ended {
                    conversion: Some(conversion),
                    clocks: 2,
                    error_ns: error_ns.ok_or(Some(why)),
                }
            }
        }
    }
}

impl Ended {
    /// Judges the packets to one end, the first or the second.
    pub(super) fn proven(&mut self, to: usize, claims: &[Claims; 2], stages: &[Stage]) -> Proven {
        let (receiver, sender) = (&claims[to], &claims[1 - to]);
        let claimed =
            !sender.transmit_stamps.nic.is_empty() && !receiver.receive_stamps.nic.is_empty();
        let mut told = Crossed {
            from: sender.interface.clone(),
            packets: stages.iter().map(Stage::arrived).sum(),
            stamped: 0,
            clocks: self.clocks,
            clock_error_ns: 0,
            times_ns: None,
        };
        let (verdict, why) = match &self.error_ns {
            _ if !claimed => (Verdict::Absent, None),
            Err(None) => (Verdict::Absent, None),
            Err(Some(why)) => {
                (Verdict::Untested, Some(format!("the clocks cannot be compared: {why}")))
            }
            Ok(error_ns) => {
                told.clock_error_ns = *error_ns;
                measure(&mut told, self.times(to, stages))
            }
        };
        let measured = told.times_ns.is_some().then_some(Measured::Crossed(told));
        let interface = receiver.interface.clone();
        Proven {
            interface,
            claim: Claim::TransmitToReceive,
            claimed,
            verdict,
            why,
            filter: None,
            measured,
        }
    }

    /// Times of all packets with both stamps.
    fn times(&mut self, to: usize, stages: &[Stage]) -> Vec<i64> {
        let mut time = |(sent, received): (&Option<i64>, &Option<i64>)| {
            let mut stamps = [(*sent)?, (*received)?];
            if let Some(conversion) = &mut self.conversion {
                // The stamp of the second end: of the sender where packets go to the first.
                stamps[to] = conversion.of_reference(stamps[to]);
            }
            Some(stamps[1].saturating_sub(stamps[0]))
        };
        let pairs = stages.iter().flat_map(|stage| stage.sent_nic.iter().zip(&stage.received_nic));
        pairs.filter_map(&mut time).collect()
    }
}

/// Takes the times, and judges them: no packet comes before it was sent.
fn measure(told: &mut Crossed, mut times: Vec<i64>) -> (Verdict, Option<String>) {
    times.sort_unstable();
    told.stamped = times.len();
    let Some(last) = times.len().checked_sub(1) else {
        return (Verdict::Untested, Some("no packet has both stamps".to_owned()));
    };
    let at = |percent: usize| times[(times.len() * percent).div_ceil(100) - 1];
    told.times_ns = Some([times[0], at(50), at(99), times[last]]);
    match times.partition_point(|ns| *ns < -told.clock_error_ns) {
        0 if told.stamped < told.packets => (Verdict::Partial, None),
        0 => (Verdict::Proven, None),
        early => {
            let why = format!("{early} of {} packets came before they were sent", told.stamped);
            (Verdict::Refuted, Some(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(times: &[i64], clock_error_ns: i64) -> (Crossed, Verdict, Option<String>) {
        let from = "a".to_owned();
        let mut told =
            Crossed { from, packets: 4, stamped: 0, clocks: 2, clock_error_ns, times_ns: None };
        let (verdict, why) = measure(&mut told, times.to_vec());
        (told, verdict, why)
    }

    #[test]
    fn packets_take_time_on_a_cable() {
        let (crossed, verdict, why) = told(&[520, 500, 510, 900], 0);
        assert_eq!(
            (crossed.times_ns, verdict, why),
            (Some([500, 510, 900, 900]), Verdict::Proven, None)
        );
        assert_eq!(told(&[500], 0).1, Verdict::Partial);
        assert_eq!(told(&[], 0).1, Verdict::Untested);
    }

    #[test]
    fn a_packet_that_comes_before_it_was_sent_refutes_the_stamps() {
        let (_, verdict, why) = told(&[-600, 500, 510, -1_200], 1_000);
        assert_eq!(verdict, Verdict::Refuted);
        assert_eq!(why.unwrap(), "1 of 4 packets came before they were sent");
        // Two clocks may be off by so much.
        assert_eq!(told(&[-600, 500, 510, -900], 1_000).1, Verdict::Proven);
    }
}
