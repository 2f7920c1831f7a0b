//! Datagram sockets over the loopback interface, which stamps both ways: no privileges needed but for ICMP.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;
use tailtrim_probes::socket::{
    BATCH, ErrorOrigin, Inbox, Notice, Outgoing, Point, Settings, Socket, Stamping, Transport,
    now_ns,
};

const STAMPS: Stamping = Stamping { receive: true, send: true, hardware: false };

fn udp(local: &str) -> Socket {
    let local = SocketAddr::new(local.parse().unwrap(), 0);
    Socket::open(&Settings { stamping: STAMPS, ..Settings::new(Transport::Udp, local) }).unwrap()
}

fn outgoing(bytes: &[u8], to: SocketAddr) -> Outgoing<'_> {
    Outgoing { bytes, to, from: None, traffic_class: None, hops: None }
}

/// Timeout for events that must happen: a busy machine is not a broken socket.
const PATIENCE: Duration = Duration::from_secs(60);

/// A port of this host that no other process gets and from which nothing is read: its socket is connected to itself.
fn deaf() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(socket.local_addr().unwrap()).unwrap();
    socket
}

/// All stamps that come for the datagrams, in order.
fn stamps(socket: &Socket) -> Vec<(u32, Point, i64)> {
    let mut inbox = Inbox::new(64, 256);
    let mut stamps = Vec::new();
    while socket.notices(&mut inbox).unwrap() > 0 {
        stamps.extend(inbox.notices().filter_map(|notice| match notice {
            Notice::Stamp { key, point, software_ns, .. } => Some((key, point, software_ns?)),
            Notice::Undelivered { .. } => None,
        }));
    }
    stamps
}

/// Waits until the kernel stamps received datagrams: it begins some time after the first socket has asked for it.
fn warm_up(socket: &mut Socket, inbox: &mut Inbox) {
    let to = socket.local();
    for _ in 0..500 {
        socket.send(&[outgoing(b"warm", to)]).unwrap();
        socket.wait(Duration::from_millis(100)).unwrap();
        socket.receive(inbox).unwrap();
        let stamped = inbox.datagrams().any(|one| one.software_ns.is_some());
        stamps(socket);
        if stamped {
            return;
        }
    }
    panic!("no receive stamps on lo");
}

#[test]
fn datagrams_tell_when_they_passed_which_point() {
    for address in ["127.0.0.1", "::1"] {
        let mut receiver = udp(address);
        let mut sender = udp(address);
        let mut inbox = Inbox::new(64, 256);
        warm_up(&mut receiver, &mut inbox);
        let to = receiver.local();
        let texts: Vec<[u8; 9]> = (0..BATCH as u8).map(|number| [number; 9]).collect();
        let batch: Vec<_> = texts
            .iter()
            .map(|text| Outgoing {
                traffic_class: Some(0xb8),
                hops: Some(9),
                from: Some(address.parse().unwrap()),
                ..outgoing(text, to)
            })
            .collect();
        let before = now_ns();
        let sent = sender.send(&batch).unwrap();
        let after = now_ns();
        assert_eq!((sent.taken, sent.refused), (BATCH, None));
        assert!(receiver.wait(PATIENCE).unwrap().0);
        let stamps = stamps(&sender);
        let mut expected = (0..).zip(&texts);
        // A call may leave some of a burst for the next one.
        while receiver.receive(&mut inbox).unwrap() > 0 {
            for received in inbox.datagrams() {
                let (number, text) = expected.next().expect("a datagram that was sent");
                assert_eq!(received.bytes, text);
                assert_eq!(received.from, sender.local());
                assert_eq!(received.to, Some(address.parse::<IpAddr>().unwrap()));
                assert_eq!((received.traffic_class, received.hops), (Some(0xb8), Some(9)));
                assert!(!received.truncated);
                let of = |wanted| {
                    let mut found = stamps.iter().filter(|(key, point, _)| {
                        *key == sent.first_key + number && *point == wanted
                    });
                    let stamp = found.next().expect("a stamp").2;
                    assert!(found.next().is_none(), "two stamps of a datagram for {wanted:?}");
                    stamp
                };
                let way = [
                    before,
                    of(Point::Queued),
                    of(Point::Sent),
                    received.software_ns.unwrap(),
                    after,
                ];
                // The loopback interface has no queue: it skips that point or takes it right before.
                assert!(way.is_sorted(), "{way:?}");
            }
        }
        assert_eq!(expected.count(), 0, "all have come");
    }
}

