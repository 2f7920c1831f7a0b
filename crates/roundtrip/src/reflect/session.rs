//! State of a session.

use super::Arrival;
use std::net::IpAddr;
use tailtrim_wire::tlv::StampedBy;

/// Key of a session: both ends, and the sender's identifier (RFC 8972 section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    from: IpAddr,
    from_port: u16,
    to: Option<IpAddr>,
    port: u16,
    ssid: u16,
}

impl SessionKey {
    pub(super) fn new(arrival: &Arrival, ssid: u16) -> Self {
        let from = arrival.from.ip().to_canonical();
        let to = arrival.to.map(|to| to.to_canonical());
        Self { from, from_port: arrival.from.port(), to, port: arrival.port, ssid }
    }
}

/// State of a session.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Session {
    /// Number of requests, modulo 2^32.
    pub(super) received: u32,
    /// Number of replies, which is also the next one's sequence number.
    pub(super) sent: u32,
    /// Number and departure of the last reply that is known to have left.
    pub(super) departed: Option<(u32, i64, StampedBy)>,
    pub(super) window: Window,
}

impl Session {
    /// Returns the number of the next reply, which counts as sent from then on.
    pub(super) fn number(&mut self) -> u32 {
        let number = self.sent;
        self.sent = number.wrapping_add(1);
        number
    }
}

/// Record of the last 64 numbers that came.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Window {
    /// The highest number, and the latest T1.
    newest: Option<(u32, i64)>,
    /// Bit n: the highest but n came.
    came: u64,
}

impl Window {
    /// Whether a request with this number and T1 is new, which it is only once. A sender that starts again from 0 has a
    /// later T1 than before; an old packet that is sent again has not.
    pub(super) fn is_new(&mut self, sequence: u32, sent_ns: Option<i64>) -> bool {
        let sent_ns = sent_ns.unwrap_or(i64::MIN);
        let Some((highest, latest_ns)) = self.newest else {
            (self.newest, self.came) = (Some((sequence, sent_ns)), 1);
            return true;
        };
        let ahead = sequence.wrapping_sub(highest).cast_signed();
        let behind = highest.wrapping_sub(sequence);
        if ahead > 0 {
            // An old packet may not move the window.
            if sent_ns < latest_ns {
                return false;
            }
            self.came = self.came.checked_shl(ahead.cast_unsigned()).unwrap_or(0) | 1;
            self.newest = Some((sequence, sent_ns));
            return true;
        }
        let seen = behind >= 64 || self.came >> behind & 1 == 1;
        if !seen {
            self.came |= 1 << behind;
            return true;
        }
        if sent_ns > latest_ns {
            (self.newest, self.came) = (Some((sequence, sent_ns)), 1);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_new_once() {
        let mut window = Window::default();
        for (sequence, at, new) in [
            (0, 10, true),
            (0, 10, false),
            (1, 11, true),
            (5, 15, true),
            // Overtaken on the way.
            (3, 13, true),
            (3, 13, false),
            (5, 15, false),
            (70, 80, true),
            (5, 15, false),
            (6, 16, false),
            (7, 17, true),
            // The sender started again.
            (0, 90, true),
            (0, 90, false),
            (1, 91, true),
            // From before that.
            (70, 80, false),
            (71, 81, false),
        ] {
            assert_eq!(window.is_new(sequence, Some(at)), new, "{sequence} at {at}");
        }
        let mut window = Window::default();
        assert!(window.is_new(u32::MAX, Some(1)));
        assert!(window.is_new(0, Some(2)));
        assert!(!window.is_new(u32::MAX, Some(1)));
        assert!(!window.is_new(0, None));
    }
}
