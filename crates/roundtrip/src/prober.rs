//! The sender's side of the wire: a probe's bytes, and what a reply or a quoted probe says.

use tailtrim_wire::tlv::{self, FollowUp, kind};
use tailtrim_wire::{
    ECHO_PROBE_LEN, EchoProbe, ErrorEstimate, HMAC_LEN, Key, TimeFormat, icmp, stamp, twamp,
};

/// How the far host is asked.
#[derive(Debug, Clone)]
pub enum Protocol {
    /// UDP echo (RFC 862).
    UdpEcho {
        /// In front of the probe: the reflector answers nothing else.
        cookie: Option<[u8; 8]>,
    },
    /// ICMP or ICMPv6 echo.
    IcmpEcho,
    /// STAMP (RFC 8762).
    Stamp {
        /// Signed with it.
        key: Option<Key>,
        /// Asking when the reply before really left (RFC 8972 section 4.7).
        follow_up: bool,
    },
    /// TWAMP-Light (RFC 5357 appendix I), without authentication.
    TwampLight,
}

impl Protocol {
    /// Its name in results.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::UdpEcho { .. } => "udp",
            Self::IcmpEcho => "icmp",
            Self::Stamp { key: None, .. } => "stamp",
            Self::Stamp { key: Some(_), .. } => "stamp, authenticated",
            Self::TwampLight => "twamp-light",
        }
    }

    /// The port that its reflectors have; `None` for ICMP.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::UdpEcho { .. } => Some(7),
            Self::IcmpEcho => None,
            Self::Stamp { .. } | Self::TwampLight => Some(stamp::PORT),
        }
    }

    /// Bytes above IP and UDP that a probe has at least.
    #[must_use]
    pub fn least_bytes(&self) -> usize {
        match self {
            Self::UdpEcho { cookie } => cookie.map_or(0, |cookie| cookie.len()) + ECHO_PROBE_LEN,
            Self::IcmpEcho => icmp::HEADER_LEN + ECHO_PROBE_LEN,
            Self::Stamp { key, follow_up } => {
                // Telemetry, and with a key the HMAC of that.
                let tlvs = usize::from(*follow_up) * (1 + usize::from(key.is_some()));
                stamp::base_len(key.as_ref()) + tlvs * (tlv::HEADER_LEN + HMAC_LEN)
            }
            Self::TwampLight => stamp::OPEN_LEN,
        }
    }
}

/// Writes probes and reads replies of one session.
#[derive(Debug, Clone)]
pub struct Prober {
    /// How the far host is asked.
    pub protocol: Protocol,
    /// A random number, so that replies to others are none.
    pub session: u32,
    /// ICMP's identifier.
    pub identifier: u16,
    /// Which ICMP.
    pub version: icmp::Version,
    /// How far this host's clock may be from UTC; `None`: unknown.
    pub clock_bound_ns: Option<u64>,
    /// Both hosts have one clock: whatever they say, their times subtract.
    pub same_clock: bool,
}

/// What a reply says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The low bits of the probe's number.
    pub low: u64,
    /// How many.
    pub bits: u32,
    /// T1 as the reply has it.
    pub sender_stamp: u64,
    /// T2 and T3, by the clock of the far host.
    pub far_ns: Option<(i64, i64)>,
    /// How far the two clocks may be apart; `None`: unknown.
    pub clock_bound_ns: Option<u64>,
    /// The number of the reply, of the far host's choice.
    pub far_number: Option<u32>,
    /// When an earlier reply really left, by its number and the clock of the far host.
    pub follow_up: Option<(u32, i64)>,
}

/// Why a datagram is not a reply of this session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// Another session's.
    Stray,
    /// Too short or wrong.
    Malformed,
    /// Not signed with the key.
    Unauthentic,
}

impl Prober {
    /// Writes a probe over the bytes, of which there are [`least_bytes`](Protocol::least_bytes) or more;
    /// what is behind its fields stays. Returns T1 as it stands there: a reply repeats it.
    pub fn write(&self, packet: &mut [u8], number: u64, now_ns: i64) -> u64 {
        let probe = EchoProbe { session: self.session, sequence: number, unix_ns: now_ns };
        // All of these have the number's low bits; the reply tells which.
        let sequence = number as u32;
        let error = ErrorEstimate::of_bound(self.clock_bound_ns, TimeFormat::Ntp);
        let stamp = TimeFormat::Ntp.write(now_ns);
        match &self.protocol {
            Protocol::UdpEcho { cookie } => {
                let cookie = cookie.as_ref().map_or(&[][..], |cookie| cookie);
                fill(packet, 0, cookie);
                fill(packet, cookie.len(), &probe.encode());
            }
            Protocol::IcmpEcho => {
                fill(packet, icmp::HEADER_LEN, &probe.encode());
                let identifier = self.identifier;
                let echo = icmp::Echo { reply: false, identifier, sequence: number as u16 };
                echo.write(self.version, packet);
            }
            Protocol::Stamp { key, follow_up } => {
                let ssid = self.ssid();
                let sender = stamp::SenderPacket { sequence, stamp, error, ssid };
                // Too little room was refused when the session was set up.
                let _ = sender.write(key.as_ref(), packet);
                extend(packet, key.as_ref(), *follow_up);
            }
            Protocol::TwampLight => twamp::SenderPacket { sequence, stamp, error }.write(packet),
        }
        match &self.protocol {
            Protocol::UdpEcho { .. } | Protocol::IcmpEcho => now_ns.cast_unsigned(),
            Protocol::Stamp { .. } | Protocol::TwampLight => stamp,
        }
    }