#[test]
fn a_closed_port_is_told_with_the_probe_that_met_it() {
    let deaf = deaf();
    let closed = deaf.local_addr().unwrap();
    let mut sender = udp("127.0.0.1");
    assert_eq!(sender.send(&[outgoing(b"anybody?", closed)]).unwrap().taken, 1);
    let mut inbox = Inbox::new(8, 256);
    let mut found = None;
    while found.is_none() {
        assert!(sender.wait(PATIENCE).unwrap() != (false, false), "an ICMP message");
        sender.notices(&mut inbox).unwrap();
        for notice in inbox.notices() {
            if let Notice::Undelivered { cause, by, to, bytes } = notice {
                found = Some((cause, by, to, bytes.to_vec()));
            }
        }
    }
    let (cause, by, to, bytes) = found.unwrap();
    assert_eq!(cause, ErrorOrigin::Icmp { kind: 3, code: 3 });
    assert_eq!(by, Some("127.0.0.1".parse().unwrap()));
    assert_eq!((to, bytes.as_slice()), (Some(closed), b"anybody?".as_slice()));
    // The error is the datagram's, not the socket's.
    assert_eq!(sender.receive(&mut inbox).unwrap(), 0);
}

#[test]
fn what_was_too_long_says_so() {
    let mut receiver = udp("127.0.0.1");
    let to = receiver.local();
    receiver.send(&[outgoing(&[7; 100], to)]).unwrap();
    let mut inbox = Inbox::new(1, 10);
    while receiver.receive(&mut inbox).unwrap() == 0 {
        assert!(receiver.wait(PATIENCE).unwrap().0);
    }
    let received = inbox.datagrams().next().unwrap();
    assert!(received.truncated);
    assert_eq!(received.bytes, [7; 10]);
}

