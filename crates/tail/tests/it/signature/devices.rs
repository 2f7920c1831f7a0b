//! Fields that forwarders rewrite: a packet has the same signature before and after each of them.

use super::{NAT, PLAIN, TOS, TUNNEL, payload, sign};
use crate::support::frames::{
    GRE, ICMP, IPV4, IPV6, Ipv4, Ipv6, TCP, UDP, ethernet, gre, tcp, udp, vxlan,
};
use tailtrim_tail::signature::Rewrites;

struct Device {
    name: &'static str,
    rewrites: Rewrites,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// Each needs no mask (`PLAIN`) or the one it names, and does not go without.
#[derive(Default)]
struct Devices(Vec<Device>);

impl Devices {
    fn add(&mut self, name: &'static str, rewrites: Rewrites, before: &[u8], after: &[u8]) {
        let (before, after) = (before.to_vec(), after.to_vec());
        self.0.push(Device { name, rewrites, before, after });
    }
}

fn v4() -> Ipv4 {
    Ipv4::new(UDP, udp(1024, 53, 0x1111, b"what is asked"))
}

fn tcp4() -> Ipv4 {
    Ipv4::new(TCP, tcp(1024, 80, 0x1111, b"GET / HTTP/1.1"))
}

fn v6() -> Ipv6 {
    Ipv6::new(UDP, udp(1024, 53, 0x1111, b"what is asked"))
}

fn tcp6() -> Ipv6 {
    Ipv6::new(TCP, tcp(1024, 80, 0x1111, b"GET / HTTP/1.1"))
}

/// Addresses and tags of the link.
fn switches(devices: &mut Devices) {
    let (frame, frame6) = (v4().frame(), v6().frame());
    let mut routed = frame.clone();
    routed[..12].copy_from_slice(&[9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0xa, 0xb]);
    devices.add("a switch that rewrites MAC addresses", PLAIN, &frame, &routed);

    for (tags, name) in [
        (&[(0x8100, 5)][..], "VLAN push"),
        (&[(0x88a8, 5), (0x8100, 0xe064)], "QinQ push"),
        (&[(0x9100, 5), (0x9100, 6), (0x8100, 7)], "three tags"),
    ] {
        let tagged = ethernet(tags, IPV4, &v4().bytes());
        devices.add(name, PLAIN, &frame, &tagged);
        let tagged = ethernet(tags, IPV6, &v6().bytes());
        devices.add(name, PLAIN, &frame6, &tagged);
    }
    let tagged = |control| ethernet(&[(0x8100, control)], IPV4, &v4().bytes());
    devices.add("VLAN rewrite", PLAIN, &tagged(3), &tagged(4));
}

/// Hops and checksums.
fn routers(devices: &mut Devices) {
    let (frame, frame6) = (v4().frame(), v6().frame());
    // The checksum follows.
    let hop = Ipv4 { ttl: 63, ..v4().clone() };
    devices.add("an IPv4 router", PLAIN, &frame, &hop.frame());
    let hop = Ipv4 { ttl: 1, ..tcp4().clone() };
    devices.add("many IPv4 routers", PLAIN, &tcp4().frame(), &hop.frame());
    let hop = Ipv6 { hop_limit: 63, ..v6().clone() };
    devices.add("an IPv6 router", PLAIN, &frame6, &hop.frame());

    let offloaded = Ipv4 { payload: udp(1024, 53, 0xfefe, b"what is asked"), ..v4().clone() };
    devices.add("UDP checksum offload", PLAIN, &frame, &offloaded.frame());
    let offloaded = Ipv4 { payload: tcp(1024, 80, 0, b"GET / HTTP/1.1"), ..tcp4().clone() };
    devices.add("TCP checksum offload", PLAIN, &tcp4().frame(), &offloaded.frame());
    let offloaded = Ipv6 { payload: udp(1024, 53, 0xfefe, b"what is asked"), ..v6().clone() };
    devices.add("UDP checksum in IPv6", PLAIN, &frame6, &offloaded.frame());
    let offloaded = Ipv6 { payload: tcp(1024, 80, 0, b"GET / HTTP/1.1"), ..tcp6().clone() };
    devices.add("TCP checksum in IPv6", PLAIN, &tcp6().frame(), &offloaded.frame());
}

/// Bytes that follow the packet in the frame.
fn padding(devices: &mut Devices) {
    let frame = v4().frame();
    let short = Ipv4::new(UDP, udp(1, 2, 3, b"x")).frame();
    let short6 = Ipv6::new(UDP, udp(1, 2, 3, b"x")).frame();
    for tail in [&[0; 17][..], &[0xde, 0xad, 0xbe, 0xef], &[0x99; 200]] {
        devices.add("padding, FCS", PLAIN, &short, &[&short, tail].concat());
        devices.add("padding, FCS", PLAIN, &short6, &[&short6, tail].concat());
        devices.add("padding, FCS", PLAIN, &frame, &[&frame, tail].concat());
    }
    let arp = ethernet(&[], 0x0806, &payload(28));
    devices.add("padding with zeros", PLAIN, &arp, &[&arp[..], &[0; 18]].concat());
}

/// Routers of packets whose headers are longer, or without a transport header.
fn options(devices: &mut Devices) {
    let with_options = |ttl, checksum| Ipv4 {
        ttl,
        options: vec![7, 7, 4, 0, 0, 0, 0, 0],
        payload: udp(1024, 53, checksum, b"options"),
        ..v4().clone()
    };
    let (before, after) = (with_options(64, 1), with_options(63, 2));
    devices.add("an IPv4 router, options", PLAIN, &before.frame(), &after.frame());
    let fragment = |ttl, fragment| Ipv4 { ttl, fragment, payload: payload(60), ..v4().clone() };
    let (before, after) = (fragment(64, 0x2007), fragment(63, 0x2007));
    devices.add("an IPv4 router, fragment", PLAIN, &before.frame(), &after.frame());

    let chain = [
        (0, vec![0, 0, 5, 2, 0, 0, 1, 0]),
        (43, vec![0; 24]),
        (60, vec![0, 0, 1, 4, 0, 0, 0, 0]),
        (44, vec![0, 0, 0, 1, 9, 9, 9, 9]),
    ];
    for length in 1..=chain.len() {
        let extended = |hop_limit, checksum| Ipv6 {
            hop_limit,
            extensions: chain[..length].to_vec(),
            // Within the first 64 bytes behind one extension header.
            payload: udp(1024, 53, checksum, b"extended"),
            ..v6().clone()
        };
        let (before, after) = (extended(64, 1), extended(63, 2));
        devices.add("an IPv6 router, extensions", PLAIN, &before.frame(), &after.frame());
    }
    // A fragment but the first has no transport header.
    let later = |hop_limit| Ipv6 {
        hop_limit,
        extensions: vec![(44, vec![0, 0, 0, 0xb9, 1, 2, 3, 4])],
        payload: payload(60),
        ..v6().clone()
    };
    devices.add("an IPv6 router, fragment", PLAIN, &later(9).frame(), &later(8).frame());
}

/// Network address translation.
fn translators(devices: &mut Devices) {
    for (protocol, before) in [(UDP, &v4()), (TCP, &tcp4())] {
        let segment = |source, destination, checksum| match protocol {
            UDP => udp(source, destination, checksum, b"what is asked"),
            _ => tcp(source, destination, checksum, b"GET / HTTP/1.1"),
        };
        let translated = Ipv4 {
            source: [192, 0, 2, 1],
            destination: [198, 51, 100, 7],
            ttl: 63,
            payload: segment(40_000, 53, 0x3333),
            ..before.clone()
        };
        devices.add("NAT", NAT, &before.frame(), &translated.frame());
    }
    let ping = Ipv4::new(ICMP, payload(40));
    let translated = Ipv4 { source: [192, 0, 2, 1], ..ping.clone() };
    devices.add("NAT of ICMP", NAT, &ping.frame(), &translated.frame());
    let translated = Ipv6 {
        source: [0x20; 16],
        destination: [0x30; 16],
        payload: tcp(7, 8, 9, b"GET / HTTP/1.1"),
        ..tcp6().clone()
    };
    devices.add("NAT66", NAT, &tcp6().frame(), &translated.frame());
}

/// DSCP and ECN.
fn markers(devices: &mut Devices) {
    let (frame, frame6) = (v4().frame(), v6().frame());
    let marked = Ipv4 { tos: 0xb8, ..v4().clone() };
    devices.add("DSCP in IPv4", TOS, &frame, &marked.frame());
    let marked = Ipv4 { tos: 0x03, ttl: 60, ..tcp4().clone() };
    devices.add("ECN in IPv4", TOS, &tcp4().frame(), &marked.frame());
    let marked = Ipv6 { traffic_class: 0xff, ..v6().clone() };
    devices.add("traffic class in IPv6", TOS, &frame6, &marked.frame());
}

/// VXLAN and GRE.
fn tunnels(devices: &mut Devices) {
    let frame = v4().frame();
    for (inner, ethertype, packet) in
        [(&frame, IPV4, v4().bytes()), (&tcp6().frame(), IPV6, tcp6().bytes())]
    {
        for outer in [
            Ipv4::new(UDP, vxlan(inner)).frame(),
            Ipv6::new(UDP, vxlan(inner)).frame(),
            ethernet(&[(0x8100, 9)], IPV4, &Ipv4::new(UDP, vxlan(inner)).bytes()),
            // The inner frame has a tag of its own.
            Ipv4::new(UDP, vxlan(&ethernet(&[(0x8100, 9)], ethertype, &packet))).frame(),
        ] {
            devices.add("VXLAN", TUNNEL, inner, &outer);
        }
        for flags in [0, 0x8000, 0x2000, 0x1000, 0xa000, 0xb000] {
            let outer = Ipv4::new(GRE, gre(flags, ethertype, &packet)).frame();
            devices.add("GRE", TUNNEL, inner, &outer);
            let outer = Ipv4::new(GRE, gre(flags, 0x6558, inner)).frame();
            devices.add("bridged GRE", TUNNEL, inner, &outer);
            let outer = Ipv6::new(GRE, gre(flags, ethertype, &packet)).frame();
            devices.add("GRE in IPv6", TUNNEL, inner, &outer);
        }
        let nested = Ipv4::new(GRE, gre(0x2000, 0x6558, &Ipv4::new(UDP, vxlan(inner)).frame()));
        devices.add("a tunnel in a tunnel", TUNNEL, inner, &nested.frame());
    }
}

/// Extension headers that nodes on the way add and remove. A router to the segments writes the next one into the header.
fn extensions(devices: &mut Devices) {
    let by_hop = (0, vec![0, 0, 5, 2, 0, 0, 1, 0]);
    let options = (60, vec![0, 0, 0x31, 4, 1, 2, 3, 4]);
    let routing = (43, vec![0, 0, 3, 0, 0, 0, 0, 0]);
    let segments = [vec![0, 0, 4, 1, 1, 0, 0, 0], v6().destination.to_vec(), vec![9; 16]].concat();
    let routed = Ipv6 { destination: [9; 16], ..v6() };
    let whole = (44, vec![0, 0, 0, 0, 9, 9, 9, 9]);
    for (name, to, extensions) in [
        ("the header of a fragment that is whole", v6(), vec![whole]),
        ("hop-by-hop options", v6(), vec![by_hop.clone()]),
        ("destination options", v6(), vec![options.clone()]),
        ("a routing header", v6(), vec![routing]),
        ("segments", routed.clone(), vec![(43, segments.clone())]),
        ("several", routed, vec![by_hop, (43, segments), options]),
    ] {
        let with = Ipv6 { extensions, ..to };
        devices.add(name, TUNNEL, &v6().frame(), &with.frame());
        let tunnel = Ipv4::new(UDP, vxlan(&with.frame())).frame();
        devices.add("the same in a tunnel", TUNNEL, &v6().frame(), &tunnel);
    }
}

#[test]
fn a_packet_is_recognised_behind_every_device() {
    let mut devices = Devices::default();
    for add in [switches, routers, padding, options, translators, markers, tunnels, extensions] {
        add(&mut devices);
    }
    for Device { name, rewrites, before, after } in devices.0 {
        assert_ne!(before, after, "{name}");
        assert_eq!(sign(rewrites, &before), sign(rewrites, &after), "{name}");
        if rewrites != PLAIN {
            assert_ne!(sign(PLAIN, &before), sign(PLAIN, &after), "{name}");
        }
        // All masks together do not hurt.
        let all = Rewrites { nat: true, tos: true, tunnel: true };
        assert_eq!(sign(all, &before), sign(all, &after), "{name}");
    }
}
