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

/// Time that a connection may last. Browsers and scrapers make another one then.
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

impl Connection {
    /// The stream until the end of the connection, at which a task that waits for it wakes up.
    fn stream(&mut self, context: &mut Context<'_>) -> io::Result<Pin<&mut TcpStream>> {
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(Pin::new(&mut self.stream)),
        }
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
        self.stream(context)?.poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream(context)?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream(context)?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::routing::get;
    use std::io::{Read as _, Write as _};
    use std::thread;

    /// Serves two connections at a time, each for a short time.
    fn serve() -> SocketAddr {
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
                // More than the buffers of both sockets take.
                let router = Router::new().route("/much", get(|| async { vec![0_u8; 1 << 24] }));
                axum::serve(few, router).await.unwrap();
            });
        });
        address
    }

    fn connect(address: SocketAddr, text: &str) -> std::net::TcpStream {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    }

    fn ask(address: SocketAddr) {
        let text = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let mut stream = connect(address, text);
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    }

    #[test]
    fn connections_that_are_held_open_end_and_others_get_their_turn() {
        let address = serve();
        let mut held: Vec<_> = (0..4).map(|_| connect(address, "")).collect();
        ask(address);
        // The first one said nothing, and was closed.
        assert_eq!(held[0].read(&mut [0]).unwrap_or(0), 0);
    }

    #[test]
    fn connections_whose_answers_are_not_read_end_and_others_get_their_turn() {
        let address = serve();
        // With a second request, nothing more is read before the first one is answered.
        let text = "GET /much HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(2);
        let _held: Vec<_> = (0..4).map(|_| connect(address, &text)).collect();
        ask(address);
    }
}
