//! Messages to the service manager, as sd_notify(3) sends them.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager that started this process, if one did that waits for messages.
#[derive(Debug, Default)]
pub struct Manager {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl Manager {
    /// A manager that reads a socket.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn new(socket: UnixDatagram, watchdog: Option<Duration>) -> io::Result<Self> {
        // A manager that does not read must not stop this process.
        socket.set_nonblocking(true)?;
        Ok(Self { socket: Some(socket), watchdog })
    }

    /// The manager that the environment names.
    ///
    /// # Errors
    /// Errors of the socket that it names.
    pub fn of_environment() -> io::Result<Self> {
        let Some(name) = env::var_os("NOTIFY_SOCKET") else { return Ok(Self::default()) };
        let address = match name.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(&name)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&address)?;
        let number = |name| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        // It may be meant for another process, such as one that started this one.
        let meant = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|us| meant && *us > 0);
        Self::new(socket, watchdog.map(Duration::from_micros))
    }

    /// Time after which the manager ends this process if it was told no `WATCHDOG=1`.
    #[must_use]
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Tells it a state, such as `READY=1`. A manager that does not listen any more is told nothing.
    pub fn tell(&self, state: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(state.as_bytes());
        }
    }
}
