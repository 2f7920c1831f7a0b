//! The Location TLV: where a request was seen to come from (RFC 8972 section 4.2).

use super::Arrival;
use std::net::IpAddr;
use tailtrim_wire::bytes::put;
use tailtrim_wire::tlv::{HEADER_LEN, MALFORMED, UNRECOGNIZED, tlvs};

/// Sub-TLVs (section 4.2.1): types of requests, and types of their answers.
const SOURCE_MAC: u8 = 1;
const SOURCE_EUI_48: u8 = 2;
const SOURCE_EUI_64: u8 = 3;
const DESTINATION: u8 = 4;
const DESTINATION_V4: u8 = 5;
const DESTINATION_V6: u8 = 6;
const SOURCE: u8 = 7;
const SOURCE_V4: u8 = 8;
const SOURCE_V6: u8 = 9;

/// Bytes of the two ports.
const PORTS: usize = 4;

/// Fills in ports and the answer to each sub-TLV. Returns the TLV's flags: where a sub-TLV is malformed, so is all of
/// it, and nothing is answered.
pub(super) fn fill(value: &mut [u8], arrival: &Arrival) -> u8 {
    let places: Vec<(usize, u8, bool)> = tlvs(value.get(PORTS..).unwrap_or(&[]))
        .map(|sub| (PORTS + sub.at, sub.kind, sub.whole && fits(sub.kind, sub.value.len())))
        .collect();
    if let Some((at, _, _)) = places.iter().find(|(_, _, fits)| !fits) {
        value[*at] = MALFORMED;
        return MALFORMED;
    }
    put(value, 0, &arrival.port.to_be_bytes());
    put(value, 2, &arrival.from.port().to_be_bytes());
    for (at, kind, _) in places {
        let answer = match kind {
            SOURCE_MAC => Some(mac(arrival.mac)),
            DESTINATION => Some(ip(arrival.to, DESTINATION_V4, DESTINATION_V6, kind)),
            SOURCE => Some(ip(Some(arrival.from.ip()), SOURCE_V4, SOURCE_V6, kind)),
            _ => None,
        };
        value[at] = if answer.is_some() { 0 } else { UNRECOGNIZED };
        if let Some((kind, address)) = answer {
            value[at + 1] = kind;
            put(value, at + HEADER_LEN, &address[..length(kind)]);
        }
    }
    0
}

fn length(kind: u8) -> usize {
    if matches!(kind, SOURCE_MAC..=SOURCE_EUI_64) { 8 } else { 16 }
}

fn fits(kind: u8, bytes: usize) -> bool {
    !matches!(kind, SOURCE_MAC..=SOURCE_V6) || bytes == length(kind)
}

/// Where no frames are seen, the address is an EUI-64 of zeros.
fn mac(mac: Option<[u8; 6]>) -> (u8, [u8; 16]) {
    let mut value = [0; 16];
    put(&mut value, 0, &mac.unwrap_or_default());
    (if mac.is_some() { SOURCE_EUI_48 } else { SOURCE_EUI_64 }, value)
}

/// An address that is not known leaves the question as it is.
fn ip(address: Option<IpAddr>, v4: u8, v6: u8, question: u8) -> (u8, [u8; 16]) {
    let mut value = [0; 16];
    match address.map(|address| address.to_canonical()) {
        Some(IpAddr::V4(address)) => {
            put(&mut value, 0, &address.octets());
            (v4, value)
        }
        Some(IpAddr::V6(address)) => (v6, address.octets()),
        None => (question, value),
    }
}
