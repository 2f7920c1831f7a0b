//! TLVs of a request become those of its reply, in place (RFC 8972 section 4).

use super::super::key::Key;
use super::super::stamp::base_len;
use super::super::time::TimeFormat;
use super::super::tlv::{
    self, ClassOfService, DirectMeasurement, FollowUp, HEADER_LEN, INTEGRITY, Integrity, MALFORMED,
    Synchronization, UNRECOGNIZED, kind,
};
use super::super::{field, put};
use super::session::Session;
use super::{Arrival, Clock};
use std::net::IpAddr;

/// What the reflector knows of the request.
pub(super) struct Seen<'a> {
    pub(super) arrival: &'a Arrival,
    pub(super) session: Option<&'a Session>,
    pub(super) format: TimeFormat,
    pub(super) clock: &'a Clock,
    pub(super) synchronization: Synchronization,
}

/// Sub-TLVs of Location (section 4.2.1): what a sender asks for, and what the answers are called.
mod place {
    pub(super) const SOURCE_MAC: u8 = 1;
    pub(super) const SOURCE_EUI_48: u8 = 2;
    pub(super) const SOURCE_EUI_64: u8 = 3;
    pub(super) const DESTINATION: u8 = 4;
    pub(super) const DESTINATION_V4: u8 = 5;
    pub(super) const DESTINATION_V6: u8 = 6;
    pub(super) const SOURCE: u8 = 7;
    pub(super) const SOURCE_V4: u8 = 8;
    pub(super) const SOURCE_V6: u8 = 9;
}

/// Whether the TLVs of a request are what its sender wrote; with authentication they need an HMAC (section
/// 4.8).
pub(super) fn integrity(packet: &[u8], key: Option<&Key>) -> Integrity {
    let Some(key) = key else { return Integrity::Absent };
    let base = base_len(Some(key));
    let has_tlvs = packet.len() >= base + HEADER_LEN;
    match tlv::integrity(packet, base, key) {
        Integrity::Absent if has_tlvs => Integrity::Wrong,
        integrity => integrity,
    }
}

/// Answers the TLVs behind a reply that is written already. Returns the DSCP that one of them asks for, if
/// `mirrors` allows that.
pub(super) fn answer(
    packet: &mut [u8],
    key: Option<&Key>,
    integrity: Integrity,
    seen: &Seen<'_>,
    mirrors: bool,
) -> Option<u8> {
    let base = base_len(key);
    let sequence: [u8; 4] = field(packet, 0);
    let mut wanted = None;
    let mut at = base;
    while let Some(&[_, kind, high, low]) = packet.get(at..).and_then(|rest| rest.first_chunk()) {
        let length = usize::from(u16::from_be_bytes([high, low]));
        let start = at + HEADER_LEN;
        let (before, rest) = packet.split_at_mut(start);
        let whole = length <= rest.len();
        let known = is_known(kind, key);
        let fits = whole && tlv::value_len(kind).is_none_or(|expected| expected == length);
        let mut flags = 0;
        if !known {
            flags |= UNRECOGNIZED;
        }
        if known && !fits || !whole {
            flags |= MALFORMED;
        }
        if integrity == Integrity::Wrong {
            flags |= INTEGRITY;
        }
        if flags == 0 {
            let value = &mut rest[..length];
            match kind {
                kind::HMAC => {
                    let covered = &before[base..at];
                    let hmac = key.map(|key| key.sign(&[&sequence, covered]));
                    put(value, 0, &hmac.unwrap_or_default());
                }
                kind::CLASS_OF_SERVICE => wanted = class(value, seen, mirrors).or(wanted),
                kind::LOCATION if length < 4 => flags |= MALFORMED,
                _ => fill(kind, value, seen),
            }
        }
        before[at] = flags;
        if !whole {
            break;
        }
        at = start + length;
    }
    wanted
}

/// Without a key, an HMAC is a type that is not known.
fn is_known(kind: u8, key: Option<&Key>) -> bool {
    match kind {
        kind::HMAC => key.is_some(),
        kind::EXTRA_PADDING..=kind::FOLLOW_UP => true,
        _ => false,
    }
}

