//! Sides of exchanges whose ports do not tell them.

use crate::support::frames::{Ipv4, UDP, udp};
use tailtrim_wire::exchange::{Message, Part};
use tailtrim_wire::frame::Link;

/// A packet to a host, and one back.
fn messages(port: u16, there: &[u8], back: &[u8]) -> [Message; 2] {
    let packet = |payload| Ipv4::new(UDP, udp(port, port, 0, payload));
    let (sent, reply) = (packet(there), packet(back));
    let reply = Ipv4 { source: sent.destination, destination: sent.source, ..reply };
    [sent, reply].map(|one| Message::of_frame(Link::Ethernet, &one.frame()).unwrap())
}

/// Regression: replies from the server's port to the server's port were requests, or nothing.
#[test]
fn requests_and_replies_between_two_ports_of_a_server() {
    // A query, and the response with the same identifier.
    let query = [7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let mut response = query;
    response[2] |= 0x80;
    let dns = messages(53, &query, &response);

    // A test packet of STAMP with the number 5 and a time of 2026, and its reply with that of the reflector.
    let mut request = [0; 44];
    request[3] = 5;
    request[4..8].copy_from_slice(&0xee_00_00_00_u32.to_be_bytes());
    request[12..14].copy_from_slice(&[0x80, 1]);
    let mut reply = [0; 44];
    reply[3] = 77;
    reply[4..14].copy_from_slice(&request[4..14]);
    // Received, and the request from its number on.
    reply[16..20].copy_from_slice(&request[4..8]);
    reply[24..38].copy_from_slice(&request[..14]);
    reply[40] = 255;
    for [asks, answers] in [dns, messages(862, &request, &reply)] {
        assert_eq!((asks.part, answers.part), (Part::Request, Part::Reply));
        assert_eq!(asks.key(), answers.key());
    }
}