fn checksum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[test]
fn echoes_come_back_with_stamps() {
    for (address, request, reply) in [("127.0.0.1", 8_u8, 0_u8), ("::1", 128, 129)] {
        let local = SocketAddr::new(address.parse().unwrap(), 0);
        let transport = Transport::IcmpEcho { identifier: 0x7a11 };
        let settings = Settings { stamping: STAMPS, ..Settings::new(transport, local) };
        let mut socket = match Socket::open(&settings) {
            Ok(socket) => socket,
            Err(error) => return crate::skip::skipped(error),
        };
        let identifier = socket.identifier().unwrap();
        let mut echo = vec![request, 0, 0, 0, 0, 0, 0, 5];
        echo[4..6].copy_from_slice(&identifier.to_be_bytes());
        echo.extend(*b"a payload of even length");
        // A wrong checksum must not matter where the kernel computes it, so give the right one.
        if request == 8 {
            let sum = checksum(&echo);
            echo[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        let sent = socket.send(&[outgoing(&echo, local)]).unwrap();
        assert_eq!(sent.taken, 1, "{sent:?}");
        let mut inbox = Inbox::new(8, 256);
        while socket.receive(&mut inbox).unwrap() == 0 {
            assert!(socket.wait(PATIENCE).unwrap() != (false, false), "no reply");
            let notices = stamps(&socket);
            assert!(notices.iter().all(|(key, _, _)| *key == sent.first_key));
        }
        let received = inbox.datagrams().next().unwrap();
        assert_eq!(received.bytes[0], reply);
        assert_eq!(received.bytes[4..6], identifier.to_be_bytes());
        assert_eq!(received.bytes[8..], echo[8..]);
        assert_eq!(received.packet_bytes, if reply == 0 { 20 } else { 40 } + echo.len());
    }
}

#[test]
fn a_second_socket_has_the_client_that_it_prefers() {
    for address in ["127.0.0.1", "::1"] {
        let general = udp(address);
        let settings = Settings::new(Transport::Udp, general.local());
        let mut second = general.second(&settings).unwrap();
        let mut clients = [udp(address), udp(address)];
        let [one, other] = [clients[0].local(), clients[1].local()];
        let mut ask = |second: &Socket| {
            for client in &mut clients {
                client.send(&[outgoing(b"who?", general.local())]).unwrap();
            }
            from_whom([&general, second], 2)
        };
        assert_eq!(ask(&second), [vec![one, other], vec![]]);
        second.prefer(one).unwrap();
        assert_eq!(ask(&second), [vec![other], vec![one]]);
        second.prefer(other).unwrap();
        assert_eq!(ask(&second), [vec![one], vec![other]]);
        // Other processes get the error that the port is taken.
        let refused = Socket::open(&settings).unwrap_err().to_string();
        assert!(refused.contains("another process"), "{refused}");
    }
}

/// Senders of the first `count` datagrams at two sockets; asserts that each was sent to the socket's bound address.
fn from_whom(sockets: [&Socket; 2], count: usize) -> [Vec<SocketAddr>; 2] {
    let mut inbox = Inbox::new(64, 256);
    let mut senders = [Vec::new(), Vec::new()];
    while senders.concat().len() < count {
        for (socket, senders) in sockets.iter().zip(&mut senders) {
            socket.wait(Duration::from_millis(1)).unwrap();
            socket.receive(&mut inbox).unwrap();
            for received in inbox.datagrams() {
                assert_eq!(received.to, Some(socket.local().ip()));
                senders.push(received.from);
            }
        }
    }
    senders
}

#[test]
fn a_bare_socket_gets_the_bytes_of_its_peer() {
    for address in ["127.0.0.1", "::1"] {
        let mut far = udp(address);
        let local = SocketAddr::new(address.parse().unwrap(), 0);
        let settings = Settings { bare: true, ..Settings::new(Transport::Udp, local) };
        let mut near = Socket::open(&settings).unwrap();
        near.connect(far.local()).unwrap();
        far.send(&[
            outgoing(b"as long as", near.local()),
            outgoing(b"longer than it", near.local()),
        ])
        .unwrap();
        let mut inbox = Inbox::new(8, 10);
        let mut came = Vec::new();
        while came.len() < 2 {
            assert!(near.wait(PATIENCE).unwrap().0);
            near.receive(&mut inbox).unwrap();
            for one in inbox.datagrams() {
                assert_eq!((one.from, one.hops, one.traffic_class), (far.local(), None, None));
                came.push((one.bytes.to_vec(), one.truncated));
            }
        }
        assert_eq!(came, [(b"as long as".to_vec(), false), (b"longer tha".to_vec(), true)]);
        assert_eq!(near.receive(&mut inbox).unwrap(), 0);
        // No other sender reaches it.
        udp(address).send(&[outgoing(b"?", near.local())]).unwrap();
        assert!(!near.wait(Duration::from_millis(10)).unwrap().0);
    }
}

#[test]
fn datagrams_without_room_are_counted() {
    const MANY: u32 = 1_000;
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let settings = Settings { receive_buffer: Some(1), ..Settings::new(Transport::Udp, local) };
    let (near, mut far) = (Socket::open(&settings).unwrap(), udp("127.0.0.1"));
    assert_eq!(near.overflowed().unwrap(), 0);
    for _ in 0..MANY {
        far.send(&[outgoing(b"one of many", near.local())]).unwrap();
    }
    let mut inbox = Inbox::new(64, 256);
    let mut came = 0;
    while came + near.overflowed().unwrap() < MANY {
        near.wait(Duration::from_millis(1)).unwrap();
        came += near.receive(&mut inbox).unwrap() as u32;
    }
    assert!(came < MANY, "the smallest buffer has room for {came}");
    assert_eq!(near.overflowed().unwrap(), MANY - came);
}

/// Regression: a client that was gone made a reflector use a whole CPU, and its ICMP errors took the room of requests.
#[test]
fn errors_that_nobody_reads_do_not_keep_a_socket_from_waiting() {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    for errors in [false, true] {
        let settings = Settings { errors, ..Settings::new(Transport::Udp, local) };
        let mut far = Socket::open(&settings).unwrap();
        let deaf = deaf();
        far.send(&[outgoing(b"anybody?", deaf.local_addr().unwrap())]).unwrap();
        let patience = if errors { PATIENCE } else { Duration::from_millis(100) };
        let (came, failed) = far.wait(patience).unwrap();
        assert_eq!((came, failed), (false, errors));
    }
}
