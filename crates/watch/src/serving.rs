//! Metrics and the page over HTTP.

use crate::metrics::{Format, Metrics};
use crate::page::{self, Access, Connections, Pages};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use tailtrim_sys::process;

/// Nice value of the thread that reads minutes: the last one.
const LAST: i32 = 19;

/// Serves metrics and the page at an address until the process ends. Returns the address with its port.
pub(crate) fn serve(
    address: SocketAddr,
    metrics: Arc<Metrics>,
    pages: Pages,
    access: Access,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Minutes are read for one at a time, with what the probes leave of the CPU.
        .max_blocking_threads(1)
        .on_thread_start(|| drop(process::defer(LAST)))
        .build()?;
    let access = Arc::new(access);
    let app = page::routes(Arc::new(pages), Arc::clone(&access))
        .route("/metrics", get(answer).with_state(metrics))
        .layer(from_fn_with_state(access, page::guard));
    thread::Builder::new().name("watch-http".to_owned()).spawn(move || {
        runtime.block_on(async move {
            // It ends with the process, and errors of a connection are the client's.
            if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                let _ = axum::serve(Connections::new(listener), app).await;
            }
        });
    })?;
    Ok(bound)
}

async fn answer(State(metrics): State<Arc<Metrics>>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept.unwrap_or(""));
    match metrics.encode(format) {
        Ok(body) => ([(header::CONTENT_TYPE, format.content_type())], body).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