    /// The session's number in STAMP; not zero, which means none.
    fn ssid(&self) -> u16 {
        (self.session as u16).max(1)
    }

    /// What a datagram says. `now_ns` tells in which era its times are.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub fn read(&self, packet: &[u8], now_ns: i64) -> Result<Answer, NoAnswer> {
        match &self.protocol {
            Protocol::UdpEcho { cookie } => self.read_echo(behind(*cookie, packet)),
            Protocol::IcmpEcho => {
                let echo = icmp::Echo::read(self.version, packet).ok_or(NoAnswer::Malformed)?;
                // A request of another process, on a raw socket to this very host.
                if !echo.reply || echo.identifier != self.identifier {
                    return Err(NoAnswer::Stray);
                }
                self.read_echo(&packet[icmp::HEADER_LEN..])
            }
            Protocol::Stamp { key, follow_up } => {
                let reply = stamp::ReflectorPacket::read(key.as_ref(), packet);
                let reply = reply.map_err(|error| match error {
                    stamp::StampError::Short { .. } => NoAnswer::Malformed,
                    stamp::StampError::Hmac => NoAnswer::Unauthentic,
                })?;
                // A reflector that knows RFC 8762 alone leaves zero.
                if reply.ssid != self.ssid() && reply.ssid != 0 {
                    return Err(NoAnswer::Stray);
                }
                let mut answer = self.told(&reply, now_ns)?;
                if *follow_up {
                    let base = stamp::base_len(key.as_ref());
                    let telemetry = tlv::follow_up(packet, base, key.as_ref());
                    let left_ns = telemetry.and_then(|t| reply.error.format.read(t.stamp, now_ns));
                    answer.follow_up = telemetry.map(|t| t.sequence).zip(left_ns);
                }
                Ok(answer)
            }
            Protocol::TwampLight => {
                self.told(&twamp::read_reply(packet).ok_or(NoAnswer::Malformed)?, now_ns)
            }
        }
    }

    fn read_echo(&self, payload: &[u8]) -> Result<Answer, NoAnswer> {
        let probe = EchoProbe::decode(payload).ok_or(NoAnswer::Malformed)?;
        if probe.session != self.session {
            return Err(NoAnswer::Stray);
        }
        Ok(Answer {
            low: probe.sequence,
            bits: 63,
            sender_stamp: probe.unix_ns.cast_unsigned(),
            far_ns: None,
            clock_bound_ns: None,
            far_number: None,
            follow_up: None,
        })
    }

    fn told(&self, reply: &stamp::ReflectorPacket, now_ns: i64) -> Result<Answer, NoAnswer> {
        let format = reply.error.format;
        let far_ns = format.read(reply.received, now_ns).zip(format.read(reply.stamp, now_ns));
        let far_ns = far_ns.ok_or(NoAnswer::Malformed)?;
        let clock_bound_ns = if self.same_clock {
            Some(0)
        } else {
            let theirs = reply.error.synchronized.then(|| reply.error.bound_ns());
            theirs.zip(self.clock_bound_ns).map(|(theirs, ours)| theirs.saturating_add(ours))
        };
        Ok(Answer {
            low: reply.sender_sequence.into(),
            bits: 32,
            sender_stamp: reply.sender_stamp,
            far_ns: Some(far_ns),
            clock_bound_ns,
            far_number: Some(reply.sequence),
            follow_up: None,
        })
    }

    /// The low bits of the number of a probe that an ICMP message quotes, and how many; `None` where it
    /// quotes too little or another's.
    #[must_use]
    pub fn read_quoted(&self, packet: &[u8]) -> Option<(u64, u32)> {
        match &self.protocol {
            Protocol::UdpEcho { cookie } => {
                self.read_echo(behind(*cookie, packet)).ok().map(|answer| (answer.low, answer.bits))
            }
            Protocol::IcmpEcho => {
                let (header, payload) = packet.split_first_chunk::<{ icmp::HEADER_LEN }>()?;
                let whole = self.read_echo(payload).ok().map(|answer| (answer.low, answer.bits));
                // The header is all that RFC 792 promises.
                whole.or(Some((u64::from(u16::from_be_bytes([header[6], header[7]])), 16)))
            }
            Protocol::Stamp { .. } | Protocol::TwampLight => {
                let sequence = packet.first_chunk::<4>()?;
                Some((u32::from_be_bytes(*sequence).into(), 32))
            }
        }
    }
}

/// What is behind the cookie; nothing where it is another one.
fn behind(cookie: Option<[u8; 8]>, packet: &[u8]) -> &[u8] {
    cookie.map_or(packet, |cookie| packet.strip_prefix(&cookie).unwrap_or_default())
}

/// TLVs behind a probe of STAMP: what is asked for, and padding up to its end (RFC 8972 section 4.1).
fn extend(packet: &mut [u8], key: Option<&Key>, follow_up: bool) {
    let base = stamp::base_len(key);
    let mut at = base;
    if follow_up {
        at = tlv::place(packet, at, kind::FOLLOW_UP, &FollowUp::default().write());
        if let Some(key) = key {
            let covered = packet.get(base..at).unwrap_or(&[]);
            let hmac = key.sign(&[packet.get(..4).unwrap_or(&[]), covered]);
            at = tlv::place(packet, at, kind::HMAC, &hmac);
        }
    }
    tlv::pad(packet, at);
}

fn fill(packet: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(room) = packet.get_mut(at..at + bytes.len()) {
        room.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests;
