//! Connections, no more than some at a time and none for long: strangers who hold theirs open must not take the
//! descriptors that probes and minutes need.

use axum::serve::Listener;
use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};

/// Connections at a time.
const MOST: usize = 64;

/// Requests are taken from a connection for so long. Browsers and scrapers make another one then.
const LIFETIME: Duration = Duration::from_secs(60);

/// A connection more is looked for so often when there are enough.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections.
pub(crate) struct Connections {
    listener: TcpListener,
    most: usize,
    lifetime: Duration,
    /// Held by each connection.
    open: Arc<()>,
}

/// A connection.
pub(crate) struct Connection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    _open: Arc<()>,
}

impl Connections {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self { listener, most: MOST, lifetime: LIFETIME, open: Arc::new(()) }
    }
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        while Arc::strong_count(&self.open) > self.most {
            sleep(PAUSE).await;
        }
        // It waits where the system has no more descriptors.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let end = Box::pin(sleep(self.lifetime));
        (Connection { stream, end, _open: Arc::clone(&self.open) }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use std::io::{Read as _, Write as _};
    use std::thread;

    #[test]
    fn connections_that_are_held_open_end_and_others_get_their_turn() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                let few = Connections {
                    most: 2,
                    lifetime: Duration::from_millis(300),
                    ..Connections::new(listener)
                };
                axum::serve(few, Router::new()).await.unwrap();
            });
        });
        let connect = || std::net::TcpStream::connect(address).unwrap();
        let mut held: Vec<_> = (0..4).map(|_| connect()).collect();
        let mut last = connect();
        last.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        last.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        // The first one said nothing, and was closed.
        assert_eq!(held[0].read(&mut [0]).unwrap_or(0), 0);
    }
}
