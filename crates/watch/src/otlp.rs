//! Metrics that are pushed to a collector by OTLP over HTTP, by a thread of its own.

use crate::metrics::Metrics;
use crate::otlp_form::{Times, request};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use prost::Message as _;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use std::{env, fs, thread};
use tailtrim_sys::clock;
use tokio::net::TcpStream;

/// Time between two pushes, and how long one may take, by OpenTelemetry's specification of its SDKs.
const EVERY: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(10);

/// The last push, at the end, may take so long: a watch ends within a second.
const LAST: Duration = Duration::from_millis(400);

/// A collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
    /// As it is named in requests.
    authority: String,
    path: String,
}

/// An invalid address of a collector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?}: expected http://HOST:PORT, such as http://127.0.0.1:4318 (a collector on this host encrypts what it hands on)"
)]
pub struct EndpointError {
    text: String,
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let read = || {
            let uri: Uri =
                text.parse().ok().filter(|uri: &Uri| uri.scheme_str() == Some("http"))?;
            let authority = uri.authority().filter(|_| uri.query().is_none())?;
            // The port of OTLP over HTTP.
            let (host, port) = (authority.host(), authority.port_u16().unwrap_or(4318));
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            let path = format!("{}/v1/metrics", uri.path().trim_end_matches('/'));
            (!host.is_empty()).then(|| Self { host, port, authority: authority.to_string(), path })
        };
        read().ok_or_else(|| EndpointError { text: text.to_owned() })
    }
}

/// The thread that pushes.
#[derive(Debug)]
pub(crate) struct Pusher {
    end: Sender<()>,
    ended: Receiver<()>,
}

impl Pusher {
    /// Pushes once a minute, or as often as `OTEL_METRIC_EXPORT_INTERVAL` (ms) says. `warn` is told of failures, once
    /// until it works again.
    pub(crate) fn start(
        endpoint: Endpoint,
        metrics: Arc<Metrics>,
        warn: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let interval = env::var("OTEL_METRIC_EXPORT_INTERVAL").ok();
        let interval = interval.and_then(|ms| ms.parse().ok()).filter(|ms| *ms > 0);
        let every = interval.map_or(EVERY, Duration::from_millis);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let start_ns = clock::realtime_ns().cast_unsigned();
        let ((end, asked), (tell, ended)) = (channel(), channel());
        thread::Builder::new().name("watch-otlp".to_owned()).spawn(move || {
            let mut failed = false;
            loop {
                let goes_on = matches!(asked.recv_timeout(every), Err(RecvTimeoutError::Timeout));
                let times = Times { start_ns, now_ns: clock::realtime_ns().cast_unsigned() };
                let families = metrics.families().unwrap_or_default();
                let body = request(families, host.trim(), times).encode_to_vec();
                let timeout = if goes_on { TIMEOUT } else { LAST };
                let pushed = runtime.block_on(async {
                    let pushed = tokio::time::timeout(timeout, post(&endpoint, body)).await;
                    pushed.unwrap_or_else(|_| Err(format!("no answer in {timeout:?}")))
                });
                // Counters count from the start: what this push should have told, the next one tells.
                match pushed {
                    Ok(()) => failed = false,
                    Err(why) if !std::mem::replace(&mut failed, true) => {
                        let Endpoint { authority, path, .. } = &endpoint;
                        warn(&format!(
                            "metrics cannot be pushed to http://{authority}{path}: {why}"
                        ));
                    }
                    Err(_) => {}
                }
                if !goes_on {
                    let _ = tell.send(());
                    return;
                }
            }
        })?;
        Ok(Self { end, ended })
    }

    /// Pushes a last time. A push under way that does not end is left behind.
    pub(crate) fn finish(self) {
        let _ = self.end.send(());
        let _ = self.ended.recv_timeout(LAST);
    }
}

async fn post(endpoint: &Endpoint, body: Vec<u8>) -> Result<(), String> {
    let Endpoint { host, port, authority, path } = endpoint;
    let stream = TcpStream::connect((host.as_str(), *port)).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| error.to_string())?;
    let connection = tokio::spawn(connection);
    let request = Request::post(path)
        .header(HOST, authority)
        .header(USER_AGENT, concat!("tailtrim-watch/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_TYPE, "application/x-protobuf")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(|error| error.to_string());
    connection.abort();
    let status = response?.status();
    if status.is_success() { Ok(()) } else { Err(format!("it answers {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::http::{HeaderMap, StatusCode};
    use axum::routing::post;
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    use std::net::TcpListener;
    use std::sync::Mutex;

    /// A collector that answers so, with its address and what it was sent.
    fn collector(answer: StatusCode) -> (Endpoint, Receiver<ExportMetricsServiceRequest>) {
        let (tell, told) = channel();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        listener.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        thread::spawn(move || {
            runtime.block_on(async {
                let take = async move |headers: HeaderMap, body: Bytes| {
                    assert_eq!(headers[CONTENT_TYPE], "application/x-protobuf");
                    tell.send(ExportMetricsServiceRequest::decode(body).unwrap()).unwrap();
                    answer
                };
                let app = Router::new().route("/v1/metrics", post(take));
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, app).await.unwrap();
            });
        });
        (endpoint.parse().unwrap(), told)
    }

    /// Warnings of a watch that ends.
    fn warned(endpoint: Endpoint) -> Vec<String> {
        let warned = Arc::new(Mutex::new(Vec::new()));
        let warn = {
            let warned = Arc::clone(&warned);
            move |text: &str| warned.lock().unwrap().push(text.to_owned())
        };
        let metrics = Arc::new(Metrics::new(Vec::new()));
        Pusher::start(endpoint, metrics, warn).unwrap().finish();
        warned.lock().unwrap().clone()
    }

    #[test]
    fn the_end_is_pushed_to_the_collector() {
        let (endpoint, told) = collector(StatusCode::OK);
        assert_eq!(warned(endpoint), [""; 0]);
        let pushed = told.recv().unwrap();
        let metrics = &pushed.resource_metrics[0].scope_metrics[0].metrics;
        assert!(metrics.iter().any(|metric| metric.name == "tailtrim_watch_meter_clock_steps"));
    }

    #[test]
    fn a_collector_that_refuses_is_told() {
        let (endpoint, _told) = collector(StatusCode::SERVICE_UNAVAILABLE);
        let told = warned(endpoint);
        assert!(told[0].ends_with("it answers 503 Service Unavailable"), "{told:?}");
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let told = warned(format!("http://{closed}").parse().unwrap());
        assert!(told[0].contains("refused"), "{told:?}");
    }

    #[test]
    fn addresses_of_collectors_are_read() {
        let read = |text: &str| {
            let endpoint: Endpoint = text.parse().ok()?;
            Some(format!("{} {} {}", endpoint.host, endpoint.port, endpoint.path))
        };
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(read("http://127.0.0.1:4318"), of("127.0.0.1 4318 /v1/metrics"));
        assert_eq!(read("http://[::1]:80/"), of("::1 80 /v1/metrics"));
        assert_eq!(
            read("http://collector/api/v1/otlp"),
            of("collector 4318 /api/v1/otlp/v1/metrics")
        );
        for text in ["127.0.0.1:4318", "https://127.0.0.1:4318", "http://", "http://a?b=c", ""] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
