//! Addresses of targets, from text.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Why a target has no address.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// It has none of the forms.
    #[error("invalid target {text:?}, expected NAME, ADDRESS, NAME:PORT or [ADDRESS]:PORT")]
    Form {
        /// The text.
        text: String,
    },
    /// The resolver has an error.
    #[error("{text}: the name cannot be resolved: {source}")]
    Unresolved {
        /// The text.
        text: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The name is known and has no address.
    #[error("{text}: the name has no address")]
    Empty {
        /// The text.
        text: String,
    },
}

/// The addresses of a target, in the resolver's order; `port` where the text has none.
///
/// # Errors
/// [`ResolveError`].
pub fn resolve(text: &str, port: u16) -> Result<Vec<SocketAddr>, ResolveError> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(vec![address]);
    }
    // An address of a link has a zone (RFC 4007): [fe80::1%eth0]:862, or fe80::1%eth0.
    if let Some((address, port)) = text.strip_prefix('[').and_then(|rest| rest.rsplit_once("]:"))
        && let Ok(port) = port.parse::<u16>()
        && address.contains('%')
    {
        return resolve(address, port);
    }
    // One colon: a name and a port. More: an IPv6 address with a zone.
    let found = match text.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') => match port.parse::<u16>() {
            Ok(port) => (name, port).to_socket_addrs(),
            Err(_) => return Err(ResolveError::Form { text: text.to_owned() }),
        },
        _ => (text, port).to_socket_addrs(),
    };
    let addresses: Vec<SocketAddr> = found
        .map_err(|source| ResolveError::Unresolved { text: text.to_owned(), source })?
        .collect();
    if addresses.is_empty() {
        return Err(ResolveError::Empty { text: text.to_owned() });
    }
    Ok(addresses)
}
