//! The IP addresses of an interface: getifaddrs(3).

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// All addresses that it has now.
pub fn of_interface(name: &str) -> io::Result<Vec<IpAddr>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the pointer is valid for writing.
    if unsafe { libc::getifaddrs(&raw mut first) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut addresses = Vec::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: an entry of the list, which lives until it is freed below.
        let entry = unsafe { &*next };
        // SAFETY: every entry has a name that ends with a zero byte.
        let of = unsafe { CStr::from_ptr(entry.ifa_name) };
        if of.to_bytes() == name.as_bytes() {
            addresses.extend(address(entry.ifa_addr));
        }
        next = entry.ifa_next;
    }
    // SAFETY: the list that the call above gave, once.
    unsafe { libc::freeifaddrs(first) };
    Ok(addresses)
}

fn address(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: not null, and every address begins with its family.
    match libc::c_int::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: with this family it is this structure, at whatever alignment.
            let address: libc::sockaddr_in =
                unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(IpAddr::V4(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr))))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address: libc::sockaddr_in6 =
                unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(IpAddr::V6(Ipv6Addr::from(address.sin6_addr.s6_addr)))
        }
        _ => None,
    }
}
