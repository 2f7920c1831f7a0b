//! Sockets on which a reflector listens.

use super::ReflectError;
use crate::socket::{Settings, Socket, SocketError, Stamping, Transport};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tailtrim_roundtrip::reflect::{Policy, Service};
use tailtrim_sys::process;

/// Room for requests that wait for this process.
const WAITING_BYTES: usize = 4 << 20;
/// Microseconds for which the kernel polls the NIC when a socket is empty; the value that its documentation recommends.
const BUSY_POLL_US: u32 = 50;

/// TTL and hop limit of most replies: a reply that has another one takes longer to hand over.
const TEST_HOPS: u8 = 255;
/// Of an echo whose request passed no router.
const ECHO_HOPS: u8 = 63;

/// Where requests are expected, and how.
#[derive(Debug, Clone)]
pub struct Listening {
    /// Service and port of each socket.
    pub services: Vec<(Service, u16)>,
    /// Addresses of this host; empty: all, IPv4 and IPv6, if an interface or an allow list restricts the clients, and
    /// loopback if not.
    pub addresses: Vec<IpAddr>,
    /// Only requests that come by this interface.
    pub device: Option<String>,
    /// Look for requests all the time, instead of sleeping until one comes.
    pub busy_poll: bool,
    /// Whether the NIC stamps, by a clock that is kept on UTC.
    pub hardware: bool,
}

/// Bound sockets with their services, and the addresses that were left out with the reason.
pub(super) struct Opened {
    pub(super) sockets: Vec<Socket>,
    pub(super) services: Vec<Service>,
    pub(super) left_out: Vec<String>,
}

impl Listening {
    /// Whether requests of this host alone come in, because no option names other clients.
    #[must_use]
    pub fn is_loopback_only(&self, policy: &Policy) -> bool {
        self.addresses.is_empty() && self.device.is_none() && policy.allowed.is_empty()
    }

    fn bound_to(&self, policy: &Policy) -> Vec<IpAddr> {
        if !self.addresses.is_empty() {
            self.addresses.clone()
        } else if self.is_loopback_only(policy) {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        } else {
            vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()]
        }
    }

    /// Binds all ports on all addresses. `tells`: the sockets report when replies left.
    pub(super) fn open(&self, policy: &Policy, tells: bool) -> Result<Opened, ReflectError> {
        let (mut sockets, mut services, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        let chosen = !self.addresses.is_empty();
        for address in self.bound_to(policy) {
            for &(service, port) in &self.services {
                match Socket::open(&self.settings(service, (address, port).into(), tells)) {
                    Ok(socket) => {
                        sockets.push(socket);
                        services.push(service);
                    }
                    Err(SocketError::Open { source, local, what, .. })
                        if !chosen && is_missing_family(&source) =>
                    {
                        left_out.push(format!("{local}: {what}: {source}"));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        if sockets.is_empty() {
            return Err(ReflectError::Nowhere(left_out.join("; ")));
        }
        Ok(Opened { sockets, services, left_out })
    }

    /// Whether regular clients get sockets of their own: each costs a look in every round, and the kernel has
    /// to know from which address replies leave.
    pub(super) fn has_regulars(&self, policy: &Policy) -> bool {
        let is_one = |address: &IpAddr| !address.is_unspecified() && !address.is_multicast();
        self.busy_poll && self.bound_to(policy).iter().all(is_one)
    }

    /// Settings of a socket for this service.
    pub(super) fn settings(&self, service: Service, local: SocketAddr, tells: bool) -> Settings {
        // An echo has no times in it: taking them, and handing them over, would only make it slower.
        let timed = service != Service::Echo;
        Settings {
            device: self.device.clone(),
            // Only root may: for others the process polls alone.
            busy_poll_us: (self.busy_poll && process::is_root()).then_some(BUSY_POLL_US),
            receive_buffer: Some(WAITING_BYTES),
            hops: Some(if timed { TEST_HOPS } else { ECHO_HOPS }),
            // With send stamps the queue is looked at for these.
            errors: tells,
            stamping: Stamping {
                receive: timed,
                send: timed && tells,
                hardware: timed && self.hardware,
            },
            ..Settings::new(Transport::Udp, local)
        }
    }
}

fn is_missing_family(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL))
}