/// Section 4.4.
fn class(value: &mut [u8], seen: &Seen<'_>, mirrors: bool) -> Option<u8> {
    let asked = ClassOfService::read(value)?;
    let came = seen.arrival.traffic_class.unwrap_or(0);
    let refused = u8::from(!mirrors);
    let answer = ClassOfService { seen: came >> 2, ecn: came & 3, refused, ..asked };
    put(value, 0, &answer.write());
    mirrors.then_some(asked.wanted)
}

fn fill(kind: u8, value: &mut [u8], seen: &Seen<'_>) {
    match kind {
        kind::LOCATION => location(value, seen.arrival),
        kind::TIMESTAMP_INFORMATION => {
            // Section 4.3: of T2, then of T3.
            let by = |by| [seen.synchronization as u8, by];
            put(value, 0, &by(seen.arrival.by as u8));
            put(value, 2, &by(seen.clock.sent_by as u8));
        }
        kind::DIRECT_MEASUREMENT => {
            // Section 4.5; without state nothing is counted.
            if let (Some(session), Some(asked)) = (seen.session, DirectMeasurement::read(value)) {
                let reflector_sent = session.sent.wrapping_add(1);
                let reflector_received = session.received;
                let counts = DirectMeasurement { reflector_received, reflector_sent, ..asked };
                put(value, 0, &counts.write());
            }
        }
        kind::FOLLOW_UP => {
            // Section 4.7: without state, or of the first reply, all zeros.
            let known = seen.session.and_then(|session| session.departed);
            let telemetry = known.map(|(sequence, sent_ns, by)| FollowUp {
                sequence,
                stamp: seen.format.write(sent_ns),
                by: by as u8,
            });
            put(value, 0, &telemetry.unwrap_or_default().write());
        }
        // Padding and access reports go back as they came (sections 4.1, 4.6).
        _ => {}
    }
}

/// Section 4.2: ports, then what each sub-TLV asks for.
fn location(value: &mut [u8], arrival: &Arrival) {
    put(value, 0, &arrival.port.to_be_bytes());
    put(value, 2, &arrival.from.port().to_be_bytes());
    let mut at = 4;
    while let Some(&[_, kind, high, low]) = value.get(at..).and_then(|rest| rest.first_chunk()) {
        let length = usize::from(u16::from_be_bytes([high, low]));
        let start = at + HEADER_LEN;
        let Some(place) = value.get_mut(start..start + length) else {
            value[at] = MALFORMED;
            return;
        };
        let (answer, address) = match kind {
            place::SOURCE_MAC => mac(arrival.mac),
            place::DESTINATION => {
                ip(arrival.to, place::DESTINATION_V4, place::DESTINATION_V6, kind)
            }
            place::SOURCE => ip(Some(arrival.from.ip()), place::SOURCE_V4, place::SOURCE_V6, kind),
            _ => (None, [0; 16]),
        };
        let expected = if kind == place::SOURCE_MAC { 8 } else { 16 };
        value[at] = match answer {
            Some(_) if length != expected => MALFORMED,
            Some(answer) => {
                put(place, 0, &address[..expected]);
                value[at + 1] = answer;
                0
            }
            None => UNRECOGNIZED,
        };
        at = start + length;
    }
}

/// Where no frames are seen, the address is an EUI-64 of zeros.
fn mac(mac: Option<[u8; 6]>) -> (Option<u8>, [u8; 16]) {
    let mut value = [0; 16];
    put(&mut value, 0, &mac.unwrap_or_default());
    let answer = if mac.is_some() { place::SOURCE_EUI_48 } else { place::SOURCE_EUI_64 };
    (Some(answer), value)
}

/// An address that is not known leaves the question as it is.
fn ip(address: Option<IpAddr>, v4: u8, v6: u8, question: u8) -> (Option<u8>, [u8; 16]) {
    let mut value = [0; 16];
    match address.map(|address| address.to_canonical()) {
        Some(IpAddr::V4(address)) => {
            put(&mut value, 0, &address.octets());
            (Some(v4), value)
        }
        Some(IpAddr::V6(address)) => (Some(v6), address.octets()),
        None => (Some(question), value),
    }
}
