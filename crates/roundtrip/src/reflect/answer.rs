//! TLVs of a request become those of its reply, in place (RFC 8972 section 4, with errata 8199 and 8339).

use super::location;
use super::session::Session;
use super::{Arrival, Clock};
use tailtrim_wire::Key;
use tailtrim_wire::bytes::{field, put};
use tailtrim_wire::stamp::base_len;
use tailtrim_wire::time::TimeFormat;
use tailtrim_wire::tlv::{
    self, ClassOfService, DirectMeasurement, FollowUp, HEADER_LEN, INTEGRITY, Integrity, MALFORMED,
    Synchronization, UNRECOGNIZED, kind,
};

/// The reflector's knowledge of the request.
pub(super) struct Seen<'a> {
    pub(super) arrival: &'a Arrival,
    pub(super) session: Option<&'a Session>,
    pub(super) format: TimeFormat,
    pub(super) clock: &'a Clock,
    pub(super) synchronization: Synchronization,
    /// Whether the reply may have the class that its request asks for.
    pub(super) mirrors: bool,
}

/// Whether the TLVs of a request are unchanged since its sender wrote them. With authentication they need an HMAC,
/// unless the only one is padding (section 4.8).
pub(super) fn integrity(packet: &[u8], key: Option<&Key>) -> Integrity {
    let base = base_len(key);
    match tlv::integrity(packet, base, key) {
        Integrity::Absent if key.is_some() => {
            let mut kinds = tlv::tlvs(packet.get(base..).unwrap_or(&[])).map(|tlv| tlv.kind);
            match (kinds.next(), kinds.next()) {
                (None, _) | (Some(kind::EXTRA_PADDING), None) => Integrity::Absent,
                _ => Integrity::Wrong,
            }
        }
        integrity => integrity,
    }
}

/// Answers the TLVs behind a reply whose own fields are written already. Returns the DSCP that one of them asks for, if
/// that is allowed.
///
/// TLVs behind a malformed one go back as they came (section 4); only the HMAC is computed again, since the TLVs before
/// it have changed. If the HMAC is wrong, nothing is answered and every TLV says so.
pub(super) fn answer(
    packet: &mut [u8],
    key: Option<&Key>,
    integrity: Integrity,
    seen: &Seen<'_>,
) -> Option<u8> {
    let base = base_len(key);
    let end = base + tlv::occupied(packet.get(base..).unwrap_or(&[]));
    let sequence: [u8; 4] = field(packet, 0);
    let (mut wanted, mut stopped) = (None, false);
    let mut at = base;
    while at < end
        && let Some(&[_, kind, high, low]) = packet.get(at..).and_then(|rest| rest.first_chunk())
    {
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (before, rest) = packet.split_at_mut(at + HEADER_LEN);
        let (whole, there) = (length <= rest.len(), length.min(rest.len()));
        let value = &mut rest[..there];
        let mut flags = flags(kind, length, whole);
        if integrity == Integrity::Wrong {
            flags |= INTEGRITY;
        } else if flags == 0 && kind == kind::HMAC {
            let hmac = key.map(|key| key.sign(&[&sequence, &before[base..at]]));
            put(value, 0, &hmac.unwrap_or_default());
        } else if !stopped {
            match (flags, kind) {
                (0, kind::CLASS_OF_SERVICE) => wanted = class(value, seen).or(wanted),
                (0, _) => flags = fill(kind, value, seen),
                // Erratum 8339: zeros, as far as they have room.
                (_, kind::FOLLOW_UP) => value.iter_mut().take(12).for_each(|byte| *byte = 0),
                _ => {}
            }
        }
        let copied = stopped && integrity != Integrity::Wrong && kind != kind::HMAC;
        if !copied {
            before[at] = flags;
        }
        stopped |= flags & MALFORMED != 0;
        at += HEADER_LEN + length;
    }
    wanted
}

fn flags(kind: u8, length: usize, whole: bool) -> u8 {
    let known = matches!(kind, kind::EXTRA_PADDING..=kind::HMAC);
    let fits = whole && tlv::fits(kind, length);
    (if known { 0 } else { UNRECOGNIZED }) | (if fits { 0 } else { MALFORMED })
}

/// Section 4.4. A class that is fixed for all replies permits no other; then the reply has that class, not the
/// request's.
fn class(value: &mut [u8], seen: &Seen<'_>) -> Option<u8> {
    let asked = ClassOfService::read(value)?;
    let came = seen.arrival.traffic_class.unwrap_or(0);
    let refused = u8::from(!seen.mirrors);
    let answer = ClassOfService { seen: came >> 2, ecn: came & 3, refused, ..asked };
    put(value, 0, &answer.write());
    seen.mirrors.then_some(asked.wanted)
}

/// Fills a value of the right length. Returns the TLV's flags.
fn fill(kind: u8, value: &mut [u8], seen: &Seen<'_>) -> u8 {
    match kind {
        kind::LOCATION => return location::fill(value, seen.arrival),
        kind::TIMESTAMP_INFORMATION => {
            // Section 4.3: of T2, then of T3.
            let by = |by| [seen.synchronization as u8, by];
            put(value, 0, &by(seen.arrival.by as u8));
            put(value, 2, &by(seen.clock.sent_by as u8));
        }
        kind::DIRECT_MEASUREMENT => {
            // Section 4.5; without state there are no counts, and zeros replace the sender's.
            let asked = DirectMeasurement::read(value).unwrap_or_default();
            let counts = seen.session.map_or((0, 0), |session| {
                // The packet of this TLV is counted, too.
                (session.received, session.sent.wrapping_add(1))
            });
            let (reflector_received, reflector_sent) = counts;
            let counts = DirectMeasurement { reflector_received, reflector_sent, ..asked };
            put(value, 0, &counts.write());
        }
        kind::ACCESS_REPORT => {
            // Section 4.6: access 1 or 2 in four bits, four of zero, the code, two bytes of zero. Any other value must
            // be discarded; it goes back unread, so that the reply is as long.
            if !matches!(value[0] >> 4, 1 | 2) {
                return UNRECOGNIZED;
            }
            value[0] &= 0xf0;
            put(value, 2, &[0; 2]);
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
        // Padding goes back as it came (section 4.1).
        _ => {}
    }
    0
}
