//! Frames and what is in them.

use tailtrim_wire::frame::{Encapsulation, Link, Walk, is_bare};

/// Found by fuzzing: a datagram that is longer than its IP packet says was followed into the padding behind that, which has the form
/// of `WireGuard`; the frame counts as one without encapsulation.
#[test]
fn what_is_behind_the_end_of_an_ip_packet_is_not_followed() {
    let mut frame = [0; 100];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    // IPv4 of 60 bytes with a datagram of 40, to a port of no protocol.
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 17]);
    frame[34..42].copy_from_slice(&[0, 40, 4, 1, 0, 40, 0, 0]);
    // A data message with a counter and a tag.
    frame[42..46].copy_from_slice(&[4, 0, 0, 0]);
    let names = |frame: &[u8]| -> Vec<Option<Encapsulation>> {
        Walk::new(Link::Ethernet, frame).map(|place| place.encapsulation).collect()
    };
    assert!(names(&frame).contains(&Some(Encapsulation::WireGuard)));
    assert!(!is_bare(Link::Ethernet, &frame));
    // It says that it has three bytes behind its header.
    frame[17] = 23;
    assert_eq!(names(&frame), [None]);
    assert!(is_bare(Link::Ethernet, &frame));
}
