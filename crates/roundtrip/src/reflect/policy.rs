//! Policy of a reflector: allowed clients, rate limits, and properties of replies.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use tailtrim_wire::Key;

/// Rules of a reflector.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The reflector's own ports: a request from one of them comes from another reflector.
    pub ports: Vec<u16>,
    /// Clients that are answered; empty: all.
    pub allowed: Vec<Allowed>,
    /// Rate limit of each client.
    pub limit: Option<Limit>,
    /// Rate limit of echoes that may be in a loop between two reflectors: for each client address, client port and own
    /// port.
    ///
    /// An echo may be in a loop if its payload came before (the first 64 bytes and the length are compared with
    /// those that are remembered), or if its TTL or hop limit is at most 32. `None`: always.
    pub repeats: Option<Limit>,
    /// The first bytes of each echo that is answered: senders with forged addresses do not know them.
    pub cookie: Option<[u8; 8]>,
    /// The key of STAMP; with one, only authenticated packets are answered.
    pub key: Option<Key>,
    /// Whether replies of STAMP and TWAMP-Light are numbered by session (RFC 8762 section 4.3, RFC 5357 section
    /// 4.2.1).
    pub stateful: bool,
    /// The class of replies.
    pub class: Class,
    /// Clients, sessions and flows of echoes that are remembered at once, each, and a quarter as many payloads of
    /// echoes. A further one replaces one of four random ones: the one that was quiet longest.
    pub remembered: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            allowed: Vec::new(),
            limit: None,
            repeats: Some(Limit::new(100, 64)),
            cookie: None,
            key: None,
            stateful: false,
            class: Class::default(),
            remembered: 1 << 16,
        }
    }
}

impl Policy {
    /// Whether sessions are needed: numbers of replies and of authenticated requests are per session.
    pub(super) fn keeps_sessions(&self) -> bool {
        self.stateful || self.key.is_some()
    }
}

/// The DSCP of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Class {
    /// That of the request, or what its Class of Service TLV asks for.
    #[default]
    Mirror,
    /// Always this one.
    Fixed(u8),
}

/// Addresses with the same first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    address: IpAddr,
    bits: u8,
}

/// A text that is no prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid prefix {0:?}, expected an address such as 192.0.2.7, or 192.0.2.0/24, 2001:db8::/32"
)]
pub struct AllowedError(String);

impl Allowed {
    /// Whether the address is one of these. IPv4 within IPv6 counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(mine), IpAddr::V4(other)) => {
                let differ = mine.to_bits() ^ other.to_bits();
                differ.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(mine), IpAddr::V6(other)) => {
                let differ = mine.to_bits() ^ other.to_bits();
                differ.leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }

    /// The first of the addresses, and the number of bits that they share.
    #[must_use]
    pub fn prefix(&self) -> (IpAddr, u8) {
        (self.address, self.bits)
    }
}

impl FromStr for Allowed {
    type Err = AllowedError;

    fn from_str(text: &str) -> Result<Self, AllowedError> {
        let wrong = || AllowedError(text.to_owned());
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse::<u8>().map_err(|_| wrong()))?;
        if bits <= most { Ok(Self { address, bits }) } else { Err(wrong()) }
    }
}

impl std::fmt::Display for Allowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Rate limit of a client: so many requests a second in the long run, and so many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    interval_ns: i64,
    slack_ns: i64,
}

impl Limit {
    /// At least one a second; at most one a nanosecond.
    #[must_use]
    pub fn new(per_second: u32, burst: u32) -> Self {
        let interval_ns = 1_000_000_000 / i64::from(per_second.clamp(1, 1_000_000_000));
        Self { interval_ns, slack_ns: interval_ns * (i64::from(burst.max(1)) - 1) }
    }

    /// Nanoseconds between two requests in the long run, and the time by which one may come earlier.
    #[must_use]
    pub fn interval_and_slack_ns(&self) -> (i64, i64) {
        (self.interval_ns, self.slack_ns)
    }

    /// Whether a request now is within the limit; `due_ns` is when the next one of this client was due (the
    /// generic cell rate algorithm of ITU-T I.371: one number instead of a bucket).
    pub(super) fn admits(self, due_ns: &mut i64, now_ns: i64) -> bool {
        let admitted = *due_ns <= now_ns.saturating_add(self.slack_ns);
        if admitted {
            *due_ns = (*due_ns).max(now_ns).saturating_add(self.interval_ns);
        }
        admitted
    }
}

/// Unit of a limit: an IPv4 address, or the 64 bits of IPv6 that one network has, within which a host may take any
/// address.
pub(super) fn client(address: IpAddr) -> [u8; 16] {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read_and_hold() {
        let allowed: Allowed = "192.0.2.0/24".parse().unwrap();
        for (address, contained) in [
            ("192.0.2.255", true),
            ("192.0.3.0", false),
            ("::ffff:192.0.2.1", true),
            ("2001:db8::1", false),
        ] {
            assert_eq!(allowed.contains(address.parse().unwrap()), contained, "{address}");
        }
        let everybody: Allowed = "::/0".parse().unwrap();
        assert!(everybody.contains("2001:db8::1".parse().unwrap()));
        assert_eq!("10.0.0.1".parse::<Allowed>().unwrap().to_string(), "10.0.0.1/32");
        for text in ["", "10.0.0.0/33", "10.0.0.0/", "2001:db8::/129", "host", "10.0.0.0/-1"] {
            let error = text.parse::<Allowed>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("invalid prefix {text:?}, expected")), "{error}");
        }
    }

    #[test]
    fn a_limit_lets_bursts_pass_and_no_more() {
        let limit = Limit::new(1_000, 3);
        let mut due_ns = i64::MIN;
        let at = |ms: i64| ms * 1_000_000;
        let admitted: Vec<bool> =
            [0, 0, 0, 0, 1, 1, 3].iter().map(|&ms| limit.admits(&mut due_ns, at(ms))).collect();
        assert_eq!(admitted, [true, true, true, false, true, false, true]);
        // Over a second, the rate and the burst.
        let mut due_ns = i64::MIN;
        let count = (0..10_000).filter(|i| limit.admits(&mut due_ns, i * 100_000)).count();
        assert_eq!(count, 1_002);
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let client = |text: &str| client(text.parse().unwrap());
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:1"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_ne!(client("10.0.0.1"), client("10.0.0.2"));
        assert_eq!(client("10.0.0.1"), client("::ffff:10.0.0.1"));
    }
}
