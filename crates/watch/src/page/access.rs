//! Readers that are let in: programs and browsers of this host, or those that know the token.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::fs;
use std::hint::black_box;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Characters of a token.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=1_024;

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// Others could read.
    #[error(
        "{address}: hosts other than this one could read there: give a token with --token-file, or \
         serve at 127.0.0.1 behind a proxy that asks for a password (docs/watch.md)"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// The file of the token.
    #[error("{path}: {text}")]
    Token {
        /// The file.
        path: PathBuf,
        /// The cause.
        text: String,
    },
}

/// Rules of access.
#[derive(Debug)]
pub(crate) struct Access(Option<Secrets>);

#[derive(Debug)]
struct Secrets {
    token: String,
    /// Cookie of a browser that has told the token: of another name for each port, since browsers give all ports of a host
    /// the same ones, and with another value in each process.
    cookie: String,
}

impl Access {
    /// The rules for an address, with the file of a token if there is one.
    pub(crate) fn new(address: SocketAddr, file: Option<&Path>) -> Result<Self, AccessError> {
        let Some(path) = file else {
            let open = AccessError::Open { address };
            return if address.ip().is_loopback() { Ok(Self(None)) } else { Err(open) };
        };
        let wrong = |text: String| AccessError::Token { path: path.to_owned(), text };
        let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let token = text.trim_ascii();
        if !TOKEN_BYTES.contains(&token.len()) || !token.bytes().all(|c| c.is_ascii_graphic()) {
            return Err(wrong(format!(
                "expected a token of {} to {} printable characters, such as openssl rand -hex 32 makes",
                TOKEN_BYTES.start(),
                TOKEN_BYTES.end()
            )));
        }
        let cookie = random().map_err(|error| wrong(format!("/dev/urandom: {error}")))?;
        let cookie = format!("tailtrim-watch-{}={cookie}", address.port());
        Ok(Self(Some(Secrets { token: token.to_owned(), cookie })))
    }

    fn allows(&self, headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
        let Some(secrets) = &self.0 else {
            // Of a page elsewhere whose name leads here, the browser tells that name.
            let host = text(headers, header::HOST).unwrap_or("");
            let told = "expected a request to localhost or 127.0.0.1; a proxy has to send that name as Host\n";
            return if is_loopback(host) {
                Ok(())
            } else {
                Err((StatusCode::MISDIRECTED_REQUEST, told))
            };
        };
        let mut cookies = text(headers, header::COOKIE).unwrap_or("").split(';');
        let cookie = cookies.any(|cookie| is_same(cookie.trim_ascii(), &secrets.cookie));
        let told = "expected the token: Authorization: Bearer TOKEN\n";
        if cookie || secrets.has_token(headers) {
            Ok(())
        } else {
            Err((StatusCode::UNAUTHORIZED, told))
        }
    }
}

impl Secrets {
    fn has_token(&self, headers: &HeaderMap) -> bool {
        let told = text(headers, header::AUTHORIZATION).and_then(|told| told.split_once(' '));
        told.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("bearer") && is_same(token.trim_ascii(), &self.token)
        })
    }
}

/// Lets a request pass that may, and says to browsers what they may do with the answer.
pub(crate) async fn guard(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    // Everybody may read the static files: the page asks for the token.
    let path = request.uri().path();
    let is_secret = path == "/metrics" || path.starts_with("/api/");
    let allowed = match access.allows(request.headers()) {
        Err((StatusCode::UNAUTHORIZED, _)) if !is_secret => Ok(()),
        allowed => allowed,
    };
    let mut response = match allowed {
        Ok(()) => next.run(request).await,
        Err((status, told)) => refused(status, told),
    };
    for (name, value) in RULES {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Gives a browser that tells the token a cookie instead.
pub(super) async fn begin_session(
    State(access): State<Arc<Access>>,
    headers: HeaderMap,
) -> Response {
    match &access.0 {
        Some(secrets) if secrets.has_token(&headers) => {
            let cookie = format!("{}; HttpOnly; SameSite=Strict; Path=/", secrets.cookie);
            (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
        }
        _ => refused(StatusCode::UNAUTHORIZED, "this is not the token\n"),
    }
}

fn refused(status: StatusCode, told: &'static str) -> Response {
    let mut response = (status, told).into_response();
    if status == StatusCode::UNAUTHORIZED {
        let asks = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, asks);
    }
    response
}

/// Rules for browsers: nothing from elsewhere, nothing inline, no frame around it.
const RULES: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether a Host is this host for itself.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Compares in a time that depends on the lengths alone.
fn is_same(told: &str, secret: &str) -> bool {
    let differ =
        told.bytes().zip(secret.bytes()).fold(0, |differ, (a, b)| black_box(differ | (a ^ b)));
    told.len() == secret.len() && differ == 0
}

fn random() -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
