//! A target over the loopback interface.

use std::net::UdpSocket;
use tailtrim_probes::target::{Buffers, Destination, Probing, Target};
use tailtrim_roundtrip::{Ending, Protocol, StampLevel};
use tailtrim_sys::clock;

const TIMEOUT_NS: i64 = 60_000_000_000;

/// Regression: a process that stood still for longer than the timeout told replies as lost that waited in its socket.
#[test]
fn replies_that_wait_are_taken_before_their_probes_are_lost() {
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    let destination = Destination {
        address: far.local_addr().unwrap(),
        source: None,
        source_port: 0,
        traffic_class: None,
        protocol: Protocol::UdpEcho { cookie: None },
    };
    let probing = Probing {
        payload_bytes: 64,
        timeout_ns: TIMEOUT_NS,
        remembered: 16,
        level: StampLevel::Arrival,
        device: None,
        busy_poll_us: None,
        hops: None,
        receive_buffer: None,
        same_clock: true,
    };
    let mut target = Target::open(0, destination, &probing).unwrap();
    let mut buffers = Buffers::new(probing.payload_bytes);
    target.send(&[clock::realtime_ns(); 4], &mut buffers).unwrap();
    // The last one is lost.
    for _ in 0..3 {
        let mut probe = [0; 64];
        let (length, near) = far.recv_from(&mut probe).unwrap();
        far.send_to(&probe[..length], near).unwrap();
    }
    // So late is it when this process goes on.
    let now_ns = clock::realtime_ns() + TIMEOUT_NS;
    target.catch_up(now_ns, &mut buffers).unwrap();
    let endings: Vec<Ending> = std::iter::from_fn(|| target.session_mut().settle(now_ns))
        .map(|trip| trip.ending)
        .collect();
    assert_eq!(endings, [Ending::Answered, Ending::Answered, Ending::Answered, Ending::Lost]);
}
