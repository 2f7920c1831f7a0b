//! The sender's side of the wire: writing a probe, reading a reply or a quoted probe.

use tailtrim_wire::tlv::{self, FollowUp, kind};
use tailtrim_wire::{
    ECHO_PROBE_LEN, EchoProbe, ErrorEstimate, HMAC_LEN, Key, TimeFormat, icmp, stamp, twamp,
};

/// Protocol of the requests.
#[derive(Debug, Clone)]
pub enum Protocol {
    /// UDP echo (RFC 862).
    UdpEcho {
        /// Bytes in front of the probe: the reflector answers nothing else.
        cookie: Option<[u8; 8]>,
    },
    /// ICMP or ICMPv6 echo.
    IcmpEcho,
    /// STAMP (RFC 8762).
    Stamp {
        /// Key for signing.
        key: Option<Key>,
        /// Whether to ask when the previous reply really left (RFC 8972 section 4.7).
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
                // Telemetry, and with a key its HMAC.
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
    /// Protocol of the requests.
    pub protocol: Protocol,
    /// A random number, by which replies to other sessions are recognised.
    pub session: u32,
    /// ICMP's identifier.
    pub identifier: u16,
    /// ICMP or ICMPv6.
    pub version: icmp::Version,
    /// Error bound of this host's clock against UTC; `None`: unknown.
    pub clock_bound_ns: Option<u64>,
    /// Both hosts have one clock: their times subtract, whatever error bounds they report.
    pub same_clock: bool,
}

/// Contents of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The low bits of the probe's number.
    pub low: u64,
    /// Number of these bits.
    pub bits: u32,
    /// T1 in the reply.
    pub sender_stamp: u64,
    /// T2 and T3, by the clock of the far host.
    pub far_ns: Option<(i64, i64)>,
    /// Largest difference of the two clocks; `None`: unknown.
    pub clock_bound_ns: Option<u64>,
    /// The number of the reply, of the far host's choice.
    pub far_number: Option<u32>,
    /// Time at which an earlier reply really left, by its number and the clock of the far host.
    pub follow_up: Option<(u32, i64)>,
    /// TTL or hop limit with which the probe came to the far host, by its report.
    pub far_hops: Option<u8>,
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
    /// Writes a probe into a packet of [`least_bytes`](Protocol::least_bytes) or more; the bytes behind its fields
    /// stay. Returns T1 in the packet's format: a reply repeats it.
    pub fn write(&self, packet: &mut [u8], number: u64, now_ns: i64) -> u64 {
        let probe = EchoProbe { session: self.session, sequence: number, unix_ns: now_ns };
        // Only the low bits of the number are in a probe of any of these; the reply repeats them.
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
                // A packet that is too small was refused when the session was set up.
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

    /// Reads a datagram. `now_ns` determines the era of its times.
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
                // A reflector that implements only RFC 8762 leaves zero.
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
            far_hops: None,
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
            far_hops: Some(reply.sender_ttl),
        })
    }

    /// The low bits of the number of a probe that an ICMP message quotes, and their number; `None` where it quotes too
    /// little or another session's probe.
    #[must_use]
    pub fn read_quoted(&self, packet: &[u8]) -> Option<(u64, u32)> {
        match &self.protocol {
            Protocol::UdpEcho { cookie } => {
                self.read_echo(behind(*cookie, packet)).ok().map(|answer| (answer.low, answer.bits))
            }
            Protocol::IcmpEcho => {
                let (header, payload) = packet.split_first_chunk::<{ icmp::HEADER_LEN }>()?;
                let whole = self.read_echo(payload).ok().map(|answer| (answer.low, answer.bits));
                // Only the header is guaranteed by RFC 792.
                whole.or(Some((u64::from(u16::from_be_bytes([header[6], header[7]])), 16)))
            }
            Protocol::Stamp { .. } | Protocol::TwampLight => {
                let sequence = packet.first_chunk::<4>()?;
                Some((u32::from_be_bytes(*sequence).into(), 32))
            }
        }
    }
}

/// The bytes behind the cookie; empty where it is another cookie.
fn behind(cookie: Option<[u8; 8]>, packet: &[u8]) -> &[u8] {
    cookie.map_or(packet, |cookie| packet.strip_prefix(&cookie).unwrap_or_default())
}

/// TLVs behind a probe of STAMP: requests, and padding up to its end (RFC 8972 section 4.1).
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
